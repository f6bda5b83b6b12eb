#include "worker/init/options.h"

#include "worker/init/tick.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_CTL = 1, OPT_SECRETS, OPT_USER, OPT_DEADMAN, OPT_GRACE, OPT_BARRIER, OPT_RANK };
enum { OPT_MAX_LOG = OPT_RANK + 1, OPT_WORKDIR, OPT_USAGE };

static const struct option table[] = {
	{ "ctl", required_argument, NULL, OPT_CTL },
	{ "secrets", required_argument, NULL, OPT_SECRETS },
	{ "user", required_argument, NULL, OPT_USER },
	{ "deadman", required_argument, NULL, OPT_DEADMAN },
	{ "grace", required_argument, NULL, OPT_GRACE },
	{ "barrier", no_argument, NULL, OPT_BARRIER },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "max-log", required_argument, NULL, OPT_MAX_LOG },
	{ "workdir", required_argument, NULL, OPT_WORKDIR },
	{ "usage", required_argument, NULL, OPT_USAGE },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"usage: tidemill-init --ctl DIR [--secrets DIR] [--user UID:GID] [--deadman SECONDS]\n"
	"                     [--grace SECONDS] [--barrier] [--rank N] [--max-log BYTES]\n"
	"                     [--workdir DIR] [--usage SECONDS] -- command [argument...]\n";

/* Decimal digits up to `end`, nothing else. */
static bool parse_number(const char *s, const char *end, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s == end)
		return false;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9' || v > (max - (uint64_t)(*s - '0')) / 10)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	*ret = v;
	return true;
}

static bool parse_whole(const char *s, uint64_t max, uint64_t *ret)
{
	return parse_number(s, s + strlen(s), max, ret);
}

static bool parse_seconds(const char *s, int64_t *ret_us)
{
	uint64_t seconds;

	if (!parse_whole(s, UINT64_C(366) * 86400, &seconds))
		return false;
	*ret_us = (int64_t)seconds * TICK_SECOND;
	return true;
}

static bool parse_user(struct options *o, const char *s)
{
	const char *colon = strchr(s, ':');
	uint64_t uid, gid;

	if (colon == NULL || !parse_number(s, colon, UINT32_MAX - 1, &uid) ||
		!parse_whole(colon + 1, UINT32_MAX - 1, &gid))
		return false;
	o->has_user = true;
	o->uid = (uid_t)uid;
	o->gid = (gid_t)gid;
	return true;
}

static bool parse_value(struct options *o, int opt, const char *value)
{
	uint64_t n;

	switch (opt) {
	case OPT_CTL: o->ctl = value; return true;
	case OPT_SECRETS: o->secrets = value; return true;
	case OPT_WORKDIR: o->workdir = value; return true;
	case OPT_BARRIER: o->barrier = true; return true;
	case OPT_USER: return parse_user(o, value);
	case OPT_DEADMAN: return parse_seconds(value, &o->deadman_us);
	case OPT_GRACE: return parse_seconds(value, &o->grace_us);
	case OPT_USAGE: return parse_seconds(value, &o->usage_us);
	case OPT_MAX_LOG: return parse_whole(value, INT64_MAX, &o->max_log);
	case OPT_RANK:
		if (!parse_whole(value, UINT16_MAX, &n))
			return false;
		o->rank = (uint16_t)n;
		return true;
	default: return false;
	}
}

bool options_parse(struct options *o, int argc, char **argv)
{
	int opt, which = 0;

	*o = (struct options){ .grace_us = 10 * TICK_SECOND, .max_log = UINT64_C(1) << 30 };
	while ((opt = getopt_long(argc, argv, "+", table, &which)) != -1) {
		if (opt != '?' && parse_value(o, opt, optarg))
			continue;
		if (opt != '?')
			(void)fprintf(stderr, "tidemill-init: --%s: not a valid value: %s\n",
				table[which].name, optarg);
		(void)fputs(usage, stderr);
		return false;
	}
	if (o->ctl == NULL || optind >= argc) {
		(void)fprintf(stderr, "tidemill-init: %s is missing\n",
			o->ctl == NULL ? "--ctl" : "the command");
		(void)fputs(usage, stderr);
		return false;
	}
	o->argv = argv + optind;
	return true;
}
