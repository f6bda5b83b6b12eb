#include "server/rest/access.h"

#include "lib/base/mem.h"
#include "lib/loop/timer.h"
#include "server/store/auth_store.h"

#include <sys/queue.h>

enum { CHECK_MS = 2000, MAC_MAX = 64, ID_TEXT = 64 };

struct access_watch {
	TAILQ_ENTRY(access_watch) link;
	struct access *access;
	char token_id[ID_TEXT], project_id[ID_TEXT];
	unsigned char mac[MAC_MAX];
	size_t mac_n; /* 0: not by session */
	access_lost_cb *on_lost;
	void *arg;
	uint64_t number; /* grows with each watch */
};
TAILQ_HEAD(watches, access_watch);

struct access {
	struct app *app;
	struct watches watches; /* in the order of their numbers */
	size_t n;
	struct loop_timer timer;
	bool checking;
	uint64_t next, *asked; /* numbers of the watches of the check in flight */
	size_t n_asked;
};

static void access_check(void *arg);
static void access_on_rows(void *arg, const struct db_rows *rows, const struct err *e);

struct access *access_new(struct app *app)
{
	struct access *a = mem_new_of(struct access);

	a->app = app;
	TAILQ_INIT(&a->watches);
	loop_timer_init(&a->timer, app->loop, access_check, a);
	loop_timer_every(&a->timer, CHECK_MS);
	return a;
}

void access_stop(struct access *a)
{
	if (a != NULL)
		loop_timer_cancel(&a->timer);
}

void access_free(struct access *a)
{
	if (a == NULL)
		return;
	BUG_ON(!TAILQ_EMPTY(&a->watches));
	mem_free(a->asked);
	mem_free(a);
}

struct access_watch *access_watch(struct call *c, access_lost_cb *on_lost, void *arg)
{
	struct access *a = c->app->access;
	struct access_watch *w = mem_new_of(struct access_watch);
	struct str mac =
		c->who.session ? auth_session_mac(c->app->auth, c->req, c->arena) : STR_NONE;

	*w = (struct access_watch){
		.access = a, .on_lost = on_lost, .arg = arg, .number = ++a->next
	};
	(void)str_print(w->token_id, sizeof w->token_id, "%.*s", STR_ARG(c->who.token_id));
	(void)str_print(w->project_id, sizeof w->project_id, "%.*s", STR_ARG(c->project_id));
	if (mac.p != NULL && mac.n <= MAC_MAX) {
		memcpy(w->mac, mac.p, mac.n);
		w->mac_n = mac.n;
	}
	TAILQ_INSERT_TAIL(&a->watches, w, link);
	a->n++;
	return w;
}

void access_unwatch(struct access_watch *w)
{
	if (w == NULL)
		return;
	TAILQ_REMOVE(&w->access->watches, w, link);
	w->access->n--;
	mem_free(w);
}

static void access_check(void *arg)
{
	struct access *a = arg;
	struct access_watch *w;
	size_t n = 0;

	if (a->checking || a->n == 0)
		return;
	struct str *tokens = mem_new(3 * a->n, sizeof *tokens);
	struct str *projects = tokens + a->n, *macs = projects + a->n;
	bool *none = mem_new(a->n, sizeof *none);
	a->asked = mem_resize(a->asked, a->n, sizeof *a->asked);
	TAILQ_FOREACH (w, &a->watches, link) {
		tokens[n] = str_c(w->token_id);
		projects[n] = str_c(w->project_id);
		macs[n] = (struct str){ (const char *)w->mac, w->mac_n };
		none[n] = w->mac_n == 0;
		a->asked[n++] = w->number;
	}
	struct db_unit *u = db_unit(a->app->db, NULL);
	auth_store_still(u, tokens, projects, macs, none, n);
	mem_free(tokens);
	mem_free(none);
	a->n_asked = n;
	a->checking = true;
	db_send(u, DB_READ, access_on_rows, a);
}

static struct access_watch *find(struct access *a, uint64_t number)
{
	struct access_watch *w;

	TAILQ_FOREACH (w, &a->watches, link)
		if (w->number == number)
			return w;
	return NULL;
}

/* Rows: ord (from 1) of the watches that may go on. */
static void access_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct access *a = arg;
	bool *lost;

	a->checking = false;
	if (e->code != ERR_OK)
		return;
	lost = mem_new(a->n_asked + 1, sizeof *lost);
	memset(lost, true, a->n_asked);
	for (size_t i = 0; i < rows[0].n; i++)
		lost[db_int(&rows[0], i, 0) - 1] = false;
	for (size_t i = 0; i < a->n_asked; i++) {
		struct access_watch *w = lost[i] ? find(a, a->asked[i]) : NULL;
		if (w != NULL)
			w->on_lost(w->arg);
	}
	mem_free(lost);
}
