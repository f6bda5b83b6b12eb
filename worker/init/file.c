#include "worker/init/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int file_make(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0640);
	struct stat dir, st;

	if (fd >= 0 && fstat(dirfd, &dir) == 0 && fstat(fd, &st) == 0 && dir.st_gid != st.st_gid &&
		fchown(fd, (uid_t)-1, dir.st_gid) < 0)
		errno = 0;
	return fd;
}

void file_peek(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;

	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		(void)close(fd);
}
