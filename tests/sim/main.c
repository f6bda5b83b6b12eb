#include "lib/base/num.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * sim_place [--full] [--seed N] [--only WORLD] [FILE...]
 *
 * Simulates the worlds of traces.c, or goes on from recorded snapshots, and says of each "ok" or
 * "FAIL" with what was broken. Without --full: small worlds, one seed of each.
 */

struct options {
	uint64_t seed;
	const char *only;
	bool full;
	char **files;
	int files_n;
};

enum { SEEDS = 12, SIZE = 2 };

static bool print_result(
	const struct sim_trace *t, const struct sim_report *r, const struct err *e, bool ok)
{
	printf("%s sim %s seed=%llu steps=%u workers=%u passes=%zu placed=%zu lost=%zu kept=%zu "
	       "replayed=%zu preempted=%zu work_lost=%.2f%% used=%.1f%% makespan=%.1fh "
	       "longest_first=%.1fh longest_over=%.1fh "
	       "longest_wait=%.1fh",
		ok ? "ok" : "FAIL", t->name, (unsigned long long)t->seed, t->steps_n, t->workers_n,
		r->passes, r->placed, r->lost, r->kept, r->replayed, r->preempted,
		100 * r->work_lost, 100 * r->used, (double)r->makespan / (double)SIM_HOUR,
		(double)r->longest_head / (double)SIM_HOUR,
		(double)r->longest_over / (double)SIM_HOUR,
		(double)r->longest_wait / (double)SIM_HOUR);
	printf("%s%s\n", ok ? "" : ": ", ok ? "" : e->msg);
	(void)fflush(stdout);
	return ok;
}

static bool run(struct sim_trace *t)
{
	struct sim_report report = { 0 };
	struct err e;
	bool ok = sim_run(t, &report, &e) == 0;

	ok = print_result(t, &report, &e, ok);
	sim_trace_free(t);
	return ok;
}

/* The same world twice: without a word of who holds what, and with it. Nobody may wait longer for
 * that, but by chance, and far more must find their image where they begin. */
static bool run_held(uint32_t size, uint64_t seed)
{
	struct sim_report r[2] = { { 0 }, { 0 } };
	struct err e = { .code = ERR_OK };
	double share[2];
	bool ok = true;

	for (int told = 0; told < 2; told++) {
		struct sim_trace *t = sim_trace_new("held", size, seed);
		t->blind = told == 0;
		ok = sim_run(t, &r[told], &e) == 0 && ok;
		ok = print_result(t, &r[told], &e, ok);
		sim_trace_free(t);
		share[told] = (double)r[told].held / (double)r[told].wanted;
	}
	ok = ok && share[1] > 1.5 * share[0] && r[1].makespan <= r[0].makespan * 11 / 10;
	printf("%s sim held seed=%llu found_blind=%.1f%% found=%.1f%% makespan=%+.1f%%\n",
		ok ? "ok" : "FAIL", (unsigned long long)seed, 100 * share[0], 100 * share[1],
		100 * ((double)r[1].makespan / (double)r[0].makespan - 1));
	return ok;
}

static bool run_world(const struct options *o, const char *name)
{
	bool large = strcmp(name, "large") == 0, ok = true;
	uint64_t seeds = o->full && !large ? SEEDS : 1;

	if (o->only != NULL && strcmp(name, o->only) != 0)
		return true;
	for (uint64_t i = 0; i < seeds; i++)
		ok = strcmp(name, "held") == 0
			     ? run_held(o->full ? SIZE : 1, o->seed + i) && ok
			     : run(sim_trace_new(name, o->full ? SIZE : 1, o->seed + i)) && ok;
	return ok;
}

static bool run_file(const struct options *o, const char *path)
{
	struct err e;
	struct sim_trace *t = sim_trace_read(path, o->seed, &e);

	if (t == NULL) {
		printf("FAIL sim %s: %s\n", path, e.msg);
		return false;
	}
	return run(t);
}

static bool parse(int argc, char **argv, struct options *o)
{
	int i = 1;

	*o = (struct options){ .seed = 1 };
	for (; i < argc && argv[i][0] == '-'; i++) {
		bool value = i + 1 < argc;
		if (strcmp(argv[i], "--full") == 0)
			o->full = true;
		else if (strcmp(argv[i], "--seed") == 0 && value &&
			 num_parse_u64(str_c(argv[i + 1]), 0, UINT64_MAX, &o->seed))
			i++;
		else if (strcmp(argv[i], "--only") == 0 && value)
			o->only = argv[++i];
		else
			return false;
	}
	o->files = argv + i;
	o->files_n = argc - i;
	return true;
}

int main(int argc, char **argv)
{
	struct options o;
	bool ok = true;

	if (!parse(argc, argv, &o)) {
		fprintf(stderr, "usage: sim_place [--full] [--seed N] [--only WORLD] [FILE...]\n");
		return 2;
	}
	for (int i = 0; i < o.files_n; i++)
		ok = run_file(&o, o.files[i]) && ok;
	for (size_t i = 0; o.files_n == 0 && sim_trace_names[i] != NULL; i++)
		ok = run_world(&o, sim_trace_names[i]) && ok;
	return ok ? 0 : 1;
}
