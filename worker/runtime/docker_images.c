/*
 * Pulls, shared: however many attempts want an image at once, the daemon is asked for it one time.
 * Each of them hears how far it is, rarely: after 5, 10, 20, 40 seconds, then every minute.
 */
#include "worker/runtime/docker_images.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "worker/runtime/docker_auth.h"

#define PULL_IDLE (300 * INT64_C(1000000))
#define TELL_MOST (60 * CLOCK_SECOND)
#define BEAT      CLOCK_SECOND

struct docker_image_pull {
	struct docker *d;
	struct docker_image_pull *next, *prev;
	struct docker_want *wants;
	struct docker_pull stream;
	struct fetch *request;
	int64_t begun, told, beaten, tell_after;
	char image[DOCKER_IMAGE_MAX];
};

static void pull_on_done(void *arg, const struct fetch_reply *reply, const struct err *failed);

static void unlink_pull(struct docker_image_pull *p)
{
	if (p->prev != NULL)
		p->prev->next = p->next;
	else if (p->d->pulls == p)
		p->d->pulls = p->next;
	if (p->next != NULL)
		p->next->prev = p->prev;
	p->next = p->prev = NULL;
}

static void tell_all(struct docker_image_pull *p, const char *text)
{
	for (struct docker_want *w = p->wants; w != NULL; w = w->next)
		w->progress(w, text);
}

static int pull_push(void *arg, struct str bytes, struct err *e)
{
	struct docker_image_pull *p = arg;
	int64_t before = p->stream.moved, now = clock_elapsed(&clock_real);
	char far[128], text[DOCKER_IMAGE_MAX + 160];

	if (docker_pull_push(&p->stream, bytes, e) < 0)
		return -1;
	if (p->stream.moved == before)
		return 0;
	if (now - p->told >= p->tell_after) {
		docker_pull_say(&p->stream, far, sizeof far);
		(void)str_print(text, sizeof text, "pulling %s: %s", p->image, far);
		p->told = p->beaten = now;
		p->tell_after = p->tell_after * 2 < TELL_MOST ? p->tell_after * 2 : TELL_MOST;
		tell_all(p, text);
	} else if (now - p->beaten >= BEAT) {
		p->beaten = now;
		tell_all(p, NULL);
	}
	return 0;
}

static struct docker_image_pull *pull_new(struct docker *d, const char *image, const char *auth)
{
	struct docker_image_pull *p = mem_new_of(struct docker_image_pull);
	char path[DOCKER_PATH_MAX];

	p->d = d;
	(void)str_print(p->image, sizeof p->image, "%s", image);
	docker_pull_init(&p->stream);
	p->begun = p->told = p->beaten = clock_elapsed(&clock_real);
	p->tell_after = 5 * CLOCK_SECOND;
	p->next = d->pulls;
	if (p->next != NULL)
		p->next->prev = p;
	d->pulls = p;
	p->request = fetch_start(d->http,
		&(struct fetch_request){ .method = "POST",
			.path = docker_pull_path(path, image),
			.headers = { auth[0] != '\0' ? auth : NULL },
			.push = pull_push,
			.arg = p,
			.timeout = -1,
			.idle_timeout = PULL_IDLE },
		pull_on_done, p);
	return p;
}

int docker_want_image(struct docker *d, struct docker_want *w, const char *image, struct err *e)
{
	struct docker_image_pull *p = d->pulls;
	char auth[DOCKER_AUTH_MAX] = "", text[DOCKER_IMAGE_MAX + 80];

	while (p != NULL && strcmp(p->image, image) != 0)
		p = p->next;
	if (p == NULL && d->auth_file != NULL &&
		docker_auth_header(d->auth_file, image, auth, e) < 0)
		return -1;
	(void)str_print(text, sizeof text, "pulling %s%s", image,
		p != NULL ? ", as another attempt does" : "");
	if (p == NULL)
		p = pull_new(d, image, auth);
	mem_wipe(auth, sizeof auth);
	w->pull = p;
	w->next = p->wants;
	p->wants = w;
	w->progress(w, text);
	return 0;
}

void docker_unwant_image(struct docker_want *w)
{
	struct docker_image_pull *p = w->pull;

	if (p == NULL)
		return;
	for (struct docker_want **at = &p->wants; *at != NULL; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	w->pull = NULL;
	w->next = NULL;
	if (p->wants != NULL)
		return;
	unlink_pull(p); /* whoever comes now begins anew */
	fetch_cancel(p->request);
}

static void pull_on_done(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct docker_image_pull *p = arg;
	struct err e = { .code = ERR_OK };
	int rc = docker_reply(p->d, reply, failed, &e);
	char text[DOCKER_IMAGE_MAX + 80];
	int64_t took = (clock_elapsed(&clock_real) - p->begun) / CLOCK_SECOND;

	/* A failure after the stream has begun stands in the stream. */
	if (rc == 0 && p->stream.error[0] != '\0')
		rc = err_set(&e, ERR_UNAVAILABLE, "%s", p->stream.error);
	unlink_pull(p);
	if (rc == 0) {
		(void)str_print(
			text, sizeof text, "pulled %s in %lld s", p->image, (long long)took);
		tell_all(p, text);
	}
	while (p->wants != NULL) {
		struct docker_want *w = p->wants;
		p->wants = w->next;
		w->pull = NULL;
		w->next = NULL;
		w->done(w, &e);
	}
	docker_pull_done(&p->stream);
	mem_free(p);
}

/* ---- which image it is ---------------------------------------------------------------------- */

/* The repository of a reference, without what stands for Docker Hub. */
static struct str repository(struct str image)
{
	ptrdiff_t at = str_find_char(image, '@');
	struct str name = at >= 0 ? str_slice(image, 0, (size_t)at) : image;
	size_t slash = name.n;

	while (slash > 0 && name.p[slash - 1] != '/')
		slash--;
	ptrdiff_t colon = str_find_char(str_slice(name, slash, name.n), ':');
	if (colon >= 0)
		name = str_slice(name, 0, slash + (size_t)colon);
	if (str_starts(name, STR("docker.io/")))
		name = str_slice(name, 10, name.n);
	return str_starts(name, STR("library/")) ? str_slice(name, 8, name.n) : name;
}

/* From its algorithm on. */
static bool is_digest(struct str s, bool sha512)
{
	bool long_one = sha512 && str_starts(s, STR("sha512:"));

	if ((!long_one && !str_starts(s, STR("sha256:"))) || s.n != (size_t)(long_one ? 135 : 71))
		return false;
	for (size_t i = 7; i < s.n; i++)
		if ((s.p[i] < '0' || s.p[i] > '9') && (s.p[i] < 'a' || s.p[i] > 'f'))
			return false;
	return true;
}

bool docker_ref_fits(const char *image, const char *ref)
{
	struct str text = str_c(ref);
	ptrdiff_t at = str_find_char(text, '@');

	if (strchr(image, '@') != NULL)
		return strcmp(image, ref) == 0;
	if (at < 0)
		return is_digest(text, false);
	return is_digest(str_slice(text, (size_t)at + 1, text.n), true) &&
	       str_eq(repository(text), repository(str_c(image)));
}

void docker_image_ref(const struct jsn *inspected, const char *image, char out[RUNTIME_IMAGE_MAX])
{
	const struct jsn *digests = jsn_get(inspected, "RepoDigests");
	struct str wanted = repository(str_c(image));
	struct str id = jsn_get_str(jsn_get(inspected, "Id"));

	(void)str_print(out, RUNTIME_IMAGE_MAX, "%s%.*s",
		str_starts(id, STR("sha256:")) ? "" : "sha256:", STR_ARG(id));
	if (strchr(image, '@') != NULL) {
		(void)str_print(out, RUNTIME_IMAGE_MAX, "%s", image);
		return;
	}
	for (size_t i = 0; i < jsn_count(digests); i++) {
		struct str one = jsn_get_str(jsn_at(digests, i));
		if (one.n != 0 && one.n < RUNTIME_IMAGE_MAX && str_eq(repository(one), wanted)) {
			(void)str_print(out, RUNTIME_IMAGE_MAX, "%.*s", STR_ARG(one));
			return;
		}
	}
}
