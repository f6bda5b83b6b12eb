/* The inside of logs.h, for server/rest/log_*.c only. All of it on the loop's thread. */
#ifndef SERVER_REST_LOG_INSIDE_H
#define SERVER_REST_LOG_INSIDE_H
#include "api/worker.h"
#include "lib/db/group.h"
#include "lib/http/sse.h"
#include "lib/loop/timer.h"
#include "lib/zip/zip.h"
#include "server/rest/access.h"
#include "server/rest/call.h"
#include "server/rest/logs.h"
#include "server/store/log_store.h"

#include <sys/queue.h>

struct log_put;
struct log_follower;
struct log_job;
TAILQ_HEAD(log_puts, log_put);
TAILQ_HEAD(log_jobs, log_job);
TAILQ_HEAD(log_followers, log_follower);

struct logs {
	struct app *app;
	struct map *streams; /* attempt id -> struct log_stream */
	struct zip *zip; /* for the loop's thread */
	struct buf raw; /* frames of what is being read on the loop */
	struct db_group *group; /* of what is appended */
	struct db_group *loads, *ends; /* of streams; of logs that become final */
	size_t reserved; /* bytes of bodies that are on their way in */
	struct log_puts waiting; /* for room */
	struct loop_timer sweep, poll;
	bool polling, stopping;
	uint64_t bytes, appends;
	size_t followers;
};

/* ---- log_batch.c ---- */
/* Lines on their way into one event. */
enum { LOG_EVENT_TEXT = 48 << 10 }; /* an event is sent when it has become this large */
struct log_batch {
	struct buf json;
	size_t n;
};
void log_batch_add(struct log_batch *b, const struct log_line *line);
bool log_batch_is_large(const struct log_batch *b);
/* The event with what has been gathered, and nothing is gathered any more. */
struct sse_event *log_batch_event(struct log_batch *b, int64_t id, size_t *ret_n);
void log_batch_done(struct log_batch *b);

/* What this server remembers of an attempt's log. */
struct log_stream {
	struct logs *logs;
	char id[ID_MAX];
	/* The writing side; right as long as nobody else has written, which the statement checks.
	 */
	struct log_jobs jobs; /* the first one is being done while busy */
	bool busy, loaded;
	char worker_id[ID_MAX];
	int64_t epoch;
	bool lost, final, removed;
	unsigned char digest[32];
	int64_t made;
	struct log_place place;
	/* The reading side. */
	struct log_followers followers;
	bool has_tail, tail_reading, tail_feeding, complete;
	struct log_scan tail; /* while somebody is told by it */
	struct log_batch out[LOG_STREAMS + 1]; /* by filter */
	int64_t end; /* bytes that are known to be stored */
	int64_t dropped;
	struct loop_timer partial; /* shows lines that have not ended */
	int64_t used_at; /* loop_now() */
};

/* ---- log_stream.c ---- */
/* NULL when it is not the id of an attempt in form. Made when it is not known yet. */
struct log_stream *log_stream_get(struct logs *l, struct str attempt_id);
/* Takes what a read has found for both sides. */
void log_stream_read(struct log_stream *s, const struct log_state *st);

/* One thing to be done for a worker, in its turn. */
struct log_job {
	TAILQ_ENTRY(log_job) link;
	struct log_stream *stream;
	struct call *call;
	int64_t epoch;
	unsigned tries;
	/* The stream is loaded, and the caller holds the attempt. Ends in one of the three below.
	 */
	void (*run)(struct log_job *j);
	void (*release)(struct log_job *j);
};
void log_stream_open(struct logs *l);
void log_job_submit(struct logs *l, struct str attempt_id, struct log_job *j);
void log_job_reply(struct log_job *j, int64_t length);
void log_job_fail(struct log_job *j, const struct err *e);
/* The statement found something else than expected: load and run again. */
void log_job_again(struct log_job *j);

/* ---- log_ingest.c ---- */
void log_ingest_open(struct logs *l);
void log_ingest_stop(struct logs *l);
/* Compresses frames into chunk rows; `packed` owns the bytes. */
struct log_pieces {
	struct log_chunk_row *rows;
	size_t n, cap;
	struct buf packed;
};
void log_pieces_cut(struct log_pieces *p, struct str frames, struct log_place *at);
int log_pieces_pack(
	struct log_pieces *p, struct str frames, struct zip *z, struct err *e) MUST_CHECK;
void log_pieces_done(struct log_pieces *p);

/* ---- log_lines.c: the lines of one answer ---- */
struct log_lines {
	struct log_line *lines; /* in the order in which they ended; texts: only their lengths */
	size_t n, cap;
	struct buf text;
};
void log_lines_init(struct log_lines *l, size_t text_max);
void log_lines_done(struct log_lines *l);
void log_lines_add(struct log_lines *l, const struct log_line *line);
/* Gives the lines that have not ended to the scan's on_line, as far as they are there. */
void log_lines_take_open(struct log_scan *scan, bool complete);
/* Fills lines (lent), first and last of the answer: lines from … until - 1, of those that had begun
 * where reading ended (`read`). */
void log_lines_page(
	struct log_lines *l, int64_t from, int64_t until, int64_t read, struct log_page *out);

/* ---- log_search.c ---- */
void log_search_reply(struct call *c, const struct log_state *st);

/* ---- log_final.c ---- */
void log_final_open(struct logs *l);
/* Puts small pieces of a final log together, in the background. */
void log_merge_start(struct logs *l, struct str attempt_id, int64_t made, int64_t length);

/* ---- log_follow.c: one who follows ---- */
enum { LOG_FILTERS = LOG_STREAMS + 1, LOG_FOLLOW_TEXT = 16 << 10 };
/* Bytes that may wait for a client before it is given more; and with one append, whose events all
 * followers share. */
enum { LOG_BACKLOG_MAX = 160 << 10, LOG_BURST_MAX = 2 << 20 };
struct log_pending {
	TAILQ_ENTRY(log_pending) link;
	struct sse_event *ev;
	size_t n;
};
struct log_follower {
	TAILQ_ENTRY(log_follower) link;
	struct logs *logs;
	struct log_stream *stream; /* NULL: the step has no attempt yet */
	struct sse *sse;
	struct access_watch *watch;
	char step_id[ID_MAX];
	int64_t rank; /* of the step's gang */
	int filter; /* a stream, 0: all */
	int64_t from, tail; /* as asked */
	int64_t resume, begin_end; /* only lines that end behind resume; the end when it began */
	bool live; /* is told by the stream's tail; else it reads by itself: */
	bool reading, scanning, closed;
	struct log_scan scan;
	struct log_batch batch;
	TAILQ_HEAD(, log_pending) pending;
	struct loop_timer timer;
	int64_t sent; /* id of the last event of the tail */
	bool keeps_up; /* what is appended now may go to it, as far as LOG_BURST_MAX */
	size_t waited; /* bytes that waited for the client, when it was looked at last */
	int64_t pace; /* milliseconds until it is looked at again; 0: nothing waits */
};
void log_follow_attempt(struct call *c);
void log_follow_step(struct call *c);
/* Whether the step, a row of log_of_step, has the rank that is asked for; answers if not. */
bool log_has_rank(struct call *c, const struct db_rows *rows);
/* From the tail to reading by itself, after what was sent. */
void log_follower_restart(struct log_follower *f, int64_t resume);
void log_follower_end(struct log_follower *f, bool complete); /* the last event; f goes */
void log_follower_cut(struct log_follower *f); /* f goes */

/* ---- log_tail.c: what followers of one attempt share ---- */
/* A follower that has read all joins; false: there is more to read, or to wait for. */
bool log_tail_join(struct log_stream *s, struct log_follower *f);
void log_tail_left(struct log_stream *s); /* a follower has left or lags */
/* Frames that have been appended at a place. */
void log_tail_fed(struct log_stream *s, int64_t start, struct str frames);
/* The end has moved, or the log is complete. */
void log_tail_changed(struct log_stream *s);
void log_tail_poll(void *logs);
void log_tail_stop(struct log_stream *s);

/* ---- log_page.c, log_raw.c ---- */
enum { LOG_READ_CHUNKS = 16, LOG_READ_RAW = LOG_READ_CHUNKS * LOG_CHUNK_RAW };
void log_page_reply(struct call *c, const struct log_state *st);
void log_raw_reply(struct call *c, const struct log_state *st);

#endif
