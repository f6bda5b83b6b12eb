#include "server/sched/pool.h"

#include "api/pipeline.h"
#include "api/worker.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json_read.h"
#include "server/sched/gpu_spec.h"
#include "server/sched/pool_inside.h"
#include "server/store/engine_store.h"

enum { OBJECT_ARENA = 1 << 20, AVOID_FAULTS = 3 };
#define AVOID_FOR (30 * CLOCK_MINUTE)

struct pool *pool_new(void)
{
	struct pool *p = mem_new_of(struct pool);

	*p = (struct pool){
		.steps = map_new(), .hosts = map_new(), .attempts = map_new(), .tallies = map_new()
	};
	return p;
}

/* Every object begins with its arena, which also holds the object. */
void pool_free_object(void *object)
{
	if (object != NULL)
		arena_drop(*(struct arena **)object);
}

static void clear(struct map **m)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(*m, &at, &key, &value))
		pool_free_object(value);
	map_free(*m);
	*m = map_new();
}

void pool_free(struct pool *p)
{
	if (p == NULL)
		return;
	struct map **all[] = { &p->steps, &p->hosts, &p->attempts, &p->tallies };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		clear(all[i]);
		map_free(*all[i]);
	}
	arena_drop(p->kept_arena);
	pool_free_object(p->rules);
	mem_free(p->order);
	mem_free(p);
}

struct str pool_text(struct arena *a, const struct db_rows *r, size_t i, const char *column)
{
	return arena_str(a, db_str(r, i, db_col(r, column)));
}

/* A label that each worker has beside its own, so that a step can avoid it. */
static struct place_label self_label(struct str worker_name, struct arena *a)
{
	return (struct place_label){ arena_printf(a, PLACE_SELF "%.*s", STR_ARG(worker_name)),
		STR("") };
}

static const struct place_label *add_labels(const struct place_label *labels, uint32_t *n,
	const struct str *names, size_t names_n, struct arena *a)
{
	struct place_label *all = arena_array_of(a, struct place_label, *n + names_n + 1);

	if (*n != 0)
		memcpy(all, labels, *n * sizeof *all);
	for (size_t i = 0; i < names_n && *n < PLACE_LABELS_MAX; i++)
		all[(*n)++] = self_label(names[i], a);
	return all;
}

/* ---- steps ---- */

static struct place_label *labels_of(const struct jsn *object, struct arena *a, uint32_t *ret_n)
{
	size_t n = jsn_type(object) == JSN_OBJ ? jsn_count(object) : 0;
	struct place_label *out = arena_array_of(a, struct place_label, n + 1);

	if (n > PLACE_LABELS_MAX)
		n = PLACE_LABELS_MAX;
	for (size_t i = 0; i < n; i++) {
		const struct jsn *v = jsn_at(object, i);
		out[i] = (struct place_label){ arena_str(a, jsn_name(v)),
			arena_str(a, jsn_get_str(v)) };
	}
	*ret_n = (uint32_t)n;
	return out;
}

static int read_request(struct waiting *w, struct str json, struct err *e)
{
	struct jsn_doc *doc;

	if (jsn_parse(json, &doc, e) < 0)
		return -1;
	const struct jsn *root = jsn_root(doc), *runtimes = jsn_get(root, "runtimes");
	struct place_step *s = &w->step;
	for (size_t i = 0; i < jsn_count(runtimes) && s->runtimes_n < PLACE_RUNTIMES_MAX; i++)
		s->runtimes[s->runtimes_n++] = (uint8_t)jsn_get_int(jsn_at(runtimes, i), 0);
	s->requires = labels_of(jsn_get(root, "requires"), w->arena, &s->requires_n);
	s->avoids = labels_of(jsn_get(root, "avoids"), w->arena, &s->avoids_n);
	const struct jsn *workers = jsn_get(root, "avoid_workers");
	for (size_t i = 0; i < jsn_count(workers); i++) {
		struct str name = jsn_get_str(jsn_at(workers, i));
		s->avoids = add_labels(s->avoids, &s->avoids_n, &name, 1, w->arena);
	}
	s->time_limit = jsn_get_int(jsn_get(root, "time_limit"), 0);
	/* Who was queued by an older server could not say it. */
	s->sensitivity = (uint8_t)jsn_get_int(jsn_get(root, "sensitivity"), SENSITIVITY_INTERNAL);
	w->preemptible = jsn_get_bool(jsn_get(root, "preemptible"), true);
	pool_want_goods(w, root);
	s->nodes = (uint32_t)jsn_get_int(jsn_get(root, "ranks"), 0);
	int rc = gpu_spec_of(jsn_get(root, "gpus"), w->arena, &s->gpus, e);
	jsn_doc_free(doc);
	return rc;
}

uint64_t pool_blocked_hash(struct str kind, bool unsatisfiable, struct str message)
{
	return str_hash(message, str_hash(kind, unsatisfiable)) | 1;
}

static uint64_t read_blocked(struct str json)
{
	struct jsn_doc *doc;
	struct err e;

	if (json.n == 0 || jsn_parse(json, &doc, &e) < 0)
		return 0;
	const struct jsn *root = jsn_root(doc);
	uint64_t hash = pool_blocked_hash(jsn_get_str(jsn_get(root, "kind")),
		jsn_get_bool(jsn_get(root, "unsatisfiable"), false),
		jsn_get_str(jsn_get(root, "message")));
	jsn_doc_free(doc);
	return hash;
}

/* Takes the arena that w lives in. */
static void put_step(struct pool *p, struct waiting *w, struct str request)
{
	struct err e;

	if (read_request(w, request, &e) == 0) {
		pool_free_object(map_put(p->steps, w->step.id, w));
		return;
	}
	log_error("a queued step cannot be read", LOG_STR("step", w->step.id), LOG_E(&e));
	arena_drop(w->arena);
}

static void add_step(struct pool *p, const struct db_rows *r, size_t i)
{
	struct arena *a = arena_new(OBJECT_ARENA);
	struct waiting *w = arena_new_of(a, struct waiting);

	w->arena = a;
	w->project_id = pool_text(a, r, i, "project_id");
	w->not_before = db_time(r, i, db_col(r, "not_before"));
	w->blocked = read_blocked(db_str(r, i, db_col(r, "blocked")));
	w->cleared_on = db_list(r, i, db_col(r, "cleared_on"), a);
	w->step = (struct place_step){ .id = pool_text(a, r, i, "step_id"),
		.priority = (int32_t)db_int(r, i, db_col(r, "priority")),
		.queued_at = db_time(r, i, db_col(r, "queued_at")),
		.cpus = db_real(r, i, db_col(r, "cpus")),
		.memory = (uint64_t)db_int(r, i, db_col(r, "memory")),
		.disk = (uint64_t)db_int(r, i, db_col(r, "disk")),
		.pool = pool_text(a, r, i, "pool") };
	put_step(p, w, db_str(r, i, db_col(r, "request")));
}

void pool_add_steps(struct pool *p, const struct db_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		add_step(p, rows, i);
}

void pool_queue_steps(struct pool *p, const struct queue_rows *q, int64_t queued_at)
{
	for (size_t i = 0; i < q->n; i++) {
		struct arena *a = arena_new(OBJECT_ARENA);
		struct waiting *w = arena_new_of(a, struct waiting);

		w->arena = a;
		w->project_id = arena_str(a, q->project_ids[i]);
		w->not_before = q->not_before[i] != INT64_MIN ? q->not_before[i] : 0;
		w->step = (struct place_step){ .id = arena_str(a, q->step_ids[i]),
			.priority = (int32_t)q->priorities[i],
			.queued_at = queued_at,
			.cpus = q->cpus[i],
			.memory = (uint64_t)q->memory[i],
			.disk = (uint64_t)q->disk[i],
			.pool = arena_str(a, q->pools[i]) };
		put_step(p, w, q->requests[i]);
	}
}

void pool_remove_step(struct pool *p, struct str step_id)
{
	pool_free_object(map_remove(p->steps, step_id));
}

uint64_t *pool_blocked(struct pool *p, struct str step_id)
{
	struct waiting *w = map_get(p->steps, step_id);

	return w != NULL ? &w->blocked : NULL;
}

size_t pool_steps(const struct pool *p)
{
	return map_count(p->steps);
}

/* ---- what attempts hold ---- */

static void mark_gpus(struct host *h, const struct holding *held, bool is_free)
{
	for (size_t d = 0; d < held->devices.n; d++)
		for (uint32_t g = 0; g < h->worker.gpus_n; g++)
			if (str_eq(h->gpus[g].uuid, *list_at(&held->devices, struct str, d)))
				h->gpus[g].free = is_free;
}

static void count_free(struct host *h)
{
	struct place_worker *w = &h->worker;

	if (w->running == 0)
		h->cpus_held = 0; /* fractions do not add up for ever */
	w->cpus_free = h->cpus_held < w->cpus ? w->cpus - h->cpus_held : 0;
	w->memory_free = h->memory_held < w->memory ? w->memory - h->memory_held : 0;
}

static void host_hold(struct host *h, struct holding *held)
{
	held->host = h;
	h->cpus_held += held->cpus;
	h->memory_held += held->memory;
	h->worker.running++;
	mark_gpus(h, held, false);
	count_free(h);
}

static void host_release(struct host *h, const struct holding *held)
{
	h->cpus_held -= held->cpus;
	h->memory_held -= held->memory;
	h->worker.running--;
	mark_gpus(h, held, true);
	count_free(h);
}

struct tally *pool_tally(struct pool *p, struct str project_id)
{
	struct tally *t = map_get(p->tallies, project_id);

	if (t == NULL) {
		struct arena *a = arena_new(OBJECT_ARENA);
		t = arena_new_of(a, struct tally);
		t->arena = a;
		t->project.id = arena_str(a, project_id);
		t->project.weight = 1;
		(void)map_put(p->tallies, project_id, t);
	}
	return t;
}

static void project_holds(struct place_project *project, const struct holding *held)
{
	project->running++;
	project->gpus += (uint32_t)held->devices.n;
	project->cpus += held->cpus;
	project->memory += held->memory;
}

static void project_releases(struct place_project *project, const struct holding *held)
{
	project->running--;
	project->gpus -= (uint32_t)held->devices.n;
	project->cpus = project->running != 0 ? project->cpus - held->cpus : 0;
	project->memory -= held->memory;
}

static void holding_end(struct pool *p, struct holding *held)
{
	struct host *h;

	if (held == NULL)
		return;
	h = map_get(p->hosts, held->worker_id);
	if (h != NULL)
		host_release(h, held);
	project_releases(&pool_tally(p, held->project_id)->project, held);
	pool_free_object(held);
}

static void holding_begin(struct pool *p, struct str attempt_id, struct holding *held)
{
	struct host *h = map_get(p->hosts, held->worker_id);

	held->id = arena_str(held->arena, attempt_id);
	holding_end(p, map_put(p->attempts, attempt_id, held));
	if (h != NULL)
		host_hold(h, held);
	project_holds(&pool_tally(p, held->project_id)->project, held);
}

/* The hosts of these workers are about to go; NULL: all are. */
static void leave_hosts(struct pool *p, const struct map *ids)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(p->attempts, &at, &key, &value)) {
		struct holding *held = value;
		if (ids == NULL || map_get(ids, held->worker_id) != NULL)
			held->host = NULL;
	}
}

/* What they left goes to those that have come. */
static void hold_again(struct pool *p)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(p->attempts, &at, &key, &value)) {
		struct holding *held = value;
		struct host *h = held->host == NULL ? map_get(p->hosts, held->worker_id) : NULL;
		if (h != NULL)
			host_hold(h, held);
	}
}

/* ---- workers ---- */

/* Of those that are well; what stands behind the 64th has none. */
static void link_gpus(struct place_gpu *gpus, uint32_t n, const struct list *links)
{
	for (uint32_t g = 0; g < n; g++)
		for (size_t i = 0; i < links[g].n; i++)
			for (uint32_t to = 0; to < n && to < 64; to++)
				if (str_eq(gpus[to].uuid, *list_at(&links[g], struct str, i)))
					gpus[g].links |= UINT64_C(1) << to;
}

static void read_gpus(struct host *h, struct str devices_json)
{
	struct jsn_doc *doc;
	struct err e;

	if (jsn_parse(devices_json, &doc, &e) < 0)
		return;
	size_t n = jsn_count(jsn_root(doc));
	struct place_gpu *gpus = arena_array_of(h->arena, struct place_gpu, n + 1);
	struct list *links = arena_array_of(h->arena, struct list, n + 1);
	for (size_t i = 0; i < n; i++) {
		struct device d;
		if (jsn_decode(jsn_at(jsn_root(doc), i), device_fields, FIELD_REPLY, h->arena, &d,
			    &e) < 0)
			continue;
		if (d.health.n != 0) {
			h->worker.gpus_unwell++;
			continue;
		}
		links[h->worker.gpus_n] = d.links;
		gpus[h->worker.gpus_n++] = (struct place_gpu){ d.uuid, d.model, d.mig,
			(uint64_t)d.memory, true, d.has_numa ? (uint32_t)d.numa + 1 : 0, 0 };
	}
	link_gpus(gpus, h->worker.gpus_n, links);
	h->worker.gpus = h->gpus = gpus;
	jsn_doc_free(doc);
}

static uint32_t runtimes_of(const struct list *names)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < names->n; i++)
		for (int r = 0; r < RUNTIME_COUNT; r++)
			if (str_is(*list_at(names, struct str, i), runtime_names[r]))
				bits |= 1u << r;
	return bits;
}

static void put_host(struct pool *p, const struct db_rows *r, size_t i)
{
	struct arena *a = arena_new(OBJECT_ARENA);
	struct host *h = arena_new_of(a, struct host);
	struct list runtimes = db_list(r, i, db_col(r, "runtimes"), a);
	struct list isolated = db_list(r, i, db_col(r, "isolated"), a);
	struct jsn_doc *doc;
	struct err e;

	h->arena = a;
	h->seen_at = db_time(r, i, db_col(r, "seen_at"));
	h->lost_at = db_time(r, i, db_col(r, "lost_at"));
	if (db_int(r, i, db_col(r, "faults")) >= AVOID_FAULTS)
		h->avoid_until = db_time(r, i, db_col(r, "fault_at")) + AVOID_FOR;
	h->worker = (struct place_worker){ .id = pool_text(a, r, i, "id"),
		.name = pool_text(a, r, i, "name"),
		.pool = pool_text(a, r, i, "pool"),
		.runtimes = runtimes_of(&runtimes),
		.isolated = runtimes_of(&isolated),
		.cpus = db_real(r, i, db_col(r, "cpus")),
		.memory = (uint64_t)db_int(r, i, db_col(r, "memory")),
		.disk_free = (uint64_t)db_int(r, i, db_col(r, "disk_free")),
		.draining = !str_is(db_str(r, i, db_col(r, "state")), "active") };
	read_gpus(h, db_str(r, i, db_col(r, "devices")));
	pool_read_holds(h, db_str(r, i, db_col(r, "holds")));
	if (jsn_parse(db_str(r, i, db_col(r, "labels")), &doc, &e) == 0) {
		h->worker.labels = labels_of(jsn_root(doc), a, &h->worker.labels_n);
		jsn_doc_free(doc);
	}
	h->worker.labels = add_labels(h->worker.labels, &h->worker.labels_n, &h->worker.name, 1, a);
	count_free(h);
	pool_free_object(map_put(p->hosts, h->worker.id, h));
}

static void put_hosts(struct pool *p, const struct db_rows *rows)
{
	p->ordered = false;
	for (size_t i = 0; i < rows->n; i++)
		put_host(p, rows, i);
	hold_again(p);
}

void pool_set_workers(struct pool *p, const struct db_rows *rows)
{
	leave_hosts(p, NULL);
	clear(&p->hosts);
	put_hosts(p, rows);
}

void pool_put_workers(struct pool *p, const struct str *ids, size_t n, const struct db_rows *rows)
{
	struct map *gone = map_new();

	for (size_t i = 0; i < n; i++)
		(void)map_put(gone, ids[i], p);
	leave_hosts(p, gone);
	for (size_t i = 0; i < n; i++)
		pool_free_object(map_remove(p->hosts, ids[i]));
	put_hosts(p, rows);
	map_free(gone);
}

void pool_close_worker(struct pool *p, struct str id)
{
	struct host *h = map_get(p->hosts, id);

	if (h != NULL)
		h->worker.draining = true;
}

/* ---- attempts ---- */

static struct holding *holding_new(void)
{
	struct arena *a = arena_new(OBJECT_ARENA);
	struct holding *h = arena_new_of(a, struct holding);

	h->arena = a;
	return h;
}

static void drop_attempts(struct pool *p)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(p->attempts, &at, &key, &value))
		holding_end(p, map_remove(p->attempts, key));
}

/* What was asked to end by somebody is not asked again. */
static void read_preemption(struct holding *h, const struct db_rows *r, size_t i)
{
	h->step_id = pool_text(h->arena, r, i, "step_id");
	h->priority = (int32_t)db_int(r, i, db_col(r, "priority"));
	h->fixed = db_bool(r, i, db_col(r, "fixed"));
	h->spared = db_list(r, i, db_col(r, "spared"), h->arena);
	h->preempted_by = pool_text(h->arena, r, i, "preempted_by");
	h->asked_at = db_time(r, i, db_col(r, "cancel_requested_at"));
	h->checkpoint_at = db_time(r, i, db_col(r, "checkpoint_at"));
}

void pool_set_attempts(struct pool *p, const struct db_rows *r)
{
	drop_attempts(p);
	for (size_t i = 0; i < r->n; i++) {
		struct holding *h = holding_new();
		h->worker_id = pool_text(h->arena, r, i, "worker_id");
		h->project_id = pool_text(h->arena, r, i, "project_id");
		h->cpus = db_real(r, i, db_col(r, "cpus"));
		h->memory = (uint64_t)db_int(r, i, db_col(r, "memory"));
		h->devices = db_list(r, i, db_col(r, "devices"), h->arena);
		read_preemption(h, r, i);
		h->time_limit = db_int(r, i, db_col(r, "time_limit"));
		h->started_at = db_time(r, i, db_col(r, "started_at"));
		holding_begin(p, db_str(r, i, db_col(r, "id")), h);
	}
}

static struct list copy_texts(struct arena *a, const struct list *from)
{
	struct list to = { arena_array_of(a, struct str, from->n + 1), from->n };

	for (size_t i = 0; i < from->n; i++)
		*list_at(&to, struct str, i) = arena_str(a, *list_at(from, struct str, i));
	return to;
}

void pool_assigned(struct pool *p, const struct pool_given *g)
{
	const struct waiting *w = map_get(p->steps, g->step_id);
	struct holding *h;

	if (w == NULL)
		return;
	h = holding_new();
	h->worker_id = arena_str(h->arena, g->worker_id);
	h->project_id = arena_str(h->arena, w->project_id);
	h->cpus = w->step.cpus;
	h->memory = w->step.memory;
	h->step_id = arena_str(h->arena, g->step_id);
	h->priority = w->step.priority;
	h->fixed = !w->preemptible;
	h->time_limit = w->step.time_limit;
	h->devices = copy_texts(h->arena, g->gpus);
	h->spared = copy_texts(h->arena, g->spared);
	holding_begin(p, g->attempt_id, h);
}

void pool_attempt_ended(struct pool *p, struct str attempt_id)
{
	holding_end(p, map_remove(p->attempts, attempt_id));
}
