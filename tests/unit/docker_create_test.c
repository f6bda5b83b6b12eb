/* worker/runtime/docker_create, docker_gpus: the settings of a container, field by field, and how
 * GPUs are asked for. The daemon's answers are made up here: no machine with GPUs is needed. */
#include "lib/base/fs.h"
#include "tests/unit/unit.h"
#include "worker/runtime/docker.h"

#include <stdlib.h>
#include <sys/resource.h>

static const char *const two_gpus[] = { "GPU-1", "MIG-2", NULL };

struct made {
	struct arena *a;
	struct jsn_doc *doc;
	const struct jsn *host;
};

static struct docker fake_docker(void)
{
	static char init[] = "/x/init", install[] = "wrk_1", network[] = "bridge";

	return (struct docker){ .init = init,
		.install = install,
		.network = network,
		.pids_max = 4096,
		.uid = 65534,
		.gid = 65534,
		.tmp_max = 1 << 30 };
}

static struct made make(struct docker *d, const struct runtime_spec *s)
{
	struct made m = { arena_new(1 << 20), NULL, NULL };
	struct buf b;
	struct err e;

	buf_init(&b, DOCKER_BODY_MAX);
	docker_create_body(d, s, "sha256:1", m.a, &b);
	assert_int_equal(jsn_parse(buf_str(&b), &m.doc, &e), 0);
	buf_done(&b);
	m.host = jsn_get(jsn_root(m.doc), "HostConfig");
	return m;
}

static void drop(struct made *m)
{
	jsn_doc_free(m->doc);
	arena_drop(m->a);
}

static struct runtime_spec spec(void)
{
	static const char *const argv[] = { "true", NULL };

	return (struct runtime_spec){ .attempt = "att_1",
		.step = "stp_1",
		.argv = argv,
		.ctl = "/w/ctl",
		.secrets_dir = "/w/s",
		.work = "/w/code",
		.in = "/w/in",
		.out = "/w/out",
		.image = "x:1",
		.memory = INT64_C(1) << 30,
		.grace_s = 10 };
}

static void expect_text(const struct jsn *v, const char *pointer, const char *text)
{
	struct str got = jsn_get_str(jsn_find(v, pointer));

	assert_non_null(got.p);
	assert_string_equal(got.p, text);
}

static int64_t limit(const struct jsn *host, const char *name)
{
	const struct jsn *all = jsn_get(host, "Ulimits");

	for (size_t i = 0; i < jsn_count(all); i++)
		if (str_is(jsn_get_str(jsn_get(jsn_at(all, i), "Name")), name))
			return jsn_get_int(jsn_get(jsn_at(all, i), "Hard"), -2);
	return -2;
}

static bool has_env(const struct made *m, const char *item)
{
	const struct jsn *env = jsn_get(jsn_root(m->doc), "Env");

	for (size_t i = 0; i < jsn_count(env); i++)
		if (str_is(jsn_get_str(jsn_at(env, i)), item))
			return true;
	return false;
}

void test_docker_create__the_baseline(void **state)
{
	struct docker d = fake_docker();
	struct runtime_spec s = spec();
	struct made m = make(&d, &s);

	(void)state;
	expect_text(jsn_root(m.doc), "/Image", "sha256:1");
	expect_text(m.host, "/CapDrop/0", "ALL");
	expect_text(m.host, "/SecurityOpt/0", "no-new-privileges");
	assert_int_equal(jsn_count(jsn_get(m.host, "SecurityOpt")), 1);
	assert_false(jsn_get_bool(jsn_get(m.host, "Privileged"), true));
	assert_false(jsn_get_bool(jsn_get(m.host, "AutoRemove"), true));
	assert_int_equal(jsn_get_int(jsn_get(m.host, "PidsLimit"), 0), 4096);
	assert_int_equal(jsn_get_int(jsn_get(m.host, "Memory"), 0), 1 << 30);
	assert_int_equal(jsn_get_int(jsn_get(m.host, "MemorySwap"), 0), 1 << 30);
	assert_int_equal(jsn_get_int(jsn_get(m.host, "ShmSize"), 0), 1 << 29);
	assert_int_equal(jsn_get_int(jsn_get(m.host, "OomScoreAdj"), 0), 500);
	expect_text(m.host, "/IpcMode", "private");
	expect_text(m.host, "/CgroupnsMode", "private");
	expect_text(m.host, "/LogConfig/Type", "none");
	expect_text(m.host, "/RestartPolicy/Name", "no");
	assert_int_equal(limit(m.host, "core"), 0);
	struct rlimit own;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	assert_int_equal(limit(m.host, "nofile"), own.rlim_max < 65536 ? own.rlim_max : 65536);
	assert_int_equal(limit(m.host, "memlock"), -2);
	/* /tmp takes half of the step's memory at most. */
	expect_text(m.host, "/Tmpfs/~1tmp", "rw,exec,nosuid,nodev,mode=1777,size=536870912");
	assert_null(jsn_get(m.host, "Devices"));
	assert_null(jsn_get(m.host, "DeviceRequests"));
	assert_true(has_env(&m, "NVIDIA_VISIBLE_DEVICES=void"));
	drop(&m);
	d.tmp_max = 0;
	d.low_limits = true;
	m = make(&d, &s);
	assert_null(jsn_get(m.host, "Tmpfs"));
	assert_int_equal(limit(m.host, "nofile"), -2);
	drop(&m);
}

void test_docker_create__gpus_by_hook_or_by_cdi(void **state)
{
	struct docker d = fake_docker();
	struct runtime_spec s = spec();
	struct made m;

	(void)state;
	s.gpus = two_gpus;
	d.gpus = DOCKER_GPUS_HOOK;
	m = make(&d, &s);
	expect_text(m.host, "/DeviceRequests/0/Driver", "");
	expect_text(m.host, "/DeviceRequests/0/DeviceIDs/0", "GPU-1");
	expect_text(m.host, "/DeviceRequests/0/DeviceIDs/1", "MIG-2");
	expect_text(m.host, "/DeviceRequests/0/Capabilities/0/0", "gpu");
	assert_false(has_env(&m, "NVIDIA_VISIBLE_DEVICES=void"));
	drop(&m);
	d.gpus = DOCKER_GPUS_CDI;
	m = make(&d, &s);
	expect_text(m.host, "/DeviceRequests/0/Driver", "cdi");
	expect_text(m.host, "/DeviceRequests/0/DeviceIDs/0", "nvidia.com/gpu=GPU-1");
	expect_text(m.host, "/DeviceRequests/0/DeviceIDs/1", "nvidia.com/gpu=MIG-2");
	assert_null(jsn_find(m.host, "/DeviceRequests/0/Capabilities"));
	assert_true(has_env(&m, "NVIDIA_VISIBLE_DEVICES=void"));
	drop(&m);
}

void test_docker_create__rdma_is_for_steps_with_gpus(void **state)
{
	struct docker d = fake_docker();
	struct runtime_spec s = spec();
	struct made m;

	(void)state;
	d.rdma = true;
	m = make(&d, &s);
	assert_null(jsn_get(m.host, "Devices"));
	assert_int_equal(limit(m.host, "memlock"), -2);
	drop(&m);
	s.gpus = two_gpus;
	m = make(&d, &s);
	assert_int_equal(jsn_type(jsn_get(m.host, "Devices")), JSN_LIST);
	assert_int_equal(limit(m.host, "memlock"), -1);
	drop(&m);
}

static void write_spec(const char *root, const char *name, const char *text)
{
	char path[512];
	struct err e;

	(void)str_print(path, sizeof path, "%s/etc/cdi", root);
	assert_int_equal(fs_mkdirs(path, 0755, &e), 0);
	(void)str_print(path, sizeof path, "%s/etc/cdi/%s", root, name);
	assert_int_equal(fs_write_atomic(path, str_c(text), 0644, &e), 0);
}

static enum docker_gpus how(const char *fake_info, const char *root)
{
	struct jsn_doc *doc;
	struct err e;

	assert_int_equal(jsn_parse(str_c(fake_info), &doc, &e), 0);
	enum docker_gpus found = docker_gpus_how(jsn_root(doc), root);
	jsn_doc_free(doc);
	return found;
}

void test_docker_create__what_the_host_has_is_found_out(void **state)
{
	static const char old[] = "{\"Runtimes\":{\"runc\":{},\"nvidia\":{}},\"CDISpecDirs\":null}";
	static const char none[] = "{\"Runtimes\":{\"runc\":{}}}";
	static const char cdi[] =
		"{\"Runtimes\":{\"runc\":{},\"nvidia\":{}},\"CDISpecDirs\":[\"/etc/"
		"cdi\",\"/var/run/cdi\"]}";
	char root[] = "/tmp/tidemill-cdi-XXXXXX";
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(how(none, root), DOCKER_GPUS_NONE);
	assert_int_equal(how(old, root), DOCKER_GPUS_HOOK);
	/* A daemon that could, on a host without a specification, or with one by index alone. */
	assert_int_equal(how(cdi, root), DOCKER_GPUS_HOOK);
	write_spec(root, "other.yaml", "kind: vendor.com/net\ndevices: [{name: GPU-1}]\n");
	write_spec(root, "nvidia.yaml", "kind: nvidia.com/gpu\ndevices: [{name: \"0\"}]\n");
	assert_int_equal(how(cdi, root), DOCKER_GPUS_HOOK);
	write_spec(root, "nvidia.yaml",
		"kind: nvidia.com/gpu\ndevices: [{name: \"0\"}, {name: GPU-1}]\n");
	assert_int_equal(how(cdi, root), DOCKER_GPUS_CDI);
	assert_int_equal(how(old, root), DOCKER_GPUS_HOOK);
	assert_int_equal(fs_remove_tree(root, &e), 0);
}
