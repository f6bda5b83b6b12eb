/*
 * The text of a spool (api/frame.h): its lines, how they are counted, and how they are shown.
 *
 * A line belongs to one stream. It starts with the first byte that the stream writes after its last
 * '\n' (or at all) and ends with the next '\n' of the same stream. Lines are numbered from 1 in the
 * order in which they start in the spool, over all streams; so a number depends on nothing but the
 * bytes before, and never changes. Lines of two streams may overlap.
 *
 * Pure: no I/O, no clock. Frames are given whole and have been checked with frame_whole().
 */
#ifndef SERVER_STORE_LOG_TEXT_H
#define SERVER_STORE_LOG_TEXT_H
#include "api/frame.h"
#include "api/run.h"
#include "lib/base/buf.h"

enum {
	LOG_STREAMS = 3, /* index: enum frame_stream - 1 */
	LOG_CHUNK_RAW = FRAME_HEADER + FRAME_PAYLOAD_MAX, /* a chunk holds whole frames */
	LOG_LINE_TEXT = 64 << 10, /* bytes of a line that are shown */
};

/* A place between two frames. */
struct log_place {
	int64_t offset;
	int64_t lines; /* that have started before it */
	int64_t open[LOG_STREAMS]; /* number of the line that has not ended yet, 0: none */
};
/* Moves the place behind these frames. */
void log_place_pass(struct log_place *p, struct str frames);

/* When the first of these frames was read; what no clock says becomes the year 9999. */
int64_t log_frames_time(struct str frames);
/* How many bytes of the frames make the next chunk: at least one frame, else up to LOG_CHUNK_RAW.
 */
size_t log_chunk_cut(struct str frames);
/* Cuts what stands before `offset` off the front. False when that is within a frame. */
bool log_frames_from(struct str *frames, int64_t *at, int64_t offset);

/* The output of one stream (enum frame_stream) or of all (0), as it was written. */
void log_frames_text(struct str frames, int stream, struct buf *out);

/*
 * Turns frames into lines. Progress is folded: of what stands between '\r' only the last shows.
 * Escape sequences and any other bytes stay as they are. A line shows its first `text_max` bytes;
 * a note says how many more there are.
 */
struct log_piece {
	int64_t number; /* 0: no line is open */
	int64_t time; /* of its first byte */
	struct buf text;
	int64_t more; /* bytes that did not fit */
	bool cr; /* the last byte was '\r' */
	bool headless; /* its start has not been seen */
	bool changed; /* since log_scan_open() */
};
struct log_scan {
	struct log_place at;
	int64_t frame_at; /* where the frame starts that is being read */
	size_t text_max;
	struct log_piece piece[LOG_STREAMS];
	/* A line has ended; lent for the call. `at.offset` is behind the frame that ends it. */
	void (*on_line)(void *arg, const struct log_line *line);
	void *arg;
};
/* Starts at a place; lines that are open there are headless: their start is shown as "…". */
void log_scan_init(struct log_scan *s, const struct log_place *from, size_t text_max);
void log_scan_done(struct log_scan *s);
void log_scan_add(struct log_scan *s, struct str frames);
/* The line of a stream (0 … LOG_STREAMS - 1) that has not ended yet, as far as it is there. False
 * when there is none. Valid until the next call on s. */
bool log_scan_open(struct log_scan *s, int stream, struct log_line *ret);

#endif
