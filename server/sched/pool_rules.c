#include "api/pipeline.h"
#include "api/pool.h"
#include "server/sched/pool_inside.h"

/* What holds of projects and of pools of workers, and the whole memory from its rows. */

enum { RULES_ARENA = 1 << 20 };

/* ---- projects ---- */

static struct place_quota quota_of(
	const struct db_rows *r, size_t i, const char *nominal, const char *borrow)
{
	size_t col = db_col(r, nominal);

	return (struct place_quota){ .limited = !db_is_null(r, i, col),
		.nominal = (uint32_t)db_int(r, i, col),
		.borrow = (uint32_t)db_int(r, i, db_col(r, borrow)) };
}

void pool_set_projects(struct pool *p, const struct db_rows *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct tally *t = pool_tally(p, db_str(r, i, db_col(r, "id")));
		t->project.name = pool_text(t->arena, r, i, "name");
		t->project.weight = db_real(r, i, db_col(r, "weight"));
		t->project.gpus_quota = quota_of(r, i, "gpus", "gpus_borrow");
		t->project.steps_quota = quota_of(r, i, "steps", "steps_borrow");
	}
}

/* ---- pools of workers ---- */

static int word_of(struct str word, const char *const *names)
{
	int i = 0;

	while (names[i] != NULL && !str_is(word, names[i]))
		i++;
	BUG_ON(names[i] == NULL);
	return i;
}

void pool_set_rules(struct pool *p, const struct db_rows *r)
{
	struct arena *a = arena_new(RULES_ARENA + r->n * 1024);
	struct rules *rules = arena_new_of(a, struct rules);

	*rules = (struct rules){ a, arena_array_of(a, struct place_pool, r->n + 1), r->n };
	for (size_t i = 0; i < r->n; i++) {
		struct place_pool *pool = &rules->pools[i];
		struct list words = db_list(r, i, db_col(r, "sensitivity"), a);
		pool->name = pool_text(a, r, i, "name");
		pool->policy = (enum place_policy)word_of(
			db_str(r, i, db_col(r, "policy")), pool_policy_names);
		pool->preemption = (enum place_preemption)word_of(
			db_str(r, i, db_col(r, "preemption")), pool_preemption_names);
		for (size_t k = 0; k < words.n; k++)
			pool->sensitivities |=
				(uint8_t)(1 << word_of(*list_at(&words, struct str, k),
						  sensitivity_names));
	}
	pool_free_object(p->rules);
	p->rules = rules;
}

/* ---- all of it ---- */

void pool_read(struct pool *p, const struct db_rows rows[])
{
	pool_add_steps(p, &rows[0]);
	pool_set_workers(p, &rows[1]);
	pool_set_attempts(p, &rows[2]);
	pool_set_projects(p, &rows[3]);
	pool_set_rules(p, &rows[4]);
}
