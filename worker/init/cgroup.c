#include "worker/init/cgroup.h"

#include "worker/init/file.h"

#include <string.h>

#define ROOT "/sys/fs/cgroup/"

enum { SMALL_FILE = 4096 };
#define NO_LIMIT (INT64_C(1) << 60) /* v1 says a number near 2^63 */

/* The digits at p; -1 when there are none, or too many. */
static int64_t digits(const char *p)
{
	int64_t v = 0;

	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (v > (INT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (*p - '0');
	}
	return v;
}

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
			return digits(line + n + 1);
	return -1;
}

static int64_t file_number(const char *path)
{
	char text[64];

	file_peek(path, text, sizeof text);
	return digits(text);
}

static int64_t file_word(const char *path, const char *word)
{
	char text[SMALL_FILE];

	file_peek(path, text, sizeof text);
	return number_of(text, word);
}

/* io.stat: "8:0 rbytes=1 wbytes=2 …", a line for each device. */
static void read_io_v2(struct cgroup *c)
{
	char text[SMALL_FILE];

	file_peek(ROOT "io.stat", text, sizeof text);
	if (text[0] == '\0')
		return;
	c->read_bytes = c->written_bytes = 0;
	for (const char *p = text; (p = strstr(p, "rbytes=")) != NULL; p++)
		c->read_bytes += or_none(digits(p + 7));
	for (const char *p = text; (p = strstr(p, "wbytes=")) != NULL; p++)
		c->written_bytes += or_none(digits(p + 7));
}

/* "8:0 Read 1" and "8:0 Write 2", a line for each device and kind. */
static void read_io_v1(struct cgroup *c)
{
	char text[SMALL_FILE];

	file_peek(ROOT "blkio/blkio.throttle.io_service_bytes", text, sizeof text);
	if (text[0] == '\0')
		return;
	c->read_bytes = c->written_bytes = 0;
	for (const char *p = text; (p = strstr(p, " Read ")) != NULL; p++)
		c->read_bytes += or_none(digits(p + 6));
	for (const char *p = text; (p = strstr(p, " Write ")) != NULL; p++)
		c->written_bytes += or_none(digits(p + 7));
}

static int64_t throttled_v1(void)
{
	int64_t ns = file_word(ROOT "cpu/cpu.stat", "throttled_time");

	if (ns < 0)
		ns = file_word(ROOT "cpu,cpuacct/cpu.stat", "throttled_time");
	return ns < 0 ? -1 : ns / 1000;
}

void cgroup_read(struct cgroup *ret)
{
	struct cgroup c = { -1, -1, -1, -1, -1, -1 };

	c.oom_kills = file_word(ROOT "memory.events", "oom_kill");
	if (c.oom_kills >= 0) {
		c.memory_peak = file_number(ROOT "memory.peak");
		c.memory_limit = file_number(ROOT "memory.max");
		c.throttled_us = file_word(ROOT "cpu.stat", "throttled_usec");
		read_io_v2(&c);
	} else {
		c.oom_kills = file_word(ROOT "memory/memory.oom_control", "oom_kill");
		c.memory_peak = file_number(ROOT "memory/memory.max_usage_in_bytes");
		c.memory_limit = file_number(ROOT "memory/memory.limit_in_bytes");
		c.throttled_us = throttled_v1();
		read_io_v1(&c);
	}
	if (c.memory_limit >= NO_LIMIT)
		c.memory_limit = -1;
	*ret = c;
}
