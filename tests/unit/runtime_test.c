/* worker/runtime: `process` with real processes. */

#include "worker/runtime/runtime.h"

#include "lib/base/fs.h"
#include "lib/base/id.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "tests/unit/unit.h"
#include "worker/runtime/control.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEADLINE_S = 20 };

struct bed {
	struct loop *loop;
	struct runtime *r;
	char root[64], init[512], attempts[128], attempt[ID_MAX];
	char ctl[256], secrets[256], work[256], out[256];
	struct runtime_spec spec;
	struct runtime_ref ref;
	/* results */
	int calls;
	struct err err;
	struct runtime_about about;
	struct runtime_status status;
	struct runtime_found found[8];
	size_t n_found;
};

static const char *const true_argv[] = { "true", NULL };

static void make_runtime(struct bed *b)
{
	const struct runtime_process_config c = {
		.init = b->init, .attempts = b->attempts, .install = "ins_test"
	};
	struct err e;

	assert_int_equal(runtime_process_new(b->loop, &c, &b->r, &e), 0);
	assert_string_equal(runtime_name(b->r), "process");
}

static void make_folders(struct bed *b)
{
	struct err e;

	(void)id_new(b->attempt, "att", &clock_real);
	assert_true(str_print(b->ctl, sizeof b->ctl, "%s/%s/ctl", b->attempts, b->attempt));
	assert_true(str_print(b->secrets, sizeof b->secrets, "%s/%s/sec", b->attempts, b->attempt));
	assert_true(str_print(b->work, sizeof b->work, "%s/%s/work", b->attempts, b->attempt));
	assert_true(str_print(b->out, sizeof b->out, "%s/%s/out", b->attempts, b->attempt));
	assert_int_equal(fs_mkdirs(b->work, 0755, &e), 0);
	assert_int_equal(fs_mkdirs(b->out, 0755, &e), 0);
	b->spec = (struct runtime_spec){ .attempt = b->attempt,
		.step = "stp_1",
		.epoch = 3,
		.argv = true_argv,
		.ctl = b->ctl,
		.secrets_dir = b->secrets,
		.work = b->work,
		.out = b->out,
		.grace_s = 5 };
	b->ref = (struct runtime_ref){ b->attempt, b->ctl, b->secrets };
}

static struct bed *bed_new(void)
{
	struct bed *b = calloc(1, sizeof *b);
	struct err e;

	assert_non_null(b);
	ssize_t n = readlink("/proc/self/exe", b->init, sizeof b->init - 32);
	assert_true(n > 0);
	b->init[n] = '\0';
	assert_true(str_print(strrchr(b->init, '/') + 1, 20, "tidemill-init"));
	(void)str_print(b->root, sizeof b->root, "/tmp/runtime-test-XXXXXX");
	assert_non_null(mkdtemp(b->root));
	assert_int_equal(chmod(b->root, 0755), 0);
	(void)str_print(b->attempts, sizeof b->attempts, "%s/attempts", b->root);
	assert_int_equal(fs_mkdirs(b->attempts, 0755, &e), 0);
	b->loop = loop_new();
	make_runtime(b);
	make_folders(b);
	return b;
}

static void on_done(void *arg, const struct err *e)
{
	struct bed *b = arg;

	b->err = *e;
	b->calls++;
}

static void on_started(void *arg, const struct runtime_started *s, const struct err *e)
{
	(void)s;
	on_done(arg, e);
}

static void on_status(void *arg, const struct runtime_status *s, const struct err *e)
{
	((struct bed *)arg)->status = *s;
	on_done(arg, e);
}

static void on_about(void *arg, const struct runtime_about *about)
{
	struct bed *b = arg;

	b->about = *about;
	b->calls++;
}

static void on_list(void *arg, const struct runtime_found *found, size_t n, const struct err *e)
{
	struct bed *b = arg;

	b->n_found = n;
	for (size_t i = 0; i < n && i < 8; i++)
		b->found[i] = found[i];
	on_done(arg, e);
}

/* Runs the loop until one more call has completed. */
static enum err_code await(struct bed *b)
{
	int64_t end = clock_elapsed(&clock_real) + DEADLINE_S * CLOCK_SECOND;
	int before = b->calls;

	while (b->calls == before) {
		assert_true(clock_elapsed(&clock_real) < end);
		loop_step(b->loop, true);
	}
	assert_int_equal(b->calls, before + 1);
	return b->err.code;
}

static enum err_code start(struct bed *b)
{
	int before = b->calls;

	runtime_start(b->r, &b->spec, NULL, on_started, b);
	assert_int_equal(b->calls, before);
	return await(b);
}

static void poll_until(struct bed *b, enum runtime_state state)
{
	int64_t end = clock_elapsed(&clock_real) + DEADLINE_S * CLOCK_SECOND;

	do {
		assert_true(clock_elapsed(&clock_real) < end);
		runtime_poll(b->r, &b->ref, on_status, b);
		assert_int_equal(await(b), ERR_OK);
	} while (b->status.state != state);
}

static enum err_code stop(struct bed *b, enum runtime_stop how)
{
	runtime_stop(b->r, &b->ref, how, on_done, b);
	return await(b);
}

static void bed_free(struct bed *b)
{
	struct err e;

	runtime_remove(b->r, &b->ref, on_done, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(access(b->secrets, F_OK), -1);
	runtime_free(b->r);
	loop_free(b->loop);
	assert_int_equal(fs_remove_tree(b->root, &e), 0);
	free(b);
}

static void await_file(struct bed *b, const char *name)
{
	int64_t end = clock_elapsed(&clock_real) + DEADLINE_S * CLOCK_SECOND;
	char path[300];

	assert_true(str_print(path, sizeof path, "%s/%s", b->work, name));
	while (access(path, F_OK) < 0)
		assert_true(clock_elapsed(&clock_real) < end);
}

static void sh(struct bed *b, const char *script)
{
	static const char *argv[4];

	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = NULL;
	b->spec.argv = argv;
}

static void read_spool(struct bed *b, struct buf *out)
{
	char path[300];
	struct err e;

	assert_true(str_print(path, sizeof path, "%s/spool", b->ctl));
	buf_init(out, 1 << 20);
	assert_int_equal(fs_read(path, out, &e), 0);
}

static void expect_output(struct bed *b, const char *text)
{
	struct buf spool;

	read_spool(b, &spool);
	assert_true(str_find(buf_str(&spool), str_c(text)) >= 0);
	buf_done(&spool);
}

void test_runtime__process_runs_to_its_end(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	runtime_probe(b->r, on_about, b);
	(void)await(b);
	assert_true(b->about.ok);
	sh(b, "echo out; pwd; exit 7");
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.end, RUNTIME_END_EXITED);
	assert_int_equal(b->status.code, 7);
	assert_int_equal(b->status.signo, 0);
	assert_true(b->status.started_us > 0 && b->status.ended_us >= b->status.started_us);
	assert_int_equal(b->status.stdout_bytes, (int64_t)strlen(b->work) + 5);
	assert_false(b->status.stopped);
	expect_output(b, b->work);
	assert_int_equal(stop(b, RUNTIME_STOP_ASK), ERR_NOT_FOUND);
	bed_free(b);
}

void test_runtime__process_is_never_root(void **state)
{
	const struct runtime_process_config root = {
		.init = "/x", .attempts = "/x", .install = "x", .user = "root"
	};
	struct bed *b = bed_new();
	struct runtime *r;
	struct err e;

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(runtime_process_new(b->loop, &root, &r, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
	sh(b, "test $(id -u) != 0 && touch \"$HOME/w\" && touch " /* work is the user's own */
	      "../out/o && ! cat ../ctl/status && ! touch ../ctl/x && echo fine");
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	if (geteuid() == 0)
		expect_output(b, "fine\n");
	bed_free(b);
}

void test_runtime__process_environment_is_made(void **state)
{
	static const char *const env[] = { "A=1", "LANG=xx", "CUDA_VISIBLE_DEVICES=7", NULL };
	static const char *const secret[] = { "PASSWORD=hunter2", NULL };
	static const char *const gpus[] = { "GPU-a", "GPU-b", NULL };
	const struct runtime_secret token = { "token", STR("tdm_jb_x") };
	struct bed *b = bed_new();
	struct stat st;
	char path[300];

	(void)state;
	assert_int_equal(setenv("SHOULD_NOT", "leak", 1), 0);
	b->spec.env = env;
	b->spec.secret_env = secret;
	b->spec.gpus = gpus;
	b->spec.secrets = &token;
	b->spec.n_secrets = 1;
	sh(b, "echo $A-$LANG-$CUDA_VISIBLE_DEVICES-$PASSWORD-${SHOULD_NOT:-clean}-$(cat "
	      "../sec/token)"
	      "; cat ../sec/env; touch set; while :; do sleep 0.05; done");
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_RUNNING);
	/* The first poll that saw it run has removed the secret environment from the disk. */
	assert_true(str_print(path, sizeof path, "%s/env", b->secrets));
	assert_int_equal(access(path, F_OK), -1);
	assert_true(str_print(path, sizeof path, "%s/token", b->secrets));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400);
	await_file(b, "set");
	assert_int_equal(stop(b, RUNTIME_STOP_ASK), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	expect_output(b, "1-xx-GPU-a,GPU-b-hunter2-clean-tdm_jb_x\n");
	struct buf spool;
	read_spool(b, &spool);
	if (geteuid() == 0)
		assert_int_equal(str_find(buf_str(&spool), STR("PASSWORD=hunter2")), -1);
	buf_done(&spool);
	bed_free(b);
}

void test_runtime__process_is_stopped(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	sh(b, "trap 'echo bye; exit 4' TERM; touch set; while :; do sleep 0.05; done");
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_RUNNING);
	await_file(b, "set");
	assert_int_equal(stop(b, RUNTIME_STOP_ASK), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.code, 4);
	assert_true(b->status.stopped);
	bed_free(b);
}

void test_runtime__process_is_killed(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	sh(b, "trap '' TERM; while :; do sleep 0.05; done");
	b->spec.grace_s = 3600;
	assert_int_equal(start(b), ERR_OK);
	assert_int_equal(stop(b, RUNTIME_STOP_ASK), ERR_OK);
	assert_int_equal(stop(b, RUNTIME_STOP_KILL), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.end, RUNTIME_END_SIGNALED);
	assert_int_equal(b->status.signo, SIGKILL);
	assert_int_equal(b->status.code, -1);
	bed_free(b);
}

void test_runtime__process_that_is_forced_is_lost(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	sh(b, "sleep 600");
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_RUNNING);
	assert_int_equal(stop(b, RUNTIME_STOP_FORCE), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.end, RUNTIME_END_LOST);
	assert_true(b->status.message[0] != '\0');
	bed_free(b);
}

void test_runtime__process_command_is_missing(void **state)
{
	static const char *const argv[] = { "/no/such", NULL };
	struct bed *b = bed_new();

	(void)state;
	b->spec.argv = argv;
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.end, RUNTIME_END_NOT_STARTED);
	assert_string_equal(b->status.message, "cannot run /no/such: No such file or directory");
	bed_free(b);
}

void test_runtime__process_waits_at_the_barrier(void **state)
{
	struct bed *b = bed_new();
	struct err e;

	(void)state;
	b->spec.barrier = true;
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_WAITING);
	assert_int_equal(control_go(b->ctl, (struct str){ "FROM_GO=yes", 12 }, &e), 0);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.code, 0);
	bed_free(b);
}

void test_runtime__process_is_found_by_the_next_worker(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	sh(b, "while [ ! -e go ]; do sleep 0.02; done; exit 9");
	assert_int_equal(start(b), ERR_OK);
	runtime_free(b->r); /* as when the worker ends */
	make_runtime(b);
	runtime_list(b->r, on_list, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(b->n_found, 1);
	assert_string_equal(b->found[0].attempt, b->attempt);
	assert_string_equal(b->found[0].step, "stp_1");
	assert_string_equal(b->found[0].ctl, b->ctl);
	assert_int_equal(b->found[0].epoch, 3);
	poll_until(b, RUNTIME_RUNNING);
	/* Starting it again finds it started; another epoch is refused. */
	assert_int_equal(start(b), ERR_OK);
	b->spec.epoch = 4;
	assert_int_equal(start(b), ERR_CONFLICT);
	int fd = open(b->work, O_RDONLY | O_DIRECTORY);
	int go = openat(fd, "go", O_WRONLY | O_CREAT, 0644);
	assert_true(go >= 0);
	(void)close(go);
	(void)close(fd);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(b->status.code, 9);
	bed_free(b);
}

void test_runtime__nothing_is_gone(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	runtime_poll(b->r, &b->ref, on_status, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(b->status.state, RUNTIME_GONE);
	assert_int_equal(stop(b, RUNTIME_STOP_KILL), ERR_NOT_FOUND);
	runtime_list(b->r, on_list, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(b->n_found, 0);
	bed_free(b);
}

void test_runtime__a_stop_meets_a_start(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	sh(b, "sleep 600");
	runtime_start(b->r, &b->spec, NULL, on_started, b);
	runtime_stop(b->r, &b->ref, RUNTIME_STOP_KILL, on_done, b);
	(void)await(b);
	assert_int_equal(b->err.code, ERR_OK);
	(void)await(b);
	assert_int_equal(b->err.code, ERR_CANCELLED);
	bed_free(b);
}

void test_runtime__calls_end_with_the_runtime(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	runtime_start(b->r, &b->spec, NULL, on_started, b);
	runtime_list(b->r, on_list, b);
	runtime_poll(b->r, &b->ref, on_status, b);
	runtime_free(b->r);
	assert_int_equal(b->calls, 3);
	while (work_pending(b->loop) != 0)
		loop_step(b->loop, true);
	make_runtime(b);
	bed_free(b);
}

void test_runtime__a_removed_attempt_cannot_begin(void **state)
{
	struct bed *b = bed_new();
	struct control_make make = { &b->spec, "process", "ins_test", 65534, 65534 };
	struct err e;

	(void)state;
	/* As when a worker dies between making the folder and starting the init. */
	assert_int_equal(control_make(&make, &e), 0);
	runtime_poll(b->r, &b->ref, on_status, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(b->status.state, RUNTIME_PREPARING);
	runtime_remove(b->r, &b->ref, on_done, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(start(b), ERR_IO);
	assert_non_null(strstr(b->err.msg, "spool: File exists"));
	bed_free(b);
}

void test_runtime__silence_is_lost_only_after_a_while(void **state)
{
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	struct bed *b = bed_new();
	struct control_make make = { &b->spec, "process", "ins_test", 65534, 65534 };
	char path[300];
	struct err e;

	(void)state;
	assert_int_equal(control_make(&make, &e), 0);
	assert_true(str_print(path, sizeof path, "%s/attempt", b->ctl));
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	runtime_poll(b->r, &b->ref, on_status, b);
	assert_int_equal(await(b), ERR_OK);
	assert_int_equal(b->status.state, RUNTIME_ENDED);
	assert_int_equal(b->status.end, RUNTIME_END_LOST);
	assert_int_equal(start(b), ERR_IO);
	bed_free(b);
}

void test_runtime__shared_files_stay_as_they_are(void **state)
{
	struct bed *b = bed_new();
	char shared[300], linked[300], own[300];
	struct stat st;
	struct err e;

	(void)state;
	assert_true(str_print(shared, sizeof shared, "%s/shared", b->root));
	assert_true(str_print(linked, sizeof linked, "%s/linked", b->work));
	assert_true(str_print(own, sizeof own, "%s/own", b->work));
	assert_int_equal(fs_write_atomic(shared, STR("x"), 0644, &e), 0);
	assert_int_equal(fs_write_atomic(own, STR("x"), 0644, &e), 0);
	assert_int_equal(link(shared, linked), 0);
	assert_int_equal(start(b), ERR_OK);
	poll_until(b, RUNTIME_ENDED);
	assert_int_equal(stat(shared, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(stat(own, &st), 0);
	assert_true(geteuid() != 0 || st.st_uid != 0);
	bed_free(b);
}

/* Attempts that run are looked after although nothing could be started any more. */
void test_runtime__what_runs_needs_nothing_for_starts(void **state)
{
	struct runtime_process_config process = {
		.attempts = "/x", .install = "x", .user = "nobody-at-all"
	};
	struct runtime_docker_config docker = {
		.init = "/x", .install = "x", .auth_file = "/no/such/file"
	};
	struct bed *b = bed_new();
	struct runtime *r;
	struct err e;

	(void)state;
	process.init = b->init;
	process.attempts = b->attempts;
	if (geteuid() == 0) {
		assert_int_equal(runtime_process_new(b->loop, &process, &r, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		process.leftover = true;
		sh(b, "echo up; exec sleep 60");
		assert_int_equal(start(b), ERR_OK);
		poll_until(b, RUNTIME_RUNNING);
		runtime_free(b->r);
		assert_int_equal(runtime_process_new(b->loop, &process, &b->r, &e), 0);
		runtime_probe(b->r, on_about, b);
		(void)await(b);
		assert_false(b->about.ok);
		assert_non_null(strstr(b->about.note, "nobody-at-all"));
		assert_int_equal(stop(b, RUNTIME_STOP_ASK), ERR_OK);
		poll_until(b, RUNTIME_ENDED);
		make_folders(b);
		assert_int_equal(start(b), ERR_UNAVAILABLE); /* and not as somebody else */
	}
	assert_int_equal(runtime_docker_new(b->loop, &docker, &r, &e), -1);
	docker.leftover = true;
	assert_int_equal(runtime_docker_new(b->loop, &docker, &r, &e), 0);
	runtime_free(r);
	bed_free(b);
}

void test_runtime__missing_init_is_told(void **state)
{
	struct bed *b = bed_new();

	(void)state;
	runtime_free(b->r);
	(void)str_print(b->init, sizeof b->init, "/no/such/init");
	make_runtime(b);
	runtime_probe(b->r, on_about, b);
	(void)await(b);
	assert_false(b->about.ok);
	assert_int_equal(start(b), ERR_IO);
	bed_free(b);
}
