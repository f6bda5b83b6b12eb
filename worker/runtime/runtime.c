#include "worker/runtime/runtime.h"

#include "worker/runtime/control.h"

enum { PATH_LENGTH_MAX = 512, HOURS_MAX = 24 * 366 };

void runtime_probe(struct runtime *r, runtime_about_cb *done, void *arg)
{
	r->ops->probe(r, done, arg);
}

void runtime_start(struct runtime *r, const struct runtime_spec *s, runtime_note_cb *note,
	runtime_started_cb *done, void *arg)
{
	r->ops->start(r, s, note, done, arg);
}

void runtime_stop(struct runtime *r, const struct runtime_ref *a, enum runtime_stop how,
	runtime_done_cb *done, void *arg)
{
	control_ask(a->ctl);
	r->ops->stop(r, a, how, done, arg);
}

void runtime_poll(
	struct runtime *r, const struct runtime_ref *a, runtime_status_cb *done, void *arg)
{
	r->ops->poll(r, a, done, arg);
}

void runtime_list(struct runtime *r, runtime_list_cb *done, void *arg)
{
	r->ops->list(r, done, arg);
}

void runtime_remove(
	struct runtime *r, const struct runtime_ref *a, runtime_done_cb *done, void *arg)
{
	r->ops->remove(r, a, done, arg);
}

void runtime_free(struct runtime *r)
{
	if (r != NULL)
		r->ops->close(r);
}

const char *runtime_name(const struct runtime *r)
{
	return r->ops->name;
}

const char *runtime_path(const struct runtime *r, const struct runtime_spec *s, enum runtime_dir d)
{
	const char *path = r->ops->path(r, s, d);

	return path != NULL ? path : "";
}

const char *runtime_state_name(enum runtime_state s)
{
	static const char *const names[RUNTIME_STATE_COUNT] = { "gone", "preparing", "waiting",
		"running", "ended" };

	BUG_ON((unsigned)s >= RUNTIME_STATE_COUNT);
	return names[s];
}

const char *runtime_end_name(enum runtime_end x)
{
	static const char *const names[RUNTIME_END_COUNT] = { "none", "exited", "signaled", "oom",
		"not_started", "lost" };

	BUG_ON((unsigned)x >= RUNTIME_END_COUNT);
	return names[x];
}

const char *runtime_killer_name(enum runtime_killer k)
{
	static const char *const names[RUNTIME_KILLER_COUNT] = { "", "tidemill", "kernel", "client",
		"daemon", "host" };

	BUG_ON((unsigned)k >= RUNTIME_KILLER_COUNT);
	return names[k];
}

const char *runtime_image_fault_name(enum runtime_image_fault f)
{
	static const char *const names[RUNTIME_IMAGE_FAULT_COUNT] = { "", "not_found", "denied",
		"unreachable", "damaged", "elsewhere", "no_space", "other" };

	BUG_ON((unsigned)f >= RUNTIME_IMAGE_FAULT_COUNT);
	return names[f];
}

static int check_id(const char *pointer, const char *id, struct err *e)
{
	size_t n = id != NULL ? strlen(id) : 0;

	if (n == 0 || n >= RUNTIME_ID_MAX ||
		strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
		return err_field(
			e, pointer, "must be 1 to %d of a-z, 0-9, _ and -", RUNTIME_ID_MAX - 1);
	return 0;
}

/* Absolute, without "." and ".." and without what a bind mount's text form would trip over. */
static int check_path(const char *pointer, const char *path, struct err *e)
{
	struct str rest = str_c(path), piece;

	if (path == NULL || path[0] != '/')
		return err_field(e, pointer, "must be an absolute path");
	if (rest.n >= PATH_LENGTH_MAX || str_has_control(rest))
		return err_field(e, pointer,
			"must be shorter than %d bytes, without control characters",
			PATH_LENGTH_MAX);
	while (str_next(&rest, '/', &piece))
		if (str_is(piece, ".") || str_is(piece, ".."))
			return err_field(e, pointer, "must not have . or .. in it");
	return 0;
}

/* Counts what exec will have to carry. */
static int check_list(
	const char *pointer, const char *const *list, size_t max, size_t *bytes, struct err *e)
{
	size_t n = 0;

	for (; list != NULL && list[n] != NULL; n++) {
		*bytes += strlen(list[n]) + 1;
		if (n == max)
			return err_field(e, pointer, "has more than %zu items", max);
	}
	if (*bytes > RUNTIME_ARGV_BYTES)
		return err_field(e, pointer, "command and environment are larger than %d bytes",
			RUNTIME_ARGV_BYTES);
	return 0;
}

static int check_env(const char *pointer, const char *const *list, size_t *bytes, struct err *e)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		if (list[i][0] == '=' || strchr(list[i], '=') == NULL)
			return err_field(e, pointer, "item %zu is not NAME=VALUE", i);
	return check_list(pointer, list, RUNTIME_ENV_MAX, bytes, e);
}

static int check_secrets(const struct runtime_spec *s, struct err *e)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

	size_t bytes = 0;

	if (s->n_secrets > RUNTIME_SECRETS_MAX)
		return err_field(e, "/secrets", "has more than %d items", RUNTIME_SECRETS_MAX);
	for (size_t i = 0; i < s->n_secrets; i++) {
		const char *name = s->secrets[i].name;
		size_t n = name != NULL ? strlen(name) : 0;
		if (n == 0 || n > 63 || name[0] == '.' || strspn(name, allowed) != n ||
			strcmp(name, "env") == 0)
			return err_field(e, "/secrets",
				"the name of item %zu must be 1 to 63 of A-Z, a-z, 0-9, ., _ and "
				"-, "
				"not start with a dot and not be env",
				i);
		if (s->secrets[i].bytes.n > RUNTIME_SECRETS_BYTES - bytes)
			return err_field(e, "/secrets", "is larger than %d bytes in all",
				RUNTIME_SECRETS_BYTES);
		bytes += s->secrets[i].bytes.n;
	}
	return 0;
}

static int check_mounts(const struct runtime_spec *s, struct err *e)
{
	if (s->n_mounts > RUNTIME_MOUNTS_MAX)
		return err_field(e, "/mounts", "has more than %d items", RUNTIME_MOUNTS_MAX);
	for (size_t i = 0; i < s->n_mounts; i++)
		if (check_path("/mounts", s->mounts[i].host, e) < 0 ||
			check_path("/mounts", s->mounts[i].inside, e) < 0)
			return -1;
	return 0;
}

static int check_numbers(const struct runtime_spec *s, struct err *e)
{
	if (s->epoch < 0)
		return err_field(e, "/epoch", "must not be negative");
	if (!(s->cpus >= 0 && s->cpus <= 4096))
		return err_field(e, "/cpus", "must be between 0 and 4096");
	if (s->memory < 0 || (s->memory != 0 && s->memory < 16 << 20))
		return err_field(e, "/memory", "must be at least 16 MiB, or 0 for no limit");
	if (s->shm < 0)
		return err_field(e, "/shm", "must not be negative");
	if (s->deadman_s < 0 || s->deadman_s > HOURS_MAX * 3600)
		return err_field(e, "/deadman_s", "must be between 0 and %d hours", HOURS_MAX);
	if (s->grace_s < 0 || s->grace_s > HOURS_MAX * 3600)
		return err_field(e, "/grace_s", "must be between 0 and %d hours", HOURS_MAX);
	if (s->max_log < 0)
		return err_field(e, "/max_log", "must not be negative");
	if (s->rank > UINT16_MAX)
		return err_field(e, "/rank", "must be at most %d", UINT16_MAX);
	return 0;
}

int runtime_spec_check(const struct runtime_spec *s, struct err *e)
{
	size_t bytes = 0, secret_bytes = 0;

	if (check_id("/attempt", s->attempt, e) < 0 || check_id("/step", s->step, e) < 0)
		return -1;
	if (s->argv == NULL || s->argv[0] == NULL || s->argv[0][0] == '\0')
		return err_field(e, "/argv", "must name a command");
	if (check_list("/argv", s->argv, RUNTIME_ARGV_MAX, &bytes, e) < 0 ||
		check_env("/env", s->env, &bytes, e) < 0 ||
		check_env("/secret_env", s->secret_env, &secret_bytes, e) < 0 ||
		check_list("/gpus", s->gpus, RUNTIME_GPUS_MAX, &bytes, e) < 0)
		return -1;
	if (check_path("/ctl", s->ctl, e) < 0 ||
		check_path("/secrets_dir", s->secrets_dir, e) < 0 ||
		check_path("/work", s->work, e) < 0 || check_path("/out", s->out, e) < 0 ||
		(s->in != NULL && check_path("/in", s->in, e) < 0))
		return -1;
	if (check_secrets(s, e) < 0 || check_mounts(s, e) < 0)
		return -1;
	return check_numbers(s, e);
}
