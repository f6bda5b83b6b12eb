#include "api/worker.h"

#include "lib/base/arena.h"
#include "lib/base/num.h"

enum { DIGEST_HEX = 64 };

size_t staged_count(const struct staged *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->listing.n; i++)
		n += s->listing.p[i] == '\n';
	return s->listing.n != 0 ? n + 1 : s->files.n;
}

/* One line, in place: what stands behind a text becomes its end. */
static int read_line(char *p, size_t n, struct file *ret, struct err *e)
{
	struct str line = { p, n };
	ptrdiff_t first = str_find_char(line, ' ');
	struct str rest = str_slice(line, (size_t)(first + 1), n);
	ptrdiff_t second = str_find_char(rest, ' ');

	if (first != DIGEST_HEX || second <= 0 || (size_t)second + 1 == rest.n ||
		!num_parse_i64(str_slice(rest, 0, (size_t)second), 0, INT64_MAX, &ret->size))
		return err_set(e, ERR_INVALID, "a list of files has a line that is none");
	p[DIGEST_HEX] = '\0';
	ret->digest = str_slice(line, 0, DIGEST_HEX);
	ret->path = str_slice(rest, (size_t)second + 1, rest.n);
	ret->media_type = STR("");
	return 0;
}

int staged_files(const struct staged *s, struct arena *a, struct list *ret, struct err *e)
{
	if (s->listing.n == 0) {
		*ret = s->files;
		return 0;
	}
	size_t n = staged_count(s);
	struct file *files = arena_array_of(a, struct file, n);
	char *text = arena_dup(a, s->listing), *end = text + s->listing.n;

	for (size_t i = 0; i < n; i++) {
		char *line = text, *stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop != NULL ? stop : end;
		*stop = '\0';
		if (read_line(line, (size_t)(stop - line), &files[i], e) < 0)
			return -1;
		text = stop + 1;
	}
	*ret = (struct list){ files, n };
	return 0;
}
