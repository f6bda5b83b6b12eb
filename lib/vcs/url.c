#include "lib/vcs/url.h"

#include "lib/base/num.h"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool only(struct str s, const char *set)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\0' || strchr(set, s.p[i]) == NULL)
			return false;
	}
	return s.n != 0;
}

/* Components: none empty (but for a last one), none "." or "..". */
static bool plain_components(struct str path)
{
	struct str piece;

	while (str_next(&path, '/', &piece)) {
		if (str_is(piece, ".") || str_is(piece, "..") || (piece.n == 0 && path.n != 0))
			return false;
	}
	return true;
}

static int parse_host(struct str host, struct vcs_url *u, struct err *e)
{
	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
		host = str_slice(host, 1, host.n - 2);
		if (!only(host, "0123456789abcdefABCDEF:."))
			return err_set(e, ERR_INVALID, "the address in brackets is not valid");
	} else if (!only(host, ALNUM ".-") || host.n > 253 || host.p[0] == '-' ||
		   host.p[0] == '.' || host.p[host.n - 1] == '.') {
		return err_set(e, ERR_INVALID, "the repository's host name is not valid");
	}
	(void)str_print(u->host, sizeof u->host, "%.*s", STR_ARG(host));
	return 0;
}

/* [user@]host[:port] */
static int parse_authority(struct str s, struct vcs_url *u, struct err *e)
{
	ptrdiff_t at = str_find_char(s, '@');
	uint64_t port = 0;

	if (at >= 0) {
		struct str user = str_slice(s, 0, (size_t)at);
		if (u->scheme != VCS_SSH)
			return err_set(e, ERR_INVALID,
				"a repository's address must not carry credentials: use a secret");
		if (!only(user, ALNUM "._-") || user.n >= sizeof u->user || user.p[0] == '-')
			return err_set(e, ERR_INVALID, "the ssh user name is not valid");
		(void)str_print(u->user, sizeof u->user, "%.*s", STR_ARG(user));
		s = str_slice(s, (size_t)at + 1, s.n);
	}
	size_t end = s.n;
	while (end > 0 && s.p[end - 1] >= '0' && s.p[end - 1] <= '9')
		end--;
	if (end > 1 && s.p[end - 1] == ':' && (s.p[0] != '[' || s.p[end - 2] == ']')) {
		if (!num_parse_u64(str_slice(s, end, s.n), 1, 65535, &port))
			return err_set(e, ERR_INVALID, "the repository's port is not valid");
		s = str_slice(s, 0, end - 1);
	}
	u->port = (unsigned)port;
	return parse_host(s, u, e);
}

static int parse_local(struct str path, unsigned allow, struct vcs_url *u, struct err *e)
{
	if (!(allow & VCS_ALLOW_LOCAL))
		return err_set(e, ERR_INVALID, "local repositories are not allowed here");
	if (path.n < 2 || path.p[0] != '/' || !plain_components(str_slice(path, 1, path.n)))
		return err_set(e, ERR_INVALID,
			"the path of a local repository must be absolute "
			"and without \"..\"");
	u->scheme = VCS_LOCAL;
	(void)str_print(u->text, sizeof u->text, "%.*s", STR_ARG(path));
	return 0;
}

/* user@host:path */
static int parse_scp(struct str url, struct vcs_url *u, struct err *e)
{
	ptrdiff_t colon = str_find_char(url, ':'), slash = str_find_char(url, '/');
	struct str path = str_slice(url, (size_t)(colon + 1), url.n);

	if (colon <= 0 || (slash >= 0 && slash < colon) || path.n == 0 || path.p[0] == '-' ||
		str_find_char(str_slice(url, 0, (size_t)colon), '@') < 0)
		return err_set(e, ERR_INVALID,
			"a repository's address starts with https:// or ssh:// or is "
			"user@host:path");
	u->scheme = VCS_SSH;
	if (!plain_components(path.p[0] == '/' ? str_slice(path, 1, path.n) : path))
		return err_set(e, ERR_INVALID, "the repository's path is not valid");
	return parse_authority(str_slice(url, 0, (size_t)colon), u, e);
}

static bool cut_prefix(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	*s = str_slice(*s, prefix.n, s->n);
	return true;
}

static int parse_remote(struct str rest, struct vcs_url *u, struct err *e)
{
	ptrdiff_t slash = str_find_char(rest, '/');

	if (slash <= 0 || (size_t)slash + 1 == rest.n)
		return err_set(e, ERR_INVALID, "the repository's address has no path");
	if (rest.p[slash + 1] == '-' ||
		!plain_components(str_slice(rest, (size_t)slash + 1, rest.n)))
		return err_set(e, ERR_INVALID, "the repository's path is not valid");
	return parse_authority(str_slice(rest, 0, (size_t)slash), u, e);
}

int vcs_url_parse(struct str url, unsigned allow, struct vcs_url *ret, struct err *e)
{
	struct vcs_url u = { .scheme = VCS_HTTPS };
	struct str rest = url;
	int rc;

	if (url.n == 0 || url.n > VCS_URL_MAX)
		return err_set(
			e, ERR_INVALID, "a repository's address has 1 to %d bytes", VCS_URL_MAX);
	for (size_t i = 0; i < url.n; i++) {
		if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f || url.p[i] == '\\')
			return err_set(e, ERR_INVALID,
				"a repository's address has no spaces, "
				"control characters or backslashes");
	}
	if (url.p[0] == '-' || str_find_char(url, '?') >= 0 || str_find_char(url, '#') >= 0)
		return err_set(e, ERR_INVALID,
			"a repository's address has no leading '-', "
			"no query and no fragment");
	(void)str_print(u.text, sizeof u.text, "%.*s", STR_ARG(url));
	if (cut_prefix(&rest, STR("https://"))) {
		rc = parse_remote(rest, &u, e);
	} else if (cut_prefix(&rest, STR("http://"))) {
		u.scheme = VCS_HTTP;
		if (!(allow & VCS_ALLOW_HTTP))
			return err_set(e, ERR_INVALID, "http:// is not allowed here: use https://");
		rc = parse_remote(rest, &u, e);
	} else if (cut_prefix(&rest, STR("ssh://"))) {
		u.scheme = VCS_SSH;
		rc = parse_remote(rest, &u, e);
	} else if (cut_prefix(&rest, STR("file://")) || url.p[0] == '/') {
		rc = parse_local(rest, allow, &u, e);
	} else if (str_find(url, STR("://")) >= 0) {
		rc = err_set(e, ERR_INVALID, "repositories are reached by https or ssh only");
	} else {
		rc = parse_scp(url, &u, e);
	}
	if (rc == 0)
		*ret = u;
	return rc;
}

/* git-check-ref-format(1). */
int vcs_ref_check(struct str ref, struct err *e)
{
	struct str rest = ref, piece;
	bool ok = ref.n != 0 && ref.n <= VCS_REF_MAX && ref.p[0] != '-' && !str_has_control(ref) &&
		  str_find(ref, STR("..")) < 0 && str_find(ref, STR("@{")) < 0 &&
		  !str_is(ref, "@") && ref.p[ref.n - 1] != '/' && ref.p[ref.n - 1] != '.' &&
		  str_utf8_valid(ref);

	for (size_t i = 0; ok && i < ref.n; i++)
		ok = strchr(" ~^:?*[\\", ref.p[i]) == NULL;
	while (ok && str_next(&rest, '/', &piece))
		ok = piece.n != 0 && piece.p[0] != '.' && !str_ends(piece, STR(".lock"));
	return ok ? 0
		  : err_set(e, ERR_INVALID,
			    "a revision is a branch, a tag or a commit id of at most %d bytes",
			    VCS_REF_MAX);
}

bool vcs_is_commit(struct str s)
{
	return s.n == VCS_COMMIT_HEX && only(s, "0123456789abcdef");
}

int vcs_path_check(struct str path, struct err *e)
{
	if (path.n == 0 || path.n > VCS_PATH_MAX || path.p[0] == '/' || path.p[path.n - 1] == '/' ||
		str_has_control(path) || !str_utf8_valid(path) || !plain_components(path))
		return err_set(e, ERR_INVALID,
			"a path in a repository is relative, without \"..\" and control "
			"characters, "
			"at most %d bytes",
			VCS_PATH_MAX);
	return 0;
}
