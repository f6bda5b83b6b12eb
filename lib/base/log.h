/*
 * Structured log lines on stderr: logfmt (ts=… level=… msg="…" key=value …), one line per record,
 * control characters and invalid UTF-8 escaped, so that no value can forge a line. Library code
 * never logs above debug; the flow that ends with an error logs it once, with its context.
 *
 *     log_info("run created", LOG_S("run", id), LOG_I("steps", n));
 */
#ifndef LIB_BASE_LOG_H
#define LIB_BASE_LOG_H
#include "lib/base/err.h"
#include "lib/base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_pair {
	const char *key;
	enum { LOG_PAIR_STR, LOG_PAIR_INT, LOG_PAIR_REAL } kind;
	struct str s;
	int64_t i;
	double f;
};

#define LOG_S(k, z)   ((struct log_pair){ .key = (k), .kind = LOG_PAIR_STR, .s = str_c(z) })
#define LOG_STR(k, v) ((struct log_pair){ .key = (k), .kind = LOG_PAIR_STR, .s = (v) })
#define LOG_I(k, v)   ((struct log_pair){ .key = (k), .kind = LOG_PAIR_INT, .i = (int64_t)(v) })
#define LOG_F(k, v)   ((struct log_pair){ .key = (k), .kind = LOG_PAIR_REAL, .f = (v) })
#define LOG_E(e)      LOG_S("error", err_name((e)->code)), LOG_S("detail", (e)->msg)

void log_write(enum log_level level, const char *msg, const struct log_pair *pairs, size_t n);
#define LOG_LINE(level, msg, ...)                                                                  \
	do {                                                                                       \
		const struct log_pair log_pairs_[] = { { .key = NULL }, ##__VA_ARGS__ };           \
		log_write((level), (msg), log_pairs_ + 1,                                          \
			sizeof log_pairs_ / sizeof log_pairs_[0] - 1);                             \
	} while (0)
#define log_debug(msg, ...) LOG_LINE(LOG_DEBUG, msg, ##__VA_ARGS__)
#define log_info(msg, ...)  LOG_LINE(LOG_INFO, msg, ##__VA_ARGS__)
#define log_warn(msg, ...)  LOG_LINE(LOG_WARN, msg, ##__VA_ARGS__)
#define log_error(msg, ...) LOG_LINE(LOG_ERROR, msg, ##__VA_ARGS__)

/* Lines below the level are dropped. Process-wide; set once at start. Default: LOG_INFO. */
void log_set_level(enum log_level level);
bool log_level_parse(struct str s, enum log_level *ret);

#endif
