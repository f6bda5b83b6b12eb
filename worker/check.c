#include "worker/check.h"

#include "lib/base/num.h"
#include "lib/loop/loop.h"
#include "worker/gpus.h"

#include <stdio.h>
#include <unistd.h>

static void on_gpus(void *arg)
{
	(void)arg;
}

static void say(const char *what, const char *value, const char *more)
{
	(void)printf("%-12s %s%s%s\n", what, value, more[0] != '\0' ? "  " : "", more);
}

static int say_runtimes(const struct agent *g)
{
	int usable = 0;

	for (int i = 0; i < RUNTIME_COUNT; i++) {
		const struct agent_runtime *rt = &g->runtimes[i];
		if (rt->r == NULL)
			continue;
		usable += rt->about.ok;
		say(runtime_names[i], rt->about.ok ? "usable" : "not usable", rt->about.version);
		if (rt->about.note[0] != '\0')
			say("", rt->about.note, "");
		if (rt->about.ok)
			say("",
				rt->about.survives_daemon
					? "steps go on when its daemon restarts"
					: "steps end when its daemon restarts: set live-restore",
				"");
	}
	return usable;
}

static void say_gpus(const struct agent *g)
{
	const struct list *all = gpus_list(g->gpus);
	char size[NUM_SIZE_MAX];

	if (gpus_complaint(g->gpus)[0] != '\0')
		say("GPUs", gpus_complaint(g->gpus), "");
	else if (all->n == 0)
		say("GPUs", "none", "");
	for (size_t i = 0; i < all->n; i++) {
		const struct device *d = list_at(all, struct device, i);
		(void)printf("%-12s %s  %s  %s  %s\n", "GPU", d->model.p,
			num_format_size(size, (uint64_t)d->memory), d->uuid.p,
			d->health.n != 0 ? d->health.p : "well");
	}
}

static void say_host(const struct agent *g)
{
	const char *dir = g->conf.work_dir.p;
	char size[NUM_SIZE_MAX];

	(void)printf("%-12s %s, worker %s\n", "server", g->conf.server.p,
		g->credential.worker_id.n != 0 ? g->credential.worker_id.p : "not enrolled yet");
	(void)printf("%-12s %.2f cores, %s of memory\n", "host",
		g->conf.cpus > 0 ? g->conf.cpus : g->host.cpus,
		num_format_size(
			size, (uint64_t)(g->conf.memory > 0 ? g->conf.memory : g->host.memory)));
	(void)printf("%-12s %s, %s free\n", "work-dir", dir,
		access(dir, W_OK) == 0 ? num_format_size(size, (uint64_t)host_disk_free(dir))
				       : "cannot be written to or is not there;  unknown");
}

int check_run(struct agent *g, struct err *e)
{
	int usable;

	if (host_read(&g->host, e) < 0 || agent_find_init(g, e) < 0)
		return -1;
	g->gpus = gpus_new(
		g->loop, g->conf.nvml_library.n != 0 ? g->conf.nvml_library.p : NULL, on_gpus, g);
	if (agent_open_runtimes(g, e) < 0)
		return -1;
	agent_probe(g);
	while (g->waiting != 0 || !gpus_ready(g->gpus))
		loop_step(g->loop, true);
	say_host(g);
	usable = say_runtimes(g);
	say_gpus(g);
	return usable != 0 ? 0 : err_set(e, ERR_UNAVAILABLE, "no runtime can be used");
}
