#include "lib/loop/timer.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/loop/inside.h"

#include <event2/event.h>

/* A binary min-heap by due time. Each timer knows its slot, so that moving one costs O(log n). */

static void put(struct loop *l, size_t slot, struct loop_timer *t)
{
	l->heap[slot] = t;
	t->slot = slot;
}

static void sift_up(struct loop *l, size_t slot, struct loop_timer *t)
{
	while (slot > 1 && l->heap[slot / 2]->due_us > t->due_us) {
		put(l, slot, l->heap[slot / 2]);
		slot /= 2;
	}
	put(l, slot, t);
}

static void sift_down(struct loop *l, size_t slot, struct loop_timer *t)
{
	for (;;) {
		size_t child = 2 * slot;

		if (child > l->timers)
			break;
		if (child < l->timers && l->heap[child + 1]->due_us < l->heap[child]->due_us)
			child++;
		if (l->heap[child]->due_us >= t->due_us)
			break;
		put(l, slot, l->heap[child]);
		slot = child;
	}
	put(l, slot, t);
}

static void place(struct loop *l, size_t slot, struct loop_timer *t)
{
	if (slot > 1 && l->heap[slot / 2]->due_us > t->due_us)
		sift_up(l, slot, t);
	else
		sift_down(l, slot, t);
}

static void arm(struct loop_timer *t, int64_t due_us)
{
	struct loop *l = t->loop;

	t->due_us = due_us;
	if (t->slot != 0) {
		place(l, t->slot, t);
		return;
	}
	if (l->timers + 1 >= l->heap_cap) {
		l->heap_cap = l->heap_cap != 0 ? 2 * l->heap_cap : 64;
		l->heap = mem_resize(l->heap, l->heap_cap, sizeof(struct loop_timer *));
	}
	l->timers++;
	sift_up(l, l->timers, t);
}

void loop_timer_init(struct loop_timer *t, struct loop *l, loop_timer_cb *fn, void *arg)
{
	*t = (struct loop_timer){ .loop = l, .fn = fn, .arg = arg };
}

void loop_timer_at(struct loop_timer *t, int64_t due_us)
{
	t->period_us = 0;
	arm(t, due_us);
}

void loop_timer_set(struct loop_timer *t, int64_t ms)
{
	loop_timer_at(t, clock_elapsed(&clock_real) + ms * 1000);
}

void loop_timer_every(struct loop_timer *t, int64_t ms)
{
	BUG_ON(ms <= 0);
	t->period_us = ms * 1000;
	arm(t, clock_elapsed(&clock_real) + t->period_us);
}

void loop_timer_cancel(struct loop_timer *t)
{
	struct loop *l = t->loop;
	size_t slot = t->slot;
	struct loop_timer *last;

	if (slot == 0)
		return;
	t->slot = 0;
	last = l->heap[l->timers--];
	if (last != t)
		place(l, slot, last);
}

bool loop_timer_armed(const struct loop_timer *t)
{
	return t->slot != 0;
}

void timers_arm(struct loop *l)
{
	int64_t due = l->timers != 0 ? l->heap[1]->due_us : INT64_MAX, wait;
	struct timeval tv;

	/* A tick that comes too early is harmless, so that it is only ever moved forward. */
	if (due >= l->tick_us)
		return;
	wait = due - clock_elapsed(&clock_real);
	if (wait < 0)
		wait = 0;
	tv = (struct timeval){ .tv_sec = wait / 1000000, .tv_usec = wait % 1000000 };
	event_add(l->tick, &tv);
	l->tick_us = due;
}

void timers_run(struct loop *l)
{
	int64_t now;

	if (l->timers == 0)
		return;
	now = clock_elapsed(&clock_real);
	/* The bound keeps a timer that sets itself to zero from holding the turn. */
	for (size_t n = l->timers; n > 0 && l->timers != 0 && l->heap[1]->due_us <= now; n--) {
		struct loop_timer *t = l->heap[1];

		loop_enter(l);
		if (t->period_us != 0) {
			t->due_us += t->period_us;
			arm(t, t->due_us > now ? t->due_us : now + t->period_us);
		} else {
			loop_timer_cancel(t);
		}
		t->fn(t->arg);
	}
}

void timers_done(struct loop *l)
{
	/* An armed timer would fire into memory that its owner may have freed. */
	BUG_ON(l->timers != 0);
	mem_free(l->heap);
}
