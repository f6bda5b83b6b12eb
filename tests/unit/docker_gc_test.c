/* worker/runtime/docker_gc.h: when it looks. */
#include "worker/runtime/docker_gc.h"

#include "lib/base/clock.h"
#include "lib/loop/loop.h"
#include "tests/unit/unit.h"
#include "worker/runtime/docker_keep.h"

#include <stdlib.h>

/* Containers that come and go all the time do not put it off. */
void test_docker_gc__it_looks_while_much_happens(void **state)
{
	const struct runtime_docker_config c = { .disk_high = 85, .disk_low = 80 };
	int64_t end = clock_elapsed(&clock_real) + 5 * CLOCK_SECOND;
	char path[] = "/no/such/images.json";
	struct docker_keep keep = { .path = path };
	struct docker *d = calloc(1, sizeof *d);

	(void)state;
	assert_non_null(d);
	d->keep = &keep;
	d->calls.loop = loop_new();
	docker_gc_open(d, &c);
	while (d->gc.used >= 0) { /* -1: of a disk that is not known, once it has looked */
		assert_true(clock_elapsed(&clock_real) < end);
		docker_gc_soon(d);
		loop_step(d->calls.loop, false);
	}
	docker_gc_close(d);
	loop_free(d->calls.loop);
	free(d);
}
