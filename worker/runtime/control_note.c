/* A step's log begins before its command: what is told of its image stands in a file of its own,
 * which the init copies to the head of the spool. */
#include "api/frame.h"
#include "lib/base/clock.h"
#include "worker/init/ctl.h"
#include "worker/runtime/control.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MAX_HERE = 1024, TEXT_MAX = 800 };

static const char *path_of(char out[PATH_MAX_HERE], const char *ctl)
{
	(void)str_print(out, PATH_MAX_HERE, "%.600s/" CTL_PROLOGUE, ctl);
	return out;
}

/* Where its last whole frame ends: a host that went down may have torn one. -1 when it is full. */
static ssize_t end_of(int fd)
{
	static unsigned char all[CTL_PROLOGUE_MAX];
	ssize_t n = pread(fd, all, sizeof all, 0);
	bool sound;

	if (n < 0 || n + FRAME_HEADER + TEXT_MAX > (ssize_t)sizeof all)
		return -1;
	return (ssize_t)frame_whole(all, (size_t)n, &sound);
}

/* When it was, on a clock that nobody sets: for control_noted. */
static int stamp(int fd)
{
	int64_t now = clock_elapsed(&clock_real);
	const struct timespec t = { now / CLOCK_SECOND, now % CLOCK_SECOND * 1000 };

	(void)futimens(fd, (const struct timespec[]){ t, t });
	return 0;
}

static int append(int fd, unsigned rank, const char *text, const char *path, struct err *e)
{
	unsigned char frame[FRAME_HEADER + TEXT_MAX];
	ssize_t at = end_of(fd), n;
	char *line = (char *)frame + FRAME_HEADER;

	if (at < 0)
		return 0;
	(void)str_print(line, TEXT_MAX, "tidemill: %.*s\n", TEXT_MAX - 16, text);
	n = (ssize_t)strlen(line);
	frame_put(frame, (struct frame){ (uint32_t)n, FRAME_SYSTEM, (uint16_t)rank,
				 (uint64_t)clock_now(&clock_real) });
	if (pwrite(fd, frame, (size_t)n + FRAME_HEADER, at) == n + FRAME_HEADER)
		return stamp(fd);
	(void)err_errno(e, "write", path);
	return ftruncate(fd, at) < 0 ? err_errno(e, "truncate", path) : -1;
}

int control_note(const char *ctl, unsigned rank, const char *text, struct err *e)
{
	char path[PATH_MAX_HERE];
	int fd = open(path_of(path, ctl), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	int rc = fd < 0 ? err_errno(e, "open", path) : append(fd, rank, text, path, e);

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

int64_t control_noted(const char *ctl)
{
	char path[PATH_MAX_HERE];
	struct stat st;

	if (stat(path_of(path, ctl), &st) < 0)
		return 0;
	return (int64_t)st.st_mtim.tv_sec * CLOCK_SECOND + st.st_mtim.tv_nsec / 1000;
}
