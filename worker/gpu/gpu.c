#include "worker/gpu/gpu.h"

int gpu_list(struct gpu_source *s, struct arena *a, struct gpu_inventory *ret, struct err *e)
{
	if (s != NULL)
		return s->ops->list(s, a, ret, e);
	*ret = (struct gpu_inventory){ NULL, 0 };
	return 0;
}

void gpu_close(struct gpu_source *s)
{
	if (s != NULL)
		s->ops->close(s);
}

const char *gpu_health_name(enum gpu_health h)
{
	static const char *const names[GPU_HEALTH_COUNT] = { "ok", "failed", "lost" };

	BUG_ON((unsigned)h >= GPU_HEALTH_COUNT);
	return names[h];
}
