#include "worker/holds.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "worker/cache.h"

#include <limits.h>
#include <unistd.h>

enum { ITEMS_MAX = HOLDS_MAX / 2, FILE_MAX = 1 << 20, FILE_ARENA = 8 << 20 };
#define AGAIN_AFTER (10 * CLOCK_MINUTE) /* so that whoever has lost it learns it anew */

struct item {
	char name[512];
	int64_t bytes;
	char files[HOLD_FILES][HOLD_DIGEST]; /* "": none */
};

/* The same in the file. */
struct line {
	int kind;
	struct str name;
	int64_t bytes;
	struct list files; /* struct str */
};
struct lines {
	struct list items;
};

#define AT(member) offsetof(struct THIS, member)
#define THIS       line
static const struct field line_fields[] = {
	{ "kind", FIELD_ENUM, FIELD_REQUIRED, AT(kind), .names = hold_kind_names,
		.doc = "What it is" },
	{ "name", FIELD_STR, FIELD_REQUIRED, AT(name), .min = 1, .max = 511,
		.doc = "As it is told" },
	{ "bytes", FIELD_INT, FIELD_REQUIRED, AT(bytes), .max = INT64_MAX, .doc = "Its size" },
	{ "files", FIELD_LIST, FIELD_OMIT_EMPTY, AT(files), .item = FIELD_STR,
		.item_max = HOLD_DIGEST - 1, .max = HOLD_FILES, .doc = "The largest, by digest" },
	{ 0 },
};
#undef THIS
#define THIS lines
static const struct field lines_fields[] = {
	{ "items", FIELD_LIST, FIELD_REQUIRED, AT(items), .sub = line_fields,
		.size = sizeof(struct line), .max = HOLDS_MAX, .doc = "Those used last first" },
	{ 0 },
};
#undef THIS

struct hold_list {
	const char *dir;
	const struct cache *cache;
	struct item *items[HOLD_KIND_COUNT]; /* ITEMS_MAX of each kind */
	size_t n[HOLD_KIND_COUNT];
	uint64_t turn;
	int64_t turned_at;
};

void hold_data_add(struct hold_data *d, const struct file *f)
{
	int at = HOLD_FILES;

	d->bytes += f->size;
	while (at > 0 && f->size > d->largest[at - 1].size)
		at--;
	if (at == HOLD_FILES)
		return;
	memmove(&d->largest[at + 1], &d->largest[at],
		(size_t)(HOLD_FILES - 1 - at) * sizeof d->largest[0]);
	(void)str_print(d->largest[at].digest, HOLD_DIGEST, "%.*s", STR_ARG(f->digest));
	d->largest[at].size = f->size;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void put_items(const struct hold_list *h, struct arena *a, struct lines *ret)
{
	struct line *all = arena_array_of(a, struct line, (size_t)HOLDS_MAX);

	*ret = (struct lines){ { all, 0 } };
	for (int kind = 0; kind < HOLD_KIND_COUNT; kind++)
		for (size_t i = 0; i < h->n[kind]; i++) {
			const struct item *x = &h->items[kind][i];
			struct str *files = arena_array_of(a, struct str, (size_t)HOLD_FILES);
			struct line *l = &all[ret->items.n++];
			*l = (struct line){ kind, str_c(x->name), x->bytes, { files, 0 } };
			for (int f = 0; f < HOLD_FILES && x->files[f][0] != '\0'; f++)
				files[l->files.n++] = str_c(x->files[f]);
		}
}

static void save(const struct hold_list *h)
{
	struct arena *a = arena_new(FILE_ARENA);
	char path[PATH_MAX];
	struct lines lines;
	struct buf text;
	struct err e;

	buf_init(&text, FILE_MAX);
	put_items(h, a, &lines);
	field_encode(lines_fields, &lines, &text);
	if (str_print(path, sizeof path, "%s/holds.json", h->dir) && !buf_failed(&text) &&
		fs_write_atomic(path, buf_str(&text), 0600, &e) < 0)
		log_warn("what this host holds is not written down", LOG_E(&e));
	buf_done(&text);
	arena_drop(a);
}

static void read_line(struct hold_list *h, const struct line *l)
{
	struct item *x = &h->items[l->kind][h->n[l->kind]];

	if (h->n[l->kind] == ITEMS_MAX)
		return;
	h->n[l->kind]++;
	*x = (struct item){ .bytes = l->bytes };
	(void)str_print(x->name, sizeof x->name, "%.*s", STR_ARG(l->name));
	for (size_t f = 0; f < l->files.n; f++)
		(void)str_print(x->files[f], HOLD_DIGEST, "%.*s",
			STR_ARG(*list_at(&l->files, struct str, f)));
}

/* What cannot be read was never there. */
static void load(struct hold_list *h)
{
	struct arena *a = arena_new(FILE_ARENA);
	char path[PATH_MAX];
	struct lines lines;
	struct buf text;
	struct err e;

	buf_init(&text, FILE_MAX);
	if (str_print(path, sizeof path, "%s/holds.json", h->dir) &&
		fs_read(path, &text, &e) == 0 &&
		field_decode_reply(lines_fields, buf_str(&text), a, &lines, &e) == 0)
		for (size_t i = 0; i < lines.items.n; i++)
			read_line(h, list_at(&lines.items, struct line, i));
	buf_done(&text);
	arena_drop(a);
}

struct hold_list *holds_new(const char *dir, const struct cache *cache)
{
	struct hold_list *h = mem_new_of(struct hold_list);

	*h = (struct hold_list){ .dir = dir, .cache = cache, .turn = 1 };
	for (int kind = 0; kind < HOLD_KIND_COUNT; kind++)
		h->items[kind] = mem_new(ITEMS_MAX, sizeof(struct item));
	load(h);
	return h;
}

void holds_free(struct hold_list *h)
{
	if (h == NULL)
		return;
	for (int kind = 0; kind < HOLD_KIND_COUNT; kind++)
		mem_free(h->items[kind]);
	mem_free(h);
}

/* ---- use ------------------------------------------------------------------------------------- */

/* To the front; who was used longest ago makes room. Nothing changes when it is there already. */
static void use(struct hold_list *h, enum hold_kind kind, const struct item *x)
{
	struct item *all = h->items[kind];
	size_t at = 0;

	while (at < h->n[kind] && strcmp(all[at].name, x->name) != 0)
		at++;
	if (at == 0 && h->n[kind] != 0 && memcmp(&all[0], x, sizeof *x) == 0)
		return;
	if (at == h->n[kind] && at < ITEMS_MAX)
		h->n[kind]++;
	else if (at == ITEMS_MAX)
		at--;
	memmove(&all[1], &all[0], at * sizeof *all);
	all[0] = *x;
	h->turn++;
	save(h);
}

void holds_image(struct hold_list *h, struct str image, int64_t bytes)
{
	struct item x;

	memset(&x, 0, sizeof x);
	x.bytes = bytes;
	if (image.n != 0 && str_print(x.name, sizeof x.name, "%.*s", STR_ARG(image)))
		use(h, HOLD_IMAGE, &x);
}

void holds_data(struct hold_list *h, const struct hold_data *d)
{
	struct item x;

	memset(&x, 0, sizeof x);
	x.bytes = d->bytes;
	for (int i = 0; i < HOLD_FILES; i++)
		(void)str_print(x.files[i], HOLD_DIGEST, "%s", d->largest[i].digest);
	if (d->version[0] != '\0' && str_print(x.name, sizeof x.name, "%s", d->version))
		use(h, HOLD_DATASET, &x);
}

/* ---- report ---------------------------------------------------------------------------------- */

static bool is_there(const struct hold_list *h, const struct item *x)
{
	char path[CACHE_PATH_MAX];

	for (int i = 0; i < HOLD_FILES && x->files[i][0] != '\0'; i++)
		if (access(cache_path(h->cache, str_c(x->files[i]), path), F_OK) < 0)
			return false;
	return true;
}

uint64_t holds_turn(struct hold_list *h, int64_t now)
{
	if (now - h->turned_at >= AGAIN_AFTER) {
		h->turned_at = now;
		h->turn++;
	}
	return h->turn;
}

void holds_report(struct hold_list *h, struct arena *a, struct holds *ret)
{
	struct hold *all = arena_array_of(a, struct hold, (size_t)HOLDS_MAX);

	*ret = (struct holds){ { all, 0 } };
	for (int kind = 0; kind < HOLD_KIND_COUNT; kind++)
		for (size_t i = 0; i < h->n[kind]; i++) {
			const struct item *x = &h->items[kind][i];
			if (is_there(h, x))
				all[ret->items.n++] = (struct hold){ kind,
					arena_str(a, str_c(x->name)), x->bytes };
		}
}
