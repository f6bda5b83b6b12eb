#include "server/store/pool_store.h"

#include "api/pipeline.h"
#include "gen/sql.h"

void pool_store_list(struct db_unit *u, struct str after, int64_t count)
{
	db_stmt(u, SQL_POOL_LIST, DB_TEXT(after), DB_INT(count));
}

void pool_store_get(struct db_unit *u, struct str name)
{
	db_stmt(u, SQL_POOL_GET, DB_TEXT(name));
}

void pool_store_put(struct db_unit *u, struct str name, const struct worker_pool_put *p,
	int64_t expected, struct str actor)
{
	static const bool by_default[SENSITIVITY_COUNT] = { true, true, true, false };
	struct str words[SENSITIVITY_COUNT];
	size_t n = 0;

	for (int s = 0; s < SENSITIVITY_COUNT; s++) {
		bool allowed = p->sensitivity.n == 0 && by_default[s];
		for (size_t i = 0; i < p->sensitivity.n; i++)
			allowed = allowed || *list_at(&p->sensitivity, int, i) == s;
		if (allowed)
			words[n++] = str_c(sensitivity_names[s]);
	}
	db_stmt(u, SQL_POOL_PUT, DB_TEXT(name), DB_TEXTZ(pool_policy_names[p->policy]),
		DB_TEXTS(words, n), DB_TEXTZ(pool_preemption_names[p->preemption]),
		db_opt(expected >= 0, DB_INT(expected)), DB_TEXT(actor));
}

void pool_store_delete(struct db_unit *u, struct str name, struct str actor)
{
	db_stmt(u, SQL_POOL_DELETE, DB_TEXT(name), DB_TEXT(actor));
}
