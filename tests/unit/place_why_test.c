#include "server/core/place_why.h"

#include "lib/base/clock.h"
#include "tests/unit/place_world.h"

#include <time.h>

static const struct place_label onprem = { { "site", 4 }, { "onprem", 6 } },
				spot = { { "spot", 4 }, { "true", 4 } };

/* "[!] kind: sentence; …" of the last step that waits. */
static void explains(struct world *w, const char *want)
{
	char text[PLACE_TEXT_MAX], all[3 * PLACE_TEXT_MAX] = "";
	struct place_result r;
	uint32_t n;

	place_pass(&w->s, w->a, &r);
	assert_true(r.waiting_n >= 1);
	const struct place_blocker *b = place_blockers(&r, r.waiting_n - 1, &n);
	for (uint32_t i = 0; i < n; i++)
		(void)str_print(all + strlen(all), sizeof all - strlen(all), "%s%s%s: %s",
			i != 0 ? "; " : "", b[i].never ? "!" : "", place_blocker_name(b[i].kind),
			place_explain(text, &b[i], true));
	assert_string_equal(all, want);
}

void test_place_why__pool_runtime_and_labels(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	struct place_step *s = add_step(&w, "s", 2, 0);
	explains(&w, "!pool: no worker belongs to pool default");
	struct place_worker *k = add_worker(&w, "w1", 4, 0, "", 0);
	k->runtimes = 1 << RUNTIME_KUBERNETES;
	explains(&w, "!runtime: no worker of pool default offers docker or process");
	k->runtimes = 1 << RUNTIME_DOCKER;
	s->requires = (struct place_label[]){ onprem, spot };
	s->requires_n = 1;
	explains(&w, "!requires: no worker of pool default has the label site=onprem");
	s->requires_n = 2;
	k->labels = &onprem;
	k->labels_n = 1;
	struct place_worker *other = add_worker(&w, "w2", 4, 0, "", 0);
	explains(&w, "!requires: no worker of pool default has the label spot=true");
	other->labels = &spot;
	other->labels_n = 1;
	explains(&w, "!requires: no worker of pool default has all labels that it requires; most "
		     "often site=onprem is missing");
	k->labels = (struct place_label[]){ onprem, spot };
	k->labels_n = 2;
	s->avoids = &spot;
	s->avoids_n = 1;
	explains(&w, "!avoids: no worker of pool default that it may use (1 of 2) is free of the "
		     "label spot=true");
	arena_drop(w.a);
}

/* What no worker has in all, wherever it is and whatever runs. */
void test_place_why__what_the_fleet_has_not(void **state)
{
	const struct str h100[] = { STR("H100"), STR("H200") };
	struct world w;

	(void)state;
	world_init(&w);
	struct place_step *s = add_step(&w, "s", 1, 4);
	struct place_worker *k = add_worker(&w, "cpu-3", 4, 0, "", 0);
	k->memory = k->memory_free = 24 * GIB;
	explains(&w, "!gpus: no worker of pool default has a GPU");
	k->gpus_unwell = 2;
	explains(&w, "!gpus: no worker of pool default has a GPU that is well");
	k->gpus_unwell = 0;
	struct place_worker *g = add_worker(&w, "gpu-07", 4, 3, "NVIDIA L40S", 48 * GB);
	g->memory = g->memory_free = 16 * GIB;
	g->offline = true; /* it counts all the same */
	explains(&w, "!gpus: no worker of pool default has 4 GPUs; the most is 3 (gpu-07)");
	g->gpus_unwell = 1;
	explains(&w, "!gpus: no worker of pool default has 4 GPUs; the most is 3 (gpu-07, where 1 "
		     "more is not well)");
	s->gpus.models = h100;
	s->gpus.models_n = 2;
	s->gpus.memory_min = 40 * GIB;
	g->gpus_unwell = 0;
	explains(&w, "!gpus: no worker of pool default has a GPU (H100 or H200, 40 GiB or more "
		     "each)");
	s->gpus.count = 0;
	s->memory = 64 * GIB;
	explains(&w, "!memory: no worker of pool default has 64 GiB of memory; the largest has "
		     "24 GiB (cpu-3)");
	s->cpus = 4.5;
	explains(&w,
		"!memory: no worker of pool default has 64 GiB of memory; the largest has 24 "
		"GiB "
		"(cpu-3); !cpus: no worker of pool default has 4.500 CPUs; the most is 4 (cpu-3)");
	/* Each is there, but not on one worker. */
	s->cpus = 1;
	s->memory = 20 * GIB;
	s->gpus = (struct gpus_want){ .count = 3 };
	explains(&w, "!together: no worker of pool default has all that it needs at once; cpu-3 "
		     "comes closest and lacks GPUs");
	/* Only those that it may use are counted. */
	add_worker(&w, "big", 64, 8, "NVIDIA L40S", 48 * GB)->labels = &spot;
	w.workers[2].labels_n = 1;
	s->avoids = &spot;
	s->avoids_n = 1;
	s->gpus.count = 4;
	s->memory = GIB;
	explains(&w, "!gpus: no worker of pool default that it may use (2 of 3) has 4 GPUs; the "
		     "most is 3 (gpu-07)");
	arena_drop(w.a);
}

void test_place_why__those_that_could_are_gone(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	add_step(&w, "s", 2, 2);
	add_worker(&w, "gpu-01", 8, 2, "NVIDIA L4", 24 * GB)->offline = true;
	explains(&w, "offline: no worker of pool default is online (1 offline)");
	add_worker(&w, "cpu-01", 8, 0, "", 0);
	explains(&w,
		"offline: the only worker of pool default that could take it is offline: gpu-01");
	add_worker(&w, "gpu-02", 8, 2, "NVIDIA L4", 24 * GB)->offline = true;
	explains(&w, "offline: all 2 workers of pool default that could take it are offline, among "
		     "them gpu-01");
	w.workers[2].offline = false;
	w.workers[2].draining = true;
	explains(&w,
		"draining: the only worker of pool default that could take it is drained: gpu-02");
	w.workers[2].offline = true;
	explains(&w, "offline: all 2 workers of pool default that could take it are offline, among "
		     "them gpu-01");
	arena_drop(w.a);
}

void test_place_why__what_others_hold(void **state)
{
	struct place_result r;
	struct world w;
	char text[PLACE_TEXT_MAX];
	uint32_t n;

	(void)state;
	world_init(&w);
	struct place_step *s = add_step(&w, "s", 1, 8);
	for (int i = 0; i < 2; i++) {
		struct place_worker *k =
			add_worker(&w, i == 0 ? "gpu-06" : "gpu-07", 8, 8, "NVIDIA H100", 80 * GB);
		struct place_gpu *gpus = (struct place_gpu *)(uintptr_t)k->gpus;
		for (int g = 0; g < 3 + 2 * (1 - i); g++)
			gpus[g].free = false;
	}
	/* A worker with more memory that can never take the whole step is not spoken of. */
	add_worker(&w, "cpu-3", 8, 0, "", 0);
	explains(&w, "gpus: needs 8 GPUs on one worker; the largest free block is 5, on gpu-07");
	w.workers[0].memory_free = 3 * GIB;
	w.workers[1].memory_free = 2 * GIB;
	s->memory = 4 * GIB;
	s->gpus.count = 5;
	explains(&w, "memory: needs 4 GiB of memory on one worker; the most that is free is 3 GiB, "
		     "on gpu-06");
	place_pass(&w.s, w.a, &r);
	assert_string_equal(place_explain(text, place_blockers(&r, 0, &n), false),
		"needs 4 GiB of memory free on one worker of pool default");
	w.workers[0].memory_free = 5 * GIB;
	explains(&w, "together: no worker of pool default that it may use (2 of 3) has all that it "
		     "needs free at once; gpu-06 comes closest and lacks GPUs");
	s->gpus.count = 1;
	s->disk = 200 * GB;
	s->memory = GIB;
	explains(&w, "disk: needs 186.3 GiB of disk on one worker; the most that is free is "
		     "93.1 GiB, on gpu-06");
	s->disk = 0;
	s->cpus = 3;
	w.workers[0].cpus_free = w.workers[1].cpus_free = 0;
	explains(&w, "cpus: needs 3 CPUs on one worker; none is free");
	arena_drop(w.a);
}

void test_place_why__names_are_apart(void **state)
{
	(void)state;
	for (int k = 0; k < PLACE_BLOCKER_KINDS; k++)
		for (int i = 0; i < k; i++)
			assert_string_not_equal(place_blocker_name((enum place_blocker_kind)k),
				place_blocker_name((enum place_blocker_kind)i));
	for (int k = 0; k < PLACE_EDIT_KINDS; k++)
		assert_true(strlen(place_edit_name((enum place_edit_kind)k)) > 0);
}

/* ---- what would let it start ---------------------------------------------------------------- */

static void would_start(struct world *w, const char *want)
{
	struct place_change c;
	struct place_result r;
	char text[PLACE_TEXT_MAX] = "";

	place_pass(&w->s, w->a, &r);
	assert_int_equal(r.waiting_n, 1);
	if (place_change(&r, 0, &c))
		(void)place_change_text(text, &c);
	assert_string_equal(text, want);
}

void test_place_why__the_smallest_change(void **state)
{
	const struct str h100[] = { STR("H100") };
	struct world w;

	(void)state;
	world_init(&w);
	struct place_step *s = add_step(&w, "s", 2, 0);
	would_start(&w, "");
	struct place_worker *off = add_worker(&w, "away", 64, 8, "NVIDIA H100", 80 * GB);
	off->offline = true;
	would_start(&w, "");
	struct place_worker *gpu = add_worker(&w, "gpu-07", 8, 5, "NVIDIA H100", 80 * GB);
	s->gpus.count = 8;
	would_start(&w, "on gpu-07, if it asked for 5 GPUs instead of 8");
	s->memory = 128 * GB;
	would_start(&w, "on gpu-07, if it asked for 5 GPUs instead of 8 and it asked for 59.6 GiB "
			"of memory instead of 119.2 GiB");
	/* One edit is smaller than two, whatever their kinds. */
	struct place_worker *other = add_worker(&w, "other", 8, 8, "NVIDIA L4", 24 * GB);
	other->memory_free = 256 * GB;
	other->pool = STR("big");
	would_start(&w, "on other, if it were placed in pool big");
	other->pool = STR("default");
	s->gpus.models = h100;
	s->gpus.models_n = 1;
	would_start(&w, "on other, if it accepted the GPU NVIDIA L4");
	other->draining = true;
	s->memory = GB;
	would_start(&w, "on gpu-07, if it asked for 5 GPUs instead of 8");
	gpu->pool = STR("big");
	s->gpus.models_n = 0;
	would_start(&w, "on other, if that worker took new work again");
	other->draining = false;
	other->runtimes = 1 << RUNTIME_KUBERNETES;
	would_start(&w, "on other, if it accepted the runtime kubernetes");
	other->runtimes = 1 << RUNTIME_PROCESS;
	s->requires = &onprem;
	s->requires_n = 1;
	other->labels = &spot;
	other->labels_n = 1;
	would_start(&w, "on other, if it did not require the label site=onprem");
	s->requires = s->avoids = &spot;
	s->avoids_n = 1;
	would_start(&w, "on other, if it did not avoid the label spot=true");
	/* What is next to nothing is no proposal; nor is a long list. */
	s->avoids_n = 0;
	other->cpus_free = 0.1;
	would_start(&w, "on gpu-07, if it asked for 5 GPUs instead of 8 and it did not require the "
			"label spot=true and it were placed in pool big");
	gpu->cpus_free = 1;
	would_start(&w, "");
	arena_drop(w.a);
}

/* ---- when it may start ---------------------------------------------------------------------- */

static void holds(struct world *w, struct place_running *list, uint32_t worker, uint32_t gpus,
	int64_t ends_by)
{
	struct place_worker *k = &w->workers[worker];
	struct place_gpu *all = (struct place_gpu *)(uintptr_t)k->gpus;
	struct place_running *r = &list[w->s.running_n++];
	struct str *uuids = arena_array_of(w->a, struct str, gpus + 1);

	*r = (struct place_running){
		.worker = worker, .cpus = 1, .memory = GB, .gpus = uuids, .ends_by = ends_by
	};
	for (uint32_t g = 0; g < k->gpus_n && r->gpus_n < gpus; g++)
		if (all[g].free) {
			uuids[r->gpus_n++] = all[g].uuid;
			all[g].free = false;
		}
	k->cpus_free -= 1;
	k->memory_free -= GB;
	k->running++;
	w->s.running = list;
}

static void starts(struct world *w, size_t waiting, int64_t want)
{
	struct place_result r;

	place_pass(&w->s, w->a, &r);
	assert_true(waiting < r.waiting_n);
	struct arena *scratch = arena_new(place_start_room(&r));
	assert_int_equal(place_start(&r, waiting, 100, scratch), want);
	arena_drop(scratch);
}

void test_place_why__the_start_that_time_limits_allow(void **state)
{
	struct place_running running[8];
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "a", 16, 8, "NVIDIA H100", 80 * GB);
	add_worker(&w, "b", 16, 8, "NVIDIA H100", 80 * GB);
	holds(&w, running, 0, 4, 5000);
	holds(&w, running, 0, 4, 0); /* it has no time limit: never counted on */
	holds(&w, running, 1, 2, 9000);
	holds(&w, running, 1, 6, 7000);
	add_step(&w, "four", 1, 4)->time_limit = 1000;
	add_step(&w, "eight", 1, 8);
	add_step(&w, "two", 1, 2);
	starts(&w, 0, 5000);
	/* `four` is on a until 6000; b is whole at 9000, unless `two` sits on it from 7000 on. */
	starts(&w, 2, 6000);
	starts(&w, 1, 9000);
	running[2].ends_by = 0;
	starts(&w, 1, 0);
	/* What was to have ended by now ends now. */
	running[0].ends_by = 50;
	starts(&w, 0, 100);
	/* A step that the pass itself placed ends at its time limit, too. */
	w.s.running_n = 0;
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t g = 0; g < 8; g++)
			((struct place_gpu *)(uintptr_t)w.workers[k].gpus)[g].free = true;
	w.s.steps_n = 0;
	add_step(&w, "first", 1, 8)->time_limit = 300;
	add_step(&w, "second", 1, 8)->time_limit = 200;
	add_step(&w, "third", 1, 8);
	add_step(&w, "fourth", 1, 8);
	starts(&w, 0, 300);
	starts(&w, 1, 400);
	arena_drop(w.a);
}
