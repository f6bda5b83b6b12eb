#include "lib/http/tls.h"

#include "lib/base/mem.h"
#include "lib/http/inside.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

struct http_tls {
	SSL_CTX *ctx;
	char *cert_file, *key_file;
};

static int fail(struct err *e, const char *what, const char *file)
{
	char text[160];

	ERR_error_string_n(ERR_peek_last_error(), text, sizeof text);
	ERR_clear_error();
	return err_set(e, ERR_INVALID, "%s %s cannot be used: %s", what, file, text);
}

static SSL_CTX *load(const char *cert_file, const char *key_file, struct err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	BUG_ON(ctx == NULL);
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20");
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"tidemill", 8);
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
		fail(e, "The certificate", cert_file);
	else if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1 ||
		 SSL_CTX_check_private_key(ctx) != 1)
		fail(e, "The key", key_file);
	else
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

struct http_tls *http_tls_new(const char *cert_file, const char *key_file, struct err *e)
{
	SSL_CTX *ctx = load(cert_file, key_file, e);
	struct http_tls *t;

	if (ctx == NULL)
		return NULL;
	t = mem_new_of(struct http_tls);
	t->ctx = ctx;
	t->cert_file = mem_dup(cert_file);
	t->key_file = mem_dup(key_file);
	return t;
}

int http_tls_reload(struct http_tls *t, struct err *e)
{
	SSL_CTX *ctx = load(t->cert_file, t->key_file, e);

	if (ctx == NULL)
		return -1;
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	return 0;
}

void http_tls_free(struct http_tls *t)
{
	if (t == NULL)
		return;
	SSL_CTX_free(t->ctx);
	mem_free(t->cert_file);
	mem_free(t->key_file);
	mem_free(t);
}

struct ssl_st *tls_accept(struct http_tls *t, int fd)
{
	SSL *s = SSL_new(t->ctx);

	BUG_ON(s == NULL || SSL_set_fd(s, fd) != 1);
	SSL_set_accept_state(s);
	return s;
}

enum tls_result tls_handshake(struct ssl_st *s)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(s);
	if (r == 1)
		return TLS_DONE;
	switch (SSL_get_error(s, r)) {
	case SSL_ERROR_WANT_READ: return TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE: return TLS_WANT_WRITE;
	default: ERR_clear_error(); return TLS_FAILED;
	}
}

ssize_t tls_read(struct ssl_st *s, char *p, size_t n, bool *ret_wants_write)
{
	size_t got = 0;
	int r;

	ERR_clear_error();
	*ret_wants_write = false;
	r = SSL_read_ex(s, p, n, &got);
	if (r == 1)
		return (ssize_t)got;
	switch (SSL_get_error(s, r)) {
	case SSL_ERROR_WANT_READ: return -1;
	case SSL_ERROR_WANT_WRITE: *ret_wants_write = true; return -1;
	case SSL_ERROR_ZERO_RETURN: return 0;
	case SSL_ERROR_SSL:
		/* An end without close_notify is an end: requests carry their own length. */
		r = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? 0 : -2;
		ERR_clear_error();
		return r;
	default: ERR_clear_error(); return -2;
	}
}

ssize_t tls_write(struct ssl_st *s, const char *p, size_t n)
{
	size_t done = 0;
	int r;

	ERR_clear_error();
	r = SSL_write_ex(s, p, n, &done);
	if (r == 1)
		return (ssize_t)done;
	switch (SSL_get_error(s, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE: return -1;
	default: ERR_clear_error(); return -2;
	}
}

bool tls_pending(const struct ssl_st *s)
{
	return SSL_pending(s) > 0;
}

void tls_say_end(struct ssl_st *s)
{
	ERR_clear_error();
	SSL_shutdown(s);
	ERR_clear_error();
}

void tls_drop(struct ssl_st *s)
{
	SSL_free(s);
}
