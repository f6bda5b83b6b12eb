#include "server/sched/snapshot.h"

#include "server/sched/replay.h"
#include "tests/unit/place_world.h"

static const struct place_label labels[] = { { { "site", 4 }, { "on \"prem\"", 9 } },
	{ { "spot", 4 }, { "true", 4 } } };

static void make_world(struct world *w, struct place_running *running)
{
	static const struct str models[] = { { "H100", 4 } };

	world_init(w);
	add_worker(w, "gpu-1", 7.25, 8, "NVIDIA H100 80GB HBM3", 85 * GB)->gpus_unwell = 1;
	add_worker(w, "gpu-2", 16, 4, "NVIDIA L4", 24 * GB)->labels = labels;
	w->workers[1].labels_n = 2;
	w->workers[0].avoided = true;
	add_worker(w, "away", 8, 0, "", 0)->offline = true;
	((struct place_gpu *)(uintptr_t)w->workers[0].gpus)[3].free = false;
	*running = (struct place_running){ .worker = 0,
		.cpus = 0.5,
		.memory = GB,
		.gpus = &w->workers[0].gpus[3].uuid,
		.gpus_n = 1,
		.ends_by = 5000000 };
	w->s.running = running;
	w->s.running_n = 1;
	for (int i = 0; i < 6; i++) {
		struct place_step *s =
			add_step(w, (const char *[]){ "s0", "s1", "s2", "s3", "s4", "s5" }[i],
				0.3 * (i + 1), (uint32_t)(i * 2));
		s->project = (uint32_t)i % 2;
		s->priority = 3 - i;
		s->time_limit = i * 1000;
	}
	w->steps[1].gpus.models = models;
	w->steps[1].gpus.models_n = 1;
	w->steps[2].gpus.memory_min = 40 * GB;
	w->steps[0].gpus.mig = STR("1g.18gb");
	((struct place_gpu *)(uintptr_t)w->workers[0].gpus)[3].mig = STR("1g.18gb");
	for (uint32_t i = 0; i < 8; i++) { /* only with both is the decision the same */
		struct place_gpu *g = (struct place_gpu *)(uintptr_t)&w->workers[0].gpus[i];
		g->numa = i % 2 + 1;
		g->links = i < 4 ? 0 : 0xf0 & ~(UINT64_C(1) << i);
	}
	static const uint32_t first[] = { 0 }, second[] = { 1 };
	static const struct place_good good = { { "python:3", 8 }, GB, second, 1 };
	w->s.goods = &good;
	w->s.goods_n = 1;
	w->steps[1].goods = first;
	w->steps[1].goods_n = 1;
	w->steps[3].requires = labels;
	w->steps[3].requires_n = 1;
	w->projects[1].gpus_quota = (struct place_quota){ true, 9, 3 };
	w->projects[1].weight = 0.1;
	w->projects[1].running = 7;
}

static struct str recorded(struct world *w, struct buf *out)
{
	struct place_result r;

	buf_init(out, SNAPSHOT_BYTES_MAX);
	place_pass(&w->s, w->a, &r);
	snapshot_write(&w->s, &r, 1000000, out);
	assert_false(buf_failed(out));
	return buf_str(out);
}

static bool replays(struct str text, const char *step, const char *want)
{
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	struct snapshot_file f;
	struct buf said;
	struct err e;

	buf_init(&said, 100000);
	assert_int_equal(snapshot_read(text, a, &f, &e), 0);
	bool same = replay_snapshot(&f, str_c(step), &said);
	if (str_find(buf_str(&said), str_c(want)) < 0)
		fail_msg("%s\nis not in\n%s", want, said.p);
	buf_done(&said);
	arena_drop(a);
	return same;
}

void test_snapshot__is_decided_again_in_the_same_way(void **state)
{
	struct place_running running;
	struct world w;
	struct buf b;

	(void)state;
	make_world(&w, &running);
	struct str text = recorded(&w, &b);
	assert_true(replays(text, "",
		"1970-01-01T00:00:01Z: 6 steps of 2 projects over 3 workers: "
		"3 placed, 3 wait\nthe decision is the same\n"));
	assert_true(replays(text, "s0", "s0 goes to gpu-2\n"));
	assert_true(replays(text, "s5",
		"s5 waits, place 3 of 3\n  in vain: no worker of pool default has 10 GPUs; the "
		"most "
		"is 7 (gpu-1, where 1 more is not well)\n"));
	assert_true(replays(text, "s3",
		"s3 waits, place 1 of 3\n  in vain: no worker of pool default that it may use (1 "
		"of "
		"3) has 6 GPUs; the most is 4 (gpu-2)\n"));
	buf_done(&b);
	arena_drop(w.a);
}

void test_snapshot__another_decision_is_told(void **state)
{
	struct place_running running;
	struct world w;
	struct buf b, other;

	(void)state;
	make_world(&w, &running);
	struct str text = recorded(&w, &b);
	buf_init(&other, SNAPSHOT_BYTES_MAX);
	ptrdiff_t at = str_find(text, STR("\"avoided\":true"));
	assert_true(at > 0);
	buf_add(&other, str_slice(text, 0, (size_t)at));
	buf_adds(&other, "\"avoided\":false");
	buf_add(&other, str_slice(text, (size_t)at + 14, text.n));
	assert_false(replays(buf_str(&other), "",
		"the decision differs: placement 1 was s0 on gpu-2, and is s0 on gpu-1"));
	buf_done(&other);
	buf_done(&b);
	arena_drop(w.a);
}

static void refused(const char *text, const char *want)
{
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	struct snapshot_file f;
	struct err e;

	assert_int_equal(snapshot_read(str_c(text), a, &f, &e), -1);
	if (strstr(e.msg, want) == NULL)
		fail_msg("%s\nis not in\n%s", want, e.msg);
	arena_drop(a);
}

#define HEAD(projects, steps)                                                                      \
	"{\"kind\":\"snapshot\",\"format\":2,\"at\":1,\"projects\":" #projects                     \
	",\"workers\":0,\"steps\":" #steps ",\"running\":0,\"placed\":0,\"waiting\":0}\n"
#define STEP(project, runtimes)                                                                    \
	"{\"kind\":\"step\",\"id\":\"s\",\"pool\":\"p\",\"project\":" #project                     \
	",\"priority\":0,\"queued_at\":1,\"cpus\":1.0,\"memory\":1,\"disk\":0,\"gpus\":0,"         \
	"\"gpu_models\":[],\"gpu_memory_min\":0,\"gpu_memory_max\":0,\"requires\":{},"             \
	"\"avoids\":{},\"runtimes\":" runtimes ",\"time_limit\":0,\"kept\":0}\n"
#define PROJECT                                                                                    \
	"{\"kind\":\"project\",\"id\":\"p\",\"name\":\"p\",\"weight\":1.0,\"running\":0,"          \
	"\"gpus\":0,\"cpus\":0.0,\"memory\":0}\n"

void test_snapshot__a_file_that_is_none_is_refused(void **state)
{
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	struct snapshot_file f;
	struct err e;

	(void)state;
	assert_int_equal(snapshot_read(STR(HEAD(1, 1) PROJECT STEP(0, "[0,1]")), a, &f, &e), 0);
	arena_drop(a);
	refused("", "the lines of kind snapshot are 0, not 1");
	refused("x\n", "line 1: ");
	refused("{\"kind\":\"nothing\"}\n", "line 1: /kind");
	refused(PROJECT, "line 1: /kind: the first line, and no other, is the snapshot's");
	refused(HEAD(0, 0) HEAD(0, 0), "line 2: /kind: the first line");
	refused(HEAD(0, 0) PROJECT, "line 2: /kind: there are more lines of this kind");
	refused(HEAD(2, 0) PROJECT, "the lines of kind project are 1, not 2");
	refused(HEAD(1, 1) PROJECT STEP(1, "[0]"), "line 3: /project: there is no such line: 1");
	refused(HEAD(1, 1) PROJECT STEP(0, "[7]"), "line 3: /runtimes");
	refused(HEAD(9000000, 0), "line 1: /projects");
	refused(HEAD(0, 0) "{\"kind\":\"waiting\",\"step\":0,\"x\":1}\n", "line 2: /x");
}
