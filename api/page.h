/* Lists: ?limit=&cursor= in, {"items": […], "next_cursor": "…"} out. A cursor is opaque: it is made
 * of the sort key of the last item, so that pages stay true while rows are added. */
#ifndef API_PAGE_H
#define API_PAGE_H
#include "lib/json/field.h"

/* The longest key is a file's path. A cursor is in hex, and begins with a mark of its list. */
enum {
	PAGE_DEFAULT = 50,
	PAGE_MAX = 500,
	PAGE_KEY_MAX = 1024,
	PAGE_CURSOR_MARK = 4,
	PAGE_CURSOR_MAX = 2 * (PAGE_CURSOR_MARK + PAGE_KEY_MAX)
};

struct page_query {
	int64_t limit;
	struct str cursor;
};

#define PAGE_FIELDS(type)                                                                          \
	{ "limit", FIELD_INT, 0, offsetof(type, page.limit), .min = 1, .max = PAGE_MAX,            \
		.fallback = "50", .doc = "Items per page" },                                       \
	{                                                                                          \
		"cursor", FIELD_STR, 0, offsetof(type, page.cursor),                               \
			.max = PAGE_CURSOR_MAX, .doc = "next_cursor of the page before"            \
	}

struct list_query {
	struct page_query page;
};
extern const struct field list_query_fields[];

#endif
