#include "lib/base/conf.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/num.h"

#include <stdlib.h>

enum { NAME_MAX_BYTES = 64, FILE_MAX_BYTES = 1 << 20, LIST_ITEMS_MAX = 256 };

struct source {
	const struct conf_row *rows;
	struct str file; /* text of the settings file */
	int argc;
	const char *const *argv;
	struct arena *arena;
};

static void env_name(const char *name, const char *suffix, char out[NAME_MAX_BYTES])
{
	(void)str_print(out, NAME_MAX_BYTES, "TIDEMILL_%s%s", name, suffix);
	for (char *p = out; *p != '\0'; p++) {
		if (*p == '-')
			*p = '_';
		else if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 'a' + 'A');
	}
}

/* "--name=value" or "--name" (true). */
static bool from_options(const struct source *s, const char *name, struct str *ret)
{
	for (int i = s->argc - 1; i >= 0; i--) {
		struct str option = str_c(s->argv[i] + 2);
		ptrdiff_t eq = str_find_char(option, '=');
		struct str key = eq < 0 ? option : str_slice(option, 0, (size_t)eq);
		if (!str_is(key, name))
			continue;
		*ret = eq < 0 ? STR("true") : str_slice(option, (size_t)eq + 1, option.n);
		return true;
	}
	return false;
}

static bool from_file(const struct source *s, const char *name, struct str *ret)
{
	struct str rest = s->file, line;
	bool found = false;

	while (str_next(&rest, '\n', &line)) {
		line = str_trim(line);
		ptrdiff_t eq = str_find_char(line, '=');
		if (eq < 0 || line.p[0] == '#')
			continue;
		if (str_is(str_trim(str_slice(line, 0, (size_t)eq)), name)) {
			*ret = str_trim(str_slice(line, (size_t)eq + 1, line.n));
			found = true;
		}
	}
	return found;
}

/* The value in the file that NAME_FILE names, without its last line end. */
static int from_secret_file(
	const struct source *s, const char *path, struct str *ret, struct err *e)
{
	struct buf b;

	buf_init(&b, 65536);
	int rc = fs_read(path, &b, e);
	struct str text = buf_str(&b);
	while (text.n != 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	if (rc == 0)
		*ret = arena_str(s->arena, text);
	buf_done(&b);
	return rc;
}

static int find_value(const struct source *s, const struct conf_row *row, struct str *ret,
	const char **ret_from, struct err *e)
{
	char name[NAME_MAX_BYTES];
	const char *value;

	*ret_from = "the command line";
	if (from_options(s, row->name, ret)) {
		if (row->type == CONF_SECRET)
			return err_set(e, ERR_INVALID,
				"--%s: a secret on the command line can be read by others; "
				"use the environment or a file",
				row->name);
		return 0;
	}
	*ret_from = "the environment";
	env_name(row->name, "", name);
	if ((value = getenv(name)) != NULL) {
		*ret = str_c(value);
		return 0;
	}
	env_name(row->name, "_FILE", name);
	if (row->type == CONF_SECRET && (value = getenv(name)) != NULL) {
		int rc = from_secret_file(s, value, ret, e);
		if (rc == 0 || !row->used_up || e->code != ERR_NOT_FOUND)
			return rc;
		*ret = STR("");
		return 0;
	}
	*ret_from = "the settings file";
	if (from_file(s, row->name, ret))
		return 0;
	*ret_from = "the default";
	*ret = str_c(row->fallback);
	return 0;
}

static void set_list(struct arena *a, struct str text, struct list *out)
{
	struct str rest = text, piece;

	out->n = 0;
	out->items = arena_array_of(a, struct str, LIST_ITEMS_MAX);
	while (text.n != 0 && out->n < LIST_ITEMS_MAX && str_next(&rest, ',', &piece)) {
		piece = str_trim(piece);
		if (piece.n != 0)
			*list_at(out, struct str, out->n++) = arena_str(a, piece);
	}
}

static bool set_number(const struct conf_row *row, struct str text, int64_t *out)
{
	struct clock_span span;
	uint64_t size;
	int64_t v = 0;

	*out = 0;
	if (text.n == 0)
		return true;
	switch (row->type) {
	case CONF_SIZE:
		if (!num_parse_size(text, &size) || size > INT64_MAX)
			return false;
		v = (int64_t)size;
		break;
	case CONF_SPAN:
		if (!clock_parse_span(text, &span) || span.months != 0)
			return false;
		v = span.us;
		break;
	case CONF_INT:
	case CONF_TEXT:
	case CONF_SECRET:
	case CONF_BOOL:
	case CONF_LIST:
		if (!num_parse_i64(text, INT64_MIN, INT64_MAX, &v))
			return false;
	}
	if ((row->min != 0 || row->max != 0) && (v < row->min || v > row->max))
		return false;
	*out = v;
	return true;
}

static bool set_value(
	const struct source *s, const struct conf_row *row, struct str text, char *out)
{
	void *at = out + row->off;

	switch (row->type) {
	case CONF_TEXT:
	case CONF_SECRET: *(struct str *)at = arena_str(s->arena, text); return true;
	case CONF_BOOL:
		*(bool *)at = str_is(text, "true") || str_is(text, "1");
		return text.n <= 1 ? text.n == 0 || text.p[0] == '0' || text.p[0] == '1'
				   : str_is(text, "true") || str_is(text, "false");
	case CONF_LIST: set_list(s->arena, text, at); return true;
	case CONF_INT:
	case CONF_SIZE:
	case CONF_SPAN: break;
	}
	return set_number(row, text, at);
}

static const struct conf_row *find_row(const struct conf_row *rows, struct str name)
{
	for (; rows->name != NULL; rows++)
		if (str_is(name, rows->name))
			return rows;
	return NULL;
}

/* Options and lines of the file must name a setting that there is. */
static int check_names(const struct source *s, const char *file, struct err *e)
{
	struct str rest = s->file, line;
	int number = 0;

	for (int i = 0; i < s->argc; i++) {
		struct str option = str_c(s->argv[i] + 2);
		ptrdiff_t eq = str_find_char(option, '=');
		if (find_row(s->rows, str_slice(option, 0, eq < 0 ? option.n : (size_t)eq)) == NULL)
			return err_set(e, ERR_INVALID, "unknown option %.80s", s->argv[i]);
	}
	while (str_next(&rest, '\n', &line)) {
		number++;
		line = str_trim(line);
		if (line.n == 0 || line.p[0] == '#')
			continue;
		ptrdiff_t eq = str_find_char(line, '=');
		struct str name = str_trim(str_slice(line, 0, eq < 0 ? line.n : (size_t)eq));
		if (eq < 0 || find_row(s->rows, name) == NULL)
			return err_set(e, ERR_INVALID, "%.120s line %d: no such setting: %.*s",
				file, number, STR_ARG(str_slice(name, 0, 80)));
	}
	return 0;
}

static int read_file(struct source *s, const char *file, struct err *e)
{
	struct buf b;

	if (file == NULL)
		return 0;
	buf_init(&b, FILE_MAX_BYTES);
	int rc = fs_read(file, &b, e);
	if (rc == 0)
		s->file = arena_str(s->arena, buf_str(&b));
	buf_done(&b);
	return rc;
}

int conf_load(const struct conf_row *rows, const char *file, int argc, const char *const *argv,
	int *ret_used, struct arena *a, void *out, struct err *e)
{
	struct source s = { .rows = rows, .argv = argv, .arena = a };

	while (s.argc < argc && argv[s.argc][0] == '-' && argv[s.argc][1] == '-')
		s.argc++;
	if (read_file(&s, file, e) < 0 || check_names(&s, file, e) < 0)
		return -1;
	for (const struct conf_row *row = rows; row->name != NULL; row++) {
		struct str text = STR_NONE;
		const char *from;
		if (find_value(&s, row, &text, &from, e) < 0)
			return -1;
		if (!set_value(&s, row, text, out))
			return err_set(e, ERR_INVALID, "%s from %s is not valid: %s", row->name,
				from, row->doc);
	}
	*ret_used = s.argc;
	return 0;
}

void conf_help(const struct conf_row *rows, struct buf *out)
{
	for (; rows->name != NULL; rows++)
		buf_addf(out, "  --%-24s %s%s%s%s\n", rows->name, rows->doc,
			rows->fallback != NULL ? " (default " : "",
			rows->fallback != NULL ? rows->fallback : "",
			rows->fallback != NULL ? ")" : "");
}

void conf_markdown(const struct conf_row *rows, struct buf *out)
{
	char env[NAME_MAX_BYTES];

	buf_adds(out, "| setting | environment | default | meaning |\n|---|---|---|---|\n");
	for (; rows->name != NULL; rows++) {
		env_name(rows->name, "", env);
		buf_addf(out, "| `%s` | `%s`%s | %s%s%s | %s |\n", rows->name, env,
			rows->type == CONF_SECRET ? " or `…_FILE`" : "",
			rows->fallback != NULL ? "`" : "",
			rows->fallback != NULL ? rows->fallback : "",
			rows->fallback != NULL ? "`" : "", rows->doc);
	}
}
