#include "server/sched/log_policy.h"

#include "api/worker.h"
#include "lib/json/json_read.h"
#include "lib/regex/regex.h"

/* The labels are documented in docs/files.md; the worker knows cuda-oom by its name. */
static const struct {
	const char *match, *label;
	enum log_action action;
} own[] = {
	{ "CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
	  "|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating tensor",
		"cuda-oom", LOG_STOP_RETRYING },
	{ "(?i)uncorrectable ECC error|CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable",
		"gpu-ecc", LOG_AVOID_NODE },
	{ "Watchdog caught collective operation timeout|NCCL (operation|communicator).* timed out"
	  "|ncclRemoteError|ncclSystemError",
		"nccl", LOG_LABEL },
	{ "No space left on device", "no-space", LOG_LABEL },
	{ "Bus error|insufficient shared memory \\(shm\\)", "shm", LOG_LABEL },
	{ "an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS",
		"cuda-illegal-access", LOG_LABEL },
};

enum { OWN_N = sizeof own / sizeof own[0], PATTERNS_MAX = 128 };
_Static_assert((int)LOG_POLICIES_MAX + (int)OWN_N <= (int)ASSIGNED_POLICIES_MAX,
	"all fit into an assignment");
_Static_assert((int)ASSIGNED_POLICIES_MAX <= (int)REGEX_SET_MAX, "all fit into a set");

/* Patterns that were looked at already: steps often have the same. */
struct seen {
	struct str patterns[PATTERNS_MAX];
	size_t n;
};

static int check_pattern(struct seen *seen, struct str pattern, struct err *e)
{
	char why[REGEX_WHY_MAX];
	struct regex *r;

	for (size_t i = 0; i < seen->n; i++)
		if (str_eq(seen->patterns[i], pattern))
			return 0;
	if (seen->n == PATTERNS_MAX)
		return err_field(
			e, "/match", "the steps have more than %d patterns together", PATTERNS_MAX);
	r = regex_new(pattern.p, pattern.n, REGEX_SMALL, why);
	if (r == NULL)
		return err_field(e, "/match", "%s", why);
	regex_free(r);
	seen->patterns[seen->n++] = pattern;
	return 0;
}

static int check_step(struct seen *seen, const struct step_spec *s, struct err *e)
{
	const struct list *all = &s->logs.policies;

	for (size_t i = 0; i < all->n; i++) {
		if (check_pattern(seen, list_at(all, struct log_policy, i)->match, e) == 0)
			continue;
		err_field_index(e, i);
		err_field_prefix(e, "policies");
		err_field_prefix(e, "logs");
		return -1;
	}
	return 0;
}

int log_policy_check(const struct pipeline_spec *spec, struct arena *a, struct err *e)
{
	struct seen seen = { .n = 0 };

	for (size_t i = 0; i < spec->steps.n; i++) {
		const struct step_spec *s = list_at(&spec->steps, struct step_spec, i);
		if (check_step(&seen, s, e) == 0)
			continue;
		err_field_prefix(e, arena_str(a, s->name).p);
		err_field_prefix(e, "steps");
		return -1;
	}
	return 0;
}

struct list log_policy_all(const struct log_spec *logs, struct arena *a)
{
	struct log_policy *all = arena_array_of(a, struct log_policy, logs->policies.n + OWN_N);
	size_t n = logs->policies.n;

	if (n != 0)
		memcpy(all, logs->policies.items, n * sizeof *all);
	for (size_t i = 0; logs->defaults && i < OWN_N; i++)
		all[n++] = (struct log_policy){ .match = str_c(own[i].match),
			.action = (int)own[i].action,
			.label = str_c(own[i].label) };
	return (struct list){ all, n };
}

/* Of a gang the match says which rank wrote it. */
static const char *whose_log(struct arena *a, const struct jsn *match)
{
	const struct jsn *rank = jsn_get(match, "rank");

	if (jsn_type(rank) != JSN_INT)
		return "its log";
	return arena_printf(a, "the log of rank %lld", (long long)jsn_get_int(rank, 0)).p;
}

void log_policy_judge(struct str matches_json, struct arena *a, struct log_verdict *ret)
{
	struct jsn_doc *doc;
	struct err e;

	*ret = (struct log_verdict){ .stop = STR("") };
	if (matches_json.n == 0 || jsn_parse(matches_json, &doc, &e) < 0)
		return;
	for (size_t i = 0; i < jsn_count(jsn_root(doc)); i++) {
		const struct jsn *m = jsn_at(jsn_root(doc), i);
		struct str action = jsn_get_str(jsn_get(m, "action"));
		struct str name = jsn_get_str(jsn_get(m, "label"));
		if (name.n == 0)
			name = jsn_get_str(jsn_get(m, "match"));
		if (str_is(action, log_action_names[LOG_AVOID_NODE]))
			ret->avoid = true;
		if (str_is(action, log_action_names[LOG_STOP_RETRYING]) && ret->stop.n == 0)
			ret->stop = arena_printf(a, "line %lld of %s matches %.*s",
				(long long)jsn_get_int(jsn_get(m, "line"), 0), whose_log(a, m),
				STR_ARG(name));
	}
	jsn_doc_free(doc);
}
