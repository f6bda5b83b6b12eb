#include "worker/enrol.h"

#include "api/worker.h"
#include "lib/base/fs.h"
#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/fetch/retry.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"

#include <limits.h>

enum { FILE_MAX = 16384, UNAUTHORIZED = 401 };
#define LOOK_TIMEOUT (5 * CLOCK_SECOND)

#define AT(member) offsetof(struct credential, member)
static const struct field credential_fields[] = {
	{ "server", FIELD_STR, FIELD_REQUIRED, AT(server), .min = 1, .doc = "Who gave it" },
	{ "worker_id", FIELD_STR, FIELD_REQUIRED, AT(worker_id), .min = 1, .max = 40,
		.doc = "Identity of this worker" },
	{ "token", FIELD_STR, FIELD_REQUIRED, AT(token), .min = 1, .max = 512,
		.doc = "The secret" },
	{ "expires_at", FIELD_TIME, FIELD_OMIT_EMPTY, AT(expires_at), .doc = "When it ends" },
	{ 0 },
};

static int credential_path(const struct worker_conf *c, char out[PATH_MAX], struct err *e)
{
	if (!str_print(out, PATH_MAX, "%s/credential.json", c->work_dir.p))
		return err_set(e, ERR_INVALID, "work-dir is too long");
	return 0;
}

int credential_load(
	const struct worker_conf *c, struct arena *a, struct credential *ret, struct err *e)
{
	char path[PATH_MAX];
	struct credential found;
	struct buf text;

	if (credential_path(c, path, e) < 0)
		return -1;
	buf_init(&text, FILE_MAX);
	int rc = fs_read(path, &text, e);
	if (rc == 0)
		rc = field_decode(credential_fields, buf_str(&text), a, &found, e);
	buf_done(&text);
	if (rc < 0)
		return -1;
	if (!str_eq(found.server, c->server))
		return err_set(e, ERR_INVALID,
			"this worker is enrolled with %.120s, not with %.120s: choose another "
			"work-dir, or remove its credential.json",
			found.server.p, c->server.p);
	*ret = found;
	return 0;
}

static int credential_store(
	const struct worker_conf *c, const struct credential *found, struct err *e)
{
	char path[PATH_MAX];
	struct buf text;

	if (credential_path(c, path, e) < 0)
		return -1;
	buf_init(&text, FILE_MAX);
	field_encode(credential_fields, found, &text);
	int rc = buf_failed(&text) ? err_set(e, ERR_TOO_LARGE,
					     "the credential has more than %d bytes", FILE_MAX)
				   : fs_write_atomic(path, buf_str(&text), 0600, e);
	if (text.p != NULL)
		mem_wipe(text.p, text.cap);
	buf_done(&text);
	return rc;
}

bool credential_refused(
	const struct worker_conf *c, struct loop *loop, const struct credential *have)
{
	const struct fetch_options o = { .base_url = c->server.p,
		.token = have->token.p,
		.ca_file = c->ca_file.n != 0 ? c->ca_file.p : NULL,
		.timeout = LOOK_TIMEOUT };
	struct fetch_reply reply = { 0 };
	char path[128];
	struct fetch_client *http;
	struct buf memory;
	struct err e;

	if (!str_print(path, sizeof path, "/api/v1/workers/%s", have->worker_id.p))
		return false;
	const struct fetch_request q = { .path = path };
	http = fetch_client_new(loop, &o, &e);
	if (http == NULL)
		return false;
	buf_init(&memory, FILE_MAX);
	bool answered = fetch_sync(http, &q, &reply, &memory, &e) == 0;
	fetch_client_free(http);
	buf_done(&memory);
	return answered && reply.status == UNAUTHORIZED;
}

static void on_pause(void *arg)
{
	*(bool *)arg = true;
}

static void pause_for(struct loop *loop, int64_t us)
{
	struct loop_timer t;
	bool over = false;

	loop_timer_init(&t, loop, on_pause, &over);
	loop_timer_set(&t, us / 1000);
	while (!over)
		loop_step(loop, true);
}

/* One request; a reply of 400 and above is an error. */
static int ask(struct fetch_client *http, struct str body, struct buf *memory, struct str *ret,
	bool *ret_again, struct err *e)
{
	const struct fetch_request q = { .method = "POST",
		.path = "/api/v1/workers/enroll",
		.headers = { "Content-Type: application/json" },
		.body = body };
	struct fetch_reply reply = { 0 };

	buf_clear(memory);
	if (fetch_sync(http, &q, &reply, memory, e) < 0) {
		*ret_again = retry_useful(e, 0);
		return -1;
	}
	if (fetch_problem(&reply, e) < 0) {
		const struct err none = { .code = ERR_OK };
		*ret_again = retry_useful(&none, reply.status);
		return -1;
	}
	*ret = reply.body;
	return 0;
}

static int ask_until_answered(struct loop *loop, struct fetch_client *http, struct str body,
	struct buf *memory, struct str *ret, struct err *e)
{
	struct retry wait = { .first = CLOCK_SECOND / 2, .cap = 5 * CLOCK_SECOND };
	int64_t give_up = loop_now(loop) + ENROL_PATIENCE_S * CLOCK_SECOND;
	uint64_t random;
	bool again = false;

	while (ask(http, body, memory, ret, &again, e) < 0) {
		if (!again || loop_now(loop) > give_up)
			return -1;
		if (wait.tries == 0)
			log_warn("the server cannot be reached yet", LOG_E(e));
		id_random(&random, sizeof random);
		pause_for(loop, retry_next(&wait, random, CLOCK_SECOND / 10));
	}
	return 0;
}

int credential_enrol(const struct worker_conf *c, struct loop *loop, struct arena *a,
	struct credential *ret, struct err *e)
{
	const struct fetch_options o = { .base_url = c->server.p,
		.token = c->join_token.p,
		.ca_file = c->ca_file.n != 0 ? c->ca_file.p : NULL };
	const struct enroll me = { .name = c->name };
	struct fetch_client *http;
	struct enrolled answer;
	struct buf body, memory;
	struct str text;
	int rc;

	if (c->join_token.n == 0)
		return err_set(e, ERR_INVALID,
			"this worker is not enrolled yet: give join-token (TIDEMILL_JOIN_TOKEN, or "
			"TIDEMILL_JOIN_TOKEN_FILE with a file that exists)");
	http = fetch_client_new(loop, &o, e);
	if (http == NULL)
		return -1;
	buf_init(&body, FILE_MAX);
	buf_init(&memory, FILE_MAX);
	field_encode(enroll_fields, &me, &body);
	rc = ask_until_answered(loop, http, buf_str(&body), &memory, &text, e);
	if (rc == 0)
		rc = field_decode_reply(enrolled_fields, text, a, &answer, e);
	if (rc == 0 && (answer.worker_id.n == 0 || answer.token.n == 0))
		rc = err_set(e, ERR_INVALID, "the server's reply names no worker or no token");
	if (rc == 0) {
		*ret = (struct credential){ arena_str(a, c->server), answer.worker_id, answer.token,
			answer.expires_at };
		rc = credential_store(c, ret, e);
	}
	fetch_client_free(http);
	buf_done(&memory);
	buf_done(&body);
	return rc;
}
