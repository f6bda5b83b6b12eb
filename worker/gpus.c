#include "worker/gpus.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "worker/gpu/gpu.h"

enum { ARENA_MAX = 4 << 20 };

struct gpus {
	struct loop *loop;
	char *library;
	gpus_cb *changed;
	void *arg;
	struct loop_timer every;
	bool ready, looking, stopped;
	struct arena *a; /* holds the list */
	struct list list; /* struct device */
	int *use; /* of each */
	int64_t *used; /* bytes of memory, likewise */
	uint64_t looks;
	char complaint[256];

	/* of the look in progress */
	struct gpu_source *source;
	struct arena *next;
	struct gpu_inventory found;
	struct err err;
};

static void look(void *arg);
static void run_look(void *arg);
static void on_looked(void *arg);

struct gpus *gpus_new(struct loop *loop, const char *library, gpus_cb *changed, void *arg)
{
	struct gpus *g = mem_new_of(struct gpus);

	g->loop = loop;
	g->library = library != NULL ? mem_dup(library) : NULL;
	g->changed = changed;
	g->arg = arg;
	loop_timer_init(&g->every, loop, look, g);
	look(g);
	return g;
}

bool gpus_busy(const struct gpus *g)
{
	return g->looking;
}

void gpus_stop(struct gpus *g)
{
	g->stopped = true;
	loop_timer_cancel(&g->every);
}

void gpus_free(struct gpus *g)
{
	if (g == NULL)
		return;
	BUG_ON(g->looking);
	gpus_stop(g);
	gpu_close(g->source);
	arena_drop(g->a);
	mem_free(g->library);
	mem_free(g);
}

static void look(void *arg)
{
	struct gpus *g = arg;
	struct err e;

	if (g->looking || g->stopped)
		return;
	g->next = arena_new(ARENA_MAX);
	if (work_submit(g->loop, run_look, on_looked, g, &e) < 0) {
		arena_drop(g->next);
		loop_timer_set(&g->every, 1000);
		return;
	}
	g->looking = true;
}

static void run_look(void *arg)
{
	struct gpus *g = arg;

	g->err.code = ERR_OK;
	g->found = (struct gpu_inventory){ NULL, 0 };
	if (g->source == NULL && gpu_nvml_open(g->library, &g->source, &g->err) < 0)
		return;
	(void)!gpu_list(g->source, g->next, &g->found, &g->err);
}

static struct str shown(struct arena *a, const char *z)
{
	return arena_str(a, str_c(z));
}

/* "NVIDIA H200 MIG 1g.18gb": what stands after MIG. */
static struct str mig_profile(struct arena *a, const char *name)
{
	struct str text = str_c(name);
	ptrdiff_t at = str_find(text, STR("MIG "));

	return arena_str(a, at < 0 ? text : str_slice(text, (size_t)at + 4, text.n));
}

/* The use of a GPU says nothing of its slices. */
static void take_use(struct gpus *g, size_t n)
{
	size_t k = 0;

	g->use = arena_array_of(g->a, int, n + 1);
	g->used = arena_array_of(g->a, int64_t, n + 1);
	for (size_t i = 0; i < g->found.n; i++) {
		const struct gpu_device *d = &g->found.devices[i];
		size_t parts = d->mig ? d->n_slices : 1;
		bool known = !d->mig && d->health == GPU_OK;
		for (size_t s = 0; s < parts; s++, k++) {
			g->use[k] = known ? d->utilization : -1;
			g->used[k] = known && d->memory != 0 ? (int64_t)d->memory_used : -1;
		}
	}
}

/* Links are to whole devices; one that is split is known by its slices only. */
static struct list links_of(
	struct arena *a, const struct gpu_inventory *found, const struct gpu_device *d)
{
	struct str *to = arena_array_of(a, struct str, (size_t)__builtin_popcountll(d->links) + 1);
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++)
		if (i < 64 && (d->links >> i & 1) != 0)
			to[n++] = shown(a, found->devices[i].uuid);
	return (struct list){ to, n };
}

static void add_device(struct arena *a, const struct gpu_inventory *found, size_t at,
	struct device *out, size_t *n)
{
	const struct gpu_device *d = &found->devices[at];
	struct device one = { .uuid = shown(a, d->uuid),
		.model = shown(a, d->model),
		.memory = (int64_t)d->memory,
		.driver = shown(a, d->driver),
		.bus_id = shown(a, d->pci),
		.health = shown(a, d->health != GPU_OK && d->why[0] == '\0'
					   ? gpu_health_name(d->health)
					   : d->why),
		.numa = d->numa >= 0 ? d->numa : 0,
		.has_numa = d->numa >= 0,
		.links = links_of(a, found, d) };

	if (d->health == GPU_OK)
		one.health = STR("");
	if (!d->mig) {
		out[(*n)++] = one;
		return;
	}
	for (size_t i = 0; i < d->n_slices; i++) {
		one.uuid = shown(a, d->slices[i].uuid);
		one.memory = (int64_t)d->slices[i].memory;
		one.mig = mig_profile(a, d->slices[i].name);
		out[(*n)++] = one;
	}
}

static struct list as_devices(struct arena *a, const struct gpu_inventory *found)
{
	size_t most = found->n * GPU_SLICES_MAX, n = 0;
	struct device *all = arena_array_of(a, struct device, most + 1);

	for (size_t i = 0; i < found->n; i++)
		add_device(a, found, i, all, &n);
	return (struct list){ all, n };
}

static bool same_links(const struct device *a, const struct device *b)
{
	if (a->links.n != b->links.n)
		return false;
	for (size_t i = 0; i < a->links.n; i++)
		if (!str_eq(*list_at(&a->links, struct str, i), *list_at(&b->links, struct str, i)))
			return false;
	return true;
}

static bool same(const struct list *x, const struct list *y)
{
	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++) {
		const struct device *a = list_at(x, struct device, i);
		const struct device *b = list_at(y, struct device, i);
		if (!str_eq(a->uuid, b->uuid) || !str_eq(a->health, b->health) ||
			a->memory != b->memory || a->numa != b->numa || !same_links(a, b))
			return false;
	}
	return true;
}

static void on_looked(void *arg)
{
	struct gpus *g = arg;
	bool first = !g->ready;

	g->looking = false;
	g->ready = true;
	if (g->err.code != ERR_OK) {
		if (g->complaint[0] == '\0')
			log_warn("GPUs cannot be listed", LOG_E(&g->err));
		(void)str_print(
			g->complaint, sizeof g->complaint, "GPUs cannot be listed: %s", g->err.msg);
		arena_drop(g->next);
	} else {
		struct list now = as_devices(g->next, &g->found);
		first = first || !same(&g->list, &now) || g->complaint[0] != '\0';
		g->complaint[0] = '\0';
		arena_drop(g->a);
		g->a = g->next;
		g->list = now;
		take_use(g, now.n);
		g->looks++;
	}
	g->next = NULL;
	if (g->stopped)
		return;
	loop_timer_set(&g->every, GPUS_EVERY_S * 1000);
	if (first)
		g->changed(g->arg);
}

bool gpus_ready(const struct gpus *g)
{
	return g->ready;
}

const struct list *gpus_list(const struct gpus *g)
{
	return &g->list;
}

const struct device *gpus_find(const struct gpus *g, struct str uuid)
{
	for (size_t i = 0; i < g->list.n; i++)
		if (str_eq(list_at(&g->list, struct device, i)->uuid, uuid))
			return list_at(&g->list, struct device, i);
	return NULL;
}

int gpus_use(const struct gpus *g, struct str uuid)
{
	for (size_t i = 0; i < g->list.n; i++)
		if (str_eq(list_at(&g->list, struct device, i)->uuid, uuid))
			return g->use[i];
	return -1;
}

int64_t gpus_memory_used(const struct gpus *g, struct str uuid)
{
	for (size_t i = 0; i < g->list.n; i++)
		if (str_eq(list_at(&g->list, struct device, i)->uuid, uuid))
			return g->used[i];
	return -1;
}

uint64_t gpus_looks(const struct gpus *g)
{
	return g->looks;
}

void gpus_look(struct gpus *g)
{
	if (!g->looking && !g->stopped)
		loop_timer_set(&g->every, 0);
}

const char *gpus_complaint(const struct gpus *g)
{
	return g->complaint;
}
