#include "server/mlflow/limits.h"

const char *limit_name_text(char out[LIMIT_NAME_TEXT], struct limit_name n)
{
	if (n.list != NULL)
		(void)str_print(out, LIMIT_NAME_TEXT, "%s[%zu].%s", n.list, n.index, n.member);
	else
		(void)str_print(out, LIMIT_NAME_TEXT, "%s", n.member);
	return out;
}

/* MLflow's \w . - / : and space; letters and digits of other scripts are not told apart from their
 * signs here. */
static bool characters_ok(struct str key)
{
	for (size_t i = 0; i < key.n; i++) {
		unsigned char ch = (unsigned char)key.p[i];
		bool plain = (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') ||
			     (ch >= 'A' && ch <= 'Z') || ch >= 0x80;
		if (!plain && (ch == '\0' || strchr("_.-/: ", ch) == NULL))
			return false;
	}
	return true;
}

/* Whether it stays the same name as a POSIX path. */
static bool path_like_ok(struct str key)
{
	struct str rest = key, part;

	if (str_starts(key, STR("..")) || str_starts(key, STR("/")))
		return false;
	while (str_next(&rest, '/', &part))
		if (part.n == 0 || str_is(part, ".") || str_is(part, ".."))
			return false;
	return true;
}

bool limit_length(struct call *c, struct str value, size_t max, const char *name)
{
	if (str_utf8_count(value) <= max)
		return true;
	flow_invalid(c, "'%s' exceeds the maximum length of %zu characters", name, max);
	return false;
}

bool limit_key(struct call *c, struct str key, struct limit_name n)
{
	char name[LIMIT_NAME_TEXT];

	(void)limit_name_text(name, n);
	if (!flow_need(c, key, name) || !limit_length(c, key, LIMIT_KEY, name))
		return false;
	if (!characters_ok(key))
		flow_invalid(c,
			"Invalid value \"%.*s\" for parameter '%s' supplied: Names may only "
			"contain "
			"alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
			"colon(:) and slashes (/).",
			STR_ARG(key), name);
	else if (!path_like_ok(key))
		flow_invalid(c,
			"Invalid value \"%.*s\" for parameter '%s' supplied: Names may be treated "
			"as files in certain cases, and must not resolve to other names when "
			"treated as such.",
			STR_ARG(key), name);
	else
		return true;
	return false;
}

struct str limit_cut(struct str value, size_t max)
{
	size_t n = 0, at = 0;

	if (value.n <= max)
		return value;
	for (; at < value.n; at++)
		if (((unsigned char)value.p[at] & 0xc0) != 0x80 && n++ == max)
			break;
	return str_slice(value, 0, at);
}
