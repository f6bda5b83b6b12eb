#include "lib/db/conninfo.h"

#include "lib/base/mem.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

enum { HOSTS_MAX = 16, LIST_MAX = 8192 };

static size_t find(const struct conninfo *c, const char *word)
{
	size_t i = 0;

	while (i < c->n && strcmp(c->words[i], word) != 0)
		i++;
	return i;
}

const char *conninfo_get(const struct conninfo *c, const char *word)
{
	size_t i = find(c, word);

	return i < c->n ? c->values[i] : NULL;
}

static void put(struct conninfo *c, const char *word, const char *value)
{
	size_t i = find(c, word);

	if (i == c->n) {
		BUG_ON(c->n == CONNINFO_WORDS);
		c->words[c->n++] = mem_dup(word);
	}
	mem_free(c->values[i]);
	c->values[i] = mem_dup(value);
}

static void put_default(struct conninfo *c, const char *word, const char *value)
{
	if (conninfo_get(c, word) == NULL)
		put(c, word, value);
}

/* The operator's own options come last, so that they win. */
static int put_options(struct conninfo *c, const char *session, struct err *e)
{
	const char *theirs = conninfo_get(c, "options");
	struct buf b;
	bool fits;

	buf_init(&b, LIST_MAX);
	buf_addf(&b,
		"-c timezone=UTC -c jit=off -c idle_in_transaction_session_timeout=10s "
		"-c client_connection_check_interval=10s %s",
		session);
	if (theirs != NULL)
		buf_addf(&b, " %s", theirs);
	fits = !buf_failed(&b);
	if (fits)
		put(c, "options", buf_str(&b).p);
	buf_done(&b);
	return fits ? 0 : err_set(e, ERR_INVALID, "The database's options are too long");
}

int conninfo_parse(
	struct conninfo *c, const char *text, const char *name, const char *session, struct err *e)
{
	char *why = NULL;
	PQconninfoOption *all = PQconninfoParse(text, &why);

	*c = (struct conninfo){ .n = 0 };
	if (all == NULL) {
		PQfreemem(why);
		return err_set(e, ERR_INVALID, "The address of the database cannot be parsed");
	}
	for (const PQconninfoOption *o = all; o->keyword != NULL; o++)
		if (o->val != NULL)
			put(c, o->keyword, o->val);
	PQconninfoFree(all);
	put_default(c, "application_name", name);
	put_default(c, "keepalives_idle", "15");
	put_default(c, "keepalives_interval", "5");
	put_default(c, "keepalives_count", "3");
	put_default(c, "tcp_user_timeout", "20000");
	put_default(c, "target_session_attrs", "primary");
	put_default(c, "connect_timeout", "5");
	put_default(c, "gssencmode", "disable"); /* its handshake may block */
	put(c, "client_encoding", "UTF8");
	if (put_options(c, session, e) == 0)
		return 0;
	conninfo_done(c);
	return -1;
}

void conninfo_done(struct conninfo *c)
{
	for (size_t i = 0; i < c->n; i++) {
		mem_wipe(c->values[i], strlen(c->values[i]));
		mem_free(c->words[i]);
		mem_free(c->values[i]);
	}
	*c = (struct conninfo){ .n = 0 };
}

static bool is_name(struct str host)
{
	unsigned char addr[16];
	char z[256];

	if (host.n == 0 || host.p[0] == '/' || host.p[0] == '@' || host.n >= sizeof z)
		return false;
	memcpy(z, host.p, host.n);
	z[host.n] = '\0';
	return inet_pton(AF_INET, z, addr) != 1 && inet_pton(AF_INET6, z, addr) != 1;
}

bool conninfo_needs_lookup(const struct conninfo *c, struct conninfo_hosts *h)
{
	const char *host = conninfo_get(c, "host"), *port = conninfo_get(c, "port");
	struct str rest = str_c(host), one;
	bool needed = false;

	*h = (struct conninfo_hosts){ .host = NULL };
	if (host == NULL || conninfo_get(c, "hostaddr") != NULL)
		return false;
	while (str_next(&rest, ',', &one))
		needed = needed || is_name(one);
	if (!needed)
		return false;
	h->host = mem_dup(host);
	h->port = mem_dup(port != NULL ? port : "");
	return true;
}

struct lists {
	struct buf host, addr, port;
	size_t n;
};

static void lists_add(struct lists *l, struct str host, const char *addr, struct str port)
{
	const char *comma = l->n++ > 0 ? "," : "";

	buf_addf(&l->host, "%s%.*s", comma, STR_ARG(host));
	buf_addf(&l->addr, "%s%s", comma, addr);
	buf_addf(&l->port, "%s%.*s", comma, STR_ARG(port));
}

/* A host that cannot be found is left out; the others may do. */
static void lookup(struct lists *l, struct str host, struct str port)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char *z = mem_dupn(host.p, host.n);
	int rc = getaddrinfo(z, NULL, &hints, &found);

	mem_free(z);
	for (struct addrinfo *a = found; rc == 0 && a != NULL && l->n < HOSTS_MAX; a = a->ai_next) {
		char text[INET6_ADDRSTRLEN + 64];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0,
			    NI_NUMERICHOST) == 0)
			lists_add(l, host, text, port);
	}
	if (found != NULL)
		freeaddrinfo(found);
}

void conninfo_resolve(struct conninfo_hosts *h)
{
	struct str hosts = str_c(h->host), ports = str_c(h->port), host, port = STR_NONE;
	bool same_port = str_find_char(ports, ',') < 0;
	struct lists l = { .n = 0 };

	buf_init(&l.host, LIST_MAX);
	buf_init(&l.addr, LIST_MAX);
	buf_init(&l.port, LIST_MAX);
	if (same_port)
		port = ports;
	while (str_next(&hosts, ',', &host)) {
		if (!same_port && !str_next(&ports, ',', &port))
			port = STR_NONE;
		if (is_name(host))
			lookup(&l, host, port);
		else
			lists_add(&l, host, "",
				port); /* an address or a socket's folder: libpq does not block */
	}
	h->err = (struct err){ .code = ERR_OK };
	if (l.n == 0)
		(void)err_set(
			&h->err, ERR_DATABASE, "No address is known for the host %.100s", h->host);
	h->ret_host = buf_take(&l.host);
	h->ret_addr = buf_take(&l.addr);
	h->ret_port = buf_take(&l.port);
}

void conninfo_hosts_done(struct conninfo_hosts *h)
{
	mem_free(h->host);
	mem_free(h->port);
	mem_free(h->ret_host);
	mem_free(h->ret_addr);
	mem_free(h->ret_port);
	*h = (struct conninfo_hosts){ .host = NULL };
}

PGconn *conninfo_connect_start(const struct conninfo *c, const struct conninfo_hosts *h)
{
	const char *words[CONNINFO_WORDS + 4] = { NULL }, *values[CONNINFO_WORDS + 4] = { NULL };
	size_t n = c->n;

	memcpy(words, c->words, n * sizeof words[0]);
	memcpy(values, c->values, n * sizeof values[0]);
	if (h != NULL) { /* the last of equal words wins */
		words[n] = "host";
		values[n++] = h->ret_host;
		words[n] = "hostaddr";
		values[n++] = h->ret_addr;
		words[n] = "port";
		values[n] = h->ret_port;
	}
	return PQconnectStartParams(words, values, 0);
}
