#include "worker/runtime/control.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "worker/init/ctl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD "attempt"
#define ASKED  "asked"

enum { PATH_MAX_HERE = 1024, FRESH_S = 30 };

/* DIR/NAME; callers' folders are checked to be shorter. */
static const char *join(char out[PATH_MAX_HERE], const char *dir, const char *name)
{
	(void)str_print(out, PATH_MAX_HERE, "%.600s/%.300s", dir, name);
	return out;
}

/* ---- reading -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum runtime_state state;
	enum runtime_end end;
} states[] = {
	{ "waiting", RUNTIME_WAITING, RUNTIME_END_NONE },
	{ "running", RUNTIME_RUNNING, RUNTIME_END_NONE },
	{ "exited", RUNTIME_ENDED, RUNTIME_END_EXITED },
	{ "signaled", RUNTIME_ENDED, RUNTIME_END_SIGNALED },
	{ "not_started", RUNTIME_ENDED, RUNTIME_END_NOT_STARTED },
};

static void read_state(struct str value, struct runtime_status *s)
{
	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		if (!str_is(value, states[i].name))
			continue;
		s->state = states[i].state;
		s->end = states[i].end;
	}
}

static bool is_this_boot(struct str id)
{
	char now[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, now, sizeof now - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	return n > 0 && str_eq(id, (struct str){ now, strcspn(now, "\n") });
}

static void read_text(
	struct str key, struct str value, struct runtime_status *s, struct control_init *i)
{
	if (str_is(key, "state")) {
		read_state(value, s);
	} else if (str_is(key, "reason")) {
		s->stopped = str_is(value, "stopped");
		s->deadman = str_is(value, "deadman");
	} else if (str_is(key, "error")) {
		(void)str_print(s->message, sizeof s->message, "%.*s", STR_ARG(value));
	} else if (str_is(key, "boot_id")) {
		i->same_boot = is_this_boot(value);
	}
}

struct number_key {
	const char *name;
	int64_t *to;
};

static void read_lines(struct str text, struct runtime_status *s, struct control_init *i)
{
	int64_t code = -1, signo = 0, pid = 0, command = 0, start = 0, command_start = 0;
	int64_t rss_kb = 0;
	const struct number_key numbers[] = { { "code", &code }, { "signal", &signo },
		{ "init_pid", &pid }, { "init_start", &start }, { "pid", &command },
		{ "pid_start", &command_start }, { "started_us", &s->started_us },
		{ "started_elapsed", &s->started_elapsed }, { "ended_us", &s->ended_us },
		{ "max_rss_kb", &rss_kb }, { "user_us", &s->user_us },
		{ "system_us", &s->system_us }, { "spool_bytes", &s->spool_bytes },
		{ "stdout_bytes", &s->stdout_bytes }, { "stderr_bytes", &s->stderr_bytes },
		{ "dropped_bytes", &s->dropped_bytes }, { "lost_bytes", &s->lost_bytes },
		{ "oom_kills", &s->oom_kills }, { "memory_peak", &s->memory_peak },
		{ "memory_limit", &s->memory_limit }, { "read_bytes", &s->read_bytes },
		{ "written_bytes", &s->written_bytes }, { "throttled_us", &s->throttled_us } };
	struct str line;

	while (str_next(&text, '\n', &line)) {
		ptrdiff_t at = str_find_char(line, '=');
		if (at <= 0)
			continue;
		struct str key = str_slice(line, 0, (size_t)at);
		struct str value = str_slice(line, (size_t)at + 1, line.n);
		read_text(key, value, s, i);
		for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
			if (str_is(key, numbers[k].name))
				(void)num_parse_i64(value, 0, INT64_MAX, numbers[k].to);
	}
	s->code = (int)code;
	s->signo = (int)signo;
	s->max_rss = rss_kb * 1024;
	if (s->oom_kills > 0 && (signo == SIGKILL || code == 128 + SIGKILL)) {
		s->end = RUNTIME_END_OOM;
		s->killer = RUNTIME_KILLER_KERNEL;
	}
	if (!i->same_boot)
		s->started_elapsed = 0;
	*i = (struct control_init){ (pid_t)pid, (pid_t)command, (uint64_t)start,
		(uint64_t)command_start, i->same_boot };
}

/* What an init that may be killed at any time has read. */
static void read_taken(const char *ctl, struct runtime_status *s)
{
	char path[PATH_MAX_HERE];
	uint64_t n[2];
	int fd = open(join(path, ctl, CTL_TAKEN), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	s->untold = fd >= 0 && pread(fd, n, sizeof n, 0) == sizeof n && n[0] <= INT64_MAX / 2 &&
		    n[1] <= INT64_MAX / 2;
	if (fd >= 0)
		(void)close(fd);
	if (!s->untold)
		return;
	s->stdout_bytes = (int64_t)n[0];
	s->stderr_bytes = (int64_t)n[1];
}

int control_read(
	const char *ctl, struct runtime_status *ret, struct control_init *ret_init, struct err *e)
{
	struct runtime_status s = { .state = RUNTIME_PREPARING, .code = -1 };
	struct control_init init = { 0 };
	char path[PATH_MAX_HERE];
	struct buf text;
	int rc;

	buf_init(&text, CTL_STATUS_MAX);
	rc = fs_read(join(path, ctl, CTL_STATUS), &text, e);
	if (rc == 0)
		read_lines(buf_str(&text), &s, &init);
	else if (e->code == ERR_NOT_FOUND)
		rc = 0;
	buf_done(&text);
	if (rc < 0)
		return -1;
	if (s.state == RUNTIME_WAITING || s.state == RUNTIME_RUNNING)
		read_taken(ctl, &s);
	if (s.state == RUNTIME_PREPARING && faccessat(AT_FDCWD, ctl, F_OK, 0) < 0)
		s.state = RUNTIME_GONE;
	if (s.stopped && !control_asked(ctl)) {
		s.stopped = false;
		s.outside = true;
	}
	if (s.stopped || s.deadman)
		s.killer = RUNTIME_KILLER_US;
	*ret = s;
	if (ret_init != NULL)
		*ret_init = init;
	return 0;
}

bool control_held(const char *ctl)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX_HERE];
	int fd = open(join(path, ctl, CTL_LOCK), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool held = fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;

	if (fd >= 0)
		(void)close(fd);
	return held;
}

bool control_fresh(const char *ctl)
{
	char path[PATH_MAX_HERE];
	struct stat st;

	if (stat(join(path, ctl, RECORD), &st) < 0)
		return false;
	int64_t age = clock_elapsed(&clock_real) / CLOCK_SECOND - (int64_t)st.st_mtim.tv_sec;
	return age >= 0 && age < FRESH_S;
}

/* The init refuses a folder that has a spool. */
void control_seal(const char *ctl)
{
	char path[PATH_MAX_HERE];
	int fd = open(join(path, ctl, CTL_SPOOL),
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);

	if (fd >= 0)
		(void)close(fd);
}

bool control_past_start(const struct runtime_status *s)
{
	return s->state == RUNTIME_RUNNING || s->state == RUNTIME_ENDED;
}

void control_lost(struct runtime_status *s, const char *why)
{
	s->state = RUNTIME_ENDED;
	s->end = RUNTIME_END_LOST;
	(void)str_print(s->message, sizeof s->message, "%s", why);
}

/* ---- speaking ------------------------------------------------------------------------------- */

static int touch(const char *ctl, const char *name, int64_t at, struct err *e)
{
	const struct timespec t = { at / CLOCK_SECOND, at % CLOCK_SECOND * 1000 };
	const struct timespec both[2] = { t, t };
	char path[PATH_MAX_HERE];
	int fd = open(join(path, ctl, name), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	int rc =
		fd < 0 || futimens(fd, at != 0 ? both : NULL) < 0 ? err_errno(e, "touch", path) : 0;

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

int control_renew(const char *ctl, int64_t at, struct err *e)
{
	return touch(ctl, CTL_ALIVE, at != 0 ? at : clock_elapsed(&clock_real), e);
}

int control_go(const char *ctl, struct str env, struct err *e)
{
	char path[PATH_MAX_HERE];

	return fs_write_atomic(join(path, ctl, CTL_GO), env, 0640, e);
}

bool control_gone(const char *ctl)
{
	char path[PATH_MAX_HERE];

	return access(join(path, ctl, CTL_GO), F_OK) == 0;
}

void control_ask(const char *ctl)
{
	struct err e;

	if (touch(ctl, ASKED, 0, &e) < 0 && e.code != ERR_NOT_FOUND)
		log_debug("not noted that it is asked to end", LOG_E(&e));
}

bool control_asked(const char *ctl)
{
	char path[PATH_MAX_HERE];

	return faccessat(AT_FDCWD, join(path, ctl, ASKED), F_OK, 0) == 0;
}

void control_forget_env(const char *secrets_dir)
{
	char path[PATH_MAX_HERE];

	if (secrets_dir != NULL)
		(void)unlink(join(path, secrets_dir, CTL_SECRET_ENV));
}

/* ---- making --------------------------------------------------------------------------------- */

static bool copy_text(char *out, size_t size, struct str value)
{
	return str_print(out, size, "%.*s", STR_ARG(value));
}

int control_record(const char *ctl, char runtime[16], char install[RUNTIME_ID_MAX],
	struct runtime_found *ret, struct err *e)
{
	struct runtime_found found = { .epoch = 0 };
	char path[PATH_MAX_HERE];
	struct buf text;
	struct str rest, line;
	int rc;

	buf_init(&text, CTL_STATUS_MAX);
	runtime[0] = install[0] = '\0';
	rc = fs_read(join(path, ctl, RECORD), &text, e);
	rest = buf_str(&text);
	while (rc == 0 && rest.p != NULL && str_next(&rest, '\n', &line)) {
		ptrdiff_t at = str_find_char(line, '=');
		struct str key = str_slice(line, 0, at > 0 ? (size_t)at : 0);
		struct str value = str_slice(line, (size_t)(at + 1), line.n);
		if (str_is(key, "runtime"))
			(void)copy_text(runtime, 16, value);
		else if (str_is(key, "install"))
			(void)copy_text(install, RUNTIME_ID_MAX, value);
		else if (str_is(key, "attempt"))
			(void)copy_text(found.attempt, sizeof found.attempt, value);
		else if (str_is(key, "step"))
			(void)copy_text(found.step, sizeof found.step, value);
		else if (str_is(key, "epoch"))
			(void)num_parse_i64(value, 0, INT64_MAX, &found.epoch);
	}
	buf_done(&text);
	(void)copy_text(found.ctl, sizeof found.ctl, str_c(ctl));
	if (rc == 0)
		*ret = found;
	return rc;
}

/* 1: it is there and of this attempt, 0: there is none. */
static int find_record(const struct control_make *m, struct err *e)
{
	char runtime[16], install[RUNTIME_ID_MAX];
	struct runtime_found found;

	if (control_record(m->spec->ctl, runtime, install, &found, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	if (strcmp(runtime, m->runtime) == 0 && strcmp(install, m->install) == 0 &&
		strcmp(found.attempt, m->spec->attempt) == 0 && found.epoch == m->spec->epoch)
		return 1;
	return err_set(e, ERR_CONFLICT, "%.160s belongs to attempt %.63s, epoch %lld", m->spec->ctl,
		found.attempt, (long long)found.epoch);
}

static int make_folder(const char *path, mode_t mode, gid_t gid, struct err *e)
{
	if (fs_mkdirs(path, mode & 0777, e) < 0)
		return -1;
	if (geteuid() == 0 && gid != (gid_t)-1 && chown(path, 0, gid) < 0)
		return err_errno(e, "give away", path);
	return chmod(path, mode) < 0 ? err_errno(e, "set the mode of", path) : 0;
}

static int write_record(const struct control_make *m, struct err *e)
{
	char path[PATH_MAX_HERE];
	struct buf text;
	int rc;

	buf_init(&text, CTL_STATUS_MAX);
	buf_addf(&text, "runtime=%s\nattempt=%s\nstep=%s\nepoch=%lld\ninstall=%s\n", m->runtime,
		m->spec->attempt, m->spec->step, (long long)m->spec->epoch, m->install);
	rc = fs_write_atomic(join(path, m->spec->ctl, RECORD), buf_str(&text), 0640, e);
	if (rc == 0) /* for control_fresh */
		rc = touch(m->spec->ctl, RECORD, clock_elapsed(&clock_real), e);
	buf_done(&text);
	return rc;
}

static int write_secrets(const struct control_make *m, struct err *e)
{
	const struct runtime_spec *s = m->spec;
	bool root = geteuid() == 0;
	char path[PATH_MAX_HERE];
	struct buf env;
	int rc = 0;

	if (make_folder(s->secrets_dir, root ? 0710 : 0700, m->gid, e) < 0)
		return -1;
	for (size_t i = 0; rc == 0 && i < s->n_secrets; i++) {
		(void)join(path, s->secrets_dir, s->secrets[i].name);
		rc = fs_write_atomic(path, s->secrets[i].bytes, 0400, e);
		if (rc == 0 && root && chown(path, m->uid, m->gid) < 0)
			rc = err_errno(e, "give away", path);
	}
	buf_init(&env, CTL_SECRET_ENV_MAX);
	for (size_t i = 0; s->secret_env != NULL && s->secret_env[i] != NULL; i++)
		buf_add(&env, (struct str){ s->secret_env[i], strlen(s->secret_env[i]) + 1 });
	if (rc == 0 && buf_failed(&env))
		rc = err_field(e, "/secret_env", "is larger than %d bytes", CTL_SECRET_ENV_MAX);
	if (rc == 0 && env.n != 0)
		rc = fs_write_atomic(
			join(path, s->secrets_dir, CTL_SECRET_ENV), buf_str(&env), 0400, e);
	if (env.p != NULL)
		mem_wipe(env.p, env.cap);
	buf_done(&env);
	return rc;
}

/* To the step's user, and never through a link: nothing of the step has run in there yet. */
static int give_tree(const char *root, uid_t uid, gid_t gid, struct err *e)
{
	union {
		const char *in;
		char *out;
	} path = { .in = root };
	char *const roots[] = { path.out, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	int rc = walk == NULL ? err_errno(e, "open", root) : 0;

	for (FTSENT *at; rc == 0 && (at = fts_read(walk)) != NULL;) {
		if (at->fts_info == FTS_DP)
			continue;
		if (at->fts_info == FTS_ERR || at->fts_info == FTS_DNR || at->fts_info == FTS_NS) {
			errno = at->fts_errno;
			rc = err_errno(e, "read", at->fts_path);
		} else if (at->fts_info == FTS_F && at->fts_statp->st_nlink > 1) {
			continue;
		} else if (lchown(at->fts_path, uid, gid) < 0) {
			rc = err_errno(e, "give away", at->fts_path);
		}
	}
	if (walk != NULL)
		(void)fts_close(walk);
	return rc;
}

int control_make(const struct control_make *m, struct err *e)
{
	const struct runtime_spec *s = m->spec;
	struct runtime_status status;
	int found;

	found = find_record(m, e);
	if (found < 0)
		return -1;
	if (found == 0 && (make_folder(s->ctl, 02750, (gid_t)-1, e) < 0 || write_record(m, e) < 0))
		return -1;
	if (control_read(s->ctl, &status, NULL, e) < 0)
		return -1;
	if (status.state != RUNTIME_PREPARING || control_held(s->ctl))
		return 0; /* it has been started before */
	if (write_secrets(m, e) < 0 || control_renew(s->ctl, s->renewed_at, e) < 0)
		return -1;
	if (geteuid() != 0)
		return 0;
	return give_tree(s->work, m->uid, m->gid, e) < 0 ? -1
							 : give_tree(s->out, m->uid, m->gid, e);
}

int control_list(const char *attempts, const char *runtime, const char *install,
	struct runtime_found **ret, size_t *ret_n, struct err *e)
{
	DIR *d = opendir(attempts);
	struct runtime_found *all = NULL, one;
	char path[PATH_MAX_HERE], its_runtime[16], its_install[RUNTIME_ID_MAX];
	size_t n = 0;

	if (d == NULL && errno != ENOENT)
		return err_errno(e, "list", attempts);
	for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;) {
		struct err none;
		if (entry->d_name[0] == '.' ||
			!str_print(path, sizeof path, "%s/%s/ctl", attempts, entry->d_name) ||
			control_record(path, its_runtime, its_install, &one, &none) < 0 ||
			strcmp(its_runtime, runtime) != 0 || strcmp(its_install, install) != 0)
			continue;
		all = mem_resize(all, n + 1, sizeof *all);
		all[n++] = one;
	}
	if (d != NULL)
		(void)closedir(d);
	*ret = all;
	*ret_n = n;
	return 0;
}
