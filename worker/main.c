/*
 * tidemill-worker: reads the settings, enrols with the server once, and runs what it is given. On
 * SIGTERM it ends and leaves the commands running; the next one adopts them. The only place that
 * exits.
 */
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "lib/loop/signal.h"
#include "worker/agent.h"
#include "worker/check.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { ARENA_MAX = 4 << 20, HEAP_ARENAS = 2 };

static void usage(FILE *out)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	conf_help(worker_conf_rows, &b);
	(void)fprintf(out,
		"usage: tidemill-worker [--config=FILE] [--SETTING=VALUE …] [COMMAND]\n\n"
		"  run              run steps (the default); enrols first when it must\n"
		"  join             enrol with the server and exit\n"
		"  check            say what this host offers and exit\n"
		"  --settings       print the reference of all settings\n"
		"  --version\n\nSettings, also as TIDEMILL_<NAME> in the environment:\n%s",
		buf_str(&b).p);
	buf_done(&b);
}

static void print_settings(void)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	conf_markdown(worker_conf_rows, &b);
	(void)printf("%s", buf_str(&b).p);
	buf_done(&b);
}

static void on_signal(void *arg, int signo)
{
	struct agent *g = arg;

	log_info("ending; commands go on", LOG_I("signal", signo));
	loop_stop(g->loop);
}

/* A join token is also the way back in for a worker whose server has been made anew. */
static int load_or_enrol(struct agent *g, struct arena *a, struct err *e)
{
	int rc = credential_load(&g->conf, a, &g->credential, e);

	if (rc < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	if (rc == 0 && (g->conf.join_token.n == 0 ||
			       !credential_refused(&g->conf, g->loop, &g->credential)))
		return 0;
	if (rc == 0)
		log_warn("the server refuses this worker's credential: enrolling anew",
			LOG_STR("worker", g->credential.worker_id));
	if (fs_mkdirs(g->conf.work_dir.p, 0711, e) < 0 ||
		credential_enrol(&g->conf, g->loop, a, &g->credential, e) < 0)
		return -1;
	log_info("enrolled", LOG_STR("worker", g->credential.worker_id));
	return 0;
}

static int command_run(struct agent *g, struct arena *a, struct err *e)
{
	struct loop_signal *term, *intr;
	int rc = load_or_enrol(g, a, e);

	if (rc < 0)
		return -1;
	term = loop_signal_new(g->loop, SIGTERM, on_signal, g);
	intr = loop_signal_new(g->loop, SIGINT, on_signal, g);
	rc = agent_open(g, e);
	if (rc == 0)
		loop_run(g->loop);
	agent_close(g);
	loop_signal_free(term);
	loop_signal_free(intr);
	if (rc == 0)
		log_info("stopped");
	return rc;
}

static int command_join(struct agent *g, struct arena *a, struct err *e)
{
	if (load_or_enrol(g, a, e) < 0)
		return -1;
	if (printf("%s\n", g->credential.worker_id.p) < 0 || fflush(stdout) != 0)
		return err_errno(e, "write", "the worker's id");
	return 0;
}

static int command_check(struct agent *g, struct arena *a, struct err *e)
{
	int rc = credential_load(&g->conf, a, &g->credential, e);

	if (rc < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	rc = check_run(g, e);
	agent_close(g);
	return rc;
}

static int run_command(struct agent *g, const char *command, struct arena *a, struct err *e)
{
	if (strcmp(command, "run") == 0)
		return command_run(g, a, e);
	if (strcmp(command, "join") == 0)
		return command_join(g, a, e);
	if (strcmp(command, "check") == 0)
		return command_check(g, a, e);
	return err_set(e, ERR_INVALID, "unknown command %.60s; see --help", command);
}

static int run(struct agent *g, struct arena *a, int argc, const char *const *argv, struct err *e)
{
	const char *file = getenv("TIDEMILL_CONFIG");
	enum log_level level;
	int used;

	if (argc > 0 && str_starts(str_c(argv[0]), STR("--config="))) {
		file = argv[0] + 9;
		argc--;
		argv++;
	}
	if (conf_load(worker_conf_rows, file, argc, argv, &used, a, &g->conf, e) < 0 ||
		worker_conf_check(&g->conf, a, e) < 0)
		return -1;
	if (!log_level_parse(g->conf.log_level, &level))
		return err_set(e, ERR_INVALID, "log-level must be debug, info, warn or error");
	log_set_level(level);
	if (argc - used > 1)
		return err_set(e, ERR_INVALID, "one command at most; see --help");
	return run_command(g, argc > used ? argv[used] : "run", a, e);
}

int main(int argc, char **argv)
{
	static struct agent g;
	struct err e = { .code = ERR_OK };
	const char *first = argc > 1 ? argv[1] : "";
	struct arena *a;

	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(first, "--version") == 0)
		return printf("tidemill-worker %s\n", TIDEMILL_VERSION) < 0;
	if (strcmp(first, "--settings") == 0) {
		print_settings();
		return fflush(stdout) != 0;
	}
	(void)prctl(PR_SET_DUMPABLE, 0); /* secrets are in memory */
	(void)mallopt(M_ARENA_MAX, HEAP_ARENAS); /* small at rest, for all its threads */
	a = arena_new(ARENA_MAX);
	g.lock = -1;
	g.loop = loop_new();
	int rc = run(&g, a, argc - 1, (const char *const *)(argv + 1), &e);
	loop_free(g.loop);
	arena_drop(a);
	if (rc < 0)
		(void)fprintf(stderr, "tidemill-worker: %s\n", e.msg);
	exit(rc < 0 ? 1 : 0);
}
