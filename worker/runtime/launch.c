#include "worker/runtime/launch.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"

#include <pwd.h>
#include <unistd.h>

enum { OWN_WORDS = 24, OWN_VARIABLES = 10 };

struct words {
	const char **p;
	size_t n;
};

static size_t count(const char *const *list)
{
	size_t n = 0;

	while (list != NULL && list[n] != NULL)
		n++;
	return n;
}

static void add(struct words *w, const char *word)
{
	w->p[w->n++] = word;
}

static void add_number(struct words *w, struct arena *a, const char *option, int64_t n)
{
	add(w, option);
	add(w, arena_printf(a, "%lld", (long long)n).p);
}

const char *const *launch_argv(struct arena *a, const struct launch *l)
{
	const struct runtime_spec *s = l->spec;
	struct words w = { arena_array_of(a, const char *, count(s->argv) + OWN_WORDS), 0 };

	add(&w, l->init);
	add(&w, "--ctl");
	add(&w, l->ctl);
	add(&w, "--secrets");
	add(&w, l->secrets);
	add(&w, "--workdir");
	add(&w, l->workdir);
	if (l->as_user) {
		add(&w, "--user");
		add(&w, arena_printf(a, "%u:%u", (unsigned)l->uid, (unsigned)l->gid).p);
	}
	add_number(&w, a, "--grace", s->grace_s);
	if (s->deadman_s != 0)
		add_number(&w, a, "--deadman", s->deadman_s);
	if (s->usage_s != 0)
		add_number(&w, a, "--usage", s->usage_s);
	if (s->max_log != 0)
		add_number(&w, a, "--max-log", s->max_log);
	if (s->rank != 0)
		add_number(&w, a, "--rank", s->rank);
	if (s->barrier)
		add(&w, "--barrier");
	add(&w, "--");
	for (size_t i = 0; s->argv[i] != NULL; i++)
		add(&w, s->argv[i]);
	return w.p;
}

static bool is_variable(const char *item, const char *name)
{
	size_t n = strlen(name);

	return strncmp(item, name, n) == 0 && item[n] == '=';
}

static bool has(const char *const *env, const char *name)
{
	for (size_t i = 0; env != NULL && env[i] != NULL; i++)
		if (is_variable(env[i], name))
			return true;
	return false;
}

static void add_default(struct words *w, struct arena *a, const struct runtime_spec *s,
	const char *name, const char *value)
{
	if (!has(s->env, name) && !has(s->secret_env, name))
		add(w, arena_printf(a, "%s=%s", name, value).p);
}

static const char *joined(struct arena *a, const char *const *list)
{
	struct buf b;

	buf_init(&b, RUNTIME_ARGV_BYTES);
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		buf_addf(&b, "%s%s", i != 0 ? "," : "", list[i]);
	const char *text = arena_dup(a, buf_str(&b));
	buf_done(&b);
	return text;
}

const char *const *launch_env(struct arena *a, const struct runtime_spec *s, const char *user,
	const char *home, bool bare)
{
	struct words w = { arena_array_of(a, const char *, count(s->env) + OWN_VARIABLES), 0 };
	const char *gpus = joined(a, s->gpus);

	/* Which GPUs it sees is not the step's to say; an image may ask for all by itself. */
	const char *forced = bare ? "CUDA_VISIBLE_DEVICES" : "NVIDIA_VISIBLE_DEVICES";

	for (size_t i = 0; s->env != NULL && s->env[i] != NULL; i++)
		if (!is_variable(s->env[i], forced))
			add(&w, s->env[i]);
	if (bare || gpus[0] == '\0')
		add(&w, arena_printf(a, "%s=%s", forced, bare ? gpus : "void").p);
	add_default(&w, a, s, "HOME", home);
	add_default(&w, a, s, "USER", user);
	add_default(&w, a, s, "LOGNAME", user);
	add_default(&w, a, s, "LANG", "C.UTF-8");
	if (bare)
		add_default(&w, a, s, "PATH",
			"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	return w.p;
}

static void take_user(struct launch_user *u, const struct passwd *found)
{
	u->uid = found->pw_uid;
	u->gid = found->pw_gid;
	(void)str_print(u->name, sizeof u->name, "%s", found->pw_name);
}

int launch_user(struct launch_user *ret, const char *name, struct err *e)
{
	const char *const names[] = { name != NULL ? name : "tidemill-step", "nobody" };
	size_t n = name != NULL ? 1 : 2;
	struct launch_user u = { geteuid(), getegid(), "" };
	char text[4096];
	struct passwd entry, *found = NULL;

	(void)str_print(u.name, sizeof u.name, "%u", (unsigned)u.uid);
	if (u.uid != 0 && getpwuid_r(u.uid, &entry, text, sizeof text, &found) == 0 &&
		found != NULL)
		take_user(&u, found);
	for (size_t i = 0; u.uid == 0 && i < n && found == NULL; i++)
		if (getpwnam_r(names[i], &entry, text, sizeof text, &found) != 0)
			found = NULL;
	if (geteuid() == 0) {
		if (found == NULL)
			return err_set(e, ERR_INVALID, "there is no user %.63s to run steps",
				names[n - 1]);
		take_user(&u, found);
		if (u.uid == 0 || u.gid == 0)
			return err_set(
				e, ERR_INVALID, "steps must not run as root (user %.63s)", u.name);
	}
	*ret = u;
	return 0;
}
