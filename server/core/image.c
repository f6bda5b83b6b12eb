#include "server/core/image.h"

static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || digit(c);
}

/* [a-z0-9]+ ((. | _ | __ | -+) [a-z0-9]+)* */
static bool image_part(struct str s)
{
	size_t i = 0;

	while (i < s.n) {
		size_t from = i;
		while (i < s.n && lower_or_digit(s.p[i]))
			i++;
		if (i == from)
			return false;
		if (i == s.n)
			return true;
		char sep = s.p[i];
		for (from = i; i < s.n && s.p[i] == sep; i++)
			continue;
		if ((sep == '.' && i - from > 1) || (sep == '_' && i - from > 2))
			return false;
		if (sep != '.' && sep != '_' && sep != '-')
			return false;
	}
	return false;
}

/* host[:port]: letters, digits, '-' and '.', the port of digits. */
static bool image_host(struct str s)
{
	ptrdiff_t colon = str_find_char(s, ':');
	struct str host = colon >= 0 ? str_slice(s, 0, (size_t)colon) : s;
	struct str port = colon >= 0 ? str_slice(s, (size_t)colon + 1, s.n) : STR("1");

	if (host.n == 0 || port.n == 0 || port.n > 5 || host.p[0] == '-' || host.p[0] == '.')
		return false;
	for (size_t i = 0; i < host.n; i++)
		if (!letter(host.p[i]) && !digit(host.p[i]) && host.p[i] != '-' && host.p[i] != '.')
			return false;
	for (size_t i = 0; i < port.n; i++)
		if (!digit(port.p[i]))
			return false;
	return true;
}

static bool image_tag(struct str s)
{
	if (s.n == 0 || s.n > 128 || s.p[0] == '.' || s.p[0] == '-')
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!letter(s.p[i]) && !digit(s.p[i]) && memchr("_.-", s.p[i], 3) == NULL)
			return false;
	return true;
}

static bool image_digest(struct str s)
{
	static const struct str sha256 = { "sha256:", 7 }, sha512 = { "sha512:", 7 };
	size_t want = str_starts(s, sha256) ? 64 : 128;

	if ((!str_starts(s, sha256) && !str_starts(s, sha512)) || s.n != 7 + want)
		return false;
	for (size_t i = 7; i < s.n; i++)
		if (!digit(s.p[i]) && (s.p[i] < 'a' || s.p[i] > 'f'))
			return false;
	return true;
}

/* The first part is a host when it looks like one: with a dot, a port, or as localhost. */
static bool image_name(struct str s)
{
	ptrdiff_t slash = str_find_char(s, '/');
	struct str part, rest = s;

	if (s.n == 0 || s.n > 255)
		return false;
	if (slash > 0) {
		struct str first = str_slice(s, 0, (size_t)slash);
		bool host = str_find_char(first, '.') >= 0 || str_find_char(first, ':') >= 0 ||
			    str_is(first, "localhost");
		if (host && !image_host(first))
			return false;
		if (host)
			rest = str_slice(s, (size_t)slash + 1, s.n);
	}
	if (rest.n == 0)
		return false;
	while (str_next(&rest, '/', &part))
		if (!image_part(part))
			return false;
	return true;
}

int image_check(struct str image, struct err *e)
{
	ptrdiff_t at = str_find_char(image, '@'), colon = -1;
	struct str name = at >= 0 ? str_slice(image, 0, (size_t)at) : image;

	if (at >= 0 && !image_digest(str_slice(image, (size_t)at + 1, image.n)))
		return err_field(
			e, "", "has no digest after '@', as sha256: and 64 lower-case hex digits");
	/* The tag's colon stands after the last slash; an earlier one is a port's. */
	for (size_t i = name.n; i-- > 0 && name.p[i] != '/' && colon < 0;)
		if (name.p[i] == ':')
			colon = (ptrdiff_t)i;
	if (colon >= 0 && !image_tag(str_slice(name, (size_t)colon + 1, name.n)))
		return err_field(e, "",
			"has a tag that is not allowed: up to 128 letters, digits, "
			"'_', '.' and '-'");
	if (colon >= 0)
		name = str_slice(name, 0, (size_t)colon);
	if (!image_name(name))
		return err_field(e, "",
			"is no image reference, as name:tag or host/name@sha256:…; "
			"names are lower case");
	return 0;
}
