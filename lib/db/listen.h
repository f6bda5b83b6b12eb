/*
 * LISTEN and NOTIFY, each on a connection of its own. Notifications are hints that may be lost:
 * whoever acts on them also looks by itself now and then, and looks at everything on `resync`.
 *
 * The listener asks the server for a sign of life every 15 s, since a connection that only reads
 * would not see for hours that its peer is gone. The sender coalesces: at most one transaction per
 * interval, each distinct (channel, payload) once in it, because a transaction that holds nothing
 * but notifications costs no flush while one in a write would serialize all commits.
 *
 * Thread: the loop's. Channels are names made of [a-z0-9_], up to 63.
 */
#ifndef LIB_DB_LISTEN_H
#define LIB_DB_LISTEN_H
#include "lib/base/str.h"

struct loop;
struct db_listen;
struct db_notify;

struct db_listen_conf {
	const char *conninfo;
	const char *name; /* application_name; NULL: "tidemill-listen" */
	const char *const *channels; /* ends with NULL */
	/* An empty payload means that anything may have changed. */
	void (*on_notify)(void *arg, const char *channel, struct str payload);
	/* Listening (again): whatever happened before now was not heard. */
	void (*on_resync)(void *arg);
	void *arg;
	int64_t ping; /* µs between signs of life; 0: 15 s. No answer for 5 s: reconnect */
};

struct db_listen *db_listen_new(struct loop *loop, const struct db_listen_conf *conf);
void db_listen_free(struct db_listen *l); /* NULL is fine */
bool db_listen_is_up(const struct db_listen *l);

enum { DB_NOTIFY_PAYLOAD = 512 };
/* interval: µs between two transactions; 0: 5 ms. */
struct db_notify *db_notify_new(struct loop *loop, const char *conninfo, int64_t interval);
void db_notify_free(struct db_notify *n); /* what is pending is dropped; NULL is fine */
/* Never fails. More than 64 payloads pending on a channel become one that is empty; so does a
 * payload longer than DB_NOTIFY_PAYLOAD. While there is no connection they stay pending. */
void db_notify_send(struct db_notify *n, const char *channel, struct str payload);

#endif
