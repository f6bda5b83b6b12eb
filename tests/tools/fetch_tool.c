/*
 * Drives lib/fetch for the tests: makes the requests that its options describe and prints one JSON
 * line for each completion, with how often the callback came and the process's memory.
 */
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/fetch/fetch.h"
#include "lib/json/json_write.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct tool {
	struct loop *loop;
	struct fetch_client *client;
	struct fetch_options options;
	struct fetch_request q;
	struct ip_net allow[8];
	size_t n_headers;
	uint64_t repeat, parallel, cancel_after_ms, pause_ms, push_limit, pull_total, pull_pause_ms;
	const char *body_file, *out_file;
	bool push, sync, free_early, problem, chain;
	uint64_t started, finished;
};

struct one {
	struct tool *tool;
	struct fetch *f;
	struct loop_timer timer, cancel;
	unsigned calls, heads;
	uint64_t pushes, pulled, pauses;
	bool pull_paused, over;
};

static void start(struct tool *t);

/* The peak of this program alone: ru_maxrss would count what stood here before exec. */
static int64_t rss_kb(void)
{
	struct buf text;
	struct str rest, line, number;
	uint64_t kb = 0;
	struct err e;

	buf_init(&text, 65536);
	if (fs_read("/proc/self/status", &text, &e) < 0)
		exit(2);
	rest = buf_str(&text);
	while (str_next(&rest, '\n', &line)) {
		if (!str_starts(line, STR("VmHWM:")))
			continue;
		number = str_trim(str_slice(line, 6, line.n));
		(void)num_parse_u64(str_slice(number, 0, (size_t)str_find_char(number, ' ')), 0,
			UINT64_MAX, &kb);
	}
	buf_done(&text);
	return (int64_t)kb;
}

static void put(struct jsn_out *w, const char *key, struct str s)
{
	jsn_key(w, key);
	jsn_str(w, s);
}

static void put_int(struct jsn_out *w, const char *key, int64_t n)
{
	jsn_key(w, key);
	jsn_int(w, n);
}

static void report(const struct one *o, const struct fetch_reply *r, const struct err *e)
{
	struct buf line;
	struct err shown = *e, problem;

	buf_init(&line, 1 << 20);
	if (o->tool->problem && e->code == ERR_OK && fetch_problem(r, &problem) < 0)
		shown = problem;
	struct jsn_out w = jsn_out(&line);
	jsn_obj_begin(&w);
	put_int(&w, "status", r->status);
	put(&w, "error", str_c(err_name(shown.code)));
	put(&w, "message", str_c(shown.msg));
	put(&w, "field", str_c(shown.field));
	put(&w, "body", str_slice(r->body, 0, 4096));
	put_int(&w, "kept", (int64_t)r->body.n);
	put_int(&w, "received", (int64_t)r->received);
	put(&w, "content_type", r->content_type);
	put(&w, "location", r->location);
	put(&w, "etag", r->etag);
	put(&w, "x_test", fetch_header(r, "X-Test"));
	put_int(&w, "retry_after_us", fetch_retry_after(r, clock_now(&clock_real)));
	put_int(&w, "calls", o->calls);
	put_int(&w, "heads", o->heads);
	put_int(&w, "pushes", (int64_t)o->pushes);
	put_int(&w, "pauses", (int64_t)o->pauses);
	put_int(&w, "rss_kb", rss_kb());
	jsn_obj_end(&w);
	buf_addc(&line, '\n');
	(void)fwrite(line.p, 1, line.n, stdout);
	(void)fflush(stdout);
	buf_done(&line);
}

static void on_done(void *arg, const struct fetch_reply *r, const struct err *e)
{
	struct one *o = arg;
	struct tool *t = o->tool;

	o->calls++;
	o->over = true;
	loop_timer_cancel(&o->timer);
	loop_timer_cancel(&o->cancel);
	report(o, r, e);
	t->finished++;
	mem_free(o);
	if (t->free_early)
		return;
	if (t->started < t->repeat)
		start(t);
	else if (t->finished == t->repeat)
		loop_stop(t->loop);
}

static void on_head(void *arg, const struct fetch_reply *r)
{
	struct one *o = arg;

	(void)r;
	o->heads++;
}

static void on_unpause(void *arg)
{
	struct one *o = arg;

	o->pull_paused = false;
	fetch_resume(o->f);
}

static int on_push(void *arg, struct str bytes, struct err *e)
{
	struct one *o = arg;

	(void)bytes;
	o->pushes++;
	if (o->tool->chain && o->tool->started < o->tool->repeat)
		start(o->tool); /* from within the library's callback */
	if (o->tool->push_limit != 0 && o->pushes >= o->tool->push_limit)
		return err_set(e, ERR_CONFLICT, "the tool has had enough");
	if (o->tool->pause_ms != 0) {
		o->pauses++;
		fetch_pause(o->f);
		loop_timer_set(&o->timer, (int64_t)o->tool->pause_ms);
	}
	return 0;
}

static ptrdiff_t on_pull(void *arg, char *out, size_t n, struct err *e)
{
	struct one *o = arg;
	uint64_t left = o->tool->pull_total - o->pulled;

	(void)e;
	if (o->tool->pull_pause_ms != 0 && !o->pull_paused && left != 0 &&
		o->pauses <= o->pulled / 1000) {
		o->pauses++;
		o->pull_paused = true;
		loop_timer_set(&o->timer, (int64_t)o->tool->pull_pause_ms);
		return FETCH_LATER;
	}
	if (n > left)
		n = (size_t)left;
	if (o->tool->pull_pause_ms != 0 && n > 1000)
		n = 1000;
	memset(out, 'p', n);
	o->pulled += n;
	return (ptrdiff_t)n;
}

static void on_cancel(void *arg)
{
	struct one *o = arg;

	fetch_cancel(o->f);
	fetch_cancel(o->f);
}

static void start(struct tool *t)
{
	struct one *o = mem_new_of(struct one);
	struct fetch_request q = t->q;

	o->tool = t;
	t->started++;
	loop_timer_init(&o->timer, t->loop, on_unpause, o);
	loop_timer_init(&o->cancel, t->loop, on_cancel, o);
	q.arg = o;
	q.on_head = on_head;
	if (t->push)
		q.push = on_push;
	if (t->pull_total != 0)
		q.pull = on_pull;
	if (t->body_file != NULL) {
		q.has_fd = true;
		q.fd = open(t->body_file, O_RDONLY | O_CLOEXEC);
		q.length = q.length != 0 ? q.length : lseek(q.fd, 0, SEEK_END);
		(void)lseek(q.fd, 0, SEEK_SET);
	}
	if (t->out_file != NULL) {
		q.to_fd = true;
		q.out_fd = open(t->out_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	}
	o->f = fetch_start(t->client, &q, on_done, o);
	BUG_ON(o->over); /* never inside the call */
	if (t->cancel_after_ms == 1)
		fetch_cancel(o->f);
	else if (t->cancel_after_ms != 0)
		loop_timer_set(&o->cancel, (int64_t)t->cancel_after_ms);
}

static void run_sync(struct tool *t)
{
	struct fetch_reply r = { .status = 0 };
	struct one o = { .tool = t, .calls = 1 };
	struct buf memory;
	struct err e = { .code = ERR_OK };

	buf_init(&memory, 1 << 20);
	if (fetch_sync(t->client, &t->q, &r, &memory, &e) == 0)
		e.code = ERR_OK;
	report(&o, &r, &e);
	buf_done(&memory);
}

static uint64_t number(const char *text)
{
	uint64_t n = 0;

	if (!num_parse_u64(str_c(text), 0, UINT64_MAX, &n)) {
		(void)fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return n;
}

enum opt {
	BASE = 256,
	UNIX,
	TOKEN,
	TOKEN_FILE,
	CA,
	GUARD,
	ALLOW,
	HTTPS_ONLY,
	CONNECT_MS,
	CLIENT_MS,
	MAX_CONNECTIONS,
	METHOD,
	TARGET,
	HEADER,
	BODY,
	BODY_FILE,
	LENGTH,
	PULL,
	CHUNKED,
	PULL_PAUSE_MS,
	MAX_BODY,
	MAX_BYTES,
	OUT,
	PUSH,
	PAUSE_MS,
	PUSH_LIMIT,
	TIMEOUT_MS,
	NO_TIMEOUT,
	IDLE_S,
	MIN_RATE,
	REPEAT,
	PARALLEL,
	CANCEL_MS,
	SYNC,
	FREE_EARLY,
	PROBLEM,
	CHAIN
};

static const struct option options[] = { { "base", 1, NULL, BASE }, { "unix", 1, NULL, UNIX },
	{ "token", 1, NULL, TOKEN }, { "token-file", 1, NULL, TOKEN_FILE }, { "ca", 1, NULL, CA },
	{ "guard", 0, NULL, GUARD }, { "allow", 1, NULL, ALLOW },
	{ "https-only", 0, NULL, HTTPS_ONLY }, { "connect-ms", 1, NULL, CONNECT_MS },
	{ "client-ms", 1, NULL, CLIENT_MS }, { "max-connections", 1, NULL, MAX_CONNECTIONS },
	{ "method", 1, NULL, METHOD }, { "path", 1, NULL, TARGET }, { "header", 1, NULL, HEADER },
	{ "body", 1, NULL, BODY }, { "body-file", 1, NULL, BODY_FILE },
	{ "length", 1, NULL, LENGTH }, { "pull", 1, NULL, PULL }, { "chunked", 0, NULL, CHUNKED },
	{ "pull-pause-ms", 1, NULL, PULL_PAUSE_MS }, { "max-body", 1, NULL, MAX_BODY },
	{ "max-bytes", 1, NULL, MAX_BYTES }, { "out", 1, NULL, OUT }, { "push", 0, NULL, PUSH },
	{ "pause-ms", 1, NULL, PAUSE_MS }, { "push-limit", 1, NULL, PUSH_LIMIT },
	{ "timeout-ms", 1, NULL, TIMEOUT_MS }, { "no-timeout", 0, NULL, NO_TIMEOUT },
	{ "idle-s", 1, NULL, IDLE_S }, { "min-rate", 1, NULL, MIN_RATE },
	{ "repeat", 1, NULL, REPEAT }, { "parallel", 1, NULL, PARALLEL },
	{ "cancel-ms", 1, NULL, CANCEL_MS }, { "sync", 0, NULL, SYNC },
	{ "free-early", 0, NULL, FREE_EARLY }, { "problem", 0, NULL, PROBLEM },
	{ "chain", 0, NULL, CHAIN }, { NULL, 0, NULL, 0 } };

static void set_client_option(struct tool *t, int c)
{
	struct err e;

	switch (c) {
	case BASE: t->options.base_url = optarg; break;
	case UNIX: t->options.unix_socket = optarg; break;
	case TOKEN: t->options.token = optarg; break;
	case TOKEN_FILE: t->options.token_file = optarg; break;
	case CA: t->options.ca_file = optarg; break;
	case GUARD: t->options.guard = true; break;
	case HTTPS_ONLY: t->options.https_only = true; break;
	case CONNECT_MS: t->options.connect_timeout = (int64_t)number(optarg) * 1000; break;
	case CLIENT_MS: t->options.timeout = (int64_t)number(optarg) * 1000; break;
	case MAX_CONNECTIONS: t->options.max_connections = (unsigned)number(optarg); break;
	case ALLOW:
		if (ip_net_parse(str_c(optarg), &t->allow[t->options.n_allow++], &e) < 0)
			exit(2);
		break;
	default: exit(2);
	}
}

static void set_option(struct tool *t, int c)
{
	switch (c) {
	case METHOD: t->q.method = optarg; break;
	case TARGET: t->q.path = optarg; break;
	case HEADER: t->q.headers[t->n_headers++] = optarg; break;
	case BODY: t->q.body = str_c(optarg); break;
	case BODY_FILE: t->body_file = optarg; break;
	case LENGTH: t->q.length = (int64_t)number(optarg); break;
	case PULL:
		t->pull_total = number(optarg);
		t->q.length = (int64_t)t->pull_total;
		break;
	case CHUNKED: t->q.length = -1; break;
	case PULL_PAUSE_MS: t->pull_pause_ms = number(optarg); break;
	case MAX_BODY: t->q.max_body = number(optarg); break;
	case MAX_BYTES: t->q.max_bytes = number(optarg); break;
	case OUT: t->out_file = optarg; break;
	case PUSH: t->push = true; break;
	case PAUSE_MS: t->pause_ms = number(optarg); break;
	case PUSH_LIMIT: t->push_limit = number(optarg); break;
	case TIMEOUT_MS: t->q.timeout = (int64_t)number(optarg) * 1000; break;
	case NO_TIMEOUT: t->q.timeout = -1; break;
	case IDLE_S: t->q.idle_timeout = (int64_t)number(optarg) * 1000000; break;
	case MIN_RATE: t->q.min_rate = number(optarg); break;
	case REPEAT: t->repeat = number(optarg); break;
	case PARALLEL: t->parallel = number(optarg); break;
	case CANCEL_MS: t->cancel_after_ms = number(optarg); break;
	case SYNC: t->sync = true; break;
	case FREE_EARLY: t->free_early = true; break;
	case CHAIN: t->chain = true; break;
	case PROBLEM: t->problem = true; break;
	default: set_client_option(t, c); break;
	}
}

int main(int argc, char **argv)
{
	struct tool t = { .repeat = 1, .parallel = 1 };
	struct err e;
	int c;

	t.options.allow = t.allow;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(&t, c);
	t.loop = loop_new();
	t.client = fetch_client_new(t.loop, &t.options, &e);
	if (t.client == NULL) {
		(void)printf("{\"error\": \"%s\", \"message\": \"%s\"}\n", err_name(e.code), e.msg);
		loop_free(t.loop);
		return 0;
	}
	if (t.sync) {
		run_sync(&t);
	} else {
		while (t.started < t.parallel && t.started < t.repeat)
			start(&t);
		if (t.free_early)
			loop_step(t.loop, false);
		else
			loop_run(t.loop);
	}
	fetch_client_free(t.client);
	loop_free(t.loop);
	return 0;
}
