/*
 * The server sends a comment every 15 s or so; a connection that is silent for longer is dead. A
 * stream that has worked is waited for about ten minutes, one that never has a few seconds.
 */
#include "cli/follow.h"

#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/fetch/retry.h"

enum { SILENCE_S = 60, FIRST_TRIES = 4, LATER_TRIES = 60 };

struct stream {
	struct follow *f;
	struct sse_parser parser;
	bool got; /* a message, on this connection */
	bool stopped; /* on purpose: over, or out of time */
};

static int on_bytes(void *arg, struct str bytes, struct err *e)
{
	struct stream *s = arg;
	const struct follow *f = s->f;

	s->got = true;
	if (sse_add(&s->parser, bytes, e) < 0)
		return -1;
	s->stopped = (f->over != NULL && *f->over) ||
		     (f->until != 0 && clock_elapsed(&clock_real) >= f->until);
	return s->stopped ? err_set(e, ERR_CANCELLED, "done") : 0;
}

static int64_t time_left(const struct follow *f)
{
	int64_t left;

	if (f->until == 0)
		return -1;
	left = f->until - clock_elapsed(&clock_real);
	return left > CLOCK_SECOND / 100 ? left : CLOCK_SECOND / 100;
}

/* One connection: 0 when the stream is done, 1 when it is to be tried again, -1 with *e. */
static int connect_once(struct cli *c, struct stream *s, struct retry *retry, struct err *e)
{
	struct follow *f = s->f;
	struct api_call q = { .route = f->route,
		.push = on_bytes,
		.arg = s,
		.once = true,
		.accept = "text/event-stream",
		.timeout = time_left(f),
		.idle = (f->forever ? SILENCE_S : 1) * CLOCK_SECOND,
		.last_event = str_c(s->parser.id) };
	struct api_reply r;

	if (f->resume != NULL)
		f->resume(f->arg, f->query);
	memcpy(q.params, f->params, sizeof q.params);
	memcpy(q.query, f->query, sizeof q.query);
	s->got = false;
	sse_restart(&s->parser);
	int rc = api_do(c, &q, &r, e);
	if (rc == 0)
		api_done(&r);
	if (f->over != NULL && *f->over)
		return 0;
	if (f->until != 0 && clock_elapsed(&clock_real) >= f->until)
		return err_set(e, ERR_TIMEOUT, "the time is up");
	if (rc < 0 && !f->forever && e->code == ERR_TIMEOUT)
		return 0;
	if (rc < 0 && !err_retryable(e->code))
		return -1;
	if (rc == 0)
		(void)err_set(e, ERR_NETWORK, "the server ends the stream again and again");
	if (s->got) {
		retry->tries = 0;
		retry->max_tries = LATER_TRIES;
	}
	return 1;
}

int follow(struct cli *c, struct follow *f, struct err *e)
{
	struct stream s = { .f = f };
	struct retry retry = {
		.first = CLOCK_SECOND / 2, .cap = 10 * CLOCK_SECOND, .max_tries = FIRST_TRIES
	};
	uint64_t random;
	int rc;

	sse_init(&s.parser, f->on_message, f->arg);
	while ((rc = connect_once(c, &s, &retry, e)) > 0) {
		id_random(&random, sizeof random);
		int64_t wait = retry_next(&retry, random, 0);
		if (wait < 0)
			break;
		if (retry.tries == 3)
			cli_say(c, "the connection is lost, trying again");
		api_sleep(wait);
	}
	sse_done(&s.parser);
	return rc == 0 ? 0 : -1;
}
