/* model alias, monitor, drift */
#include "cli/document.h"
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/crypto/hash.h"
#include "lib/zip/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_SHOWN = 10, DEPTH_SHOWN = 6, READ_SIZE = 1 << 16, UNPACKED_MAX_GB = 64 };

/* ---- model alias set ------------------------------------------------------------------------- */

/* The ETag of the alias as it is, STR_NONE when there is none. */
static int alias_etag(struct cli *c, struct str *ret, struct err *e)
{
	struct api_call q = { .route = "aliases.get", .params = { cli_arg(c, 0), cli_arg(c, 1) } };
	struct api_reply r;

	*ret = STR_NONE;
	if (api_do(c, &q, &r, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	*ret = arena_str(c->arena, r.etag);
	api_done(&r);
	return 0;
}

int cmd_alias_set(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route, .params = { cli_arg(c, 0), cli_arg(c, 1) } };
	struct send s;
	int64_t number;

	if (!num_parse_i64(cli_arg(c, 2), 1, INT64_MAX, &number))
		return cli_usage(e, "NUMBER must be the number of a version, not '%s'", c->args[2]);
	if (cli_has(c, "force") && !cli_has(c, "note"))
		return cli_usage(e, "--force needs --note, which says why");
	if (alias_etag(c, &q.if_match, e) < 0)
		return -1;
	send_init(&s);
	jsn_key(&s.w, "version");
	jsn_int(&s.w, number);
	send_flag(&s, c, "note");
	if (cli_has(c, "force")) {
		jsn_key(&s.w, "force");
		jsn_bool(&s.w, true);
	}
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_packed(struct str path)
{
	return str_ends(path, STR(".gz"));
}

static const char *type_of(struct str path)
{
	if (is_packed(path))
		path = str_slice(path, 0, path.n - 3);
	if (str_ends(path, STR(".ndjson")) || str_ends(path, STR(".jsonl")))
		return "application/x-ndjson";
	return "text/csv";
}

static ssize_t read_some(int fd, char *room)
{
	ssize_t got;

	do
		got = read(fd, room, READ_SIZE);
	while (got < 0 && errno == EINTR);
	return got;
}

/* A file without a name, which is gone with its descriptor. */
static int open_scratch(int *ret, struct err *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	if (folder == NULL || folder[0] == '\0')
		folder = "/tmp";
	if (!str_print(path, sizeof path, "%s/tidemill-XXXXXX", folder))
		return err_set(e, ERR_INVALID, "TMPDIR is too long");
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, "make a file in", folder);
	(void)unlink(path);
	*ret = fd;
	return 0;
}

static int on_unpacked(void *arg, struct str piece, struct err *e)
{
	const int *to = arg;

	return fs_write_all(*to, piece, "the unpacked rows", e);
}

static int unpack(int from, int to, struct err *e)
{
	struct gunzip *g = gunzip_new((uint64_t)UNPACKED_MAX_GB << 30);
	char *room = mem_new(1, READ_SIZE);
	ssize_t got;
	int rc = 0;

	while (rc == 0 && (got = read_some(from, room)) != 0)
		rc = got < 0 ? err_errno(e, "read", "the packed rows")
			     : gunzip_add(
				       g, (struct str){ room, (size_t)got }, on_unpacked, &to, e);
	if (rc == 0)
		rc = gunzip_end(g, e);
	mem_free(room);
	gunzip_free(g);
	return rc;
}

/* The rows as they are sent: of a packed file what is in it; they begin at the descriptor. */
static int open_rows(const struct cli *c, int64_t *ret_length, int *ret_fd, struct err *e)
{
	const struct document d = { .file = cli_arg(c, 1) };
	struct stat st;
	int packed, fd = -1;

	if (!is_packed(d.file))
		return cli_open(c->args[1], ret_length, ret_fd, e);
	if (cli_open(c->args[1], ret_length, &packed, e) < 0)
		return -1;
	int rc = open_scratch(&fd, e);
	if (rc == 0 && unpack(packed, fd, e) < 0)
		rc = document_name(&d, e);
	if (rc == 0 && (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		rc = err_errno(e, "read", c->args[1]);
	(void)close(packed);
	if (rc == 0) {
		*ret_length = st.st_size;
		*ret_fd = fd;
	} else if (fd >= 0) {
		(void)close(fd);
	}
	return rc;
}

/* Sent twice, the same rows are the same batch, packed or not. */
static int batch_of(struct cli *c, int fd, struct str *ret, struct err *e)
{
	unsigned char digest[HASH_SIZE];
	char hex[HASH_HEX + 1], *room;
	struct hash *h;
	ssize_t got;

	*ret = cli_text(c, "batch");
	if (ret->p != NULL)
		return 0;
	h = hash_new();
	room = mem_new(1, READ_SIZE);
	while ((got = read_some(fd, room)) > 0)
		hash_add(h, (struct str){ room, (size_t)got });
	hash_end(h, digest);
	hash_free(h);
	mem_free(room);
	if (got < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(e, "read", c->args[1]);
	*ret = arena_str(c->arena, str_c(hash_hex(hex, digest)));
	return 0;
}

/* Rows that were sent and are not there do not go unsaid. */
static void warn_left_out(const struct cli *c, const struct jsn *r)
{
	int64_t late = jsn_get_int(jsn_get(r, "late"), 0);
	int64_t unknown = jsn_get_int(jsn_get(r, "unknown"), 0);
	struct str horizon = jsn_get_str(jsn_get(r, "horizon"));

	if (late > 0)
		cli_say(c, "Warning: too late and left out: %lld%s%.*s", (long long)late,
			horizon.n != 0 ? ", of windows that ended before " : "", STR_ARG(horizon));
	if (unknown > 0)
		cli_say(c, "Warning: labels of rows that are not there: %lld", (long long)unknown);
}

static int send_batch(struct cli *c, const struct api_call *q, struct err *e)
{
	struct api_reply r;

	if (api_do(c, q, &r, e) < 0)
		return -1;
	int rc = view_object(c, c->cmd->view, r.body, r.root, e);
	warn_left_out(c, r.root);
	api_done(&r);
	return rc;
}

/* What the server found wrong in the rows, which names line and column itself. */
static void blame_file(const struct cli *c, struct err *e)
{
	const struct document d = { .file = cli_arg(c, 1) };

	if (c->status < 400 || (e->code != ERR_INVALID && e->code != ERR_MALFORMED))
		return;
	if (str_starts(str_c(e->msg), STR("line ")))
		e->field[0] = '\0';
	(void)document_name(&d, e);
}

/* Its batch makes a repetition harmless. */
static int send_rows(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route,
		.params = { cli_arg(c, 0) },
		.has_fd = true,
		.content_type = type_of(cli_arg(c, 1)),
		.repeatable = true,
		.timeout = -1,
		.idle = 60 * INT64_C(1000000) };
	struct str batch;

	if (open_rows(c, &q.length, &q.fd, e) < 0)
		return -1;
	int rc = batch_of(c, q.fd, &batch, e);
	if (rc == 0) {
		q.query[0] = (struct api_pair){ "batch", batch };
		rc = send_batch(c, &q, e);
	}
	if (rc < 0)
		blame_file(c, e);
	(void)close(q.fd);
	return rc;
}

int cmd_monitor_observe(struct cli *c, struct err *e)
{
	return send_rows(c, e);
}

int cmd_monitor_labels(struct cli *c, struct err *e)
{
	return send_rows(c, e);
}

/* ---- close, mute ----------------------------------------------------------------------------- */

int cmd_monitor_close(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	char now[CLOCK_TEXT_MAX];
	struct send s;

	if (cli_has(c, "start") && cli_has(c, "before"))
		return cli_usage(e, "give --start or --before, not both");
	send_init(&s);
	send_flag(&s, c, "start");
	send_flag(&s, c, "before");
	if (!cli_has(c, "start") && !cli_has(c, "before"))
		send_str(&s, "before", str_c(clock_format(now, clock_now(&clock_real))));
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

/* What would go is asked first, and said. A window that is named must be there. */
static int ask_forget(struct cli *c, const struct api_call *q, struct err *e)
{
	struct api_call dry = *q;
	struct api_reply r;

	dry.query[0] = (struct api_pair){ "dry_run", STR("true") };
	if (api_do(c, &dry, &r, e) < 0)
		return -1;
	int64_t windows = jsn_get_int(jsn_get(r.root, "windows"), 0);
	int64_t rows = jsn_get_int(jsn_get(r.root, "rows"), 0);
	int64_t decisions = jsn_get_int(jsn_get(r.root, "decisions"), 0);
	struct str what = arena_printf(c->arena,
		"forget %lld window%s with %lld row%s and %lld decision%s", (long long)windows,
		num_plural((uint64_t)windows), (long long)rows, num_plural((uint64_t)rows),
		(long long)decisions, num_plural((uint64_t)decisions));
	api_done(&r);
	if (windows == 0 && cli_has(c, "start"))
		return err_set(e, ERR_NOT_FOUND, "no window of the monitor starts at %.*s",
			STR_ARG(cli_text(c, "start")));
	return cli_has(c, "dry-run") ? 0 : cli_confirm(c, what.p, e);
}

int cmd_monitor_forget(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct send s;

	if (cli_has(c, "start") ? cli_has(c, "from") || cli_has(c, "to")
				: !cli_has(c, "from") || !cli_has(c, "to"))
		return cli_usage(e, "give --start, or --from and --to");
	send_init(&s);
	send_flag(&s, c, "start");
	send_flag(&s, c, "from");
	send_flag(&s, c, "to");
	q.body = send_end(&s);
	int rc = ask_forget(c, &q, e);
	if (rc == 0)
		rc = generic_object(c, &q, e);
	send_done(&s);
	return rc;
}

int cmd_monitor_mute(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct send s;

	if (!cli_has(c, "until") || !cli_has(c, "reason"))
		return cli_usage(e, "give --until and --reason");
	send_init(&s);
	send_flag(&s, c, "feature");
	send_flag(&s, c, "until");
	send_flag(&s, c, "reason");
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

/* ---- drift explain --------------------------------------------------------------------------- */

static enum cell_place place_of(const struct cli *c)
{
	return c->tty ? CELL_FIELD : CELL_EXACT;
}

static bool is_tree(const struct jsn *v)
{
	return jsn_type(v) == JSN_OBJ ||
	       (jsn_type(v) == JSN_LIST && jsn_type(jsn_at(v, 0)) == JSN_OBJ);
}

/* An object of a list on one line. */
static void put_row(const struct cli *c, const struct jsn *v, int depth, struct buf *out)
{
	buf_addf(out, "%*s", depth * 2, "");
	cell_add(place_of(c), jsn_type(v) == JSN_OBJ ? COLUMN_PAIRS : COLUMN_TEXT, v, out);
	buf_addc(out, '\n');
}

static void put_rows(const struct cli *c, const struct jsn *list, int depth, struct buf *out)
{
	size_t n = jsn_count(list);

	for (size_t i = 0; i < n && i < ROWS_SHOWN; i++)
		put_row(c, jsn_at(list, i), depth, out);
	if (n > ROWS_SHOWN)
		buf_addf(out, "%*sand %zu more\n", depth * 2, "", n - ROWS_SHOWN);
}

/* Members of an object, one a line, those that are objects or lists of objects below their name. */
static void put_tree(const struct cli *c, const struct jsn *v, int depth, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *m = jsn_at(v, i);
		bool nested = is_tree(m) && depth < DEPTH_SHOWN;
		buf_addf(out, "%*s%.*s%s", depth * 2, "", STR_ARG(jsn_name(m)),
			nested ? "\n" : ": ");
		if (nested && jsn_type(m) == JSN_OBJ) {
			put_tree(c, m, depth + 1, out);
		} else if (nested) {
			put_rows(c, m, depth + 1, out);
		} else {
			cell_add(place_of(c), COLUMN_TEXT, m, out);
			buf_addc(out, '\n');
		}
	}
}

static void put_cell(const struct cli *c, struct buf *out, const struct jsn *d, const char *name,
	enum column_kind kind)
{
	cell_add(place_of(c), kind, jsn_get(d, name), out);
}

static void put_head(const struct cli *c, struct buf *out, const struct jsn *d)
{
	buf_adds(out, "Monitor ");
	put_cell(c, out, d, "monitor", COLUMN_TEXT);
	buf_adds(out, ", window ");
	put_cell(c, out, d, "window_start", COLUMN_DATE);
	buf_adds(out, " to ");
	put_cell(c, out, d, "window_end", COLUMN_DATE);
	buf_adds(out, ", cause ");
	put_cell(c, out, d, "cause", COLUMN_TEXT);
	buf_adds(out, "\n\n");
	put_cell(c, out, d, "reason", COLUMN_TEXT);
	buf_adds(out, "\n\nAction: ");
	put_cell(c, out, d, "action", COLUMN_TEXT);
	if (jsn_get_bool(jsn_get(d, "fired"), false)) {
		buf_adds(out, ", taken");
	} else {
		buf_adds(out, ", not taken");
		if (jsn_get_str(jsn_get(d, "suppressed_by")).n != 0)
			buf_adds(out, ": ");
		put_cell(c, out, d, "suppressed_by", COLUMN_TEXT);
	}
	buf_addc(out, '\n');
}

static void put_run(const struct cli *c, struct buf *out, const struct jsn *d)
{
	if (jsn_get_str(jsn_get(d, "run_id")).n == 0)
		return;
	buf_adds(out, "Retraining: ");
	put_cell(c, out, d, "run_id", COLUMN_TEXT);
	buf_addc(out, ' ');
	put_cell(c, out, d, "run_state", COLUMN_TEXT);
	if (jsn_get_str(jsn_get(d, "model_version")).n != 0) {
		buf_adds(out, ", model ");
		put_cell(c, out, d, "model_version", COLUMN_TEXT);
		buf_addc(out, ' ');
		put_cell(c, out, d, "verdict", COLUMN_TEXT);
	}
	buf_addc(out, '\n');
}

int cmd_drift_explain(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct api_reply r;
	struct buf text;

	if (c->output != OUTPUT_TABLE)
		return generic_object(c, &q, e);
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	buf_init(&text, 16 << 20);
	put_head(c, &text, r.root);
	put_run(c, &text, r.root);
	if (jsn_count(jsn_get(r.root, "inputs")) > 0) {
		buf_adds(&text, "\nIt rests on:\n");
		put_tree(c, jsn_get(r.root, "inputs"), 1, &text);
	}
	if (jsn_count(jsn_get(r.root, "outcome")) > 0) {
		buf_adds(&text, "\nWhat came of it:\n");
		put_tree(c, jsn_get(r.root, "outcome"), 1, &text);
	}
	int rc = view_print(buf_str(&text), e);
	buf_done(&text);
	api_done(&r);
	return rc < 0 ? -1 : view_flush(e);
}
