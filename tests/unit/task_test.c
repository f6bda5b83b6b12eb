/* worker/task.h, worker/evidence.h, worker/conf.h: from an assignment to a spec, and back to words.
 */
#include "lib/json/json_read.h"
#include "tests/unit/unit.h"
#include "worker/conf.h"
#include "worker/evidence.h"
#include "worker/task.h"

static const char *fake_path(
	const struct runtime *r, const struct runtime_spec *s, enum runtime_dir d)
{
	static const char *const paths[] = { "/t/work", "/t/in", "/t/out", "/run/t" };

	(void)r, (void)s;
	return paths[d];
}

static const struct runtime_ops fake_ops = { .name = "docker", .path = fake_path };

static const char *value_of(const char *const *env, const char *name)
{
	size_t n = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; env[i] != NULL; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=') {
			assert_null(found); /* once */
			found = env[i] + n + 1;
		}
	return found;
}

static struct assignment example(struct arena *a)
{
	struct str *argv = arena_array_of(a, struct str, 2);
	struct field_pair *env = arena_array_of(a, struct field_pair, 3);
	struct staged *data = arena_array_of(a, struct staged, 1);

	argv[0] = STR("python3");
	argv[1] = STR("train.py");
	env[0] = (struct field_pair){ STR("OMP_NUM_THREADS"), STR("1") };
	env[1] = (struct field_pair){ STR("TIDEMILL_OUTPUT"), STR("/etc") };
	env[2] = (struct field_pair){ STR("NO_PROXY"), STR("mine") };
	data[0].name = STR("big-data.v1");
	return (struct assignment){ .attempt = STR("att_1"),
		.step = STR("stp_1"),
		.run = STR("run_1"),
		.project = STR("demo"),
		.pipeline = STR("p"),
		.step_name = STR("train"),
		.epoch = 7,
		.number = 3,
		.argv = { argv, 2 },
		.env = { env, 3 },
		.datasets = { data, 1 },
		.models = { data, 1 },
		.inputs = { data, 1 },
		.token = STR("tdm_job_x"),
		.self_stop_after = 1,
		.memory = 1 << 30,
		.cpus = 1.5 };
}

void test_task__spec_of_an_assignment(void **state)
{
	struct arena *a = arena_new(1 << 20);
	const struct runtime r = { &fake_ops };
	const struct assignment task = example(a);
	const struct worker_conf conf = { .step_server = STR("http://server:8080") };
	const struct task_spec_args in = { &task, &conf, &r, "/w/att_1", "/w/att_1/ctl", "/w/s" };
	struct runtime_spec s;
	struct err e;

	(void)state;
	task_spec(&in, a, &s);
	assert_int_equal(runtime_spec_check(&s, &e), 0);
	assert_string_equal(s.argv[1], "train.py");
	assert_null(s.argv[2]);
	assert_int_equal(s.deadman_s, 1); /* rounded up: never none */
	assert_int_equal(s.memory, 1 << 30);
	assert_string_equal(s.work, "/w/att_1/code");
	assert_string_equal(value_of(s.env, "TIDEMILL_OUTPUT"), "/t/out"); /* not the user's */
	assert_string_equal(
		value_of(s.env, "TIDEMILL_DATASET_BIG_DATA_V1"), "/t/in/datasets/big-data.v1");
	assert_string_equal(
		value_of(s.env, "TIDEMILL_MODEL_BIG_DATA_V1"), "/t/in/models/big-data.v1");
	assert_string_equal(
		value_of(s.env, "TIDEMILL_INPUT_BIG_DATA_V1"), "/t/in/inputs/big-data.v1");
	assert_string_equal(value_of(s.env, "TIDEMILL_EPOCH"), "7");
	assert_string_equal(value_of(s.env, "TIDEMILL_ATTEMPT_NUMBER"), "3");
	assert_string_equal(value_of(s.env, "TIDEMILL_TOKEN_FILE"), "/run/t/token");
	assert_string_equal(value_of(s.env, "OMP_NUM_THREADS"), "1");
	assert_string_equal(value_of(s.env, "NO_PROXY"), "mine");
	assert_string_equal(value_of(s.env, "no_proxy"), "server");
	assert_null(value_of(s.env, "MLFLOW_TRACKING_TOKEN")); /* secret */
	assert_string_equal(s.secret_env[0], "MLFLOW_TRACKING_TOKEN=tdm_job_x");
	assert_int_equal(strlen(value_of(s.env, "TRACEPARENT")), 55);
	arena_drop(a);
}

static struct str evidence_of(struct arena *a, struct str tail)
{
	static const struct runtime_status status = { .max_rss = 4096, .signo = 9 };

	return evidence_make(&(struct evidence){ .status = &status, .log_tail = tail }, a);
}

void test_evidence__last_lines(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct jsn_doc *d;
	struct err e;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	for (int i = 0; i < 200; i++)
		buf_addf(&b, "line %d\n", i);
	assert_int_equal(jsn_parse(evidence_of(a, buf_str(&b)), &d, &e), 0);
	const struct jsn *tail = jsn_get(jsn_root(d), "log_tail");
	assert_int_equal(jsn_count(tail), EVIDENCE_LINES);
	assert_true(str_is(jsn_get_str(jsn_at(tail, 0)), "line 150"));
	assert_true(str_is(jsn_get_str(jsn_at(tail, 49)), "line 199"));
	assert_int_equal(jsn_get_int(jsn_get(jsn_root(d), "signal"), 0), 9);
	jsn_doc_free(d);
	buf_done(&b);
	arena_drop(a);
}

void test_evidence__any_bytes_fit(void **state)
{
	struct arena *a = arena_new(1 << 20);
	char bytes[8192];
	struct jsn_doc *d;
	struct err e;

	(void)state;
	for (int with_lines = 0; with_lines < 2; with_lines++) {
		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = with_lines && i % 40 == 0 ? '\n' : (char)(i * 7 % 256);
		struct str text = evidence_of(a, (struct str){ bytes, sizeof bytes });
		assert_true(text.n <= EVIDENCE_MAX);
		assert_int_equal(jsn_parse(text, &d, &e), 0);
		assert_int_equal(jsn_get_int(jsn_get(jsn_root(d), "peak_memory"), 0), 4096);
		jsn_doc_free(d);
	}
	arena_drop(a);
}

void test_task__use_is_looked_at_unless_it_is_off(void **state)
{
	struct arena *a = arena_new(1 << 20);
	const struct runtime r = { &fake_ops };
	struct assignment task = example(a);
	struct worker_conf conf = { .step_server = STR("http://server:8080"),
		.system_metrics_every = 1500000 };
	const struct task_spec_args in = { &task, &conf, &r, "/w/att_1", "/w/att_1/ctl", "/w/s" };
	struct runtime_spec s;

	(void)state;
	task_spec(&in, a, &s);
	assert_int_equal(s.usage_s, 2);
	task.no_system_metrics = true; /* by the step */
	task_spec(&in, a, &s);
	assert_int_equal(s.usage_s, 0);
	task.no_system_metrics = false;
	conf.system_metrics_every = 0; /* by the worker */
	task_spec(&in, a, &s);
	assert_int_equal(s.usage_s, 0);
	arena_drop(a);
}

static int conf_check(const char *server, bool insecure)
{
	struct arena *a = arena_new(65536);
	struct str *runtimes = arena_array_of(a, struct str, 1);
	struct err e;

	runtimes[0] = STR("docker");
	struct worker_conf c = { .server = str_c(server),
		.name = STR("w1"),
		.work_dir = STR("/w/"),
		.disk_high = 85,
		.disk_low = 80,
		.runtimes = { runtimes, 1 },
		.insecure_http = insecure };
	int rc = worker_conf_check(&c, a, &e);
	if (rc == 0) {
		assert_string_equal(c.work_dir.p, "/w");
		assert_true(c.server.p[c.server.n - 1] != '/');
		assert_string_equal(c.step_server.p, c.server.p);
	}
	arena_drop(a);
	return rc;
}

void test_conf__marks_of_a_disk(void **state)
{
	struct arena *a = arena_new(65536);
	struct str runtimes[] = { STR("docker") };
	struct worker_conf c = { .server = STR("http://localhost"),
		.name = STR("w1"),
		.work_dir = STR("/w"),
		.runtimes = { runtimes, 1 },
		.disk_high = 100,
		.disk_low = 99 };
	struct err e;

	(void)state;
	assert_int_equal(worker_conf_check(&c, a, &e), 0);
	c.disk_high = 80;
	c.disk_low = 80;
	assert_int_equal(worker_conf_check(&c, a, &e), -1);
	assert_non_null(strstr(e.msg, "disk-low must be less than disk-high (80)"));
	arena_drop(a);
}

void test_conf__plain_http_stays_at_home(void **state)
{
	(void)state;
	assert_int_equal(conf_check("https://example.org/", false), 0);
	assert_int_equal(conf_check("http://127.0.0.1:8080/", false), 0);
	assert_int_equal(conf_check("http://[::1]:8080", false), 0);
	assert_int_equal(conf_check("http://localhost", false), 0);
	assert_int_equal(conf_check("http://localhost.example.org", false), -1);
	assert_int_equal(conf_check("http://127.0.0.1.example.org", false), -1);
	assert_int_equal(conf_check("http://server:8080", false), -1);
	assert_int_equal(conf_check("http://server:8080", true), 0);
	assert_int_equal(conf_check("http://[::1", false), -1);
	assert_int_equal(conf_check("http://[::1", true), -1);
	assert_int_equal(conf_check("http://:8080", true), -1);
	assert_int_equal(conf_check("https:///x", true), -1);
	assert_int_equal(conf_check("https://me:secret@example.org", true), -1);
	assert_int_equal(conf_check("http://", true), -1);
}

void test_conf__host_of_an_address(void **state)
{
	static const char *const cases[][2] = {
		{ "https://gpu-01.lan:8443/x", "gpu-01.lan" },
		{ "http://10.0.0.1", "10.0.0.1" },
		{ "http://[fd00::1]:8080", "[fd00::1]" },
		{ "http://[fd00::1", "" },
		{ "http://host?x", "host" },
		{ "http://host#x", "host" },
		{ "http://", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_true(str_is(worker_conf_host(str_c(cases[i][0])), cases[i][1]));
}
