#include "lib/vcs/cred.h"

#include "lib/json/field.h"

#include <stddef.h>

static const struct field cred_fields[] = {
	{ "username", FIELD_STR, 0, offsetof(struct cred, username), .max = 255 },
	{ "password", FIELD_STR, 0, offsetof(struct cred, password), .max = 4096 },
	{ "ssh_key", FIELD_STR, FIELD_TEXT, offsetof(struct cred, ssh_key), .max = 16384 },
	{ "ssh_passphrase", FIELD_STR, 0, offsetof(struct cred, ssh_passphrase), .max = 1024 },
	{ "known_hosts", FIELD_STR, FIELD_TEXT, offsetof(struct cred, known_hosts), .max = 32768 },
	{ 0 },
};

int cred_parse(struct cred *c, struct str json, struct arena *a, struct err *e)
{
	const struct vcs_url *url = c->url;

	if (field_decode(cred_fields, json, a, c, e) < 0)
		return -1;
	c->url = url;
	return 0;
}

static bool same_peer(const struct vcs_url *a, const char *url)
{
	struct vcs_url b;
	struct err e;

	return vcs_url_parse(str_c(url), VCS_ALLOW_HTTP, &b, &e) == 0 && a->scheme == b.scheme &&
	       a->port == b.port && strcmp(a->host, b.host) == 0;
}

int cred_acquire(
	git_credential **out, const char *url, const char *user, unsigned allowed, void *payload)
{
	struct cred *c = payload;
	const char *name = user != NULL && *user != '\0' ? user : "git";

	if (!same_peer(c->url, url))
		return GIT_EAUTH;
	if (allowed == GIT_CREDENTIAL_USERNAME)
		return git_credential_username_new(out, name);
	if (c->tries++ == 0) {
		if ((allowed & GIT_CREDENTIAL_SSH_MEMORY) && c->ssh_key.p != NULL)
			return git_credential_ssh_key_memory_new(
				out, name, NULL, c->ssh_key.p, c->ssh_passphrase.p);
		if ((allowed & GIT_CREDENTIAL_USERPASS_PLAINTEXT) && c->password.p != NULL &&
			c->url->scheme != VCS_SSH)
			return git_credential_userpass_plaintext_new(
				out, c->username.p != NULL ? c->username.p : "git", c->password.p);
	}
	c->refused = true;
	return GIT_EAUTH;
}

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

/* True when text is the base64 form of bytes. */
static bool base64_is(struct str text, struct str bytes)
{
	unsigned bits = 0, held = 0;
	size_t n = 0;

	for (size_t i = 0; i < text.n && text.p[i] != '='; i++) {
		int digit = base64_digit(text.p[i]);
		if (digit < 0)
			return false;
		bits = (bits << 6 | (unsigned)digit) & 0xffffU;
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		if (n >= bytes.n || (unsigned char)bytes.p[n] != ((bits >> held) & 0xffU))
			return false;
		n++;
	}
	return n == bytes.n;
}

static bool names_host(struct str names, const struct vcs_url *url)
{
	struct str one;
	char with_port[sizeof url->host + 16];

	(void)str_print(with_port, sizeof with_port, "[%s]:%u", url->host, url->port);
	while (str_next(&names, ',', &one)) {
		if (url->port == 0 || url->port == 22 ? str_eq_nocase(one, str_c(url->host))
						      : str_eq_nocase(one, str_c(with_port)))
			return true;
	}
	return false;
}

/* host[,host…] type base64-key [comment]; hashed names and markers are not understood: no match. */
bool cred_known_host(struct str known_hosts, const struct vcs_url *url, struct str key)
{
	struct str line, names, type, text;

	if (known_hosts.p == NULL || key.n == 0)
		return false;
	while (str_next(&known_hosts, '\n', &line)) {
		line = str_trim(line);
		if (line.n == 0 || !str_next(&line, ' ', &names) || !str_next(&line, ' ', &type) ||
			!str_next(&line, ' ', &text))
			continue;
		if (names_host(names, url) && base64_is(str_trim(text), key))
			return true;
	}
	return false;
}

int cred_check_host(git_cert *cert, int valid, const char *host, void *payload)
{
	struct cred *c = payload;
	const git_cert_hostkey *key = (const git_cert_hostkey *)(const void *)cert;

	(void)host;
	if (cert->cert_type != GIT_CERT_HOSTKEY_LIBSSH2)
		return valid ? 0 : GIT_ECERTIFICATE;
	if ((key->type & GIT_CERT_SSH_RAW) &&
		cred_known_host(
			c->known_hosts, c->url, (struct str){ key->hostkey, key->hostkey_len }))
		return 0;
	c->unknown_host = true;
	return GIT_ECERTIFICATE;
}
