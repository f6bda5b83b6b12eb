#include "lib/base/clock.h"
#include "worker/runtime/docker.h"

enum { LINE_MAX_BYTES = 1 << 20 };
#define NOTE_EVERY CLOCK_SECOND

bool docker_image_valid(const char *image)
{
	size_t n = image != NULL ? strlen(image) : 0;

	return n > 0 && n < 256 && image[0] != '/' && image[0] != '-' && image[0] != '.' &&
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

void docker_pull_init(struct docker_pull *p, const char *image, runtime_note_cb *note, void *arg)
{
	*p = (struct docker_pull){ .note = note, .arg = arg };
	buf_init(&p->line, LINE_MAX_BYTES);
	(void)str_print(p->image, sizeof p->image, "%s", image);
}

void docker_pull_done(struct docker_pull *p)
{
	buf_done(&p->line);
}

static void give_note(struct docker_pull *p, const struct jsn *v)
{
	int64_t now = clock_elapsed(&clock_real);
	struct str status = jsn_get_str(jsn_get(v, "status"));
	struct str layer = jsn_get_str(jsn_get(v, "id"));
	struct str progress = jsn_get_str(jsn_get(v, "progress"));
	char text[512];

	if (p->note == NULL || status.n == 0 || (p->noted != 0 && now - p->noted < NOTE_EVERY))
		return;
	p->noted = now;
	(void)str_print(text, sizeof text, "pulling %s: %.100s%s%.40s %.120s", p->image, status.p,
		layer.n != 0 ? " " : "", layer.n != 0 ? layer.p : "",
		progress.n != 0 ? progress.p : "");
	p->note(p->arg, text);
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
		give_note(p, v);
	jsn_doc_free(doc);
}

int docker_pull_push(void *arg, struct str bytes, struct err *e)
{
	struct docker_pull *p = arg;
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
