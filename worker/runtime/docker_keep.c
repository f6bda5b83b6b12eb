#include "worker/runtime/docker_keep.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/field.h"
#include "lib/loop/work.h"

#include <limits.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20, ARENA_MAX = 64 << 20, ATTEMPTS_MAX = 1024 };

/* ---- the file ------------------------------------------------------------------------------- */

struct row {
	struct str id;
	struct list names, attempts; /* struct str */
	int64_t size, used_at;
};
static const struct field row_fields[] = {
	{ "id", FIELD_STR, FIELD_REQUIRED, offsetof(struct row, id), .max = 79 },
	{ "names", FIELD_LIST, FIELD_REQUIRED, offsetof(struct row, names), .item = FIELD_STR,
		.item_max = DOCKER_IMAGE_MAX - 1, .min = 1, .max = DOCKER_KEEP_NAMES },
	{ "attempts", FIELD_LIST, 0, offsetof(struct row, attempts), .item = FIELD_STR,
		.item_max = RUNTIME_ID_MAX - 1, .max = ATTEMPTS_MAX },
	{ "size", FIELD_INT, 0, offsetof(struct row, size), .max = INT64_MAX },
	{ "used_at", FIELD_TIME, FIELD_REQUIRED, offsetof(struct row, used_at) },
	{ 0 },
};
struct table {
	struct list images; /* struct row */
};
static const struct field table_fields[] = {
	{ "images", FIELD_LIST, FIELD_REQUIRED, offsetof(struct table, images), .sub = row_fields,
		.size = sizeof(struct row), .max = DOCKER_KEEP_MAX },
	{ 0 },
};

struct keep_write {
	struct docker_keep *k; /* NULL: nobody waits for it */
	char *path;
	struct buf text;
	struct err err;
};

static void keep_save(struct docker_keep *k);

static void encode(const struct docker_keep *k, struct buf *out)
{
	struct arena *a = arena_new(ARENA_MAX);
	struct row *rows = arena_array_of(a, struct row, k->n + 1);

	for (size_t i = 0; i < k->n; i++) {
		const struct docker_kept *x = &k->all[i];
		struct str *names = arena_array_of(a, struct str, DOCKER_KEEP_NAMES);
		struct str *attempts = arena_array_of(a, struct str, x->n_attempts + 1);
		for (size_t j = 0; j < x->n_names; j++)
			names[j] = str_c(x->names[j]);
		for (size_t j = 0; j < x->n_attempts; j++)
			attempts[j] = str_c(x->attempts[j]);
		rows[i] = (struct row){ str_c(x->id), { names, x->n_names },
			{ attempts, x->n_attempts }, x->size, x->used_at };
	}
	const struct table t = { { rows, k->n } };
	field_encode(table_fields, &t, out);
	arena_drop(a);
}

static void write_free(struct keep_write *w)
{
	buf_done(&w->text);
	mem_free(w->path);
	mem_free(w);
}

static void run_write(void *arg)
{
	struct keep_write *w = arg;

	w->err.code = ERR_OK;
	(void)!fs_write_atomic(w->path, buf_str(&w->text), 0600, &w->err);
}

static void on_written(void *arg)
{
	struct keep_write *w = arg;
	struct docker_keep *k = w->k;

	if (w->err.code != ERR_OK)
		log_warn("the list of pulled images is not stored", LOG_E(&w->err));
	write_free(w);
	if (k == NULL)
		return;
	k->write = NULL;
	if (k->changed)
		keep_save(k);
}

static void keep_save(struct docker_keep *k)
{
	struct keep_write *w;
	struct err e;

	k->changed = true;
	if (k->write != NULL)
		return;
	w = mem_new_of(struct keep_write);
	w->k = k;
	w->path = mem_dup(k->path);
	buf_init(&w->text, FILE_MAX);
	encode(k, &w->text);
	if (buf_failed(&w->text) || work_submit(k->loop, run_write, on_written, w, &e) < 0) {
		write_free(w); /* with the next change */
		return;
	}
	k->changed = false;
	k->write = w;
}

/* ---- the table ------------------------------------------------------------------------------ */

static struct docker_kept *find(const struct docker_keep *k, const char *id)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->all[i].id, id) == 0)
			return &k->all[i];
	return NULL;
}

static struct docker_kept *add(struct docker_keep *k, struct str id)
{
	if (k->n == DOCKER_KEEP_MAX) {
		if (!k->full)
			log_warn("so many images were pulled that no more are kept in mind",
				LOG_I("images", DOCKER_KEEP_MAX));
		k->full = true;
		return NULL;
	}
	k->all = mem_resize(k->all, k->n + 1, sizeof *k->all);
	struct docker_kept *x = &k->all[k->n++];
	*x = (struct docker_kept){ .n_names = 0 };
	(void)str_print(x->id, sizeof x->id, "%.*s", STR_ARG(id));
	return x;
}

static void add_name(struct docker_kept *x, struct str name)
{
	for (size_t i = 0; i < x->n_names; i++)
		if (str_is(name, x->names[i]))
			return;
	if (x->n_names < DOCKER_KEEP_NAMES)
		(void)str_print(x->names[x->n_names++], DOCKER_IMAGE_MAX, "%.*s", STR_ARG(name));
}

static bool uses(const struct docker_kept *x, const char *attempt)
{
	for (size_t i = 0; i < x->n_attempts; i++)
		if (strcmp(x->attempts[i], attempt) == 0)
			return true;
	return false;
}

static void add_attempt(struct docker_kept *x, struct str attempt)
{
	if (uses(x, attempt.p) || x->n_attempts == ATTEMPTS_MAX)
		return;
	if (x->n_attempts == x->cap) {
		x->cap = x->cap != 0 ? 2 * x->cap : 4;
		x->attempts = mem_resize(x->attempts, x->cap, sizeof *x->attempts);
	}
	(void)str_print(x->attempts[x->n_attempts++], RUNTIME_ID_MAX, "%.*s", STR_ARG(attempt));
}

static bool is_here(const char *folder, struct str attempt)
{
	char path[PATH_MAX];

	return str_print(path, sizeof path, "%s/%.*s", folder, STR_ARG(attempt)) &&
	       access(path, F_OK) == 0;
}

static void take_row(struct docker_keep *k, const struct row *r, const char *attempts)
{
	struct docker_kept *x = find(k, r->id.p) == NULL ? add(k, r->id) : NULL;

	if (x == NULL)
		return;
	x->size = r->size;
	x->used_at = r->used_at;
	for (size_t i = 0; i < r->names.n; i++)
		add_name(x, *list_at(&r->names, struct str, i));
	for (size_t i = 0; i < r->attempts.n; i++)
		if (is_here(attempts, *list_at(&r->attempts, struct str, i)))
			add_attempt(x, *list_at(&r->attempts, struct str, i));
}

void docker_keep_open(
	struct docker_keep *k, struct loop *loop, const char *path, const char *attempts)
{
	struct arena *a;
	struct table t;
	struct buf text;
	struct err e;

	*k = (struct docker_keep){ .loop = loop, .path = path != NULL ? mem_dup(path) : NULL };
	if (path == NULL)
		return;
	a = arena_new(ARENA_MAX);
	buf_init(&text, FILE_MAX);
	if (fs_read(path, &text, &e) < 0) {
		if (e.code != ERR_NOT_FOUND)
			log_warn("the list of pulled images cannot be read: none of them will be "
				 "removed",
				LOG_E(&e));
	} else if (field_decode_reply(table_fields, buf_str(&text), a, &t, &e) < 0) {
		log_warn("the list of pulled images is damaged: none of them will be removed",
			LOG_S("file", path), LOG_E(&e));
	} else {
		for (size_t i = 0; i < t.images.n; i++)
			take_row(k, list_at(&t.images, struct row, i), attempts);
	}
	buf_done(&text);
	arena_drop(a);
}

void docker_keep_close(struct docker_keep *k)
{
	struct keep_write last = { .path = k->path };

	if (k->write != NULL)
		k->write->k = NULL;
	/* Not beside one that is on its way: they would share a file. */
	if (k->changed && k->write == NULL) {
		buf_init(&last.text, FILE_MAX);
		encode(k, &last.text);
		if (!buf_failed(&last.text))
			run_write(&last);
		buf_done(&last.text);
	}
	for (size_t i = 0; i < k->n; i++)
		mem_free(k->all[i].attempts);
	mem_free(k->all);
	mem_free(k->path);
}

/* Never before an earlier use: the calendar may be set back, and the order is what counts. */
static int64_t use_time(const struct docker_keep *k)
{
	int64_t now = clock_now(&clock_real);

	for (size_t i = 0; i < k->n; i++)
		if (k->all[i].used_at >= now)
			now = k->all[i].used_at + 1;
	return now;
}

void docker_keep_pulled(struct docker_keep *k, const char *id, const char *name, int64_t size)
{
	struct docker_kept *x;

	if (k->path == NULL)
		return;
	x = find(k, id);
	if (x == NULL)
		x = add(k, str_c(id));
	if (x == NULL)
		return;
	add_name(x, str_c(name));
	x->size = size;
	x->used_at = use_time(k);
	keep_save(k);
}

void docker_keep_use(struct docker_keep *k, const char *id, const char *attempt)
{
	struct docker_kept *x = find(k, id);

	if (x == NULL)
		return;
	add_attempt(x, str_c(attempt));
	x->used_at = use_time(k);
	keep_save(k);
}

void docker_keep_drop(struct docker_keep *k, const char *attempt)
{
	bool any = false;

	for (size_t i = 0; i < k->n; i++) {
		struct docker_kept *x = &k->all[i];
		for (size_t j = 0; j < x->n_attempts; j++) {
			if (strcmp(x->attempts[j], attempt) != 0)
				continue;
			memmove(x->attempts[j], x->attempts[--x->n_attempts], RUNTIME_ID_MAX);
			x->used_at = use_time(k);
			any = true;
			break;
		}
	}
	if (any)
		keep_save(k);
}

struct docker_kept *docker_keep_oldest(struct docker_keep *k)
{
	struct docker_kept *oldest = NULL;

	for (size_t i = 0; i < k->n; i++) {
		struct docker_kept *x = &k->all[i];
		if (x->n_attempts == 0 && !x->passed &&
			(oldest == NULL || x->used_at < oldest->used_at))
			oldest = x;
	}
	return oldest;
}

void docker_keep_unname(struct docker_keep *k, struct docker_kept *x, const char *name)
{
	for (size_t i = 0; i < x->n_names; i++) {
		if (strcmp(x->names[i], name) != 0)
			continue;
		memmove(x->names + i, x->names + i + 1, (--x->n_names - i) * sizeof x->names[0]);
		break;
	}
	if (x->n_names == 0) {
		mem_free(x->attempts);
		*x = k->all[--k->n];
	}
	keep_save(k);
}
