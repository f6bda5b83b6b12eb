#include "api/route.h"
#include "api/worker.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "tests/unit/unit.h"

void test_api__operations_and_paths_are_unique(void **state)
{
	(void)state;
	for (size_t i = 0; i < routes_count; i++)
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(routes[i].id, routes[j].id);
			assert_false(strcmp(routes[i].method, routes[j].method) == 0 &&
				     strcmp(routes[i].path, routes[j].path) == 0);
		}
	assert_string_equal(route_find("runs.create")->method, "POST");
	assert_null(route_find("no.such"));
}

/* A body that is announced has a table and a size, and nothing else has. */
void test_api__bodies_and_replies_have_tables(void **state)
{
	(void)state;
	for (const struct route *r = routes; r->id != NULL; r++) {
		bool table = r->body == BODY_JSON || r->body == BODY_YAML;
		assert_true((r->in != NULL) == (table && !(r->flags & ROUTE_MLFLOW)));
		assert_true((r->in != NULL) == (r->in_size != 0));
		assert_true(
			(r->out != NULL) == (r->reply == REPLY_OBJECT || r->reply == REPLY_LIST ||
						    r->reply == REPLY_DRY));
		assert_true((r->query != NULL) == (r->query_size != 0));
		assert_true(r->ok >= 200 && r->ok < 300);
		assert_non_null(r->doc);
		assert_true(r->perm < PERM_COUNT);
	}
}

/* Every member is documented, and the table's own fallbacks and bounds agree: an empty object of a
 * table without required members decodes. */
static void check_table(const char *id, const struct field *t, int depth)
{
	assert_true(depth < 12);
	for (; t->name != NULL; t++) {
		if (t->doc == NULL || t->doc[0] == '\0')
			fail_msg("%s: %s has no doc", id, t->name);
		if (t->type == FIELD_ENUM && t->names == NULL)
			fail_msg("%s: %s has no names", id, t->name);
		if ((t->type == FIELD_DICT || (t->type == FIELD_LIST && t->sub != NULL)) &&
			t->size == 0)
			fail_msg("%s: %s has no item size", id, t->name);
		if (t->sub != NULL)
			check_table(id, t->sub, depth + 1);
	}
}

void test_api__every_member_is_documented(void **state)
{
	(void)state;
	for (const struct route *r = routes; r->id != NULL; r++) {
		if (r->in != NULL)
			check_table(r->id, r->in, 0);
		if (r->out != NULL)
			check_table(r->id, r->out, 0);
		if (r->query != NULL)
			check_table(r->id, r->query, 0);
	}
}

void test_api__schemas_print(void **state)
{
	struct buf b;

	(void)state;
	for (const struct route *r = routes; r->id != NULL; r++) {
		buf_init(&b, 1 << 20);
		if (r->in != NULL)
			field_schema(r->in, &b);
		if (r->out != NULL)
			field_schema(r->out, &b);
		assert_false(buf_failed(&b));
		buf_done(&b);
	}
}

void test_api__files_of_a_listing(void **state)
{
#define D "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const char *const bad[] = { D " 3", D " 3 ", D "  a", D " x a", D " -1 a",
		"0" D " 3 a", D "3 a", D " 3 a\n", "\n" D " 3 a", D " 99999999999999999999 a",
		"a 3 b" };
	struct arena *a = arena_new(1 << 20);
	struct list files;
	struct err e;

	(void)state;
	struct staged s = { .listing = STR(D " 3 a b/c.csv\n" D " 0 d") };
	assert_int_equal(staged_count(&s), 2);
	assert_int_equal(staged_files(&s, a, &files, &e), 0);
	assert_int_equal(files.n, 2);
	assert_string_equal(list_at(&files, struct file, 0)->path.p, "a b/c.csv");
	assert_string_equal(list_at(&files, struct file, 0)->digest.p, D);
	assert_int_equal(list_at(&files, struct file, 0)->size, 3);
	assert_string_equal(list_at(&files, struct file, 1)->path.p, "d");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		s.listing = str_c(bad[i]);
		assert_int_equal(staged_files(&s, a, &files, &e), -1);
	}
	s = (struct staged){ .files = { files.items, 2 } };
	assert_int_equal(staged_count(&s), 2);
	assert_int_equal(staged_files(&s, a, &files, &e), 0);
	assert_int_equal(files.n, 2);
	arena_drop(a);
}
