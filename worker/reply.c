#include "worker/reply.h"

#include "lib/json/json_read.h"
#include "lib/json/json_write.h"

enum { REST_MAX = 4 << 20 };

/* Everything but the assignments. */
static int read_rest(const struct jsn *root, struct arena *a, struct sync_reply *ret, struct err *e)
{
	struct buf text;

	buf_init(&text, REST_MAX);
	struct jsn_out w = jsn_out(&text);
	jsn_obj_begin(&w);
	for (size_t i = 0; i < jsn_count(root); i++) {
		const struct jsn *member = jsn_at(root, i);
		struct buf value;
		if (str_is(jsn_name(member), "assign"))
			continue;
		buf_init(&value, REST_MAX);
		jsn_write(member, &value);
		jsn_key_str(&w, jsn_name(member));
		jsn_raw(&w, buf_str(&value));
		buf_done(&value);
	}
	jsn_obj_end(&w);
	int rc = buf_failed(&text)
			 ? err_set(e, ERR_TOO_LARGE, "the reply is too large")
			 : field_decode_reply(sync_reply_fields, buf_str(&text), a, ret, e);
	buf_done(&text);
	return rc;
}

static void read_each(
	const struct jsn *all, struct arena *a, struct sync_reply *ret, struct list *ret_bad)
{
	size_t n = jsn_count(all);
	struct assignment *good = arena_array_of(a, struct assignment, n + 1);
	struct bad_assignment *bad = arena_array_of(a, struct bad_assignment, n + 1);

	ret->assign = (struct list){ good, 0 };
	*ret_bad = (struct list){ bad, 0 };
	for (size_t i = 0; i < n; i++) {
		const struct jsn *one = jsn_at(all, i);
		struct bad_assignment *b = &bad[ret_bad->n];
		if (jsn_decode(one, assignment_fields, FIELD_REPLY, a, &good[ret->assign.n],
			    &b->why) == 0) {
			ret->assign.n++;
			continue;
		}
		b->attempt = arena_str(a, jsn_get_str(jsn_get(one, "attempt")));
		b->epoch = jsn_get_int(jsn_get(one, "epoch"), 0);
		if (b->attempt.n != 0 && b->epoch > 0)
			ret_bad->n++;
	}
}

int reply_read(struct str body, struct arena *a, struct sync_reply *ret, struct list *ret_bad,
	struct err *e)
{
	struct jsn_doc *doc;
	struct err why;

	*ret_bad = (struct list){ NULL, 0 };
	if (field_decode_reply(sync_reply_fields, body, a, ret, &why) == 0)
		return 0;
	if (jsn_parse(body, &doc, e) < 0)
		return -1;
	int rc = read_rest(jsn_root(doc), a, ret, e);
	if (rc == 0)
		read_each(jsn_get(jsn_root(doc), "assign"), a, ret, ret_bad);
	jsn_doc_free(doc);
	return rc;
}
