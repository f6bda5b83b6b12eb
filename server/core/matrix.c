#include "server/core/matrix.h"

#include "lib/base/buf.h"

enum { NAME_MAX_BYTES = 63 };

static bool is_key(struct str s)
{
	if (s.n < 1 || s.n > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || ((c < '0' || c > '9') && c != '-')))
			return false;
	}
	return true;
}

static int check_key(const struct matrix_key *k, struct err *e)
{
	if (!is_key(k->name))
		return err_field(e, "",
			"is no key of a matrix: 1 to 63 letters, digits, '_' and '-', a letter "
			"first");
	if (k->n < 1 || k->n > MATRIX_MAX)
		return err_field(e, "", "must have 1 to %d values", MATRIX_MAX);
	for (size_t i = 0; i < k->n; i++) {
		int rc = 0;
		if (k->values[i].n > MATRIX_VALUE_MAX || !str_is_text(k->values[i]))
			rc = err_field(e, "",
				"must be a text of at most %d bytes without control characters",
				MATRIX_VALUE_MAX);
		for (size_t j = 0; j < i && rc == 0; j++)
			if (str_eq(k->values[i], k->values[j]))
				rc = err_field(e, "", "is there twice");
		if (rc < 0) {
			err_field_index(e, i);
			return -1;
		}
	}
	return 0;
}

int matrix_check(const struct matrix_key *keys, size_t n, size_t *ret_count, struct err *e)
{
	size_t count = 1;

	if (n < 1 || n > MATRIX_KEYS_MAX)
		return err_field(e, "", "must have 1 to %d keys", MATRIX_KEYS_MAX);
	for (size_t i = 0; i < n; i++) {
		char name[NAME_MAX_BYTES + 1];
		if (check_key(&keys[i], e) < 0) {
			(void)str_print(
				name, sizeof name, "%.*s", STR_ARG(names_shown(keys[i].name)));
			err_field_prefix(e, name);
			return -1;
		}
		count *= keys[i].n; /* at most 256 × 256 before it is refused */
		if (count > MATRIX_MAX)
			return err_field(e, "", "makes more than %d combinations", MATRIX_MAX);
	}
	*ret_count = count;
	return 0;
}

void matrix_pick(const struct matrix_key *keys, size_t n, size_t i, struct str *ret_values)
{
	while (n-- > 0) {
		ret_values[n] = keys[n].values[i % keys[n].n];
		i /= keys[n].n;
	}
}

static void put_plain(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		bool fine =
			(c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
		buf_addc(b, fine ? c : '-');
	}
}

int matrix_names(struct str step, const struct matrix_key *keys, size_t n, size_t count,
	struct arena *a, struct str *ret, struct err *e)
{
	struct str values[MATRIX_KEYS_MAX];
	struct names index;
	bool plain = true;

	for (size_t i = 0; i < count && plain; i++) {
		struct buf b;
		buf_init(&b, 65536);
		buf_add(&b, step);
		matrix_pick(keys, n, i, values);
		for (size_t k = 0; k < n; k++) {
			buf_addc(&b, '.');
			put_plain(&b, keys[k].name);
			buf_addc(&b, '-');
			put_plain(&b, values[k]);
		}
		ret[i] = buf_keep(&b, a);
		plain = str_is_name(ret[i]);
	}
	if (plain) {
		names_index(&index, ret, count, a);
		plain = names_duplicate(&index) < 0;
	}
	for (size_t i = 0; i < count && !plain; i++) {
		ret[i] = arena_printf(a, "%.*s.%zu", STR_ARG(step), i + 1);
		if (ret[i].n > NAME_MAX_BYTES)
			return err_field(e, "",
				"the step's name is too long for a matrix of %zu: there is no room "
				"for a number behind it",
				count);
	}
	return 0;
}
