#include "worker/init/usage.h"

#include "worker/init/cgroup.h"
#include "worker/init/file.h"
#include "worker/init/text.h"
#include "worker/init/tick.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PROCESSES_MAX = 65536 /* of the host */, STAT_MAX = 1024, NET_MAX = 8192, SECTOR = 512 };

/* Of /proc/PID/stat, counted from behind the name, which may hold anything. */
enum { FIELD_PPID = 4, FIELD_UTIME = 14, FIELD_CSTIME = 17, FIELD_RSS = 24 };

struct process {
	int pid, parent;
	bool ours;
	int64_t ticks, pages;
};

static struct process all[PROCESSES_MAX];

/* ---- by /proc ---- */

static bool read_process(const char *pid, struct process *ret)
{
	char path[64], line[STAT_MAX], *p;
	struct process x = { .pid = (int)text_digits(pid) };

	(void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	file_peek(path, line, sizeof line);
	p = strrchr(line, ')');
	for (int field = 3; p != NULL && field <= FIELD_RSS; field++) {
		p = strchr(p + 1, ' ');
		if (p == NULL)
			return false;
		int64_t v = text_digits(p + 1);
		if (field == FIELD_PPID)
			x.parent = (int)v;
		else if (field >= FIELD_UTIME && field <= FIELD_CSTIME)
			x.ticks += v;
		else if (field == FIELD_RSS)
			x.pages = v;
	}
	if (p == NULL)
		return false;
	*ret = x;
	return true;
}

static size_t read_processes(void)
{
	DIR *d = opendir("/proc");
	size_t n = 0;

	if (d == NULL)
		return 0;
	for (struct dirent *e; n < PROCESSES_MAX && (e = readdir(d)) != NULL;)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_process(e->d_name, &all[n]))
			n++;
	(void)closedir(d);
	return n;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool is_ours(int pid, size_t n)
{
	const struct process key = { .pid = pid };
	const struct process *found = bsearch(&key, all, n, sizeof *all, by_pid);

	return pid == getpid() || (found != NULL && found->ours);
}

/* A parent mostly stands before its children; the last round finds no more. */
static void mark_ours(size_t n)
{
	qsort(all, n, sizeof *all, by_pid);
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < n; i++)
			if (!all[i].ours && is_ours(all[i].parent, n))
				more = all[i].ours = true;
	}
}

/* Counted by the process; needs its rights, or those of root. */
static void add_io(int pid, int64_t *read_bytes, int64_t *written_bytes)
{
	char path[64], text[512];
	const char *in, *out;

	(void)snprintf(path, sizeof path, "/proc/%d/io", pid);
	file_peek(path, text, sizeof text);
	in = strstr(text, "\nread_bytes: ");
	out = strstr(text, "\nwrite_bytes: ");
	*read_bytes += in != NULL ? text_digits(in + 13) : 0;
	*written_bytes += out != NULL ? text_digits(out + 14) : 0;
}

static int64_t micro(const struct timeval *t)
{
	return (int64_t)t->tv_sec * TICK_SECOND + t->tv_usec;
}

/* What has ended is counted by who has waited for it: a living parent, or us. */
static void add_processes(struct text *t, bool last)
{
	struct rusage ended = { 0 };
	size_t n = last ? 0 : read_processes();
	int64_t ticks = 0, pages = 0;

	(void)getrusage(RUSAGE_CHILDREN, &ended);
	int64_t in = (int64_t)ended.ru_inblock * SECTOR, out = (int64_t)ended.ru_oublock * SECTOR;
	mark_ours(n);
	for (size_t i = 0; i < n; i++) {
		if (!all[i].ours)
			continue;
		ticks += all[i].ticks;
		pages += all[i].pages;
		add_io(all[i].pid, &in, &out);
	}
	text_number(t, "cpu_us",
		micro(&ended.ru_utime) + micro(&ended.ru_stime) +
			ticks * TICK_SECOND / sysconf(_SC_CLK_TCK));
	text_number(t, "memory", last ? -1 : pages * sysconf(_SC_PAGESIZE));
	text_number(t, "read_bytes", in);
	text_number(t, "written_bytes", out);
	text_add(t, "scope=processes\n");
}

/* ---- by the cgroup ---- */

/* The number after so many others; 0: none. */
static int64_t field(const char *p, int skip)
{
	for (p += strspn(p, " "); skip > 0; skip--) {
		p += strspn(p, "0123456789");
		p += strspn(p, " ");
	}
	int64_t v = text_digits(p);
	return v > 0 ? v : 0;
}

/* "  eth0: BYTES PACKETS … (8 numbers) BYTES …", below two lines of headings. */
static void add_network(struct text *t)
{
	char text[NET_MAX], *line = text;
	int64_t received = 0, sent = 0;

	file_peek("/proc/net/dev", text, sizeof text);
	for (; line != NULL; line = strchr(line, '\n')) {
		char *name = line + strspn(line, "\n ");
		char *p = strchr(name, ':');
		line = name;
		if (p == NULL)
			break;
		if (memchr(name, '\n', (size_t)(p - name)) != NULL ||
			memchr(name, '|', (size_t)(p - name)) != NULL ||
			strncmp(name, "lo:", 3) == 0)
			continue;
		received += field(p + 1, 0);
		sent += field(p + 1, 8);
	}
	text_number(t, "received_bytes", received);
	text_number(t, "sent_bytes", sent);
}

static void add_cgroup(struct text *t, const struct cgroup_usage *u, bool last)
{
	text_number(t, "cpu_us", u->cpu_us);
	text_number(t, "memory", last ? -1 : u->memory);
	text_number(t, "read_bytes", u->read_bytes);
	text_number(t, "written_bytes", u->written_bytes);
	text_number(t, "periods", u->periods);
	text_number(t, "throttled_periods", u->throttled_periods);
	text_number(t, "throttled_us", u->throttled_us);
	text_number(t, "oom_kills", u->oom_kills);
	text_number(t, "stalled_us", u->stalled_us);
	text_add(t, "scope=cgroup\n");
}

void usage_write(int dirfd, int64_t at_us, bool last)
{
	struct text t = { .n = 0 };
	struct cgroup_usage u = { .cpu_us = -1 };
	int fd;

	text_number(&t, "at_us", at_us);
	if (getpid() == 1)
		cgroup_usage(&u);
	if (u.cpu_us >= 0)
		add_cgroup(&t, &u, last);
	else
		add_processes(&t, last);
	if (getpid() == 1)
		add_network(&t);
	fd = file_make(dirfd, CTL_USAGE_TMP, O_TRUNC);
	if (fd < 0)
		return;
	bool written = text_write(fd, t.p, t.n) == 0;
	if (close(fd) == 0 && written)
		(void)renameat(dirfd, CTL_USAGE_TMP, dirfd, CTL_USAGE);
}
