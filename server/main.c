/*
 * tidemill-server: reads the settings, wires the parts together, and ends in good order on SIGTERM.
 * The only place that exits.
 */
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/db/listen.h"
#include "lib/http/server.h"
#include "lib/http/static.h"
#include "lib/http/tls.h"
#include "lib/loop/loop.h"
#include "lib/loop/signal.h"
#include "server/app.h"
#include "server/assets.h"
#include "server/blob/blob.h"
#include "server/command.h"
#include "server/fsck.h"
#include "server/mlflow/handlers.h"
#include "server/mlflow/run_access.h"
#include "server/rest/access.h"
#include "server/rest/auth.h"
#include "server/rest/events.h"
#include "server/rest/flow_error.h"
#include "server/rest/grants.h"
#include "server/rest/handlers.h"
#include "server/rest/logs.h"
#include "server/rest/metrics.h"
#include "server/rest/openapi.h"
#include "server/rest/rest.h"
#include "server/rest/sync.h"
#include "server/rest/sync_group.h"
#include "server/sched/blob_gc.h"
#include "server/sched/finish.h"
#include "server/sched/fleet.h"
#include "server/sched/hub.h"
#include "server/sched/launch.h"
#include "server/sched/progress.h"
#include "server/sched/retention.h"
#include "server/sched/sched.h"
#include "server/sched/schedules.h"
#include "server/sched/why.h"
#include "server/sched/windows.h"
#include "server/secret_key.h"
#include "server/store/credential.h"
#include "server/store/metric_group.h"

#include "gen/sql.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { ARENA_MAX = 4 << 20, LAST_WORDS_US = 2000000 };
/* What servers notify each other of: an event (app_changed), and a lead that was given up
 * (lease_release). */
static const char changed_channel[] = "tidemill_changed", lead_channel[] = "tidemill_lead";

struct server {
	struct app app;
	struct arena *arena;
	struct rest *rest;
	struct http_tls *tls;
	struct ip_net *proxies;
	struct loop_signal *term, *intr, *hup;
	struct blob_gc *gc;
	struct retention_daily *retention;
};

static const struct binding *const bindings[] = { project_bindings, auth_bindings, server_bindings,
	blob_bindings, dataset_bindings, dataset_create_bindings, pipeline_bindings, run_bindings,
	rerun_bindings, queue_bindings, worker_bindings, sync_bindings, attempt_bindings,
	attempt_metrics_bindings, model_bindings, monitor_bindings, observation_bindings,
	tracking_bindings, pool_bindings, mlflow_experiment_bindings, mlflow_run_bindings,
	mlflow_batch_bindings, mlflow_history_bindings, mlflow_artifact_bindings,
	log_ingest_bindings, log_final_bindings, log_bindings, event_bindings, metrics_bindings,
	retention_bindings, NULL };

static void usage(FILE *out)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	conf_help(settings_rows, &b);
	(void)fprintf(out,
		"usage: tidemill-server [--config=FILE] [--SETTING=VALUE …] [COMMAND]\n\n"
		"  serve            serve (the default); applies missing migrations first\n"
		"  migrate          apply missing migrations\n"
		"  bootstrap        print a token that makes the first administrator; --recover: "
		"another one\n"
		"  snapshot         print what the scheduler sees and decides now\n"
		"  replay FILE [STEP]  decide a snapshot anew; say why the step waits\n"
		"  fsck [--deep]    find what does not hold in database and files; reads only\n"
		"  join-token POOL  print a token that enrols one worker\n"
		"  check            read the settings and exit\n"
		"  --openapi        print the API's contract\n"
		"  --settings       print the reference of all settings\n"
		"  --files          print the reference of all keys of users' files\n"
		"  --version\n\nSettings, also as TIDEMILL_<NAME> in the environment:\n%s",
		buf_str(&b).p);
	buf_done(&b);
}

/* ---- serving ---- */

static void page_reply(struct http_req *q)
{
	/* The routes of web/src/app.tsx. */
	static const char *const pages[] = { "/projects/{project}", "/projects/{project}/runs",
		"/runs/{run}", "/projects/{project}/datasets",
		"/projects/{project}/datasets/{dataset}", "/projects/{project}/models",
		"/projects/{project}/models/{model}", "/projects/{project}/monitors",
		"/projects/{project}/monitors/{monitor}",
		"/projects/{project}/decisions/{decision}", "/decisions/{decision}", "/workers",
		NULL };
	const struct app *app = q->app;
	struct err e;

	(void)err_set(&e, ERR_NOT_FOUND, "no such endpoint");
	if (!flow_refuse(q, &e))
		static_files_reply(app->ui, pages, q);
}

static bool host_ok(void *arg, struct str host)
{
	const struct app *app = arg;

	for (size_t i = 0; i < app->conf.hosts.n; i++)
		if (str_eq_nocase(*list_at(&app->conf.hosts, struct str, i), host))
			return true;
	return app->conf.hosts.n == 0;
}

/* Of our own changes we know. */
static void on_notify(void *arg, const char *channel, struct str payload)
{
	struct app *app = arg;

	if (str_is(str_c(channel), lead_channel))
		sched_lead_free(app->sched);
	else if (app->hub != NULL && !str_is(payload, app->instance))
		hub_wake(app->hub);
}

static void on_resync(void *arg)
{
	on_notify(arg, changed_channel, STR_NONE);
	on_notify(arg, lead_channel, STR_NONE);
}

static void on_drained(void *arg)
{
	struct server *s = arg;

	loop_stop(s->app.loop);
}

static void on_signal(void *arg, int signo)
{
	struct server *s = arg;
	struct err e;

	if (signo == SIGHUP) {
		if (s->tls != NULL && http_tls_reload(s->tls, &e) < 0)
			log_error("certificate not reloaded", LOG_E(&e));
		return;
	}
	if (s->app.draining) {
		loop_stop(s->app.loop);
		return;
	}
	log_info("draining", LOG_I("signal", signo));
	s->app.draining = true;
	sched_resign(s->app.sched);
	fleet_wake_all(s->app.fleet);
	http_server_drain(s->app.http, s->app.conf.shutdown_grace / 1000, on_drained, s);
}

/* "host:port" or "[v6]:port". */
static int split_listen(
	struct str listen, struct arena *a, char **ret_host, int *ret_port, struct err *e)
{
	size_t colon = listen.n;
	int64_t port;

	while (colon > 0 && listen.p[colon - 1] != ':')
		colon--;
	if (colon == 0 || !num_parse_i64(str_slice(listen, colon, listen.n), 0, 65535, &port))
		return err_set(e, ERR_INVALID, "listen must be ADDRESS:PORT");
	struct str host = str_slice(listen, 0, colon - 1);
	if (host.n > 2 && host.p[0] == '[')
		host = str_slice(host, 1, host.n - 2);
	*ret_host = arena_dup(a, host);
	*ret_port = (int)port;
	return 0;
}

static bool is_loopback(const char *host)
{
	return str_starts(str_c(host), STR("127.")) || strcmp(host, "::1") == 0;
}

static int open_listener(struct server *s, struct err *e)
{
	struct app *app = &s->app;
	char *host, url[300];
	int port;

	if (split_listen(app->conf.listen, s->arena, &host, &port, e) < 0)
		return -1;
	if (app->conf.tls_cert.n != 0) {
		s->tls = http_tls_new(app->conf.tls_cert.p, app->conf.tls_key.p, e);
		if (s->tls == NULL)
			return -1;
	}
	if (s->tls == NULL && !is_loopback(host) && !app->conf.behind_tls_proxy) {
		if (!app->conf.insecure_http)
			return err_set(e, ERR_INVALID,
				"%s is not a loopback address: give tls-cert and tls-key, "
				"behind-tls-proxy, or insecure-http",
				host);
		log_warn("serving plain HTTP: tokens and data can be read on the way",
			LOG_S("address", host));
	}
	if (http_server_listen(app->http, host, port, s->tls, &port, e) < 0)
		return -1;
	(void)str_print(
		url, sizeof url, "%s://%s:%d", s->tls != NULL ? "https" : "http", host, port);
	log_info("serving", LOG_S("url", url), LOG_S("instance", app->instance));
	return 0;
}

static size_t asset_count(void)
{
	size_t n = 0;

	while (assets[n].path != NULL)
		n++;
	return n;
}

static void open_http(struct server *s)
{
	struct app *app = &s->app;

	s->rest = rest_new(bindings);
	app->metrics = metrics_new();
	app->http = http_server_new(app->loop,
		&(struct http_config){ .app = app,
			.routes = rest_routes(s->rest),
			.auth = rest_auth,
			.fallback = page_reply,
			.refuse = flow_refuse,
			.host_ok = host_ok,
			.on_done = metrics_on_done,
			.proxies = s->proxies,
			.n_proxies = app->conf.behind_tls_proxy ? app->conf.proxies.n : 0,
			.limits = { .connections = (size_t)app->conf.max_connections,
				.per_ip = (size_t)app->conf.max_connections_per_ip } });
}

static int server_open(struct server *s, struct err *e)
{
	struct app *app = &s->app;
	static const char *const channels[] = { changed_channel, lead_channel, NULL };
	static struct static_asset files[4096];
	size_t n = 0;

	if (fs_mkdirs(app->conf.data_dir.p, 0700, e) < 0 ||
		command_migrate(&app->conf, &app->schema, e) < 0)
		return -1;
	app->pepper = secret_key_open(app->conf.data_dir.p, e);
	if (app->pepper == NULL)
		return -1;
	(void)id_new(app->instance, "srv", app->clock);
	app->loop = loop_new();
	app->started_at = clock_now(app->clock);
	app->db = db_new(app->loop, &(struct db_conf){ .conninfo = app->conf.database_url.p,
					    .table = sql_table,
					    .count = SQL_COUNT });
	app->notify = db_notify_new(app->loop, app->conf.database_url.p, 0);
	app->listen = db_listen_new(
		app->loop, &(struct db_listen_conf){ .conninfo = app->conf.database_url.p,
				   .channels = channels,
				   .on_notify = on_notify,
				   .on_resync = on_resync,
				   .arg = app });
	for (size_t i = 0; i < asset_count() && n < 4096; i++)
		if (assets[i].path[0] == '/')
			files[n++] = (struct static_asset){ assets[i].path, assets[i].type,
				assets[i].etag, assets[i].begin, assets[i].end };
	app->ui = static_files_new(files, n);
	open_http(s);
	s->term = loop_signal_new(app->loop, SIGTERM, on_signal, s);
	s->intr = loop_signal_new(app->loop, SIGINT, on_signal, s);
	s->hup = loop_signal_new(app->loop, SIGHUP, on_signal, s);
	app->points = metric_group_new(app->loop, app->db);
	app->run_access = run_access_new(app);
	app->blobs = blobs_open_fs(
		app->loop, arena_printf(s->arena, "%s/blobs", app->conf.data_dir.p).p, e);
	if (app->blobs == NULL)
		return -1;
	s->gc = blob_gc_new(app);
	app->hub = hub_new(app);
	app->auth = auth_new(app);
	app->grants = grants_new(app);
	app->access = access_new(app);
	app->streams = streams_new(app);
	app->logs = logs_new(app);
	app->launcher = launcher_new(app);
	app->progress = progress_new(app);
	app->windows = windows_new(app);
	app->finish = finish_new(app);
	app->fleet = fleet_new(app);
	app->reporter = reporter_new(app);
	app->sync_group = sync_group_new(app);
	app->why = why_new(app);
	app->sched = sched_new(app);
	s->retention = retention_daily_new(app);
	app->schedules = schedules_new(app);
	return open_listener(s, e);
}

/* What the parts say last still goes out: the lead is given up, workers were seen. */
static void last_words(const struct app *app)
{
	int64_t until = clock_elapsed(app->clock) + LAST_WORDS_US;

	while (!db_is_idle(app->db) && clock_elapsed(app->clock) < until)
		loop_step(app->loop, true);
}

static void server_close(struct server *s)
{
	struct app *app = &s->app;

	loop_signal_free(s->term);
	loop_signal_free(s->intr);
	loop_signal_free(s->hup);
	blob_gc_free(s->gc);
	retention_daily_free(s->retention);
	if (app->http != NULL)
		http_server_free(app->http);
	/* Parked requests and streams are told now that their clients are gone. */
	for (int i = 0; app->loop != NULL && i < 3; i++)
		loop_step(app->loop, false);
	logs_stop(app->logs);
	streams_stop(app->streams);
	access_stop(app->access);
	schedules_free(app->schedules);
	sched_free(app->sched);
	app->sched = NULL;
	why_free(app->why);
	fleet_free(app->fleet);
	finish_free(app->finish);
	app->finish = NULL;
	windows_free(app->windows);
	app->windows = NULL;
	progress_stop(app->progress);
	launcher_free(app->launcher);
	reporter_free(app->reporter);
	sync_group_free(app->sync_group);
	grants_stop(app->grants);
	auth_stop(app->auth);
	if (app->db != NULL)
		last_words(app);
	hub_free(app->hub);
	app->hub = NULL;
	if (app->loop != NULL) {
		db_listen_free(app->listen);
		db_notify_free(app->notify);
		metric_group_free(app->points);
		run_access_free(app->run_access);
		db_free(app->db);
		app->db = NULL;
		loop_step(app->loop, false);
		loop_free(app->loop);
	}
	logs_free(app->logs);
	streams_free(app->streams);
	access_free(app->access);
	progress_free(app->progress);
	blobs_close(app->blobs);
	http_tls_free(s->tls);
	rest_free(s->rest);
	metrics_free(app->metrics);
	static_files_free(app->ui);
	grants_free(app->grants);
	auth_free(app->auth);
	pepper_free(app->pepper);
}

static int command_serve(struct server *s, struct err *e)
{
	int rc = server_open(s, e);

	if (rc == 0) {
		loop_run(s->app.loop);
		log_info("stopped");
	}
	server_close(s);
	return rc;
}

/* ---- the command line ---- */

static void put_settings(struct buf *out)
{
	conf_markdown(settings_rows, out);
}

/* What documents and tests are made of; true when `flag` asks for such a thing. */
static bool print_made(const char *flag, int *ret_rc)
{
	static const struct {
		const char *flag;
		void (*put)(struct buf *out);
	} rows[] = { { "--openapi", openapi_print }, { "--settings", put_settings },
		{ "--files", openapi_files } };
	struct buf b;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(flag, rows[i].flag) != 0)
			continue;
		buf_init(&b, OPENAPI_MAX);
		rows[i].put(&b);
		*ret_rc = printf("%s", buf_str(&b).p) < 0 || fflush(stdout) != 0;
		buf_done(&b);
		return true;
	}
	return false;
}

/* ---- commands ---- */

static int run_serve(struct server *s, const char *arg, struct err *e)
{
	(void)arg;
	return command_serve(s, e);
}

static int run_migrate(struct server *s, const char *arg, struct err *e)
{
	(void)arg;
	return command_migrate(&s->app.conf, &s->app.schema, e);
}

static int run_bootstrap(struct server *s, const char *arg, struct err *e)
{
	return command_bootstrap(&s->app.conf, arg != NULL, e);
}

static int run_snapshot(struct server *s, const char *arg, struct err *e)
{
	(void)arg;
	return command_snapshot(&s->app.conf, e);
}

static int run_fsck(struct server *s, const char *arg, struct err *e)
{
	return command_fsck(&s->app.conf, arg != NULL, e);
}

static int run_join_token(struct server *s, const char *arg, struct err *e)
{
	return command_join_token(&s->app.conf, arg != NULL ? arg : "default", e);
}

/* The settings have been read; what they say of the address is looked at as well. */
static int run_check(struct server *s, const char *arg, struct err *e)
{
	char *host;
	int port;

	(void)arg;
	return split_listen(s->app.conf.listen, s->arena, &host, &port, e);
}

static const struct server_command {
	const char *name;
	const char *flag; /* the one argument that it may have; "": any; NULL: none */
	int (*fn)(struct server *s, const char *arg, struct err *e);
} server_commands[] = {
	{ "serve", NULL, run_serve },
	{ "migrate", NULL, run_migrate },
	{ "bootstrap", "--recover", run_bootstrap },
	{ "snapshot", NULL, run_snapshot },
	{ "fsck", "--deep", run_fsck },
	{ "join-token", "", run_join_token },
	{ "check", NULL, run_check },
	{ 0 },
};

static int check_arguments(
	const struct server_command *c, int argc, const char *const *argv, struct err *e)
{
	bool any = c->flag != NULL && c->flag[0] == '\0';

	if (argc <= 1 || (argc == 2 && c->flag != NULL && (any || strcmp(argv[1], c->flag) == 0)))
		return 0;
	return err_set(e, ERR_INVALID, "%s takes %s, not %.60s; see --help", c->name,
		any               ? "one argument"
		: c->flag != NULL ? c->flag
				  : "no argument",
		argv[any ? 2 : 1]);
}

static int run_command(struct server *s, int argc, const char *const *argv, struct err *e)
{
	const struct server_command *c = server_commands;
	const char *name = argc > 0 ? argv[0] : "serve";

	if (strcmp(name, "replay") == 0) {
		if (argc != 2 && argc != 3)
			return err_set(e, ERR_INVALID, "usage: replay FILE [STEP_ID]");
		return command_replay(argv[1], argc == 3 ? argv[2] : NULL, e);
	}
	while (c->name != NULL && strcmp(c->name, name) != 0)
		c++;
	if (c->name == NULL)
		return err_set(e, ERR_INVALID, "unknown command %.60s; see --help", name);
	if (check_arguments(c, argc, argv, e) < 0)
		return -1;
	if (s->app.conf.database_url.n == 0)
		return err_set(e, ERR_INVALID,
			"database-url is needed (TIDEMILL_DATABASE_URL or "
			"TIDEMILL_DATABASE_URL_FILE)");
	return c->fn(s, argc > 1 ? argv[1] : NULL, e);
}

static int read_proxies(struct server *s, struct err *e)
{
	const struct list *texts = &s->app.conf.proxies;

	s->proxies = arena_array_of(s->arena, struct ip_net, texts->n + 1);
	for (size_t i = 0; i < texts->n; i++) {
		struct err bad;
		if (ip_net_parse(*list_at(texts, struct str, i), &s->proxies[i], &bad) < 0)
			return err_set(e, ERR_INVALID, "proxies: %s", bad.msg);
	}
	return 0;
}

static int run(struct server *s, int argc, const char *const *argv, struct err *e)
{
	const char *file = getenv("TIDEMILL_CONFIG");
	enum log_level level;
	int used;

	if (argc > 0 && str_starts(str_c(argv[0]), STR("--config="))) {
		file = argv[0] + 9;
		argc--;
		argv++;
	}
	if (conf_load(settings_rows, file, argc, argv, &used, s->arena, &s->app.conf, e) < 0)
		return -1;
	if (!log_level_parse(s->app.conf.log_level, &level))
		return err_set(e, ERR_INVALID, "log-level must be debug, info, warn or error");
	log_set_level(level);
	if (read_proxies(s, e) < 0)
		return -1;
	return run_command(s, argc - used, argv + used, e);
}

int main(int argc, char **argv)
{
	static struct server s;
	struct err e = { .code = ERR_OK };
	const char *first = argc > 1 ? argv[1] : "";
	int rc;

	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(first, "--version") == 0)
		return printf("tidemill-server %s\n", TIDEMILL_VERSION) < 0;
	if (print_made(first, &rc))
		return rc;
	(void)prctl(PR_SET_DUMPABLE, 0); /* secrets are in memory */
	s.app.clock = &clock_real;
	s.arena = arena_new(ARENA_MAX);
	rc = run(&s, argc - 1, (const char *const *)(argv + 1), &e);
	if (rc < 0)
		(void)fprintf(stderr, "tidemill-server: %s\n", e.msg);
	arena_drop(s.arena);
	exit(rc < 0 ? 1 : 0);
}
