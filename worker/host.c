#include "worker/host.h"

#include "lib/base/buf.h"
#include "lib/base/fs.h"
#include "lib/base/num.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { SMALL_FILE = 4096 };

static bool read_small(const char *path, struct buf *text)
{
	struct err e;

	buf_clear(text);
	return fs_read(path, text, &e) == 0;
}

static void read_boot_id(struct host *h, struct buf *text)
{
	(void)str_print(h->boot_id, sizeof h->boot_id, "unknown");
	if (read_small("/proc/sys/kernel/random/boot_id", text))
		(void)str_print(h->boot_id, sizeof h->boot_id, "%.*s",
			STR_ARG(str_slice(buf_str(text), 0, 36)));
}

/* cgroup v2: "max 100000" or "150000 100000". */
static double cgroup_cpus(struct buf *text)
{
	struct str line, quota;
	int64_t q, period;

	if (!read_small("/sys/fs/cgroup/cpu.max", text))
		return 0;
	line = str_slice(buf_str(text), 0, strcspn(text->p, "\n"));
	if (!str_next(&line, ' ', &quota) || !num_parse_i64(quota, 1, INT64_MAX, &q) ||
		!num_parse_i64(line, 1, INT64_MAX, &period))
		return 0;
	return (double)q / (double)period;
}

static double count_cpus(struct buf *text)
{
	cpu_set_t set;
	double n = sched_getaffinity(0, sizeof set, &set) == 0 ? (double)CPU_COUNT(&set)
							       : (double)get_nprocs();
	double limit = cgroup_cpus(text);

	return limit > 0 && limit < n ? limit : n;
}

static int64_t count_memory(struct buf *text)
{
	struct sysinfo s;
	int64_t all = 0, limit;

	if (sysinfo(&s) == 0)
		all = (int64_t)(s.totalram * s.mem_unit);
	if (read_small("/sys/fs/cgroup/memory.max", text) &&
		num_parse_i64(str_slice(buf_str(text), 0, strcspn(text->p, "\n")), 1, INT64_MAX,
			&limit) &&
		(all == 0 || limit < all))
		return limit;
	return all;
}

int host_read(struct host *ret, struct err *e)
{
	struct buf text;

	buf_init(&text, SMALL_FILE);
	buf_addc(&text, '\0');
	read_boot_id(ret, &text);
	ret->cpus = count_cpus(&text);
	ret->memory = count_memory(&text);
	buf_done(&text);
	return ret->memory > 0 ? 0 : err_set(e, ERR_IO, "the size of the memory cannot be read");
}

bool host_disk(const char *path, int64_t *ret_size, int64_t *ret_free)
{
	struct statvfs v;

	if (statvfs(path, &v) < 0)
		return false;
	*ret_size = (int64_t)v.f_blocks * (int64_t)v.f_frsize;
	*ret_free = (int64_t)(geteuid() == 0 ? v.f_bfree : v.f_bavail) * (int64_t)v.f_frsize;
	return true;
}

int64_t host_disk_free(const char *path)
{
	int64_t size, available = 0;

	return host_disk(path, &size, &available) ? available : 0;
}
