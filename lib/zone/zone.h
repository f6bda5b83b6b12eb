/*
 * Time zones of the IANA data base by their names, as the machine has them in /usr/share/zoneinfo,
 * read by cctz. A local time is a day (since 1970-01-01) and a second of that day.
 */
#ifndef LIB_ZONE_ZONE_H
#define LIB_ZONE_ZONE_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ZONE_NAME_MAX = 63, ZONE_DAY_SECONDS = 86400 };

/* Kept as long as the process lives. */
struct zone;
/* By a name such as "Europe/Berlin" or "UTC"; NULL when there is none of that name. Reads a file at
 * the first call for a name. From any thread. */
const struct zone *zone_find(const char *name);

/* How often the zone's clocks show a local time. */
enum zone_kind { ZONE_ONCE, ZONE_NEVER, ZONE_TWICE };

struct zone_instants {
	enum zone_kind kind;
	/* Microseconds since 1970. ZONE_TWICE: both, in their order. ZONE_NEVER: first is the
	 * instant at which the clocks go over it; second is the same. */
	int64_t first, second;
};
struct zone_instants zone_instants_of(const struct zone *z, int64_t day, int second);

struct zone_time {
	int64_t day;
	int second; /* 0 to 86399 */
};
/* Fractions of a second are left out. */
struct zone_time zone_time_of(const struct zone *z, int64_t us);

#ifdef __cplusplus
}
#endif
#endif
