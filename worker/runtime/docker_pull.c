/*
 * What the daemon says while it pulls, read line by line: how far each layer is, and how it ended.
 * Progress is a layer that has moved; layers that wait, and the countdown of a retry, are none.
 */
#include "worker/runtime/docker.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

enum { LINE_MAX_BYTES = 1 << 20, LAYERS_MAX = 1024 };

struct docker_layer {
	char id[32], status[24];
	int64_t current, total;
	bool done;
};

bool docker_image_valid(const char *image)
{
	size_t n = image != NULL ? strlen(image) : 0;

	return n > 0 && n < DOCKER_IMAGE_MAX && image[0] != '/' && image[0] != '-' &&
	       image[0] != '.' &&
	       strspn(image, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			     "._/:@-") == n &&
	       strstr(image, "..") == NULL && strstr(image, "//") == NULL;
}

const char *docker_pull_path(char out[DOCKER_PATH_MAX], const char *image)
{
	const char *at = strchr(image, '@'), *slash = strrchr(image, '/');
	const char *colon = strrchr(slash != NULL ? slash : image, ':');
	const char *cut = at != NULL ? at : colon;
	int name = cut != NULL ? (int)(cut - image) : (int)strlen(image);

	(void)str_print(out, DOCKER_PATH_MAX, "/images/create?fromImage=%.*s&tag=%s", name, image,
		cut != NULL ? cut + 1 : "latest");
	return out;
}

void docker_pull_init(struct docker_pull *p)
{
	*p = (struct docker_pull){ .moved = 0 };
	buf_init(&p->line, LINE_MAX_BYTES);
}

void docker_pull_done(struct docker_pull *p)
{
	buf_done(&p->line);
	mem_free(p->layers);
	p->layers = NULL;
	p->n_layers = 0;
}

static struct docker_layer *find_layer(struct docker_pull *p, struct str id)
{
	struct docker_layer *l;

	for (size_t i = 0; i < p->n_layers; i++)
		if (str_is(id, p->layers[i].id))
			return &p->layers[i];
	if (p->n_layers == LAYERS_MAX || id.n == 0 || id.n >= sizeof l->id)
		return NULL;
	p->layers = mem_resize(p->layers, p->n_layers + 1, sizeof *p->layers);
	l = &p->layers[p->n_layers++];
	*l = (struct docker_layer){ .done = false };
	(void)str_print(l->id, sizeof l->id, "%.*s", STR_ARG(id));
	return l;
}

/* "1.2: Pulling from library/x" names a tag where others name a layer. */
static bool is_layer(struct str id, struct str status)
{
	return id.n >= 12 && strspn(id.p, "0123456789abcdef") == id.n &&
	       !str_starts(status, STR("Pulling from"));
}

static bool ends_layer(struct str status)
{
	return str_is(status, "Pull complete") || str_is(status, "Already exists") ||
	       str_is(status, "Download complete");
}

static void take_progress(struct docker_pull *p, const struct jsn *v)
{
	struct str id = jsn_get_str(jsn_get(v, "id")), status = jsn_get_str(jsn_get(v, "status"));
	int64_t current = jsn_get_int(jsn_find(v, "/progressDetail/current"), 0);
	struct docker_layer *l = is_layer(id, status) ? find_layer(p, id) : NULL;
	char word[sizeof l->status];

	if (str_is(status, "Waiting") || str_starts(status, STR("Retrying")))
		return;
	(void)str_print(word, sizeof word, "%.*s", STR_ARG(status));
	if (l != NULL && l->current == current && strcmp(l->status, word) == 0)
		return;
	p->moved = clock_elapsed(&clock_real);
	if (l == NULL)
		return;
	memcpy(l->status, word, sizeof word);
	l->current = current;
	/* Of the compressed layer only: what is unpacked counts its own bytes. */
	if (str_is(status, "Downloading"))
		l->total = jsn_get_int(jsn_find(v, "/progressDetail/total"), l->total);
	l->done = l->done || ends_layer(status);
}

static void take_line(struct docker_pull *p, struct str line)
{
	struct jsn_doc *doc;
	struct err e;

	line = str_trim(line);
	if (str_ends(line, STR("\r")))
		line.n--;
	if (line.n == 0 || jsn_parse(line, &doc, &e) < 0)
		return;
	const struct jsn *v = jsn_root(doc);
	struct str error = jsn_get_str(jsn_find(v, "/errorDetail/message"));
	if (error.n == 0)
		error = jsn_get_str(jsn_get(v, "error"));
	if (error.n != 0)
		(void)str_print(p->error, sizeof p->error, "%.*s", STR_ARG(error));
	else
		take_progress(p, v);
	jsn_doc_free(doc);
}

int docker_pull_push(struct docker_pull *p, struct str bytes, struct err *e)
{
	ptrdiff_t end;

	buf_add(&p->line, bytes);
	if (buf_failed(&p->line))
		return err_set(e, ERR_TOO_LARGE, "the daemon sent a line of more than %d bytes",
			LINE_MAX_BYTES);
	while ((end = str_find_char(buf_str(&p->line), '\n')) >= 0) {
		take_line(p, str_slice(buf_str(&p->line), 0, (size_t)end));
		buf_drop_front(&p->line, (size_t)end + 1);
	}
	return 0;
}

void docker_pull_say(const struct docker_pull *p, char *out, size_t size)
{
	char have[NUM_SIZE_MAX], all[NUM_SIZE_MAX];
	int64_t got = 0, total = 0;
	size_t done = 0;

	for (size_t i = 0; i < p->n_layers; i++) {
		const struct docker_layer *l = &p->layers[i];
		done += l->done;
		total += l->total;
		got += l->done ? l->total : strcmp(l->status, "Downloading") == 0 ? l->current : 0;
	}
	(void)str_print(out, size, "%zu of %zu layers, %s of %s", done, p->n_layers,
		num_format_size(have, (uint64_t)got), num_format_size(all, (uint64_t)total));
}

/* ---- what went wrong ------------------------------------------------------------------------ */

/* The daemon has no codes for it, only the words of itself, of the registry and of the network. */
static const struct {
	const char *words;
	enum runtime_image_fault fault;
} faults[] = {
	{ "no space left on device", RUNTIME_IMAGE_NO_SPACE },
	{ "unauthorized", RUNTIME_IMAGE_DENIED },
	{ "authentication required", RUNTIME_IMAGE_DENIED },
	{ "no basic auth credentials", RUNTIME_IMAGE_DENIED },
	{ "access denied", RUNTIME_IMAGE_DENIED },
	{ "access to the resource is denied", RUNTIME_IMAGE_DENIED },
	{ "authorization failed", RUNTIME_IMAGE_DENIED },
	{ "incorrect username or password", RUNTIME_IMAGE_DENIED },
	{ "403 Forbidden", RUNTIME_IMAGE_DENIED },
	{ "manifest unknown", RUNTIME_IMAGE_NOT_FOUND },
	{ "name unknown", RUNTIME_IMAGE_NOT_FOUND },
	{ "no such manifest", RUNTIME_IMAGE_NOT_FOUND },
	{ "manifest for ", RUNTIME_IMAGE_NOT_FOUND },
	{ "no matching manifest", RUNTIME_IMAGE_NOT_FOUND },
	{ ": not found", RUNTIME_IMAGE_NOT_FOUND },
	{ "does not match", RUNTIME_IMAGE_DAMAGED },
	{ "did not match", RUNTIME_IMAGE_DAMAGED },
	{ "unexpected digest", RUNTIME_IMAGE_DAMAGED },
	{ "verification failed", RUNTIME_IMAGE_DAMAGED },
	{ "invalid checksum", RUNTIME_IMAGE_DAMAGED },
	{ "unexpected commit digest", RUNTIME_IMAGE_DAMAGED },
	{ "connection refused", RUNTIME_IMAGE_UNREACHABLE },
	{ "no such host", RUNTIME_IMAGE_UNREACHABLE },
	{ "timeout", RUNTIME_IMAGE_UNREACHABLE },
	{ "deadline exceeded", RUNTIME_IMAGE_UNREACHABLE },
	{ "connection reset", RUNTIME_IMAGE_UNREACHABLE },
	{ "network is unreachable", RUNTIME_IMAGE_UNREACHABLE },
	{ "no route to host", RUNTIME_IMAGE_UNREACHABLE },
	{ "EOF", RUNTIME_IMAGE_UNREACHABLE },
	{ "toomanyrequests", RUNTIME_IMAGE_UNREACHABLE },
	{ "server misbehaving", RUNTIME_IMAGE_UNREACHABLE },
};

enum runtime_image_fault docker_image_fault(const char *words)
{
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		if (strstr(words, faults[i].words) != NULL)
			return faults[i].fault;
	return RUNTIME_IMAGE_OTHER;
}
