/*
 * The spool: what the command writes, framed (api/frame.h) and appended to a file in large pieces.
 * Frames are whole in the file up to `length`; a write that fails is tried again and never stops
 * the command: what does not fit into the buffer meanwhile is counted, and the gap is noted. Of
 * an output that is longer than the log may be, the start is kept and the end (tail.h), which goes
 * into the file when all is over.
 */
#ifndef WORKER_INIT_SPOOL_H
#define WORKER_INIT_SPOOL_H
#include "api/frame.h"
#include "worker/init/tail.h"

#include <sys/types.h>

enum { SPOOL_BUFFER = 256 * 1024, SPOOL_NOTES = 1024 };

struct spool {
	int fd;
	uint16_t rank;
	uint64_t max; /* payload bytes that may be stored, before the tail */
	uint64_t stored; /* payload bytes taken into the buffer */
	uint64_t dropped; /* between head and tail; once it is closed */
	uint64_t lost; /* because writing failed */
	uint64_t gap; /* lost since the last note about it */
	uint64_t length; /* bytes of whole frames in the file */
	int64_t due; /* when the buffer is to be written (tick_elapsed), 0: it is empty */
	size_t n; /* bytes in buf */
	size_t frame; /* where the frame that may still grow starts in buf */
	struct frame head; /* its header; length 0: none may grow */
	struct tail tail;
	unsigned char buf[SPOOL_BUFFER + SPOOL_NOTES];
};

/* Makes the file, which must not exist, and begins it with the notes that are there (CTL_PROLOGUE).
 * -1 with errno set. */
int spool_open(struct spool *s, int dirfd, uint16_t rank, uint64_t max);
/* One read(2) of fd into the spool, at most a frame; what read returned. */
ssize_t spool_read(struct spool *s, int fd, enum frame_stream stream);
/* Writes what is buffered, as far as that goes. */
void spool_flush(struct spool *s);
/* Notes what is missing, writes, syncs and closes. */
void spool_close(struct spool *s);

#endif
