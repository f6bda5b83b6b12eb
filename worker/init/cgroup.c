#include "worker/init/cgroup.h"

#include "worker/init/file.h"
#include "worker/init/text.h"

#include <string.h>

#define ROOT "/sys/fs/cgroup/"

enum { SMALL_FILE = 4096 };
#define NO_LIMIT (INT64_C(1) << 60) /* v1 says a number near 2^63 */

static int64_t or_none(int64_t v)
{
	return v > 0 ? v : 0;
}

/* The number behind a word at the start of a line. */
static int64_t number_of(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *line = text; line != NULL && *line != '\0';
		line = strchr(line, '\n') != NULL ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, word, n) == 0 && line[n] == ' ')
			return text_digits(line + n + 1);
	return -1;
}

static int64_t file_number(const char *path)
{
	char text[64];

	file_peek(path, text, sizeof text);
	return text_digits(text);
}

static int64_t file_word(const char *path, const char *word)
{
	char text[SMALL_FILE];

	file_peek(path, text, sizeof text);
	return number_of(text, word);
}

/* io.stat: "8:0 rbytes=1 wbytes=2 …", a line for each device. */
static void read_io_v2(int64_t *read_bytes, int64_t *written_bytes)
{
	char text[SMALL_FILE];

	file_peek(ROOT "io.stat", text, sizeof text);
	if (text[0] == '\0')
		return;
	*read_bytes = *written_bytes = 0;
	for (const char *p = text; (p = strstr(p, "rbytes=")) != NULL; p++)
		*read_bytes += or_none(text_digits(p + 7));
	for (const char *p = text; (p = strstr(p, "wbytes=")) != NULL; p++)
		*written_bytes += or_none(text_digits(p + 7));
}

/* "8:0 Read 1" and "8:0 Write 2", a line for each device and kind. */
static void read_io_v1(int64_t *read_bytes, int64_t *written_bytes)
{
	char text[SMALL_FILE];

	file_peek(ROOT "blkio/blkio.throttle.io_service_bytes", text, sizeof text);
	if (text[0] == '\0')
		return;
	*read_bytes = *written_bytes = 0;
	for (const char *p = text; (p = strstr(p, " Read ")) != NULL; p++)
		*read_bytes += or_none(text_digits(p + 6));
	for (const char *p = text; (p = strstr(p, " Write ")) != NULL; p++)
		*written_bytes += or_none(text_digits(p + 7));
}

static int64_t micro(int64_t ns)
{
	return ns < 0 ? -1 : ns / 1000;
}

/* Systems mount cpu and cpuacct together or apart. */
static int64_t cpu_v1(const char *word)
{
	int64_t v = file_word(ROOT "cpu/cpu.stat", word);

	return v >= 0 ? v : file_word(ROOT "cpu,cpuacct/cpu.stat", word);
}

void cgroup_read(struct cgroup *ret)
{
	struct cgroup c = { -1, -1, -1, -1, -1, -1 };

	c.oom_kills = file_word(ROOT "memory.events", "oom_kill");
	if (c.oom_kills >= 0) {
		c.memory_peak = file_number(ROOT "memory.peak");
		c.memory_limit = file_number(ROOT "memory.max");
		c.throttled_us = file_word(ROOT "cpu.stat", "throttled_usec");
		read_io_v2(&c.read_bytes, &c.written_bytes);
	} else {
		c.oom_kills = file_word(ROOT "memory/memory.oom_control", "oom_kill");
		c.memory_peak = file_number(ROOT "memory/memory.max_usage_in_bytes");
		c.memory_limit = file_number(ROOT "memory/memory.limit_in_bytes");
		c.throttled_us = micro(cpu_v1("throttled_time"));
		read_io_v1(&c.read_bytes, &c.written_bytes);
	}
	if (c.memory_limit >= NO_LIMIT)
		c.memory_limit = -1;
	*ret = c;
}

/* memory.pressure: "some avg10=0.00 avg60=0.00 avg300=0.00 total=123". */
static int64_t stalled(void)
{
	char text[SMALL_FILE];
	const char *p;

	file_peek(ROOT "memory.pressure", text, sizeof text);
	p = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
	return p != NULL ? text_digits(p + 6) : -1;
}

static int64_t without(int64_t all, int64_t cached)
{
	return all > cached && cached > 0 ? all - cached : all;
}

static void usage_v2(struct cgroup_usage *u)
{
	char text[SMALL_FILE];

	file_peek(ROOT "cpu.stat", text, sizeof text);
	u->cpu_us = number_of(text, "usage_usec");
	u->periods = number_of(text, "nr_periods");
	u->throttled_periods = number_of(text, "nr_throttled");
	u->throttled_us = number_of(text, "throttled_usec");
	u->memory = without(
		file_number(ROOT "memory.current"), file_word(ROOT "memory.stat", "inactive_file"));
	u->stalled_us = stalled();
	read_io_v2(&u->read_bytes, &u->written_bytes);
}

static void usage_v1(struct cgroup_usage *u)
{
	int64_t ns = file_number(ROOT "cpuacct/cpuacct.usage");

	u->oom_kills = file_word(ROOT "memory/memory.oom_control", "oom_kill");
	if (ns < 0)
		ns = file_number(ROOT "cpu,cpuacct/cpuacct.usage");
	u->cpu_us = micro(ns);
	u->periods = cpu_v1("nr_periods");
	u->throttled_periods = cpu_v1("nr_throttled");
	u->throttled_us = micro(cpu_v1("throttled_time"));
	u->memory = without(file_number(ROOT "memory/memory.usage_in_bytes"),
		file_word(ROOT "memory/memory.stat", "total_inactive_file"));
	read_io_v1(&u->read_bytes, &u->written_bytes);
}

void cgroup_usage(struct cgroup_usage *ret)
{
	struct cgroup_usage u = { -1, -1, -1, -1, -1, -1, -1, -1, -1 };

	u.oom_kills = file_word(ROOT "memory.events", "oom_kill"); /* the root has none */
	if (u.oom_kills >= 0)
		usage_v2(&u);
	else
		usage_v1(&u);
	*ret = u;
}
