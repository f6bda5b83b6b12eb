#include "server/core/filepath.h"

static const char *fault(struct str path)
{
	struct str rest = path, segment;

	if (path.n == 0)
		return "must not be empty";
	if (path.n > FILEPATH_MAX)
		return "is longer than 1024 bytes";
	if (!str_utf8_valid(path))
		return "is not valid UTF-8";
	if (str_has_control(path))
		return "has a control character";
	if (str_find_char(path, '\\') >= 0)
		return "has a backslash; write '/'";
	if (path.p[0] == '/')
		return "must be relative";
	if (path.p[path.n - 1] == '/')
		return "must not end with '/'";
	while (str_next(&rest, '/', &segment)) {
		if (segment.n == 0)
			return "has an empty segment";
		if (str_is(segment, ".") || str_is(segment, ".."))
			return "has a segment \".\" or \"..\"";
		if (segment.n > FILEPATH_SEGMENT_MAX)
			return "has a segment longer than 255 bytes";
	}
	return NULL;
}

int filepath_check(struct str path, const char *pointer, struct err *e)
{
	const char *what = fault(path);

	return what == NULL ? 0 : err_field(e, pointer, "the path %s", what);
}

struct str filepath_base(struct str path)
{
	size_t at = path.n;

	while (at > 0 && path.p[at - 1] != '/')
		at--;
	return str_slice(path, at, path.n - at);
}
