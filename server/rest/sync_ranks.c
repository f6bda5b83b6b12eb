#include "api/worker.h"
#include "lib/json/json_read.h"
#include "server/rest/sync.h"

bool sync_read_ranks(struct str json, struct arena *a, struct list *ret)
{
	struct jsn_doc *doc;
	struct err e;

	*ret = (struct list){ NULL, 0 };
	if (jsn_parse(json, &doc, &e) < 0)
		return false;
	size_t n = jsn_count(jsn_root(doc));
	ret->items = arena_array_of(a, struct rank_place, n + 1);
	for (size_t i = 0; i < n; i++)
		if (jsn_decode(jsn_at(jsn_root(doc), i), rank_place_fields, FIELD_REPLY, a,
			    list_at(ret, struct rank_place, i), &e) == 0)
			ret->n++;
	jsn_doc_free(doc);
	return ret->n == n && n != 0;
}
