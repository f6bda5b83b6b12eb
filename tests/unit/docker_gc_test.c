/* worker/runtime/docker_gc.h: when it looks. */
#include "worker/runtime/docker_gc.h"

#include "lib/base/clock.h"
#include "lib/fetch/fetch.h"
#include "lib/loop/loop.h"
#include "tests/unit/unit.h"
#include "worker/runtime/docker_keep.h"

#include <stdlib.h>
#include <unistd.h>

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

/* A disk that is full of other data. */
void test_docker_gc__what_was_used_just_now_stays(void **state)
{
	const struct runtime_docker_config c = {
		.disk_high = 1, .disk_low = 0, .image_keep = 600 * CLOCK_SECOND
	};
	const struct fetch_options http = { .base_url = "http://docker",
		.unix_socket = "/no/such/socket" };
	char path[] = "/no/such/images.json";
	struct docker_kept image = { .id = "sha256:aa", .names = { "r/a:1" }, .n_names = 1 };
	struct docker_keep keep = { .path = path, .all = &image, .n = 1 };
	struct docker *d = calloc(1, sizeof *d);
	struct err e;

	(void)state;
	assert_non_null(d);
	d->keep = &keep;
	d->calls.loop = loop_new();
	d->http = fetch_client_new(d->calls.loop, &http, &e);
	assert_non_null(d->http);
	(void)str_print(d->root, sizeof d->root, "/");
	docker_gc_open(d, &c);
	(void)alarm(20);
	image.used_at = clock_now(&clock_real) - 60 * CLOCK_SECOND;
	docker_gc_soon(d);
	while (!d->gc.short_of)
		loop_step(d->calls.loop, true);
	assert_null(d->gc.request);
	assert_true(docker_gc_force(d)); /* a pull has found no space */
	while (d->gc.request == NULL)
		loop_step(d->calls.loop, true);
	while (d->gc.request != NULL)
		loop_step(d->calls.loop, true);
	image.used_at = clock_now(&clock_real) - 601 * CLOCK_SECOND;
	docker_gc_soon(d);
	while (d->gc.request == NULL)
		loop_step(d->calls.loop, true);
	(void)alarm(0);
	d->closing = true;
	docker_gc_close(d);
	fetch_client_free(d->http);
	loop_free(d->calls.loop);
	free(d);
}
