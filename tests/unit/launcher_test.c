/* worker/launcher.h, worker/rank.h: what a rank is told, and where it is. */
#include "api/pipeline.h"
#include "lib/json/json_read.h"
#include "tests/unit/unit.h"
#include "worker/conf.h"
#include "worker/launcher.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct rank_place places[] = { { { "10.0.0.7", 8 }, 29400 },
	{ { "fd00::8", 7 }, 29401 } };
static const struct list both = { (void *)(uintptr_t)places, 2 };

struct told {
	struct arena *a;
	struct assignment task;
	struct rank_address here;
	bool rdma;
	struct buf env;
};

static void begin(struct told *t, int launcher, int64_t rank)
{
	*t = (struct told){ .a = arena_new(1 << 20),
		.task = { .step = STR("stp_1"), .number = 3, .rank = rank, .ranks = 2 },
		.here = { .address = "10.0.0.7", .interface = "eth1", .port = 29400 } };
	t->task.launcher = launcher;
	buf_init(&t->env, 1 << 20);
}

static void tell(struct told *t)
{
	const struct launcher_args args = { &t->task, &both, &t->here, "/in/hostfile", t->rdma };

	buf_clear(&t->env);
	launcher_env(&args, t->a, &t->env);
	assert_false(buf_failed(&t->env));
}

static void end(struct told *t)
{
	buf_done(&t->env);
	arena_drop(t->a);
}

/* Of a variable that is there once; NULL: it is not. */
static const char *value(const struct told *t, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (size_t at = 0; at < t->env.n; at += strlen(t->env.p + at) + 1)
		if (strncmp(t->env.p + at, name, n) == 0 && t->env.p[at + n] == '=') {
			assert_null(found);
			found = t->env.p + at + n + 1;
		}
	return found;
}

static void has(const struct told *t, const char *name, const char *wanted)
{
	assert_non_null(value(t, name));
	assert_string_equal(value(t, name), wanted);
}

static void give_gpus(struct told *t, size_t n)
{
	struct str *uuids = arena_array_of(t->a, struct str, n);

	for (size_t i = 0; i < n; i++)
		uuids[i] = STR("GPU-1");
	t->task.devices = (struct list){ uuids, n };
}

void test_launcher__what_every_rank_has(void **state)
{
	struct told t;

	(void)state;
	begin(&t, LAUNCHER_PLAIN, 1);
	tell(&t);
	has(&t, "TIDEMILL_NODE_RANK", "1");
	has(&t, "TIDEMILL_NUM_NODES", "2");
	has(&t, "TIDEMILL_NODE_IPS", "10.0.0.7\nfd00::8");
	has(&t, "TIDEMILL_MASTER_ADDR", "10.0.0.7");
	has(&t, "TIDEMILL_MASTER_PORT", "29400");
	has(&t, "TIDEMILL_HOSTFILE", "/in/hostfile");
	has(&t, "TIDEMILL_GPUS_TOTAL", "0");
	has(&t, "GLOO_SOCKET_IFNAME", "eth1");
	has(&t, "NCCL_SOCKET_IFNAME", "=eth1");
	assert_null(value(&t, "NCCL_DEBUG"));
	has(&t, "RANK", "1");
	has(&t, "WORLD_SIZE", "2");
	has(&t, "LOCAL_RANK", "0");
	t.here.interface[0] = '\0'; /* the address is a name, or another host's */
	give_gpus(&t, 4);
	tell(&t);
	assert_null(value(&t, "GLOO_SOCKET_IFNAME"));
	has(&t, "TIDEMILL_GPUS_TOTAL", "8");
	has(&t, "NCCL_DEBUG", "WARN");
	has(&t, "NCCL_IB_DISABLE", "1");
	t.rdma = true;
	tell(&t);
	assert_null(value(&t, "NCCL_IB_DISABLE"));
	end(&t);
}

void test_launcher__torchrun(void **state)
{
	struct told t;

	(void)state;
	begin(&t, LAUNCHER_TORCHRUN, 0);
	give_gpus(&t, 8);
	tell(&t);
	has(&t, "MASTER_ADDR", "10.0.0.7");
	has(&t, "WORLD_SIZE", "16");
	has(&t, "NODE_RANK", "0");
	has(&t, "PET_NPROC_PER_NODE", "8");
	has(&t, "PET_RDZV_ENDPOINT", "10.0.0.7:29400");
	has(&t, "PET_RDZV_ID", "stp_1-3");
	has(&t, "PET_RDZV_CONF", "is_host=1");
	has(&t, "PET_LOCAL_ADDR", "10.0.0.7");
	assert_null(value(&t, "RANK")); /* torchrun says it itself */
	t.task.rank = 1;
	tell(&t);
	has(&t, "PET_RDZV_CONF", "is_host=0");
	has(&t, "PET_LOCAL_ADDR", "fd00::8");
	end(&t);
}

void test_launcher__what_the_step_says_stands(void **state)
{
	struct field_pair own[] = { { STR("MASTER_PORT"), STR("1") },
		{ STR("TIDEMILL_NODE_RANK"), STR("9") } };
	struct told t;

	(void)state;
	begin(&t, LAUNCHER_PLAIN, 0);
	t.task.env = (struct list){ own, 2 };
	tell(&t);
	assert_null(value(&t, "MASTER_PORT"));
	has(&t, "TIDEMILL_NODE_RANK", "0");
	end(&t);
}

void test_launcher__tensorflow_jax_and_mpi(void **state)
{
	struct told t;
	struct jsn_doc *d;
	struct err e;

	(void)state;
	begin(&t, LAUNCHER_TENSORFLOW, 1);
	tell(&t);
	assert_int_equal(jsn_parse(str_c(value(&t, "TF_CONFIG")), &d, &e), 0);
	const struct jsn *all = jsn_get(jsn_get(jsn_root(d), "cluster"), "worker");
	assert_true(str_is(jsn_get_str(jsn_at(all, 0)), "10.0.0.7:29400"));
	assert_true(str_is(jsn_get_str(jsn_at(all, 1)), "[fd00::8]:29401"));
	assert_int_equal(jsn_get_int(jsn_get(jsn_get(jsn_root(d), "task"), "index"), 0), 1);
	jsn_doc_free(d);
	t.task.launcher = LAUNCHER_JAX;
	tell(&t);
	has(&t, "JAX_COORDINATOR_ADDRESS", "10.0.0.7:29400");
	has(&t, "JAX_PROCESS_ID", "1");
	has(&t, "KERAS_DISTRIBUTION_NUM_PROCESSES", "2");
	t.task.launcher = LAUNCHER_MPI;
	tell(&t);
	has(&t, "OMPI_MCA_orte_default_hostfile", "/in/hostfile");
	assert_null(value(&t, "OMPI_MCA_btl_tcp_if_include"));
	end(&t);
}

/* Of all ranks: mpirun hands it on. */
void test_launcher__networks_of_mpi(void **state)
{
	struct rank_place far[] = { { STR("10.0.0.7"), 1 }, { STR("10.0.0.9"), 2 },
		{ STR("10.0.1.7"), 3 }, { STR("fd00::8"), 4 } };
	const struct list ranks = { far, 4 };
	struct told t;

	(void)state;
	begin(&t, LAUNCHER_MPI, 0);
	(void)str_print(t.here.network, sizeof t.here.network, "10.0.0.0/24");
	const struct launcher_args args = { &t.task, &ranks, &t.here, "/in/hostfile", false };
	launcher_env(&args, t.a, &t.env);
	has(&t, "OMPI_MCA_btl_tcp_if_include", "10.0.0.0/24,10.0.1.7/32");
	end(&t);
}

void test_launcher__hostfile_and_commands(void **state)
{
	struct str argv[] = { STR("python3"), STR("train.py") };
	struct told t;
	struct buf hosts;

	(void)state;
	begin(&t, LAUNCHER_RAY, 0);
	t.task.argv = (struct list){ argv, 2 };
	buf_init(&hosts, 65536);
	launcher_hostfile(&t.task, &both, &hosts);
	assert_true(str_is(buf_str(&hosts), "10.0.0.7 slots=1\nfd00::8 slots=1\n"));
	const char *const *head = launcher_argv(t.a, &t.task);
	assert_string_equal(head[0], "/bin/sh");
	assert_non_null(strstr(head[2], "ray start --head"));
	assert_string_equal(head[4], "python3");
	assert_string_equal(head[5], "train.py");
	assert_null(head[6]);
	t.task.rank = 1; /* serves, and runs nothing of the step */
	const char *const *node = launcher_argv(t.a, &t.task);
	assert_non_null(strstr(node[2], "--block"));
	assert_null(node[4]);
	t.task.ranks = 0;
	assert_string_equal(launcher_argv(t.a, &t.task)[0], "python3");
	buf_done(&hosts);
	end(&t);
}

/* ---- where a rank is ------------------------------------------------------------------------- */

void test_rank__address_of_the_way_or_as_it_is_set(void **state)
{
	struct worker_conf c = { .gang_port_first = 0 };
	struct rank_address r;
	struct err e;

	(void)state;
	assert_int_equal(rank_find(&c, "127.0.0.1", &r, &e), 0);
	assert_string_equal(r.address, "127.0.0.1");
	assert_string_equal(r.interface, "lo");
	assert_string_equal(r.network, "127.0.0.0/8");
	assert_true(r.port != 0);
	c.advertise_address = STR("gpu-01.lan"); /* nobody is asked where that is */
	assert_int_equal(rank_find(&c, "127.0.0.1", &r, &e), 0);
	assert_string_equal(r.address, "gpu-01.lan");
	assert_string_equal(r.interface, "");
	c.advertise_address = STR("192.0.2.1"); /* of no interface here */
	assert_int_equal(rank_find(&c, "127.0.0.1", &r, &e), 0);
	assert_string_equal(r.interface, "");
}

/* A port on which somebody listens. */
static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

void test_rank__port_is_a_free_one_of_those_allowed(void **state)
{
	struct rank_address r;
	struct err e;
	uint16_t port;
	int fd = listen_somewhere(&port);
	struct worker_conf c = { .gang_port_first = port, .gang_port_last = port };

	(void)state;
	assert_int_equal(rank_find(&c, "127.0.0.1", &r, &e), -1);
	assert_int_equal(e.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(e.msg, "none of the 1 ports of gang-ports is free"));
	(void)close(fd);
	assert_int_equal(rank_find(&c, "127.0.0.1", &r, &e), 0);
	assert_int_equal(r.port, port);
}
