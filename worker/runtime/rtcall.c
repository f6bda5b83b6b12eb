#include "worker/runtime/rtcall.h"

#include "lib/base/mem.h"
#include "lib/loop/defer.h"

enum { RTCALL_MEMORY = 32 << 20 };

void *rtcall_new(struct rtcalls *all, size_t size, enum rtcall_kind kind,
	rtcall_abandon_fn *abandon, void *arg)
{
	struct rtcall *c = mem_new(1, size);

	c->all = all;
	c->kind = kind;
	c->abandon = abandon;
	c->arg = arg;
	c->a = arena_new(RTCALL_MEMORY);
	c->attempt = "";
	c->next = all->first;
	if (c->next != NULL)
		c->next->prev = c;
	all->first = c;
	return c;
}

static const char *copy(struct arena *a, const char *s)
{
	return s != NULL ? arena_dup(a, str_c(s)) : NULL;
}

void rtcall_set_ref(struct rtcall *c, const struct runtime_ref *r)
{
	c->ref = (struct runtime_ref){
		.attempt = copy(c->a, r->attempt),
		.ctl = copy(c->a, r->ctl),
		.secrets_dir = copy(c->a, r->secrets_dir),
	};
	c->attempt = c->ref.attempt;
}

static void unlink_call(struct rtcall *c)
{
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		c->all->first = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
}

static void deliver(struct rtcall *c)
{
	c->delivered = true;
	unlink_call(c);
	switch (c->kind) {
	case RTCALL_PROBE: c->fn.about(c->arg, &c->about); break;
	case RTCALL_START: c->fn.started(c->arg, &c->started, &c->err); break;
	case RTCALL_POLL: c->fn.status(c->arg, &c->status, &c->err); break;
	case RTCALL_LIST: c->fn.list(c->arg, c->found, c->n_found, &c->err); break;
	case RTCALL_STOP:
	case RTCALL_REMOVE: c->fn.done(c->arg, &c->err); break;
	}
}

static void rtcall_free(void *arg)
{
	struct rtcall *c = arg;

	if (!c->delivered)
		deliver(c);
	mem_free(c->found);
	arena_drop(c->a);
	mem_free(c);
}

void rtcall_settle(struct rtcall *c, const struct err *e)
{
	BUG_ON(c->settled);
	c->settled = true;
	c->err = e != NULL ? *e : (struct err){ .code = ERR_OK };
	loop_defer(c->all->loop, rtcall_free, c);
}

struct rtcall *rtcall_find(const struct rtcalls *all, enum rtcall_kind kind, const char *attempt)
{
	for (struct rtcall *c = all->first; c != NULL; c = c->next)
		if (c->kind == kind && !c->settled && strcmp(c->attempt, attempt) == 0)
			return c;
	return NULL;
}

void rtcalls_cancel(struct rtcalls *all)
{
	struct err e;

	(void)err_set(&e, ERR_CANCELLED, "the worker is ending");
	while (all->first != NULL) {
		struct rtcall *c = all->first;
		if (!c->settled) {
			c->abandon(c);
			if (c->kind == RTCALL_PROBE)
				(void)str_print(c->about.note, sizeof c->about.note, "%s", e.msg);
			rtcall_settle(c, &e);
		}
		deliver(c);
	}
}

static const char *const *copy_list(struct arena *a, const char *const *list)
{
	static const char *const none[] = { NULL };
	const char **out;
	size_t n = 0;

	if (list == NULL)
		return none;
	while (list[n] != NULL)
		n++;
	out = arena_array_of(a, const char *, n + 1);
	for (size_t i = 0; i < n; i++)
		out[i] = copy(a, list[i]);
	return out;
}

const struct runtime_spec *rtcall_copy_spec(struct arena *a, const struct runtime_spec *s)
{
	struct runtime_spec *c = arena_new_of(a, struct runtime_spec);
	struct runtime_mount *mounts = arena_array_of(a, struct runtime_mount, s->n_mounts + 1);
	struct runtime_secret *secrets = arena_array_of(a, struct runtime_secret, s->n_secrets + 1);

	*c = *s;
	c->attempt = copy(a, s->attempt);
	c->step = copy(a, s->step);
	c->argv = copy_list(a, s->argv);
	c->env = copy_list(a, s->env);
	c->secret_env = copy_list(a, s->secret_env);
	c->gpus = copy_list(a, s->gpus);
	c->ctl = copy(a, s->ctl);
	c->secrets_dir = copy(a, s->secrets_dir);
	c->work = copy(a, s->work);
	c->in = copy(a, s->in);
	c->out = copy(a, s->out);
	c->image = copy(a, s->image);
	c->image_ref = copy(a, s->image_ref);
	for (size_t i = 0; i < s->n_mounts; i++)
		mounts[i] = (struct runtime_mount){ copy(a, s->mounts[i].host),
			copy(a, s->mounts[i].inside), s->mounts[i].read_only };
	for (size_t i = 0; i < s->n_secrets; i++)
		secrets[i] = (struct runtime_secret){ copy(a, s->secrets[i].name),
			arena_str(a, s->secrets[i].bytes) };
	c->mounts = mounts;
	c->secrets = secrets;
	return c;
}
