#include "worker/runtime/docker_gc.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "worker/runtime/docker_keep.h"

#include <sys/statvfs.h>

enum { LOOK_MS = 60000, SOON_MS = 200, NEVER = 100 };
#define REMOVE_TIMEOUT (300 * INT64_C(1000000))
#define SAID_FOR       (60 * 60 * CLOCK_SECOND)
#define FAILED_FOR     (10 * 60 * CLOCK_SECOND)

/* Look → (above the high mark) the oldest: is it still that image? → remove → measure → the next.
 */
static void gc_look(void *arg);
static void gc_next(struct docker *d);
static void gc_on_inspected(void *arg, const struct fetch_reply *reply, const struct err *failed);
/* It may only have lost our name: [{"Untagged": NAME}, {"Deleted": ID}, …]. */
static bool was_deleted(struct str answer)
{
	struct jsn_doc *doc = NULL;
	bool deleted = false;
	struct err e;

	if (jsn_parse(answer, &doc, &e) < 0)
		return false;
	for (size_t i = 0; i < jsn_count(jsn_root(doc)); i++)
		if (jsn_get_str(jsn_get(jsn_at(jsn_root(doc), i), "Deleted")).n != 0)
			deleted = true;
	jsn_doc_free(doc);
	return deleted;
}

static void gc_on_removed(void *arg, const struct fetch_reply *reply, const struct err *failed);
static void gc_end(struct docker *d, bool short_of);

/* Of what a user may have; -1 when the folder cannot be seen from here. */
static double percent_used(const char *root)
{
	struct statvfs v;

	if (root[0] == '\0' || statvfs(root, &v) < 0 || v.f_blocks == 0)
		return -1;
	return 100 - 100 * (double)v.f_bavail / (double)v.f_blocks;
}

void docker_gc_open(struct docker *d, const struct runtime_docker_config *c)
{
	d->gc.high = c->disk_high > 0 ? c->disk_high : NEVER;
	d->gc.low = c->disk_low;
	d->gc.spare = c->image_keep;
	d->gc.changed = c->changed;
	d->gc.changed_arg = c->changed_arg;
	loop_timer_init(&d->gc.look, d->calls.loop, gc_look, d);
}

void docker_gc_close(struct docker *d)
{
	loop_timer_cancel(&d->gc.look);
}

void docker_gc_soon(struct docker *d)
{
	if (d->gc.high >= NEVER || d->keep->path == NULL || d->gc.request != NULL || d->closing ||
		d->gc.soon)
		return; /* one that is near is not put off */
	d->gc.soon = true;
	loop_timer_set(&d->gc.look, SOON_MS);
}

/* But for those with which the daemon has had trouble not long ago. */
static void gc_pass_none(struct docker *d)
{
	int64_t now = clock_elapsed(&clock_real);
	bool any = false;

	for (size_t i = 0; i < d->keep->n; i++) {
		struct docker_kept *x = &d->keep->all[i];
		x->passed = x->failed_at != 0 && now - x->failed_at < FAILED_FOR;
		any = any || x->passed;
	}
	if (!any)
		d->gc.trouble[0] = '\0';
}

bool docker_gc_force(struct docker *d)
{
	if (d->gc.request == NULL)
		gc_pass_none(d);
	if (d->gc.high >= NEVER || docker_keep_oldest(d->keep) == NULL)
		return false;
	d->gc.wanted = true;
	docker_gc_soon(d);
	return true;
}

bool docker_gc_busy(const struct docker *d)
{
	return d->gc.wanted || d->gc.request != NULL;
}

static void gc_look(void *arg)
{
	struct docker *d = arg;

	d->gc.soon = false;
	loop_timer_set(&d->gc.look, LOOK_MS);
	if (d->gc.request != NULL)
		return;
	d->gc.used = percent_used(d->root);
	d->gc.removed = 0;
	d->gc.forced = d->gc.wanted;
	d->gc.wanted = false;
	if (d->gc.used <= d->gc.high && !d->gc.forced) {
		gc_end(d, false);
		return;
	}
	gc_pass_none(d);
	d->gc.began = d->gc.used;
	d->gc.bytes = 0;
	gc_next(d);
}

/* On a disk that other data have filled each step would pull its image anew: what was used just
 * now stays, unless somebody waits for the space. */
static const struct docker_kept *gc_oldest(struct docker *d)
{
	const struct docker_kept *x = docker_keep_oldest(d->keep);

	return x == NULL || d->gc.forced || x->used_at <= clock_now(&clock_real) - d->gc.spare
		       ? x
		       : NULL;
}

static void gc_next(struct docker *d)
{
	const struct docker_kept *x = gc_oldest(d);
	char path[DOCKER_PATH_MAX];

	d->gc.used = percent_used(d->root);
	if ((d->gc.used <= d->gc.low && !d->gc.forced) || x == NULL) {
		gc_end(d, d->gc.used > d->gc.high);
		return;
	}
	(void)str_print(d->gc.id, sizeof d->gc.id, "%s", x->id);
	(void)str_print(d->gc.name, sizeof d->gc.name, "%s", x->names[x->n_names - 1]);
	d->gc.used_at = x->used_at;
	(void)str_print(path, sizeof path, "/images/%s/json", d->gc.name);
	d->gc.request = fetch_start(d->http,
		&(struct fetch_request){ .method = "GET",
			.path = path,
			.max_body = DOCKER_BODY_MAX,
			.timeout = DOCKER_SHORT },
		gc_on_inspected, d);
}

/* It may have been used, or taken away, while the daemon was asked. */
static struct docker_kept *still_unused(struct docker *d)
{
	struct docker_kept *x = docker_keep_oldest(d->keep);

	return x != NULL && strcmp(x->id, d->gc.id) == 0 && x->used_at == d->gc.used_at ? x : NULL;
}

static bool is_id(struct str found, const char *id)
{
	return str_is(found, id) ||
	       (str_starts(str_c(id), STR("sha256:")) && str_is(found, id + 7));
}

/* Without a daemon the round is over; one that only has trouble with this image is asked for the
 * others. */
static void gc_failed(struct docker *d, struct docker_kept *x, const struct err *e)
{
	if (e->code == ERR_NETWORK || e->code == ERR_CANCELLED) {
		gc_end(d, false);
		return;
	}
	log_warn("image not removed", LOG_S("image", d->gc.name), LOG_E(e));
	(void)str_print(d->gc.trouble, sizeof d->gc.trouble, "%.100s: %.150s", d->gc.name, e->msg);
	if (x != NULL) {
		x->passed = true;
		x->failed_at = clock_elapsed(&clock_real);
	}
	gc_next(d);
}

static void gc_on_inspected(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker *d = arg;
	struct docker_kept *x = still_unused(d);
	struct jsn_doc *doc = NULL;
	char path[DOCKER_PATH_MAX];
	struct err e;
	int rc = docker_reply(d, reply, failed, &e);

	d->gc.request = NULL;
	if (d->closing)
		return;
	bool gone = rc < 0 && e.code == ERR_NOT_FOUND;
	if (rc == 0)
		rc = jsn_parse(reply->body, &doc, &e);
	bool other = rc == 0 && !is_id(jsn_get_str(jsn_get(jsn_root(doc), "Id")), d->gc.id);
	jsn_doc_free(doc);
	if (x == NULL) {
		gc_next(d);
	} else if (gone || other) {
		docker_keep_unname(d->keep, x, d->gc.name); /* somebody else has done so, or pulled
							       another */
		gc_next(d);
	} else if (rc < 0) {
		gc_failed(d, x, &e);
	} else {
		(void)str_print(path, sizeof path, "/images/%s", d->gc.name);
		d->gc.request = fetch_start(d->http,
			&(struct fetch_request){ .method = "DELETE",
				.path = path,
				.max_body = DOCKER_BODY_MAX,
				.timeout = REMOVE_TIMEOUT },
			gc_on_removed, d);
	}
}

static void gc_on_removed(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker *d = arg;
	struct docker_kept *x = NULL;
	struct err e = { .code = ERR_OK };
	int rc = docker_reply(d, reply, failed, &e);

	d->gc.request = NULL;
	if (d->closing)
		return;
	for (size_t i = 0; i < d->keep->n && x == NULL; i++)
		if (strcmp(d->keep->all[i].id, d->gc.id) == 0)
			x = &d->keep->all[i];
	if (rc == 0 && x != NULL && was_deleted(reply->body)) {
		log_info("image removed: it was not used, and the disk is full",
			LOG_S("image", d->gc.name), LOG_S("id", d->gc.id), LOG_I("bytes", x->size),
			LOG_I("percent_used", (int64_t)d->gc.used));
		d->gc.removed++;
		d->gc.bytes += x->size;
	}
	if (rc < 0 && e.code != ERR_NOT_FOUND && e.code != ERR_CONFLICT) {
		gc_failed(d, x, &e);
		return;
	}
	if (rc < 0 && e.code == ERR_CONFLICT) {
		/* A container that is not ours uses it. */
		log_debug("image not removed", LOG_S("image", d->gc.name), LOG_E(&e));
		if (x != NULL)
			x->passed = true;
	} else if (x != NULL && x->n_attempts == 0 && x->used_at == d->gc.used_at) {
		/* Else it was pulled again before the daemon has answered, or a next round finds
		 * that it is gone. */
		docker_keep_unname(d->keep, x, d->gc.name);
	}
	gc_next(d);
}

/* short_of: nothing more can be removed, and it is not enough. */
static void gc_end(struct docker *d, bool short_of)
{
	bool news = short_of != d->gc.short_of || d->gc.removed != 0;

	d->gc.short_of = short_of;
	if (d->gc.removed != 0) {
		d->gc.ended = clock_elapsed(&clock_real);
		(void)str_print(d->gc.said, sizeof d->gc.said,
			"docker: %lld image%s that no step used %s removed (%lld MB), because its "
			"disk was %d %% full; now it is %d %%",
			(long long)d->gc.removed, d->gc.removed == 1 ? "" : "s",
			d->gc.removed == 1 ? "was" : "were", (long long)(d->gc.bytes / 1000000),
			(int)d->gc.began, (int)d->gc.used);
	}
	if (d->gc.wanted) /* meanwhile */
		docker_gc_soon(d);
	if (news && d->gc.changed != NULL)
		d->gc.changed(d->gc.changed_arg);
}

void docker_gc_say(const struct docker *d, char *out, size_t size)
{
	out[0] = '\0';
	if (d->gc.high >= NEVER || d->keep->path == NULL)
		return;
	if (d->root[0] != '\0' && percent_used(d->root) < 0)
		(void)str_print(out, size,
			"docker: its folder %.80s cannot be seen from here, so no image is removed "
			"when its disk is full",
			d->root);
	else if (d->gc.short_of && d->gc.trouble[0] != '\0')
		(void)str_print(out, size, "docker: its disk is %d %% full, and not removed is %s",
			(int)d->gc.used, d->gc.trouble);
	else if (d->gc.short_of)
		(void)str_print(out, size,
			"docker: its disk is %d %% full, and there is no image left that this "
			"worker has pulled and no step uses or has just used",
			(int)d->gc.used);
	else if (d->gc.ended != 0 && clock_elapsed(&clock_real) - d->gc.ended < SAID_FOR)
		(void)str_print(out, size, "%s", d->gc.said);
}
