/* Prints when schedules fall due. usage: cron_tool FROM UNTIL < lines of
 * "ZONE<tab>once|skip<tab>CRON". For each line one with the instants after FROM and up to UNTIL,
 * all in seconds since 1970, or "no zone". */
#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "server/core/cron.h"

#include <stdio.h>

static bool print_one(void *arg, int64_t at)
{
	(void)arg;
	(void)printf("%lld ", (long long)(at / CLOCK_SECOND));
	return true;
}

static int one_line(char *line, int64_t from, int64_t until)
{
	struct str rest = str_trim(str_c(line)), zone, dst, cron;
	struct cron_rule rule;
	struct err e;

	if (!str_next(&rest, '\t', &zone) || !str_next(&rest, '\t', &dst) ||
		!str_next(&rest, '\n', &cron)) {
		(void)fprintf(stderr, "cannot read the line '%s'\n", line);
		return 2;
	}
	line[zone.n] = '\0';
	rule = (struct cron_rule){ .zone = zone_find(line), .skip = str_is(dst, "skip") };
	if (cron_parse(cron, &rule.cron, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.msg);
		return 2;
	}
	if (rule.zone == NULL)
		(void)printf("no zone");
	else
		cron_each(&rule, from * CLOCK_SECOND, until * CLOCK_SECOND, print_one, NULL);
	(void)printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	char line[512];
	int64_t from, until;

	if (argc != 3 || !num_parse_i64(str_c(argv[1]), 0, INT32_MAX, &from) ||
		!num_parse_i64(str_c(argv[2]), 0, INT32_MAX, &until)) {
		(void)fprintf(stderr, "usage: cron_tool FROM UNTIL\n");
		return 2;
	}
	while (fgets(line, sizeof line, stdin) != NULL) {
		int rc = one_line(line, from, until);
		if (rc != 0)
			return rc;
	}
	return 0;
}
