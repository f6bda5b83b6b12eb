/*
 * How this host gives GPUs to containers. By CDI, when the daemon knows of it (Docker 25 and later)
 * and a specification on the host names NVIDIA's devices by their UUIDs: it also survives a
 * daemon-reload of systemd, which takes devices away that a hook has put in. Else by NVIDIA's
 * runtime or hook, which the daemon's own GPU driver needs.
 */
#include "worker/runtime/docker_gpus.h"

#include "lib/base/fs.h"

#include <dirent.h>
#include <unistd.h>

#define HOOK "/usr/bin/nvidia-container-runtime-hook"

enum { SPEC_MAX = 4 << 20, DIR_MAX = 512 };

static bool names_uuids(const char *path)
{
	struct buf text;
	struct err e;
	bool found;

	buf_init(&text, SPEC_MAX);
	found = fs_read(path, &text, &e) == 0 &&
		str_find(buf_str(&text), STR(DOCKER_CDI_KIND)) >= 0 &&
		(str_find(buf_str(&text), STR("GPU-")) >= 0 ||
			str_find(buf_str(&text), STR("MIG-")) >= 0);
	buf_done(&text);
	return found;
}

static bool dir_has_spec(const char *root, struct str dir)
{
	char path[DIR_MAX], file[DIR_MAX + 300];
	bool found = false;
	DIR *d;

	if (!str_print(path, sizeof path, "%s%.*s", root, STR_ARG(dir)) ||
		(d = opendir(path)) == NULL)
		return false;
	for (struct dirent *entry; !found && (entry = readdir(d)) != NULL;) {
		struct str name = str_c(entry->d_name);
		if (str_ends(name, STR(".yaml")) || str_ends(name, STR(".json")))
			found = str_print(file, sizeof file, "%s/%.255s", path, entry->d_name) &&
				names_uuids(file);
	}
	(void)closedir(d);
	return found;
}

enum docker_gpus docker_gpus_how(const struct jsn *info, const char *root)
{
	const struct jsn *dirs = jsn_get(info, "CDISpecDirs");
	char hook[DIR_MAX];

	for (size_t i = 0; i < jsn_count(dirs); i++)
		if (dir_has_spec(root, jsn_get_str(jsn_at(dirs, i))))
			return DOCKER_GPUS_CDI;
	if (jsn_get(jsn_get(info, "Runtimes"), "nvidia") != NULL)
		return DOCKER_GPUS_HOOK;
	return str_print(hook, sizeof hook, "%s" HOOK, root) && access(hook, X_OK) == 0
		       ? DOCKER_GPUS_HOOK
		       : DOCKER_GPUS_NONE;
}

static void text_list(struct jsn_out *w, const char *name)
{
	jsn_key(w, name);
	jsn_list_begin(w);
}

void docker_gpus_put(struct jsn_out *w, enum docker_gpus how, const char *const *uuids)
{
	static const char *const wanted[] = { "gpu", "compute", "utility" };
	char device[160];

	if (uuids == NULL || uuids[0] == NULL)
		return;
	text_list(w, "DeviceRequests");
	jsn_obj_begin(w);
	jsn_key(w, "Driver");
	jsn_text(w, how == DOCKER_GPUS_CDI ? "cdi" : "");
	text_list(w, "DeviceIDs");
	for (size_t i = 0; uuids[i] != NULL; i++) {
		(void)str_print(device, sizeof device, "%s%s",
			how == DOCKER_GPUS_CDI ? DOCKER_CDI_KIND "=" : "", uuids[i]);
		jsn_text(w, device);
	}
	jsn_list_end(w);
	if (how != DOCKER_GPUS_CDI) {
		text_list(w, "Capabilities");
		jsn_list_begin(w);
		for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
			jsn_text(w, wanted[i]);
		jsn_list_end(w);
		jsn_list_end(w);
	}
	jsn_obj_end(w);
	jsn_list_end(w);
}
