#include "server/mlflow/run_access.h"

#include "lib/base/mem.h"
#include "lib/db/group.h"
#include "server/app.h"
#include "server/store/tracking_store.h"

enum { BATCH = 200 };

struct run_access {
	struct db_group *group;
};

static void access_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct str principals[BATCH], attempts[BATCH], runs[BATCH];

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		const struct run_asked *asked = items[i];
		principals[i] = asked->principal_id.p != NULL ? asked->principal_id : STR("");
		attempts[i] = asked->attempt_id.p != NULL ? asked->attempt_id : STR("");
		runs[i] = asked->run_id;
	}
	tracking_store_access(u, principals, runs, attempts, n);
}

static void access_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	const struct run_asked *asked = item;

	(void)arg;
	asked->cb(asked->arg, rows, row, e);
}

struct run_access *run_access_new(struct app *app)
{
	struct run_access *r = mem_new_of(struct run_access);

	r->group = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_READ,
			.build = access_build,
			.done = access_done,
			.result = 0,
			.batch_max = BATCH });
	return r;
}

void run_access_free(struct run_access *r)
{
	if (r == NULL)
		return;
	db_group_free(r->group);
	mem_free(r);
}

int run_access_ask(struct run_access *r, struct run_asked *asked, struct err *e)
{
	return db_group_add(r->group, asked, asked->run_id.n, e);
}
