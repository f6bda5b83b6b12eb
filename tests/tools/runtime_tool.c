/*
 * Drives worker/runtime for the tests. Each call is a worker process of its own, so that whatever
 * the next call finds has been found again. Prints one JSON line.
 *
 *     runtime_tool [options] probe|start|poll|stop|list|remove [-- command…]
 *
 * An attempt's folders are ROOT/ATTEMPT/{ctl,secrets,work,in,out}.
 */
#include "lib/base/fs.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "lib/loop/loop.h"
#include "worker/runtime/runtime.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 64 };

struct tool {
	struct loop *loop;
	struct runtime *r;
	struct runtime_process_config process;
	struct runtime_docker_config docker;
	const char *runtime, *root;
	struct runtime_spec spec;
	const char *env[MANY], *secret_env[MANY], *gpus[MANY];
	struct runtime_secret secrets[MANY];
	struct runtime_mount mounts[MANY];
	size_t n_env, n_secret_env, n_gpus;
	enum runtime_stop how;
	bool stop_meanwhile;
	char ctl[512], secrets_dir[512], work[512], in[512], out[512];
	int waiting;
	struct buf text;
	struct jsn_out json;
};

static const struct option table[] = {
	{ "runtime", required_argument, NULL, 'R' },
	{ "root", required_argument, NULL, 'r' },
	{ "init", required_argument, NULL, 'i' },
	{ "install", required_argument, NULL, 'I' },
	{ "socket", required_argument, NULL, 's' },
	{ "network", required_argument, NULL, 'n' },
	{ "attempt", required_argument, NULL, 'a' },
	{ "epoch", required_argument, NULL, 'e' },
	{ "image", required_argument, NULL, 'm' },
	{ "image-ref", required_argument, NULL, 'p' },
	{ "auth-file", required_argument, NULL, 'A' },
	{ "env", required_argument, NULL, 'E' },
	{ "secret-env", required_argument, NULL, 'S' },
	{ "secret", required_argument, NULL, 'f' },
	{ "gpu", required_argument, NULL, 'g' },
	{ "mount", required_argument, NULL, 'M' },
	{ "memory", required_argument, NULL, 'b' },
	{ "deadman", required_argument, NULL, 'd' },
	{ "grace", required_argument, NULL, 'G' },
	{ "how", required_argument, NULL, 'h' },
	{ "no-network", no_argument, NULL, 'N' },
	{ "read-only", no_argument, NULL, 'O' },
	{ "barrier", no_argument, NULL, 'B' },
	{ "stop-meanwhile", no_argument, NULL, 'w' },
	{ NULL, 0, NULL, 0 },
};

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "runtime_tool: %s\n", what);
	exit(2);
}

static int64_t number(const char *text)
{
	int64_t v;

	if (!num_parse_i64(str_c(text), 0, INT64_MAX, &v))
		die("not a number");
	return v;
}

/* "a=b" or "a:b" in place. */
static char *split(char *text, char at)
{
	char *end = strchr(text, at);

	if (end == NULL)
		die("not a pair");
	*end = '\0';
	return end + 1;
}

static void take_more(struct tool *t, int opt, char *value)
{
	struct runtime_spec *s = &t->spec;

	switch (opt) {
	case 'E': t->env[t->n_env++] = value; break;
	case 'S': t->secret_env[t->n_secret_env++] = value; break;
	case 'g': t->gpus[t->n_gpus++] = value; break;
	case 'f': {
		const char *bytes = split(value, '=');
		t->secrets[s->n_secrets++] = (struct runtime_secret){ value, str_c(bytes) };
		break;
	}
	case 'M': {
		const char *inside = split(value, ':');
		t->mounts[s->n_mounts++] = (struct runtime_mount){ value, inside, true };
		break;
	}
	case 'h':
		t->how = strcmp(value, "ask") == 0    ? RUNTIME_STOP_ASK
			 : strcmp(value, "kill") == 0 ? RUNTIME_STOP_KILL
						      : RUNTIME_STOP_FORCE;
		break;
	case 'N': s->no_network = true; break;
	case 'O': s->read_only_root = true; break;
	case 'B': s->barrier = true; break;
	case 'w': t->stop_meanwhile = true; break;
	default: die("unknown option");
	}
}

static void take(struct tool *t, int opt, char *value)
{
	switch (opt) {
	case 'R': t->runtime = value; break;
	case 'r': t->root = t->process.attempts = value; break;
	case 'i': t->process.init = t->docker.init = value; break;
	case 'I': t->process.install = t->docker.install = value; break;
	case 's': t->docker.socket = value; break;
	case 'n': t->docker.network = value; break;
	case 'a': t->spec.attempt = value; break;
	case 'm': t->spec.image = value; break;
	case 'p': t->spec.image_ref = value; break;
	case 'A': t->docker.auth_file = value; break;
	case 'e': t->spec.epoch = number(value); break;
	case 'b': t->spec.memory = number(value); break;
	case 'd': t->spec.deadman_s = number(value); break;
	case 'G': t->spec.grace_s = number(value); break;
	default: take_more(t, opt, value); break;
	}
}

static void text(struct tool *t, const char *key, const char *value)
{
	jsn_key(&t->json, key);
	jsn_text(&t->json, value);
}

static void whole(struct tool *t, const char *key, int64_t value)
{
	jsn_key(&t->json, key);
	jsn_int(&t->json, value);
}

static void flag(struct tool *t, const char *key, bool value)
{
	jsn_key(&t->json, key);
	jsn_bool(&t->json, value);
}

static void done(struct tool *t, const struct err *e)
{
	text(t, "error", err_name(e->code));
	text(t, "detail", e->code != ERR_OK ? e->msg : "");
	if (--t->waiting == 0)
		loop_stop(t->loop);
}

static void on_done(void *arg, const struct err *e)
{
	done(arg, e);
}

static void on_stopped(void *arg, const struct err *e)
{
	struct tool *t = arg;

	text(t, "stop", err_name(e->code));
	if (--t->waiting == 0)
		loop_stop(t->loop);
}

static void on_note(void *arg, const char *note)
{
	(void)arg;
	(void)fprintf(stderr, "note: %s\n", note != NULL ? note : "(progress)");
}

static void on_started(void *arg, const struct runtime_started *s, const struct err *e)
{
	text(arg, "image", s->image_id);
	text(arg, "image_ref", s->image_ref);
	text(arg, "image_fault", runtime_image_fault_name(s->image_fault));
	whole(arg, "blame", s->blame);
	done(arg, e);
}

static void on_about(void *arg, const struct runtime_about *about)
{
	const struct err none = { .code = ERR_OK };

	flag(arg, "ok", about->ok);
	text(arg, "version", about->version);
	text(arg, "note", about->note);
	flag(arg, "survives_daemon", about->survives_daemon);
	flag(arg, "gpus", about->gpus);
	done(arg, &none);
}

static void on_status(void *arg, const struct runtime_status *s, const struct err *e)
{
	text(arg, "state", runtime_state_name(s->state));
	text(arg, "end", runtime_end_name(s->end));
	whole(arg, "code", s->code);
	whole(arg, "signo", s->signo);
	flag(arg, "stopped", s->stopped);
	flag(arg, "deadman", s->deadman);
	flag(arg, "outside", s->outside);
	text(arg, "killer", runtime_killer_name(s->killer));
	whole(arg, "killer_signo", s->killer_signo);
	whole(arg, "oom_kills", s->oom_kills);
	whole(arg, "memory_peak", s->memory_peak);
	whole(arg, "memory_limit", s->memory_limit);
	text(arg, "message", s->message);
	whole(arg, "spool_bytes", s->spool_bytes);
	whole(arg, "stdout_bytes", s->stdout_bytes);
	done(arg, e);
}

static void on_list(void *arg, const struct runtime_found *found, size_t n, const struct err *e)
{
	struct tool *t = arg;

	jsn_key(&t->json, "found");
	jsn_list_begin(&t->json);
	for (size_t i = 0; i < n; i++) {
		jsn_obj_begin(&t->json);
		text(t, "attempt", found[i].attempt);
		text(t, "step", found[i].step);
		text(t, "ctl", found[i].ctl);
		whole(t, "epoch", found[i].epoch);
		jsn_obj_end(&t->json);
	}
	jsn_list_end(&t->json);
	done(t, e);
}

static void folder(const struct tool *t, const char *name, char out[512], bool make)
{
	struct err e;

	if (!str_print(out, 512, "%s/%s/%s", t->root, t->spec.attempt, name) ||
		(make && fs_mkdirs(out, 0755, &e) < 0))
		die(name);
}

static void on_probed(void *arg, const struct runtime_about *about)
{
	struct tool *t = arg;
	const struct runtime_ref ref = { t->spec.attempt, t->ctl, t->secrets_dir };

	(void)about;
	runtime_start(t->r, &t->spec, on_note, on_started, t);
	if (!t->stop_meanwhile)
		return;
	t->waiting++;
	runtime_stop(t->r, &ref, RUNTIME_STOP_KILL, on_stopped, t);
}

static void on_probed_poll(void *arg, const struct runtime_about *about)
{
	struct tool *t = arg;
	const struct runtime_ref ref = { t->spec.attempt, t->ctl, t->secrets_dir };

	(void)about;
	runtime_poll(t->r, &ref, on_status, t);
}

static void act(struct tool *t, const char *verb)
{
	const struct runtime_ref ref = { t->spec.attempt, t->ctl, t->secrets_dir };

	t->waiting = 1;
	if (strcmp(verb, "probe") == 0) {
		runtime_probe(t->r, on_about, t);
	} else if (strcmp(verb, "start") == 0) {
		runtime_probe(t->r, on_probed, t); /* as a worker does, before anything else */
	} else if (strcmp(verb, "poll") == 0) {
		runtime_probe(t->r, on_probed_poll, t);
	} else if (strcmp(verb, "stop") == 0) {
		runtime_stop(t->r, &ref, t->how, on_done, t);
	} else if (strcmp(verb, "list") == 0) {
		runtime_list(t->r, on_list, t);
	} else if (strcmp(verb, "remove") == 0) {
		runtime_remove(t->r, &ref, on_done, t);
	} else {
		die(verb);
	}
	loop_run(t->loop);
}

static void set_up(struct tool *t, const char *verb, char **command)
{
	bool make = strcmp(verb, "start") == 0;
	union {
		char **in;
		const char *const *out;
	} argv = { .in = command };

	folder(t, "ctl", t->ctl, false);
	folder(t, "secrets", t->secrets_dir, false);
	folder(t, "work", t->work, make);
	folder(t, "in", t->in, make);
	folder(t, "out", t->out, make);
	t->spec.step = "stp_test";
	t->spec.argv = argv.out;
	t->spec.env = t->env;
	t->spec.secret_env = t->secret_env;
	t->spec.gpus = t->gpus;
	t->spec.secrets = t->secrets;
	t->spec.mounts = t->mounts;
	t->spec.ctl = t->ctl;
	t->spec.secrets_dir = t->secrets_dir;
	t->spec.work = t->work;
	t->spec.in = t->in;
	t->spec.out = t->out;
}

int main(int argc, char **argv)
{
	static struct tool t = { .runtime = "docker",
		.root = "/tmp",
		.spec.attempt = "att_none",
		.spec.grace_s = 10,
		.process.install = "ins_test",
		.process.attempts = "/tmp",
		.docker.install = "ins_test",
		.docker.tmp_max = 64 << 20 };
	struct err e;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "+", table, NULL)) != -1)
		take(&t, opt, optarg);
	if (optind == argc)
		die("what is to be done?");
	const char *verb = argv[optind++];
	if (optind < argc && strcmp(argv[optind], "--") == 0)
		optind++;
	set_up(&t, verb, argv + optind);
	t.loop = loop_new();
	rc = strcmp(t.runtime, "docker") == 0 ? runtime_docker_new(t.loop, &t.docker, &t.r, &e)
					      : runtime_process_new(t.loop, &t.process, &t.r, &e);
	if (rc < 0)
		die(e.msg);
	buf_init(&t.text, 1 << 20);
	t.json = jsn_out(&t.text);
	jsn_obj_begin(&t.json);
	act(&t, verb);
	jsn_obj_end(&t.json);
	(void)puts(t.text.p);
	runtime_free(t.r);
	loop_free(t.loop);
	buf_done(&t.text);
	return 0;
}
