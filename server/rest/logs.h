/*
 * Logs on this server: how they come in, and who reads and follows them.
 *
 * Coming in (log_ingest.c). A worker sends whole frames of its spool at an offset; the answer is
 * the length that is stored. An offset behind the end changes nothing (the worker goes back to the
 * length it is told), bytes that are stored already are passed over, the rest is appended. Requests
 * of one attempt are handled one after the other; those of many attempts become one statement
 * (group commit) on DB_RELAXED. So the length may be forgotten when PostgreSQL crashes: the worker
 * keeps its whole spool, and is told a smaller length when it goes on. At the end (log_final.c)
 * length and SHA-256 are agreed: the stored bytes are read back and hashed, and a durable commit
 * makes them final, which makes everything before it durable too. When the digest differs, the
 * stored bytes are dropped and the worker is told 0. Small pieces of a final log are put together
 * afterwards.
 *
 * Going out (log_page.c, log_raw.c, log_follow.c). Followers of one attempt share a tail: what is
 * appended is turned into lines and into an event once. A follower that cannot take it at once
 * reads from the database at its own pace until it has caught up.
 */
#ifndef SERVER_REST_LOGS_H
#define SERVER_REST_LOGS_H
#include <stddef.h>
#include <stdint.h>

struct app;
struct logs;

struct logs *logs_new(struct app *app);
/* Before the database is closed: ends the streams; nothing more is taken. NULL is fine. */
void logs_stop(struct logs *l);
/* After the loop has ended. NULL is fine. */
void logs_free(struct logs *l);

struct logs_stats {
	uint64_t bytes, appends; /* stored since the start */
	size_t followers, attempts; /* now */
};
struct logs_stats logs_stats(const struct logs *l);

#endif
