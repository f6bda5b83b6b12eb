/*
 * A shared mapping of a small file: a store is all that it costs, and nobody who watches the folder
 * is woken. Where the file system cannot give the page, at first or later (SIGBUS), memory of our
 * own takes its place, and the numbers are lost with us: the file goes, since what it says would be
 * held for all.
 */
#include "worker/init/taken.h"

#include "worker/init/ctl.h"
#include "worker/init/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static struct taken own;
static void *page;
static int folder;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const char *at = info->si_addr, *first = page;

	(void)context;
	if (at < first || at >= first + PAGE ||
		mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0) == MAP_FAILED)
		(void)signal(sig, SIG_DFL);
	else
		(void)unlinkat(folder, CTL_TAKEN, 0);
}

struct taken *taken_open(int dirfd)
{
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int fd = file_make(dirfd, CTL_TAKEN, O_EXCL);
	int rw = fd >= 0 ? openat(dirfd, CTL_TAKEN, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
	void *p = rw >= 0 && posix_fallocate(rw, 0, PAGE) == 0
			  ? mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, rw, 0)
			  : MAP_FAILED;

	if (fd >= 0)
		(void)close(fd);
	if (rw >= 0)
		(void)close(rw);
	if (p == MAP_FAILED)
		return &own;
	page = p;
	folder = dirfd;
	(void)sigaction(SIGBUS, &act, NULL);
	return p;
}
