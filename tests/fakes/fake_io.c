/*
 * A fake of a bad disk, for LD_PRELOAD: calls on regular files below a folder fail now and then, or
 * do less than they were asked to, as full disks, broken ones and signals make them.
 *
 *     FAKE_IO=SEED,RATE,FOLDER   one call of RATE is spoiled; what comes is decided by SEED;
 *                                with a RATE of 0 all of them are, with EIO
 *     FAKE_IO_LOG=FILE           a line for each of them
 *     FAKE_IO_ON=FILE            its first byte is '1' while this is on
 *
 * write and pwrite: ENOSPC, EIO or a short count; read and pread: EIO or a short count; fsync,
 * fdatasync and rename: EIO or ENOSPC, and the rename has not happened. Programs that are static do
 * not see it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[512];
static size_t folder_n;
static unsigned rate;
static _Atomic(uint64_t) state;
static int notes = -1;
static const volatile char *on;

static uint64_t number(const char **p)
{
	uint64_t n = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		n = n * 10 + (uint64_t)(**p - '0');
	if (**p == ',')
		(*p)++;
	return n;
}

/* SEED,RATE,FOLDER */
static bool configure(const char *what)
{
	state = number(&what) * UINT64_C(2654435761) + (uint64_t)getpid();
	rate = (unsigned)number(&what);
	folder_n = strlen(what);
	if (what[0] != '/' || folder_n >= sizeof folder)
		return false;
	memcpy(folder, what, folder_n);
	return true;
}

__attribute__((constructor)) static void begin(void)
{
	const char *what = getenv("FAKE_IO"), *log = getenv("FAKE_IO_LOG"),
		   *sw = getenv("FAKE_IO_ON");
	int fd = sw != NULL ? open(sw, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd >= 0 ? mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (fd >= 0)
		(void)close(fd);
	if (what == NULL || p == MAP_FAILED || !configure(what))
		return;
	notes = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	on = p;
}

static unsigned next(unsigned n)
{
	uint64_t x = atomic_fetch_add(&state, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((x ^ x >> 31) % n);
}

static void note(const char *call, const char *how, const char *path)
{
	char line[800];
	int n = snprintf(line, sizeof line, "%s %s %s\n", call, how, path);

	if (notes >= 0 && n > 0)
		(void)!syscall(SYS_write, notes, line, (size_t)n);
}

static bool below(const char *path)
{
	return strncmp(path, folder, folder_n) == 0 && path[folder_n] == '/';
}

enum how { WELL, NO_SPACE, BROKEN, SHORT };

/* What is to become of a call; `hows` of them are possible. */
static enum how choose(const char *call, const char *path, const enum how *hows, unsigned n)
{
	static const char *const names[] = { "", "ENOSPC", "EIO", "short" };

	if (!below(path) || (rate != 0 && next(rate) != 0))
		return WELL;
	enum how how = rate != 0 ? hows[next(n)] : BROKEN;
	note(call, names[how], path);
	errno = how == NO_SPACE ? ENOSPC : EIO;
	return how;
}

static enum how spoil(const char *call, int fd, const enum how *hows, unsigned n)
{
	char name[64], path[600];
	int saved = errno;
	struct stat st;
	ssize_t got;

	if (on == NULL || *on != '1' || fstat(fd, &st) < 0 ||
		!(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return WELL;
	(void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	got = readlink(name, path, sizeof path - 1);
	errno = saved;
	if (got <= 0)
		return WELL;
	path[got] = '\0';
	return choose(call, path, hows, n);
}

static const enum how writes[] = { NO_SPACE, BROKEN, SHORT, SHORT };
static const enum how reads[] = { BROKEN, SHORT, SHORT };
static const enum how syncs[] = { NO_SPACE, BROKEN };

static size_t some(enum how how, size_t n)
{
	return how == SHORT && n > 1 ? 1 + next((unsigned)(n < 65536 ? n - 1 : 65535)) : n;
}

ssize_t write(int fd, const void *p, size_t n)
{
	enum how how = spoil("write", fd, writes, 4);

	return how == NO_SPACE || how == BROKEN ? -1
						: (ssize_t)syscall(SYS_write, fd, p, some(how, n));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	enum how how = spoil("pwrite", fd, writes, 4);

	return how == NO_SPACE || how == BROKEN
		       ? -1
		       : (ssize_t)syscall(SYS_pwrite64, fd, p, some(how, n), at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
	return pwrite(fd, p, n, at);
}

ssize_t read(int fd, void *p, size_t n)
{
	enum how how = spoil("read", fd, reads, 3);

	return how == BROKEN ? -1 : (ssize_t)syscall(SYS_read, fd, p, some(how, n));
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	enum how how = spoil("pread", fd, reads, 3);

	return how == BROKEN ? -1 : (ssize_t)syscall(SYS_pread64, fd, p, some(how, n), at);
}

ssize_t pread64(int fd, void *p, size_t n, off_t at)
{
	return pread(fd, p, n, at);
}

int fsync(int fd)
{
	return spoil("fsync", fd, syncs, 2) != WELL ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return spoil("fdatasync", fd, syncs, 2) != WELL ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
	if (on != NULL && *on == '1' && choose("rename", to, syncs, 2) != WELL)
		return -1;
	return (int)syscall(SYS_rename, from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (on != NULL && *on == '1' && spoil("renameat", to_dir, syncs, 2) != WELL)
		return -1;
	return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}
