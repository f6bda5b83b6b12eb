/*
 * Bytes are read straight into the buffer, behind the header of a frame that grows as long as the
 * same stream goes on, so that a command that writes single bytes does not cost a frame for each.
 * The buffer is written when it is full or when its first byte is FLUSH_AFTER old.
 */
#include "worker/init/spool.h"

#include "worker/init/ctl.h"
#include "worker/init/file.h"
#include "worker/init/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_AFTER (20 * INT64_C(1000))
#define RETRY_AFTER TICK_SECOND

enum { WORTH_A_READ = 4096, TAIL_PART = 4 };

static void append(struct spool *s, size_t n)
{
	if (s->due == 0)
		s->due = tick_elapsed() + FLUSH_AFTER;
	s->n += n;
}

_Static_assert(CTL_PROLOGUE_MAX <= SPOOL_BUFFER / 2, "the prologue leaves room in the buffer");

static void take_prologue(struct spool *s, int dirfd)
{
	int fd = openat(dirfd, CTL_PROLOGUE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, s->buf, CTL_PROLOGUE_MAX) : -1;
	bool ok;

	if (fd >= 0)
		(void)close(fd);
	if (n > 0)
		append(s, frame_whole(s->buf, (size_t)n, &ok));
	if (s->n != 0)
		spool_flush(s);
}

int spool_open(struct spool *s, int dirfd, uint16_t rank, uint64_t max)
{
	memset(s, 0, sizeof *s);
	s->rank = rank;
	s->tail.max = max / TAIL_PART < TAIL_MAX ? max / TAIL_PART : TAIL_MAX;
	s->max = max - s->tail.max;
	s->fd = file_make(dirfd, CTL_SPOOL, O_EXCL);
	if (s->fd < 0)
		return -1;
	take_prologue(s, dirfd);
	return 0;
}

/* A frame of our own; there is always room for a few, which SPOOL_NOTES keeps free. */
static void note(struct spool *s, const char *text, uint64_t count)
{
	char line[160];
	int n = snprintf(line, sizeof line, "tidemill: %s: %" PRIu64 " bytes\n", text, count);
	struct frame f = { (uint32_t)n, FRAME_SYSTEM, s->rank, (uint64_t)tick_real() };

	if (n <= 0 || n >= (int)sizeof line || sizeof s->buf - s->n < FRAME_HEADER + (size_t)n)
		return;
	frame_put(s->buf + s->n, f);
	memcpy(s->buf + s->n + FRAME_HEADER, line, (size_t)n);
	s->head.length = 0;
	append(s, FRAME_HEADER + (size_t)n);
}

static void note_gap(struct spool *s)
{
	if (s->gap == 0 || s->n > SPOOL_BUFFER)
		return;
	note(s, "output was lost here because the log could not be written", s->gap);
	s->gap = 0;
}

/* How many bytes the open frame can still take, after opening one where that is needed. */
static size_t make_room(struct spool *s, enum frame_stream stream)
{
	size_t frame_room = FRAME_PAYLOAD_MAX - s->head.length;

	if (s->n + FRAME_HEADER + WORTH_A_READ > SPOOL_BUFFER)
		spool_flush(s);
	if (s->n + FRAME_HEADER + WORTH_A_READ > SPOOL_BUFFER)
		return 0;
	note_gap(s);
	if (s->n + FRAME_HEADER + WORTH_A_READ > SPOOL_BUFFER)
		return 0;
	if (s->head.length == 0 || s->head.stream != stream || frame_room < WORTH_A_READ) {
		s->head = (struct frame){ 0, (uint8_t)stream, s->rank, (uint64_t)tick_real() };
		s->frame = s->n;
		frame_room = FRAME_PAYLOAD_MAX;
	}
	size_t at = s->frame + FRAME_HEADER + s->head.length;
	return frame_room < SPOOL_BUFFER - at ? frame_room : SPOOL_BUFFER - at;
}

static ssize_t read_away(int fd, uint64_t *count)
{
	static unsigned char nowhere[FRAME_PAYLOAD_MAX];
	ssize_t got = read(fd, nowhere, sizeof nowhere);

	if (got > 0)
		*count += (uint64_t)got;
	return got;
}

ssize_t spool_read(struct spool *s, int fd, enum frame_stream stream)
{
	uint64_t allowed = s->max - s->stored;
	size_t room;

	if (allowed == 0)
		return tail_read(&s->tail, fd,
			(struct frame){ 0, (uint8_t)stream, s->rank, (uint64_t)tick_real() });
	room = make_room(s, stream);
	if (room == 0) {
		ssize_t gone = read_away(fd, &s->gap);
		s->lost += gone > 0 ? (uint64_t)gone : 0;
		return gone;
	}
	if (room > allowed)
		room = (size_t)allowed;
	ssize_t got = read(fd, s->buf + s->frame + FRAME_HEADER + s->head.length, room);
	if (got <= 0)
		return got;
	append(s, (s->head.length == 0 ? FRAME_HEADER : 0) + (size_t)got);
	s->head.length += (uint32_t)got;
	s->stored += (uint64_t)got;
	frame_put(s->buf + s->frame, s->head);
	return got;
}

/* Bytes of p that went to the end of the file. */
static size_t put(const struct spool *s, const unsigned char *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pwrite(s->fd, p + done, n - done, (off_t)(s->length + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

void spool_flush(struct spool *s)
{
	size_t done = put(s, s->buf, s->n), whole;
	bool ok;

	/* A torn frame at the end of the file is written over by the next try. */
	whole = done == s->n ? done : frame_whole(s->buf, done, &ok);
	memmove(s->buf, s->buf + whole, s->n - whole);
	s->n -= whole;
	s->length += whole;
	s->head.length = 0;
	s->due = s->n == 0 ? 0 : tick_elapsed() + RETRY_AFTER;
}

/* Output of the command in whole frames. */
static uint64_t payload_of(const unsigned char *p, size_t n)
{
	uint64_t sum = 0;
	struct frame f;

	for (size_t at = 0; at + FRAME_HEADER <= n && frame_get(p + at, &f);
		at += FRAME_HEADER + f.length)
		sum += f.stream != FRAME_SYSTEM ? f.length : 0;
	return sum;
}

static void write_tail(struct spool *s)
{
	struct tail *t = &s->tail;
	size_t done = put(s, t->buf, t->n), whole;
	bool ok;

	whole = done == t->n ? done : frame_whole(t->buf, done, &ok);
	s->length += whole;
	s->lost += payload_of(t->buf + whole, t->n - whole);
}

void spool_close(struct spool *s)
{
	spool_flush(s);
	note_gap(s);
	tail_trim(&s->tail);
	s->dropped = s->tail.dropped;
	if (s->dropped != 0)
		note(s, "the limit of the log was reached; left out here", s->dropped);
	spool_flush(s);
	s->lost += payload_of(s->buf, s->n);
	write_tail(s);
	(void)ftruncate(s->fd, (off_t)s->length);
	(void)fdatasync(s->fd);
	(void)close(s->fd);
	s->fd = -1;
}
