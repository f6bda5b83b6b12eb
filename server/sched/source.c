#include "server/sched/source.h"

#include "lib/loop/defer.h"
#include "lib/vcs/url.h"
#include "lib/vcs/vcs.h"
#include "server/app.h"

enum { GIT_TIMEOUT_S = 60, FILE_MAX = 1 << 20 };

struct reading {
	struct app *app;
	struct arena *arena;
	struct vcs_source source;
	struct vcs_show_args args;
	const char *paths[1];
	struct str commit, path;
	struct err err;
	source_cb *cb;
	void *arg;
};

static int source_check(struct reading *r, struct str repository, struct str ref);
static void source_on_refused(void *arg);
static void source_on_commit(void *arg, const char *commit, const struct err *e);
static void source_on_file(void *arg, const struct vcs_file *files, size_t n, const struct err *e);

void source_read(struct app *app, struct arena *a, struct str repository, struct str ref,
	struct str path, source_cb *cb, void *arg)
{
	struct reading *r = arena_new_of(a, struct reading);
	const struct settings *conf = &app->conf;

	*r = (struct reading){ .app = app, .arena = a, .path = path, .cb = cb, .arg = arg };
	r->source = (struct vcs_source){
		.helper = conf->git_program.n != 0 ? conf->git_program.p : NULL,
		.cache = arena_printf(a, "%s/git", conf->data_dir.p).p,
		.url = repository.p,
		.allow = conf->allow_local_git ? VCS_ALLOW_LOCAL : 0,
		.timeout = GIT_TIMEOUT_S * CLOCK_SECOND,
	};
	if (source_check(r, repository, ref) < 0)
		loop_defer(app->loop, source_on_refused, r);
	else
		(void)vcs_resolve(app->loop, a, &r->source, ref.p, source_on_commit, r);
}

/* What can be told without the repository; whoever fails names the member. */
static int source_check(struct reading *r, struct str repository, struct str ref)
{
	struct vcs_url url;
	const char *at = "repository";
	int rc = vcs_url_parse(repository, r->source.allow, &url, &r->err);

	if (rc == 0) {
		at = "ref";
		rc = vcs_ref_check(ref, &r->err);
	}
	if (rc == 0) {
		at = "path";
		rc = vcs_path_check(r->path, &r->err);
	}
	if (rc < 0)
		err_field_prefix(&r->err, at);
	return rc;
}

static void source_on_refused(void *arg)
{
	struct reading *r = arg;

	r->cb(r->arg, STR_NONE, STR_NONE, &r->err);
}

/* A repository or branch that is not there is a mistake in the request, no missing resource. */
static void source_on_commit(void *arg, const char *commit, const struct err *e)
{
	struct reading *r = arg;

	if (e->code == ERR_NOT_FOUND || e->code == ERR_INVALID) {
		(void)err_field(
			&r->err, e->field[0] != '\0' ? e->field : "/repository", "%s", e->msg);
		r->cb(r->arg, STR_NONE, STR_NONE, &r->err);
		return;
	}
	if (e->code != ERR_OK) {
		r->cb(r->arg, STR_NONE, STR_NONE, e);
		return;
	}
	r->commit = arena_str(r->arena, str_c(commit));
	r->paths[0] = r->path.p;
	r->args = (struct vcs_show_args){
		.commit = r->commit.p, .paths = r->paths, .n = 1, .max_bytes = FILE_MAX
	};
	(void)vcs_show(r->app->loop, r->arena, &r->source, &r->args, source_on_file, r);
}

static void source_on_file(void *arg, const struct vcs_file *files, size_t n, const struct err *e)
{
	struct reading *r = arg;
	struct err missing;

	if (e->code != ERR_OK) {
		r->cb(r->arg, STR_NONE, STR_NONE, e);
	} else if (n != 1 || !files[0].found) {
		(void)err_field(&missing, "/path", "there is no file %.120s at commit %.12s",
			r->path.p, r->commit.p);
		r->cb(r->arg, STR_NONE, STR_NONE, &missing);
	} else {
		r->cb(r->arg, r->commit, arena_str(r->arena, files[0].bytes), e);
	}
}
