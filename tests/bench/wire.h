/*
 * Keep-alive HTTP/1.1 connections to 127.0.0.1 on one thread, for the benchmarks' loads: each has
 * at most one request on its way; its callback runs when the whole answer is there. Bodies need a
 * Content-Length. What goes wrong on the wire ends the program.
 */
#ifndef TESTS_BENCH_WIRE_H
#define TESTS_BENCH_WIRE_H
#include <stdbool.h>
#include <stddef.h>

struct conn;
typedef void wire_cb(struct conn *c, int status, char *body);

struct conn {
	int fd;
	char *in;
	size_t got, cap;
	bool busy;
	double sent_at; /* seconds */
	wire_cb *done;
	void *mine;
};

void wire_init(int port);
void wire_open(struct conn *c, wire_cb *done);
/* token NULL: none. */
void wire_send(struct conn *c, const char *method, const char *path, const char *token,
	const char *body, size_t n);
void wire_post(struct conn *c, const char *path, const char *token, const char *body);
void wire_turn(int wait_ms); /* takes what has come */
/* One that waits for nothing, or NULL. */
struct conn *wire_idle(struct conn *list, int n);
/* Sends and waits; the body, valid until the next request. Ends the program unless it is a 2xx. */
char *wire_call(struct conn *c, const char *path, const char *token, const char *body);

double wire_now(void);
/* The string after "key":" (blanks allowed) in a JSON text, into out; ends the program when it is
 * not there. */
void wire_pick(const char *json, const char *key, char *out, size_t size);
long wire_number(const char *digits);

/* Values are kept and told by quantile. */
struct times {
	double *ms;
	size_t n, cap;
};
void times_add(struct times *t, double ms);
void times_sort(struct times *t);
double times_at(const struct times *t, double q); /* of sorted ones */

#endif
