/*
 * Silence is counted on the elapsed clock, which nobody can set. The worker writes into the file's
 * mtime when, by that clock, the server heard of it for sure; a file that was touched otherwise
 * carries a time of the calendar, which is later than any of this clock, and counts as touched now.
 */
#include "worker/init/deadman.h"

#include "worker/init/ctl.h"
#include "worker/init/tick.h"

#include <fcntl.h>

static void look(struct deadman *d, int64_t now)
{
	struct stat st;
	int64_t at;

	if (fstatat(d->dirfd, CTL_ALIVE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (st.st_mtim.tv_sec == d->mtime.tv_sec && st.st_mtim.tv_nsec == d->mtime.tv_nsec)
		return;
	d->mtime = st.st_mtim;
	at = (int64_t)st.st_mtim.tv_sec * TICK_SECOND + st.st_mtim.tv_nsec / 1000;
	d->touched = at >= 0 && at < now ? at : now;
}

void deadman_init(struct deadman *d, int dirfd, int64_t limit_us)
{
	int64_t now = tick_elapsed();

	*d = (struct deadman){ .dirfd = dirfd, .limit_us = limit_us, .touched = now };
	look(d, now);
	d->checked = now;
}

bool deadman_expired(struct deadman *d)
{
	int64_t now;

	if (d->limit_us == 0)
		return false;
	now = tick_elapsed();
	look(d, now);
	d->checked = now;
	return now - d->touched > d->limit_us;
}

int64_t deadman_due(const struct deadman *d)
{
	int64_t next, end;

	if (d->limit_us == 0)
		return 0;
	next = d->checked + (d->limit_us < 4 * TICK_SECOND ? d->limit_us / 4 : TICK_SECOND);
	end = d->touched + d->limit_us + 1000;
	return end < next && end > d->checked ? end : next;
}
