#include "worker/task.h"

#include "lib/crypto/hash.h"
#include "worker/checkpoint.h"
#include "worker/launcher.h"
#include "worker/secrets.h"

enum { OWN_VARIABLES = 32 };

struct env {
	struct arena *a;
	const char **p;
	size_t n;
};

static void put(struct env *env, const char *name, const char *value)
{
	env->p[env->n++] = arena_printf(env->a, "%s=%s", name, value).p;
}

static void put_str(struct env *env, const char *name, struct str value)
{
	env->p[env->n++] = arena_printf(env->a, "%s=%.*s", name, STR_ARG(value)).p;
}

static bool has(const struct env *env, struct str name)
{
	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->p[i], name.p, name.n) == 0 && env->p[i][name.n] == '=')
			return true;
	return false;
}

static void put_default(struct env *env, const char *name, const char *value)
{
	if (!has(env, str_c(name)))
		put(env, name, value);
}

const char *task_variable(struct arena *a, const char *prefix, struct str name)
{
	char *text = arena_dup(a, arena_printf(a, "%s%.*s", prefix, STR_ARG(name)));

	for (char *p = text + strlen(prefix); *p != '\0'; p++) {
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - ('a' - 'A'));
		else if (*p == '-' || *p == '.')
			*p = '_';
	}
	return text;
}

static void put_staged(struct env *env, const char *prefix, const char *in, const char *kind,
	const struct list *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct str name = list_at(all, struct staged, i)->name;
		put(env, task_variable(env->a, prefix, name),
			arena_printf(env->a, "%s/%s/%.*s", in, kind, STR_ARG(name)).p);
	}
}

/* W3C Trace Context: one trace for a run, one span for an attempt. */
static const char *trace_parent(struct arena *a, const struct assignment *t)
{
	unsigned char run[HASH_SIZE], attempt[HASH_SIZE];
	char run_hex[HASH_HEX + 1], attempt_hex[HASH_HEX + 1];

	hash_sha256(t->run, run);
	hash_sha256(t->attempt, attempt);
	return arena_printf(
		a, "00-%.32s-%.16s-01", hash_hex(run_hex, run), hash_hex(attempt_hex, attempt))
		.p;
}

static void put_own(struct env *env, const struct task_spec_args *in, const struct runtime_spec *s)
{
	const struct assignment *t = in->task;
	const char *url = in->conf->step_server.p;
	const char *out = runtime_path(in->runtime, s, RUNTIME_DIR_OUT);
	const char *inside = runtime_path(in->runtime, s, RUNTIME_DIR_IN);
	const char *secrets = runtime_path(in->runtime, s, RUNTIME_DIR_SECRETS);

	put_str(env, "TIDEMILL_RUN_ID", t->run);
	put_str(env, "TIDEMILL_STEP", t->step_name);
	put_str(env, "TIDEMILL_ATTEMPT", t->attempt);
	put(env, "TIDEMILL_ATTEMPT_NUMBER", arena_printf(env->a, "%lld", (long long)t->number).p);
	put(env, "TIDEMILL_EPOCH", arena_printf(env->a, "%lld", (long long)t->epoch).p);
	put_str(env, "TIDEMILL_PROJECT", t->project);
	put_str(env, "TIDEMILL_PIPELINE", t->pipeline);
	put(env, "TIDEMILL_OUTPUT", out);
	put(env, "TIDEMILL_CHECKPOINT_DIR", arena_printf(env->a, "%s/" CHECKPOINT_DIR, out).p);
	put(env, "TIDEMILL_API_URL", url);
	put(env, "TRACEPARENT", trace_parent(env->a, t));
	put(env, "MLFLOW_TRACKING_URI", url);
	put(env, "MLFLOW_DISABLE_TELEMETRY", "true");
	if (t->token.n != 0)
		put(env, "TIDEMILL_TOKEN_FILE", arena_printf(env->a, "%s/token", secrets).p);
	if (t->tracking_run.n != 0)
		put_str(env, "MLFLOW_RUN_ID", t->tracking_run);
	if (t->experiment_id.n != 0)
		put_str(env, "MLFLOW_EXPERIMENT_ID", t->experiment_id);
	put_staged(env, "TIDEMILL_DATASET_", inside, "datasets", &t->datasets);
	put_staged(env, "TIDEMILL_MODEL_", inside, "models", &t->models);
	put_staged(env, "TIDEMILL_INPUT_", inside, "inputs", &t->inputs);
	for (size_t i = 0; i < t->secrets.n; i++) {
		const struct secret_use *use = list_at(&t->secrets, struct secret_use, i);
		if (use->as == SECRET_FILE)
			put(env, task_variable(env->a, "TIDEMILL_SECRET_", use->name),
				arena_printf(
					env->a, "%s/%s", secrets, secrets_file(env->a, use->name))
					.p);
	}
}

static const char *const *make_env(
	const struct task_spec_args *in, const struct runtime_spec *s, struct arena *a)
{
	const struct assignment *t = in->task;
	size_t most =
		OWN_VARIABLES + t->env.n + t->datasets.n + t->models.n + t->inputs.n + t->secrets.n;
	struct env env = { a, arena_array_of(a, const char *, most), 0 };

	put_own(&env, in, s);
	for (size_t i = 0; i < t->env.n; i++) {
		const struct field_pair *p = list_at(&t->env, struct field_pair, i);
		if (!has(&env, p->key) && !str_is(p->key, "MLFLOW_TRACKING_TOKEN"))
			put_str(&env, p->key.p, p->value);
	}
	/* The server is never reached through a proxy that is meant for the world outside. */
	const char *host = arena_dup(a, worker_conf_host(in->conf->step_server));
	put_default(&env, "NO_PROXY", host);
	put_default(&env, "no_proxy", host);
	put_default(&env, "PYTHONUNBUFFERED", "1"); /* lines are seen as they are written */
	return env.p;
}

static const char *const *text_list(struct arena *a, const struct list *of_str)
{
	const char **p = arena_array_of(a, const char *, of_str->n + 1);

	for (size_t i = 0; i < of_str->n; i++)
		p[i] = list_at(of_str, struct str, i)->p;
	return p;
}

static void add_token(struct runtime_spec *s, const struct assignment *t, struct arena *a)
{
	struct runtime_secret *secret = arena_new_of(a, struct runtime_secret);
	const char **env = arena_array_of(a, const char *, 2);

	*secret = (struct runtime_secret){ "token", t->token };
	env[0] = arena_printf(a, "MLFLOW_TRACKING_TOKEN=%s", t->token.p).p;
	s->secrets = secret;
	s->n_secrets = 1;
	s->secret_env = env;
}

/* Rounded up, so that a limit never becomes none. */
static int64_t whole_seconds(int64_t us)
{
	return us <= 0 ? 0 : (us - 1) / CLOCK_SECOND + 1;
}

void task_spec(const struct task_spec_args *in, struct arena *a, struct runtime_spec *ret)
{
	const struct assignment *t = in->task;

	*ret = (struct runtime_spec){
		.attempt = t->attempt.p,
		.step = t->step.p,
		.epoch = t->epoch,
		.argv = launcher_argv(a, t),
		.barrier = t->ranks != 0,
		.rank = (unsigned)t->rank,
		.host_network = t->ranks > 1 && in->conf->gang_host_network,
		.ctl = in->ctl,
		.secrets_dir = in->secrets_dir,
		.work = arena_printf(a, "%s/code", in->dir).p,
		.in = arena_printf(a, "%s/in", in->dir).p,
		.out = arena_printf(a, "%s/out", in->dir).p,
		.image = t->image.n != 0 ? t->image.p : NULL,
		.image_ref = t->image_ref.n != 0 ? t->image_ref.p : NULL,
		.cpus = t->cpus,
		.memory = t->memory,
		.shm = t->shm,
		.gpus = text_list(a, &t->devices),
		.deadman_s = whole_seconds(t->self_stop_after),
		.grace_s = TASK_GRACE_S,
		.max_log = t->log_max,
		.usage_s = t->no_system_metrics ? 0 : whole_seconds(in->conf->system_metrics_every),
	};
	if (t->token.n != 0)
		add_token(ret, t, a);
	ret->env = make_env(in, ret, a);
}
