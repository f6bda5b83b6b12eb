#include "worker/gpu/gpu.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The fake libraries lie beside this program. */
static const char *fake(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

	assert_true(n > 0);
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	assert_true(str_print(slash + 1, 64, "%s", name));
	return path;
}

static struct gpu_source *open_fake(const char *name)
{
	static const char *const names[] = { "GPUS", "MODEL", "MEMORY", "MIG", "LOST", "ROWS",
		"XID", "INIT", "NUMA", "LINKS" };
	struct gpu_source *s = NULL;
	struct err e;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char variable[40];
		assert_true(str_print(variable, sizeof variable, "FAKE_NVML_%s", names[i]));
		assert_int_equal(unsetenv(variable), 0);
	}
	assert_int_equal(gpu_nvml_open(fake(name), &s, &e), 0);
	assert_non_null(s);
	assert_string_equal(s->ops->name, "nvml");
	return s;
}

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

static struct gpu_inventory list(struct gpu_source *s, struct arena *a)
{
	struct gpu_inventory all;
	struct err e;

	assert_int_equal(gpu_list(s, a, &all, &e), 0);
	return all;
}

void test_gpu__no_library_is_no_gpu(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct gpu_source *s = (void *)a;
	struct err e;

	(void)state;
	assert_int_equal(gpu_nvml_open("/no/such/library.so", &s, &e), 0);
	assert_null(s);
	assert_int_equal(list(s, a).n, 0);
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__broken_library_is_an_error(void **state)
{
	struct gpu_source *s = NULL;
	struct err e;

	(void)state;
	assert_int_equal(gpu_nvml_open("/etc/passwd", &s, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_int_equal(gpu_nvml_open("libm.so.6", &s, &e), -1);
	assert_non_null(strstr(e.msg, "nvmlInit_v2"));
}

void test_gpu__no_driver_is_no_gpu(void **state)
{
	struct gpu_source *s;
	struct err e;

	(void)state;
	gpu_close(open_fake("libfake_nvml.so"));
	set("FAKE_NVML_INIT", "9");
	assert_int_equal(gpu_nvml_open(fake("libfake_nvml.so"), &s, &e), 0);
	assert_null(s);
	set("FAKE_NVML_INIT", "4");
	assert_int_equal(gpu_nvml_open(fake("libfake_nvml.so"), &s, &e), -1);
	assert_non_null(strstr(e.msg, "a fake error"));
	assert_int_equal(unsetenv("FAKE_NVML_INIT"), 0);
}

void test_gpu__devices_have_their_details(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	assert_int_equal(list(s, a).n, 0);
	set("FAKE_NVML_GPUS", "8");
	set("FAKE_NVML_MEMORY", "1000000000");
	struct gpu_inventory all = list(s, a);
	assert_int_equal(all.n, 8);
	const struct gpu_device *d = &all.devices[3];
	assert_string_equal(d->uuid, "GPU-00000003-0000-4000-8000-000000000000");
	assert_string_equal(d->model, "NVIDIA H100 80GB HBM3");
	assert_string_equal(d->driver, "535.104.05");
	assert_string_equal(d->pci, "00000000:13:00.0");
	assert_int_equal(d->memory, 1000000000);
	assert_int_equal(d->memory_used, 1 << 20);
	assert_int_equal(d->compute_major, 9);
	assert_int_equal(d->utilization, 13);
	assert_int_equal(d->health, GPU_OK);
	assert_string_equal(d->why, "");
	assert_false(d->mig);
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__neighbours_are_told(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	set("FAKE_NVML_GPUS", "8");
	struct gpu_inventory all = list(s, a);
	assert_int_equal(all.devices[0].numa, -1); /* there is no such device below /sys */
	assert_int_equal(all.devices[0].links, 0);
	set("FAKE_NVML_NUMA", "4");
	set("FAKE_NVML_LINKS", "2");
	all = list(s, a);
	assert_int_equal(all.devices[3].numa, 0);
	assert_int_equal(all.devices[4].numa, 1);
	assert_int_equal(all.devices[4].links, 1 << 5);
	assert_int_equal(all.devices[5].links, 1 << 4);
	set("FAKE_NVML_LINKS", "8");
	set("FAKE_NVML_MIG", "2"); /* what is split has no links */
	set("FAKE_NVML_LOST", "7"); /* nor has what is not there, which comes last */
	all = list(s, a);
	assert_int_equal(all.n, 8);
	assert_int_equal(all.devices[0].links, 0);
	assert_int_equal(all.devices[0].numa, 0);
	assert_int_equal(all.devices[1].links, 0x7c);
	assert_int_equal(all.devices[7].links, 0);
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__old_names_are_enough(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml_old.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	set("FAKE_NVML_GPUS", "2");
	set("FAKE_NVML_MIG", "2");
	struct gpu_inventory all = list(s, a);
	assert_int_equal(all.n, 2);
	assert_string_equal(all.devices[1].pci, "00000000:11:00.0");
	assert_int_equal(all.devices[1].utilization, -1);
	assert_int_equal(all.devices[1].links, 0);
	assert_false(all.devices[0].mig);
	assert_int_equal(all.devices[0].health, GPU_OK);
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__slices_are_listed(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	set("FAKE_NVML_GPUS", "2");
	set("FAKE_NVML_MIG", "3");
	struct gpu_inventory all = list(s, a);
	assert_true(all.devices[0].mig);
	assert_int_equal(all.devices[0].n_slices, 3);
	assert_string_equal(
		all.devices[0].slices[2].uuid, "MIG-00000000-0000-4000-8000-000000000003");
	assert_string_equal(all.devices[0].slices[2].name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
	assert_int_equal(all.devices[0].slices[2].memory, UINT64_C(10) << 30);
	assert_false(all.devices[1].mig);
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__a_lost_device_stays_listed(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	set("FAKE_NVML_GPUS", "3");
	assert_int_equal(list(s, a).n, 3);
	set("FAKE_NVML_LOST", "1");
	for (int i = 0; i < 3; i++) {
		struct gpu_inventory all = list(s, a);
		assert_int_equal(all.n, 3);
		assert_string_equal(
			all.devices[2].uuid, "GPU-00000001-0000-4000-8000-000000000000");
		assert_int_equal(all.devices[2].health, GPU_LOST);
		assert_true(all.devices[2].why[0] != '\0');
		assert_int_equal(all.devices[1].health, GPU_OK);
	}
	set("FAKE_NVML_LOST", "");
	struct gpu_inventory all = list(s, a);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.devices[1].health, GPU_OK);
	assert_string_equal(all.devices[1].why, "");
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__faults_stay_with_the_device(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	set("FAKE_NVML_GPUS", "2");
	(void)list(s, a);
	set("FAKE_NVML_XID", "1:31"); /* a program's own fault */
	struct gpu_inventory all = list(s, a);
	assert_int_equal(all.devices[1].xid, 31);
	assert_int_equal(all.devices[1].health, GPU_OK);
	set("FAKE_NVML_XID", "1:79");
	all = list(s, a);
	assert_int_equal(all.devices[1].health, GPU_FAILED);
	assert_string_equal(all.devices[1].why, "the driver reported fault XID 79");
	assert_int_equal(all.devices[0].health, GPU_OK);
	set("FAKE_NVML_XID", "1:13");
	all = list(s, a);
	assert_int_equal(all.devices[1].xid, 79);
	assert_int_equal(all.devices[1].health, GPU_FAILED);
	gpu_close(s);
	arena_drop(a);
}

void test_gpu__failed_rows_are_seen(void **state)
{
	struct gpu_source *s = open_fake("libfake_nvml.so");
	struct arena *a = arena_new(1 << 20);

	(void)state;
	set("FAKE_NVML_GPUS", "2");
	set("FAKE_NVML_ROWS", "0");
	struct gpu_inventory all = list(s, a);
	assert_int_equal(all.devices[0].health, GPU_FAILED);
	assert_string_equal(gpu_health_name(all.devices[0].health), "failed");
	gpu_close(s);
	arena_drop(a);
}
