/* What the files of lib/fetch share; for no one else. */
#ifndef LIB_FETCH_INSIDE_H
#define LIB_FETCH_INSIDE_H
#include "lib/fetch/fetch.h"
#include "lib/fetch/guard.h"
#include "lib/loop/timer.h"

#include <curl/curl.h>

enum { FETCH_HEAD_MAX = 65536, FETCH_ERROR_BODY_MAX = 65536, FETCH_BODY_MAX = 1 << 20 };

struct fetch_client {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer timer;
	struct fetch *first; /* all that are in flight */
	struct watch *watches; /* one per socket that libcurl wants watched */
	struct guard guard;
	struct ip_net *allow;
	char *base_url, *unix_socket, *ca_file, *token, *token_file, *user_agent;
	unsigned max_connections; /* 0: by use */
	unsigned n_in_multi, most; /* requests that libcurl works on: now, and at most so far */
	bool https_only, collecting;
	int64_t connect_timeout, timeout;
};

/* One socket of libcurl's. */
struct watch {
	struct fetch_client *client;
	struct loop_fd *fd;
	struct watch *prev, *next;
	int socket;
};

struct fetch {
	struct fetch_client *client;
	struct fetch *prev, *next;
	CURL *easy;
	struct curl_slist *headers;
	struct fetch_request q;
	char method[32];
	fetch_done_cb *done;
	void *done_arg;
	struct buf head, body;
	struct fetch_reply reply;
	struct err e; /* the first failure that we saw ourselves */
	struct err blocked; /* what the guard said of the last address it refused */
	char why[CURL_ERROR_SIZE]; /* what libcurl says */
	uint64_t sent;
	int64_t fd_start;
	unsigned pending; /* deferred calls still to come */
	bool refused; /* it cannot be sent: e says why */
	bool in_multi; /* libcurl works on it */
	bool head_done, cancelled, paused, resuming;
	bool over; /* done has been called */
};

/* request.c: makes f->easy ready from f->q. */
int request_setup(struct fetch *f, struct err *e) MUST_CHECK;
/* reply.c: where the head and the body go. */
void reply_setup(struct fetch *f);

#endif
