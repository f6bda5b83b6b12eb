#include "server/store/pairs.h"

#include "lib/json/json_write.h"

enum { PAIRS_TEXT_MAX = 256 << 10 };

struct db_arg pairs_json(const struct list *pairs, struct buf *b)
{
	struct jsn_out w;

	buf_init(b, PAIRS_TEXT_MAX);
	w = jsn_out(b);
	jsn_obj_begin(&w);
	for (size_t i = 0; i < pairs->n; i++) {
		const struct field_pair *p = list_at(pairs, struct field_pair, i);
		jsn_key_str(&w, p->key);
		jsn_str(&w, p->value);
	}
	jsn_obj_end(&w);
	return DB_JSON_OF(b);
}
