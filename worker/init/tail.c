#include "worker/init/tail.h"

#include <string.h>
#include <unistd.h>

enum { ROOM = FRAME_HEADER + TAIL_FRAME };

/* Takes whole frames off the front, as long as `max` bytes are left, and a part of the next one. */
static void trim(struct tail *t, uint64_t max)
{
	size_t at = 0;
	struct frame f;

	while (at < t->n && frame_get(t->buf + at, &f) && t->kept - f.length >= max) {
		at += FRAME_HEADER + f.length;
		t->kept -= f.length;
		t->dropped += f.length;
	}
	if (at < t->n && t->kept > max && frame_get(t->buf + at, &f)) {
		uint64_t cut = t->kept - max;
		f.length -= (uint32_t)cut;
		at += cut;
		frame_put(t->buf + at, f);
		t->kept -= cut;
		t->dropped += cut;
	}
	memmove(t->buf, t->buf + at, t->n - at);
	t->n -= at;
	t->last = t->last > at ? t->last - at : 0;
}

void tail_trim(struct tail *t)
{
	trim(t, t->max);
}

/* Bytes that the newest frame can take; 0 when another one must begin. */
static size_t room_in_last(const struct tail *t, const struct frame *head)
{
	struct frame f;

	if (t->n == 0 || !frame_get(t->buf + t->last, &f) || f.stream != head->stream)
		return 0;
	return f.length < TAIL_FRAME ? TAIL_FRAME - f.length : 0;
}

ssize_t tail_read(struct tail *t, int fd, struct frame head)
{
	if (t->n + ROOM > sizeof t->buf)
		tail_trim(t);
	if (t->n + ROOM > sizeof t->buf) /* many tiny frames: their headers take the room */
		trim(t, t->kept / 2);
	size_t room = room_in_last(t, &head);
	bool fresh = room == 0;
	size_t at = t->n + (fresh ? FRAME_HEADER : 0);
	ssize_t got = read(fd, t->buf + at, fresh ? TAIL_FRAME : room);

	if (got <= 0)
		return got;
	if (fresh) {
		t->last = t->n;
		head.length = 0;
	} else {
		(void)frame_get(t->buf + t->last, &head);
	}
	head.length += (uint32_t)got;
	frame_put(t->buf + t->last, head);
	t->n = at + (size_t)got;
	t->kept += (uint64_t)got;
	return got;
}
