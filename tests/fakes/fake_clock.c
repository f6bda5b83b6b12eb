/*
 * A fake of the calendar's clock, for LD_PRELOAD: CLOCK_REALTIME is off by as many microseconds as
 * stand, as a 64-bit number, in the file that FAKE_CLOCK names; the test sets it while the program
 * runs, as an operator or NTP steps a clock. Other clocks, the kernel's times of files, and static
 * programs are as they are.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void open_offset(void)
{
	const char *path = getenv("FAKE_CLOCK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd >= 0 ? mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (p != MAP_FAILED)
		offset = p;
	if (fd >= 0)
		(void)close(fd);
}

static void step(struct timespec *t)
{
	int64_t us =
		(int64_t)t->tv_sec * 1000000 + t->tv_nsec / 1000 + (offset != NULL ? *offset : 0);

	t->tv_nsec = us % 1000000 * 1000 + t->tv_nsec % 1000;
	t->tv_sec = us / 1000000;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		step(t);
	return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret != NULL)
		*ret = now.tv_sec;
	return now.tv_sec;
}
