#include "worker/launcher.h"

#include "api/pipeline.h"
#include "lib/base/ip.h"
#include "lib/json/json_write.h"

enum { TF_MAX = 65536, ADDRESS_MAX = 300 };

/* ---- variables ------------------------------------------------------------------------------ */

struct vars {
	struct arena *a;
	const struct launcher_args *args;
	struct buf *out;
};

static bool is_own(const struct assignment *t, const char *name)
{
	for (size_t i = 0; i < t->env.n; i++)
		if (str_is(list_at(&t->env, struct field_pair, i)->key, name))
			return true;
	return false;
}

static void put(const struct vars *v, const char *name, struct str value)
{
	if (strncmp(name, "TIDEMILL_", 9) != 0 && is_own(v->args->task, name))
		return;
	buf_addf(v->out, "%s=%.*s", name, STR_ARG(value));
	buf_addc(v->out, '\0');
}

static void put_number(const struct vars *v, const char *name, int64_t n)
{
	put(v, name, arena_printf(v->a, "%lld", (long long)n));
}

static const struct rank_place *rank_at(const struct launcher_args *a, size_t i)
{
	return list_at(a->ranks, struct rank_place, i);
}

/* "10.0.0.1:29400", "[fd00::1]:29400" */
static const char *endpoint(char out[ADDRESS_MAX], const struct rank_place *r)
{
	bool six = str_find_char(r->address, ':') >= 0;

	(void)str_print(out, ADDRESS_MAX, "%s%.*s%s:%lld", six ? "[" : "", STR_ARG(r->address),
		six ? "]" : "", (long long)r->port);
	return out;
}

static void put_own(const struct vars *v)
{
	const struct launcher_args *a = v->args;
	const struct assignment *t = a->task;

	put_number(v, "TIDEMILL_NODE_RANK", t->rank);
	put_number(v, "TIDEMILL_NUM_NODES", (int64_t)a->ranks->n);
	buf_adds(v->out, "TIDEMILL_NODE_IPS=");
	for (size_t i = 0; i < a->ranks->n; i++)
		buf_addf(v->out, "%s%.*s", i != 0 ? "\n" : "", STR_ARG(rank_at(a, i)->address));
	buf_addc(v->out, '\0');
	put(v, "TIDEMILL_MASTER_ADDR", rank_at(a, 0)->address);
	put_number(v, "TIDEMILL_MASTER_PORT", rank_at(a, 0)->port);
	put_number(v, "TIDEMILL_GPUS_PER_NODE", (int64_t)t->devices.n);
	put_number(v, "TIDEMILL_GPUS_TOTAL", (int64_t)(t->devices.n * a->ranks->n));
	put(v, "TIDEMILL_HOSTFILE", str_c(a->hostfile));
}

/* Without these the libraries guess by the host's name, which is seldom the right interface. */
static void put_interfaces(const struct vars *v)
{
	const struct launcher_args *a = v->args;

	if (a->here->interface[0] != '\0') {
		put(v, "GLOO_SOCKET_IFNAME", str_c(a->here->interface));
		put(v, "NCCL_SOCKET_IFNAME", arena_printf(v->a, "=%s", a->here->interface));
	}
	if (a->task->devices.n == 0)
		return;
	put(v, "NCCL_DEBUG", STR("WARN"));
	put(v, "TORCH_NCCL_ASYNC_ERROR_HANDLING", STR("1"));
	if (!a->rdma)
		put(v, "NCCL_IB_DISABLE", STR("1"));
}

static void put_master(const struct vars *v)
{
	put(v, "MASTER_ADDR", rank_at(v->args, 0)->address);
	put_number(v, "MASTER_PORT", rank_at(v->args, 0)->port);
}

/* torchrun reads PET_… for each of its flags; a flag that is given wins. */
static void put_torchrun(const struct vars *v)
{
	const struct launcher_args *a = v->args;
	const struct assignment *t = a->task;
	size_t procs = t->devices.n != 0 ? t->devices.n : 1;
	char text[ADDRESS_MAX];

	put_master(v);
	put_number(v, "WORLD_SIZE", (int64_t)(a->ranks->n * procs));
	put_number(v, "NODE_RANK", t->rank);
	put_number(v, "PET_NNODES", (int64_t)a->ranks->n);
	put_number(v, "PET_NPROC_PER_NODE", (int64_t)procs);
	put_number(v, "PET_NODE_RANK", t->rank);
	put(v, "PET_RDZV_BACKEND", STR("c10d"));
	put(v, "PET_RDZV_ENDPOINT", str_c(endpoint(text, rank_at(a, 0))));
	put(v, "PET_RDZV_ID",
		arena_printf(v->a, "%.*s-%lld", STR_ARG(t->step), (long long)t->number));
	put(v, "PET_RDZV_CONF", arena_printf(v->a, "is_host=%d", t->rank == 0));
	put(v, "PET_LOCAL_ADDR", rank_at(a, (size_t)t->rank)->address);
}

/* One process for each node. */
static void put_plain(const struct vars *v)
{
	put_master(v);
	put_number(v, "RANK", v->args->task->rank);
	put_number(v, "WORLD_SIZE", (int64_t)v->args->ranks->n);
	put(v, "LOCAL_RANK", STR("0"));
	put(v, "LOCAL_WORLD_SIZE", STR("1"));
}

static void put_tensorflow(const struct vars *v)
{
	const struct launcher_args *a = v->args;
	char text[ADDRESS_MAX];
	struct buf b;

	buf_init(&b, TF_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "cluster");
	jsn_obj_begin(&w);
	jsn_key(&w, "worker");
	jsn_list_begin(&w);
	for (size_t i = 0; i < a->ranks->n; i++)
		jsn_str(&w, str_c(endpoint(text, rank_at(a, i))));
	jsn_list_end(&w);
	jsn_obj_end(&w);
	jsn_key(&w, "task");
	jsn_obj_begin(&w);
	jsn_key(&w, "type");
	jsn_str(&w, STR("worker"));
	jsn_key(&w, "index");
	jsn_int(&w, a->task->rank);
	jsn_obj_end(&w);
	jsn_obj_end(&w);
	put(v, "TF_CONFIG", buf_str(&b));
	buf_done(&b);
}

static void put_jax(const struct vars *v)
{
	const struct launcher_args *a = v->args;
	char text[ADDRESS_MAX];

	put(v, "JAX_COORDINATOR_ADDRESS", str_c(endpoint(text, rank_at(a, 0))));
	put_number(v, "JAX_NUM_PROCESSES", (int64_t)a->ranks->n);
	put_number(v, "JAX_PROCESS_ID", a->task->rank);
	put(v, "KERAS_DISTRIBUTION_JOB_ADDRESSES", str_c(endpoint(text, rank_at(a, 0))));
	put_number(v, "KERAS_DISTRIBUTION_NUM_PROCESSES", (int64_t)a->ranks->n);
	put_number(v, "KERAS_DISTRIBUTION_PROCESS_ID", a->task->rank);
}

/* mpirun hands it on to all ranks, whose interfaces may be called otherwise: networks are the same
 * everywhere, and who is in another one is named by the address. Open MPI takes those of IPv4. */
static void put_networks(const struct vars *v)
{
	const char *network = v->args->here->network;
	struct ip_net net;
	struct ip ip;
	struct err e;
	struct buf list;

	if (network[0] == '\0' || ip_net_parse(str_c(network), &net, &e) < 0)
		return;
	buf_init(&list, NODES_MAX * ADDRESS_MAX);
	buf_adds(&list, network);
	for (size_t i = 0; i < v->args->ranks->n; i++) {
		struct str at = rank_at(v->args, i)->address;
		if (ip_parse(at, &ip) && str_find_char(at, ':') < 0 && !ip_net_has(&net, &ip))
			buf_addf(&list, ",%.*s/32", STR_ARG(at));
	}
	put(v, "OMPI_MCA_btl_tcp_if_include", buf_str(&list));
	buf_done(&list);
}

static void put_mpi(const struct vars *v)
{
	put_master(v);
	put(v, "OMPI_MCA_orte_default_hostfile", str_c(v->args->hostfile));
	put(v, "PRTE_MCA_prte_default_hostfile", str_c(v->args->hostfile));
	put(v, "HYDRA_HOST_FILE", str_c(v->args->hostfile));
	put_networks(v);
}

void launcher_env(const struct launcher_args *args, struct arena *a, struct buf *out)
{
	const struct vars v = { a, args, out };

	put_own(&v);
	put_interfaces(&v);
	switch ((enum launcher_kind)args->task->launcher) {
	case LAUNCHER_TORCHRUN: put_torchrun(&v); break;
	case LAUNCHER_TENSORFLOW: put_tensorflow(&v); break;
	case LAUNCHER_JAX: put_jax(&v); break;
	case LAUNCHER_MPI: put_mpi(&v); break;
	case LAUNCHER_RAY: break; /* its command line has what it needs */
	case LAUNCHER_PLAIN:
	case LAUNCHER_COUNT: put_plain(&v); break;
	}
}

void launcher_hostfile(const struct assignment *t, const struct list *ranks, struct buf *out)
{
	for (size_t i = 0; i < ranks->n; i++)
		buf_addf(out, "%.*s slots=%zu\n",
			STR_ARG(list_at(ranks, struct rank_place, i)->address),
			t->devices.n != 0 ? t->devices.n : 1);
}

/* ---- commands ------------------------------------------------------------------------------- */

#define RAY_NODE                                                                                   \
	" --node-ip-address=\"$(printf '%s\\n' \"$TIDEMILL_NODE_IPS\" |"                           \
	" sed -n \"$((TIDEMILL_NODE_RANK + 1))p\")\""                                              \
	" --num-gpus=\"$TIDEMILL_GPUS_PER_NODE\" --disable-usage-stats"

/* The end of the command is the end of all; what ray has left running ends with it. */
static const char ray_head[] =
	"ray start --head --port=\"$TIDEMILL_MASTER_PORT\"" RAY_NODE " && export"
	" RAY_ADDRESS=\"$TIDEMILL_MASTER_ADDR:$TIDEMILL_MASTER_PORT\""
	" && exec \"$@\"";
/* The head may need a moment. */
static const char ray_node[] =
	"n=0; until ray start --address=\"$TIDEMILL_MASTER_ADDR:$TIDEMILL_MASTER_PORT\"" RAY_NODE
	" --block; do n=$((n + 1)); [ \"$n\" -lt 30 ] || exit 1; sleep 2; done";

const char *const *launcher_argv(struct arena *a, const struct assignment *t)
{
	const char **argv = arena_array_of(a, const char *, t->argv.n + 5);
	size_t n = 0;
	bool ray = t->ranks != 0 && t->launcher == LAUNCHER_RAY;

	if (ray) {
		argv[n++] = "/bin/sh";
		argv[n++] = "-c";
		argv[n++] = t->rank == 0 ? ray_head : ray_node;
		argv[n++] = "sh";
	}
	for (size_t i = 0; i < t->argv.n && (!ray || t->rank == 0); i++)
		argv[n++] = list_at(&t->argv, struct str, i)->p;
	return argv;
}
