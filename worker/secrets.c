#include "worker/secrets.h"

#include "lib/base/mem.h"
#include "lib/crypto/hash.h"
#include "worker/ship/mask.h"
#include "worker/task.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct secrets {
	size_t n;
	struct buf values[SECRETS_MAX];
};

const char *secrets_file(struct arena *a, struct str name)
{
	return arena_printf(a, "secret.%.*s", STR_ARG(name)).p;
}

void secrets_free(struct secrets *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++) {
		if (s->values[i].p != NULL)
			mem_wipe(s->values[i].p, s->values[i].cap);
		buf_done(&s->values[i]);
	}
	mem_free(s);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int check_file(const struct stat *st, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_INVALID, "is no plain file");
	if ((st->st_mode & 077) != 0 || (st->st_uid != geteuid() && st->st_uid != 0))
		return err_set(e, ERR_INVALID,
			"can be read by others than the worker's user: its mode must be 0600");
	if (st->st_size == 0 || st->st_size > SECRET_BYTES_MAX)
		return err_set(e, ERR_INVALID, "must have 1 to %d bytes", SECRET_BYTES_MAX);
	return 0;
}

static int read_all(int fd, struct buf *out, struct err *e)
{
	for (;;) {
		char *room = buf_room(out, 4096);
		ssize_t got = room != NULL ? read(fd, room, 4096) : 0;
		if (room == NULL)
			return err_set(e, ERR_INVALID, "must have 1 to %d bytes", SECRET_BYTES_MAX);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(e, ERR_IO, "cannot be read");
		if (got == 0)
			return 0;
		buf_grew(out, (size_t)got);
	}
}

/* A variable ends where a NUL would be; the newline that an editor leaves is no part of it. */
static int as_variable(struct buf *value, struct err *e)
{
	if (value->n > 0 && value->p[value->n - 1] == '\n')
		value->n--;
	if (memchr(value->p, '\0', value->n) != NULL)
		return err_set(e, ERR_INVALID, "holds a NUL, so it can only be given as a file");
	return 0;
}

static int read_one(const char *dir, const struct secret_use *use, struct buf *out, struct err *e)
{
	struct stat st;
	int rc = -1;
	int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = folder >= 0 ? openat(folder, use->name.p,
				       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
			     : -1;

	if (fd < 0)
		(void)err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID,
			errno == ENOENT ? "is not on this worker" : "cannot be opened");
	else if (fstat(fd, &st) == 0 && check_file(&st, e) == 0)
		rc = read_all(fd, out, e);
	if (rc == 0 && use->as == SECRET_ENV)
		rc = as_variable(out, e);
	if (fd >= 0)
		(void)close(fd);
	if (folder >= 0)
		(void)close(folder);
	return rc;
}

/* Line by line: of a key that is printed, each line stands alone. One that is too short to be
 * hidden is passed over. */
static bool next_hidden(struct str *rest, struct str *line)
{
	while (str_next(rest, '\n', line)) {
		if (line->n > 0 && line->p[line->n - 1] == '\r')
			line->n--;
		if (line->n >= MASK_MIN)
			return true;
	}
	return false;
}

/* What could not be hidden in the log is not given to a command. */
static int count_parts(struct str value, size_t *parts, struct err *e)
{
	struct str line;

	while (next_hidden(&value, &line))
		*parts += mask_parts(line);
	if (*parts > MASK_PARTS_MAX)
		return err_set(e, ERR_TOO_LARGE,
			"cannot be hidden in the log: the step's secrets have more than %d parts "
			"(lines of %d bytes or more, one for each %d bytes of a line)",
			MASK_PARTS_MAX - 1, MASK_MIN, MASK_MAX);
	return 0;
}

int secrets_read(const struct worker_conf *conf, const struct assignment *task,
	struct secrets **ret, struct err *e)
{
	struct secrets *s;
	char dir[512];
	struct err why = { .code = ERR_OK };
	size_t parts = mask_parts(task->token);
	bool fits;

	*ret = NULL;
	if (task->secrets.n == 0)
		return 0;
	if (conf->step_secrets_dir.n == 0)
		return err_set(e, ERR_NOT_FOUND,
			"the step wants secrets, and this worker has none (step-secrets-dir)");
	fits = str_print(dir, sizeof dir, "%s/%s", conf->step_secrets_dir.p, task->project.p);
	s = mem_new_of(struct secrets);
	for (size_t i = 0; fits && i < task->secrets.n && i < SECRETS_MAX; i++) {
		const struct secret_use *use = list_at(&task->secrets, struct secret_use, i);
		buf_init(&s->values[s->n++], SECRET_BYTES_MAX + 4096);
		if (str_is_name(use->name) && read_one(dir, use, &s->values[i], &why) == 0 &&
			count_parts(buf_str(&s->values[i]), &parts, &why) == 0)
			continue;
		secrets_free(s);
		return err_set(e, why.code == ERR_OK ? ERR_INVALID : why.code,
			"the secret %.63s of project %.63s %s", use->name.p, task->project.p,
			why.code == ERR_OK ? "has no usable name" : why.msg);
	}
	*ret = s;
	return 0;
}

/* ---- what is made of them ------------------------------------------------------------------- */

struct str secrets_digest(const struct secrets *s, struct arena *a)
{
	unsigned char digest[HASH_SIZE];
	char hex[HASH_HEX + 1];
	struct hash *h;

	if (s == NULL)
		return STR("");
	h = hash_new();
	for (size_t i = 0; i < s->n; i++) {
		uint64_t n = s->values[i].n;
		hash_add(h, (struct str){ (const char *)&n, sizeof n });
		hash_add(h, buf_str(&s->values[i]));
	}
	hash_end(h, digest);
	hash_free(h);
	return arena_str(a, str_c(hash_hex(hex, digest)));
}

struct list secrets_hidden(const struct secrets *s, struct arena *a)
{
	struct str *all = arena_array_of(a, struct str, MASK_PARTS_MAX), rest, line;
	size_t n = 0;

	for (size_t i = 0; s != NULL && i < s->n; i++) {
		rest = buf_str(&s->values[i]);
		while (n < MASK_PARTS_MAX && next_hidden(&rest, &line))
			all[n++] = line;
	}
	return (struct list){ all, n };
}

void secrets_spec(const struct secrets *s, const struct assignment *task, struct arena *a,
	struct runtime_spec *spec)
{
	size_t files = spec->n_secrets, variables = 0;

	if (s == NULL)
		return;
	while (spec->secret_env != NULL && spec->secret_env[variables] != NULL)
		variables++;
	struct runtime_secret *f = arena_array_of(a, struct runtime_secret, files + s->n);
	const char **env = arena_array_of(a, const char *, variables + s->n + 1);
	if (files != 0)
		memcpy(f, spec->secrets, files * sizeof *f);
	if (variables != 0)
		memcpy(env, spec->secret_env, variables * sizeof *env);
	for (size_t i = 0; i < s->n; i++) {
		const struct secret_use *use = list_at(&task->secrets, struct secret_use, i);
		struct str value = buf_str(&s->values[i]);
		if (use->as == SECRET_FILE)
			f[files++] = (struct runtime_secret){ secrets_file(a, use->name), value };
		else
			env[variables++] = arena_printf(a, "%s=%.*s",
				task_variable(a, "TIDEMILL_SECRET_", use->name), STR_ARG(value))
						   .p;
	}
	spec->secrets = f;
	spec->n_secrets = files;
	spec->secret_env = env;
}
