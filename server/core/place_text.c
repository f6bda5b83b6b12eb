#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "server/core/names.h"
#include "server/core/place_why.h"

/* Placement in words. Names come from users: names_shown keeps a sentence a sentence. */

const char *place_blocker_name(enum place_blocker_kind k)
{
	static const char *const names[PLACE_BLOCKER_KINDS] = { "pool", "sensitivity", "runtime",
		"isolated", "requires", "avoids", "gpus", "memory", "cpus", "disk", "together",
		"nodes", "kept", "preempting", "quota", "offline", "draining" };

	BUG_ON((unsigned)k >= PLACE_BLOCKER_KINDS);
	return names[k];
}

const char *const place_sensitivity_names[PLACE_SENSITIVITIES] = { "public", "internal",
	"confidential", "restricted" };

const char *place_edit_name(enum place_edit_kind k)
{
	static const char *const names[PLACE_EDIT_KINDS] = { "nodes", "gpus", "memory", "cpus",
		"disk", "time_limit", "gpu_model", "requires", "avoids", "runtime", "pool",
		"resume" };

	BUG_ON((unsigned)k >= PLACE_EDIT_KINDS);
	return names[k];
}

/* ---- amounts --------------------------------------------------------------------- */

enum { AMOUNT_MAX = 48 };

static const char *number(char out[AMOUNT_MAX], enum place_blocker_kind k, int64_t v)
{
	char size[NUM_SIZE_MAX];

	if (k == PLACE_MEMORY || k == PLACE_DISK)
		(void)str_print(out, AMOUNT_MAX, "%s", num_format_size(size, (uint64_t)v));
	else if (k == PLACE_CPUS && v % 1000 != 0)
		(void)str_print(out, AMOUNT_MAX, "%lld.%03lld", (long long)(v / 1000),
			(long long)(v % 1000));
	else
		(void)str_print(
			out, AMOUNT_MAX, "%lld", (long long)(k == PLACE_CPUS ? v / 1000 : v));
	return out;
}

/* "8 GPUs", "64 GiB of memory" */
static const char *amount(char out[AMOUNT_MAX], enum place_blocker_kind k, int64_t v)
{
	char n[AMOUNT_MAX];
	const char *unit = "";

	if (k == PLACE_GPUS)
		unit = v == 1 ? " GPU" : " GPUs";
	else if (k == PLACE_CPUS)
		unit = v == 1000 ? " CPU" : " CPUs";
	else
		unit = k == PLACE_MEMORY ? " of memory" : " of disk";
	(void)str_print(out, AMOUNT_MAX, "%s%s", number(n, k, v), unit);
	return out;
}

/* ---- blockers -------------------------------------------------------------------- */

/* Who has not: all of the pool, or those of it that were looked at. */
static const char *nobody(char out[PLACE_TEXT_MAX], const struct place_blocker *b)
{
	char part[64] = "";

	if (b->workers < b->pool_workers)
		(void)str_print(part, sizeof part, " that it may use (%u of %u)", b->workers,
			b->pool_workers);
	(void)str_print(out, PLACE_TEXT_MAX, "no worker of pool %.*s%s",
		STR_ARG(names_shown(b->pool)), part);
	return out;
}

static void explain_never(
	char out[PLACE_TEXT_MAX], const struct place_blocker *b, const char *who, const char *kind)
{
	char need[AMOUNT_MAX], most[AMOUNT_MAX], unwell[64] = "";
	struct str largest = names_shown(b->largest_name);

	if (b->unwell != 0)
		(void)str_print(unwell, sizeof unwell, ", where %u more %s not well", b->unwell,
			b->unwell == 1 ? "is" : "are");
	(void)amount(need, b->kind, b->need);
	(void)number(most, b->kind, b->most_all);
	if (b->most_all == 0 && b->kind == PLACE_GPUS)
		(void)str_print(out, PLACE_TEXT_MAX, "%s has a GPU%s%s", who, kind,
			unwell[0] != '\0' ? " that is well" : "");
	else if (b->kind == PLACE_MEMORY)
		(void)str_print(out, PLACE_TEXT_MAX, "%s has %s; the largest has %s (%.*s)", who,
			need, most, STR_ARG(largest));
	else
		(void)str_print(out, PLACE_TEXT_MAX, "%s has %s%s; the most is %s (%.*s%s)", who,
			need, kind, most, STR_ARG(largest), unwell);
}

static void explain_busy(
	char out[PLACE_TEXT_MAX], const struct place_blocker *b, const char *kind, bool numbers)
{
	char need[AMOUNT_MAX], most[AMOUNT_MAX];
	struct str worker = names_shown(b->worker_name);

	(void)amount(need, b->kind, b->need);
	(void)number(most, b->kind, b->most_free);
	if (!numbers)
		(void)str_print(out, PLACE_TEXT_MAX, "needs %s%s free on one worker of pool %.*s",
			need, kind, STR_ARG(names_shown(b->pool)));
	else if (b->most_free == 0)
		(void)str_print(
			out, PLACE_TEXT_MAX, "needs %s%s on one worker; none is free", need, kind);
	else if (b->kind == PLACE_GPUS)
		(void)str_print(out, PLACE_TEXT_MAX,
			"needs %s%s on one worker; the largest free block is %s, on %.*s", need,
			kind, most, STR_ARG(worker));
	else
		(void)str_print(out, PLACE_TEXT_MAX,
			"needs %s on one worker; the most that is free is %s, on %.*s", need, most,
			STR_ARG(worker));
}

static void explain_amount(
	char out[PLACE_TEXT_MAX], const struct place_blocker *b, const char *who, bool numbers)
{
	char kind[AMOUNT_MAX + 64] = "";

	if (b->kind == PLACE_GPUS && b->what.n != 0)
		(void)str_print(kind, sizeof kind, " (%.*s)", STR_ARG(names_shown(b->what)));
	if (b->never)
		explain_never(out, b, who, kind);
	else
		explain_busy(out, b, kind, numbers);
}

/* The label that stands for a worker. */
static bool is_self(struct str key, struct str value)
{
	return value.n == 0 && str_starts(key, STR(PLACE_SELF));
}

static struct str self_name(struct str key)
{
	return str_slice(key, sizeof PLACE_SELF - 1, key.n);
}

static void explain_label(char out[PLACE_TEXT_MAX], const struct place_blocker *b, const char *who)
{
	struct str what = names_shown(b->what), value = names_shown(b->value);
	bool all = b->most_all == b->workers;

	if (b->kind == PLACE_AVOIDS && is_self(b->what, b->value))
		(void)str_print(out, PLACE_TEXT_MAX,
			"%s is free of what the step avoids; %.*s is avoided by the log of an "
			"earlier attempt",
			who, STR_ARG(self_name(what)));
	else if (b->kind == PLACE_REQUIRES)
		(void)str_print(out, PLACE_TEXT_MAX,
			all ? "%s has the label %.*s=%.*s"
			    : "%s has all labels that it requires; most often %.*s=%.*s is missing",
			who, STR_ARG(what), STR_ARG(value));
	else
		(void)str_print(out, PLACE_TEXT_MAX,
			all ? "%s is free of the label %.*s=%.*s"
			    : "%s is free of all labels that it avoids; most often it has "
			      "%.*s=%.*s",
			who, STR_ARG(what), STR_ARG(value));
}

static void explain_gone(char out[PLACE_TEXT_MAX], const struct place_blocker *b)
{
	struct str pool = names_shown(b->pool), worker = names_shown(b->worker_name);
	const char *is = b->kind == PLACE_OFFLINE ? "offline" : "drained";

	if (b->workers == b->pool_workers)
		(void)str_print(out, PLACE_TEXT_MAX, "no worker of pool %.*s %s (%u %s)",
			STR_ARG(pool), b->kind == PLACE_OFFLINE ? "is online" : "takes new work",
			b->workers, is);
	else if (b->workers == 1)
		(void)str_print(out, PLACE_TEXT_MAX,
			"the only worker of pool %.*s that could take it is %s: %.*s",
			STR_ARG(pool), is, STR_ARG(worker));
	else
		(void)str_print(out, PLACE_TEXT_MAX,
			"all %u workers of pool %.*s that could take it are %s, among them %.*s",
			b->workers, STR_ARG(pool), is, STR_ARG(worker));
}

static void explain_nodes(char out[PLACE_TEXT_MAX], const struct place_blocker *b, bool numbers)
{
	long long free = b->most_free, all = b->most_all;
	size_t n;

	(void)str_print(out, PLACE_TEXT_MAX, "needs %lld workers with %.*s each",
		(long long)b->need, STR_ARG(b->what));
	n = strlen(out);
	if (b->never && b->isolated != 0)
		(void)str_print(out + n, PLACE_TEXT_MAX - n,
			"; pool %.*s has %lld, and %u more where containers do not reach each "
			"other (gang-host-network)",
			STR_ARG(names_shown(b->pool)), all, b->isolated);
	else if (b->never)
		(void)str_print(out + n, PLACE_TEXT_MAX - n, "; pool %.*s has %lld",
			STR_ARG(names_shown(b->pool)), all);
	else if (b->workers < b->need)
		(void)str_print(out + n, PLACE_TEXT_MAX - n,
			"; of %lld in pool %.*s only %u %s online and take%s work", all,
			STR_ARG(names_shown(b->pool)), b->workers, b->workers == 1 ? "is" : "are",
			b->workers == 1 ? "s" : "");
	else if (numbers)
		(void)str_print(out + n, PLACE_TEXT_MAX - n, "; %lld ha%s that free now", free,
			free == 1 ? "s" : "ve");
	else
		(void)str_print(out + n, PLACE_TEXT_MAX - n, " free at once");
}

static void explain_kept(char out[PLACE_TEXT_MAX], const struct place_blocker *b, bool numbers)
{
	char time[CLOCK_TEXT_MAX];
	struct str worker = names_shown(b->worker_name);

	if (!numbers)
		(void)str_print(
			out, PLACE_TEXT_MAX, "what it needs is free and kept for a step before it");
	else if (b->until != 0)
		(void)str_print(out, PLACE_TEXT_MAX,
			"%.*s has room, which is kept until %s for a step before it; with a time "
			"limit that ends by then it could start",
			STR_ARG(worker), clock_format(time, b->until));
	else
		(void)str_print(out, PLACE_TEXT_MAX,
			"%.*s has room, which is kept for a step before it", STR_ARG(worker));
}

static void explain_preempting(
	char out[PLACE_TEXT_MAX], const struct place_blocker *b, bool numbers)
{
	struct str worker = names_shown(b->worker_name);

	if (numbers && b->workers != 0)
		(void)str_print(out, PLACE_TEXT_MAX,
			"takes the place of %u attempt%s on %.*s, which %s asked to end",
			b->workers, num_plural(b->workers), STR_ARG(worker),
			b->workers == 1 ? "is" : "are");
	else
		(void)str_print(
			out, PLACE_TEXT_MAX, "takes the place of others on %.*s", STR_ARG(worker));
}

static void explain_quota(char out[PLACE_TEXT_MAX], const struct place_blocker *b, bool numbers)
{
	struct str project = names_shown(b->what);
	const char *unit = b->need == 0 ? "running step" : "GPU";
	const char *s = b->most_all == 1 ? "" : "s";

	if (b->value.n != 0)
		(void)str_print(out, PLACE_TEXT_MAX,
			"the rest of the quota of project %.*s is kept for a step before it",
			STR_ARG(project));
	else if (b->never && b->need != 0)
		(void)str_print(out, PLACE_TEXT_MAX,
			"asks for %lld GPUs, and the quota of project %.*s is %lld",
			(long long)b->need, STR_ARG(project), (long long)b->most_all);
	else if (!numbers)
		(void)str_print(out, PLACE_TEXT_MAX, "project %.*s is at its quota of %lld %s%s",
			STR_ARG(project), (long long)b->most_all, unit, s);
	else if (b->need == 0)
		(void)str_print(out, PLACE_TEXT_MAX,
			"project %.*s is at its quota of %lld running step%s", STR_ARG(project),
			(long long)b->most_all, s);
	else
		(void)str_print(out, PLACE_TEXT_MAX,
			"asks for %lld GPU%s, and project %.*s has %lld left of its quota of %lld",
			(long long)b->need, b->need == 1 ? "" : "s", STR_ARG(project),
			(long long)b->most_free, (long long)b->most_all);
}

const char *place_explain(char out[PLACE_TEXT_MAX], const struct place_blocker *b, bool numbers)
{
	char who[PLACE_TEXT_MAX];

	(void)nobody(who, b);
	switch (b->kind) {
	case PLACE_NO_POOL:
		(void)str_print(out, PLACE_TEXT_MAX, "no worker belongs to pool %.*s",
			STR_ARG(names_shown(b->pool)));
		break;
	case PLACE_SENSITIVITY:
		(void)str_print(out, PLACE_TEXT_MAX, "pool %.*s takes no steps that are %.*s",
			STR_ARG(names_shown(b->pool)), STR_ARG(b->what));
		break;
	case PLACE_RUNTIME:
		(void)str_print(out, PLACE_TEXT_MAX, "%s offers %.*s", who,
			STR_ARG(b->what.n != 0 ? b->what : STR("a runtime that it accepts")));
		break;
	case PLACE_ISOLATED:
		(void)str_print(out, PLACE_TEXT_MAX,
			"%s lets what %.*s runs for several nodes reach each other "
			"(gang-host-network)",
			who, STR_ARG(b->what.n != 0 ? b->what : STR("a runtime")));
		break;
	case PLACE_REQUIRES:
	case PLACE_AVOIDS: explain_label(out, b, who); break;
	case PLACE_OFFLINE:
	case PLACE_DRAINING: explain_gone(out, b); break;
	case PLACE_KEPT: explain_kept(out, b, numbers); break;
	case PLACE_PREEMPTING: explain_preempting(out, b, numbers); break;
	case PLACE_QUOTA: explain_quota(out, b, numbers); break;
	case PLACE_NODES: explain_nodes(out, b, numbers); break;
	case PLACE_TOGETHER:
		(void)str_print(out, PLACE_TEXT_MAX, "%s has all that it needs%s", who,
			b->never ? " at once" : " free at once");
		if (b->never || numbers)
			(void)str_print(out + strlen(out), PLACE_TEXT_MAX - strlen(out),
				"; %.*s comes closest and lacks %.*s",
				STR_ARG(names_shown(b->worker_name)), STR_ARG(b->what));
		break;
	default: explain_amount(out, b, who, numbers);
	}
	return out;
}

/* ---- changes --------------------------------------------------------------------- */

static void edit_text(char out[PLACE_TEXT_MAX], const struct place_edit *e)
{
	static const enum place_blocker_kind kinds[] = { [PLACE_EDIT_GPUS] = PLACE_GPUS,
		[PLACE_EDIT_MEMORY] = PLACE_MEMORY,
		[PLACE_EDIT_CPUS] = PLACE_CPUS,
		[PLACE_EDIT_DISK] = PLACE_DISK };
	struct str what = names_shown(e->what), value = names_shown(e->value);
	char from[AMOUNT_MAX], to[AMOUNT_MAX];

	switch (e->kind) {
	case PLACE_EDIT_NODES:
		(void)str_print(out, PLACE_TEXT_MAX, "it asked for %lld worker%s instead of %lld",
			(long long)e->to, e->to == 1 ? "" : "s", (long long)e->from);
		break;
	case PLACE_EDIT_TIME_LIMIT:
		(void)str_print(out, PLACE_TEXT_MAX, "it had a time limit of at most %lld s",
			(long long)(e->to / CLOCK_SECOND));
		break;
	case PLACE_EDIT_GPU_MODEL:
		(void)str_print(out, PLACE_TEXT_MAX, "it accepted the GPU %.*s", STR_ARG(what));
		break;
	case PLACE_EDIT_REQUIRES:
	case PLACE_EDIT_AVOIDS:
		if (is_self(e->what, e->value))
			(void)str_print(out, PLACE_TEXT_MAX, "it did not avoid the worker %.*s",
				STR_ARG(self_name(what)));
		else
			(void)str_print(out, PLACE_TEXT_MAX, "it did not %s the label %.*s=%.*s",
				e->kind == PLACE_EDIT_REQUIRES ? "require" : "avoid", STR_ARG(what),
				STR_ARG(value));
		break;
	case PLACE_EDIT_RUNTIME:
		(void)str_print(out, PLACE_TEXT_MAX, "it accepted the runtime %.*s", STR_ARG(what));
		break;
	case PLACE_EDIT_POOL:
		(void)str_print(out, PLACE_TEXT_MAX, "it were placed in pool %.*s", STR_ARG(what));
		break;
	case PLACE_EDIT_RESUME:
		(void)str_print(out, PLACE_TEXT_MAX, "that worker took new work again");
		break;
	default:
		(void)str_print(out, PLACE_TEXT_MAX, "it asked for %s instead of %s",
			amount(to, kinds[e->kind], e->to), number(from, kinds[e->kind], e->from));
	}
}

const char *place_change_text(char out[PLACE_TEXT_MAX], const struct place_change *c)
{
	char one[PLACE_TEXT_MAX];
	size_t n;

	if (c->worker_name.n != 0)
		(void)str_print(
			out, PLACE_TEXT_MAX, "on %.*s, if ", STR_ARG(names_shown(c->worker_name)));
	else
		(void)str_print(out, PLACE_TEXT_MAX, "if ");
	for (uint32_t i = 0; i < c->edits_n; i++) {
		edit_text(one, &c->edits[i]);
		n = strlen(out);
		(void)str_print(out + n, PLACE_TEXT_MAX - n, "%s%s", i != 0 ? " and " : "", one);
	}
	return out;
}
