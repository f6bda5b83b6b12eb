/* TLS 1.2 and later with a certificate chain and key from PEM files. A reload that fails leaves the
 * old pair in use. Connections keep the pair that they began with. */
#ifndef LIB_HTTP_TLS_H
#define LIB_HTTP_TLS_H
#include "lib/base/err.h"

struct http_tls;

struct http_tls *http_tls_new(
	const char *cert_file, const char *key_file, struct err *e) MUST_CHECK;
int http_tls_reload(struct http_tls *t, struct err *e) MUST_CHECK;
void http_tls_free(struct http_tls *t); /* NULL is fine */

#endif
