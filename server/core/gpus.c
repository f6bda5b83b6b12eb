#include "server/core/gpus.h"

#include "lib/base/num.h"

/* What a bound forgives: bounds are nominal, reports are not. */
enum { SLACK_PERCENT = 8 };

static int parse_bound(struct str text, uint64_t *ret, struct err *e)
{
	*ret = 0;
	if (text.n != 0 && (!num_parse_size(text, ret) || *ret == 0 || *ret > INT64_MAX / 200))
		return err_field(
			e, "", "has a bound that is no amount of memory, as 40GiB or 80GB");
	return 0;
}

int gpus_parse_memory(struct str text, uint64_t *ret_min, uint64_t *ret_max, struct err *e)
{
	ptrdiff_t dots = str_find(text, STR(".."));
	uint64_t min, max;

	if (dots < 0 || text.n == 2 || str_has_control(text))
		return err_field(e, "",
			"must be a range of memory: \"40GiB..\", \"..80GB\" or \"24GB..80GB\"");
	if (parse_bound(str_slice(text, 0, (size_t)dots), &min, e) < 0 ||
		parse_bound(str_slice(text, (size_t)dots + 2, text.n), &max, e) < 0)
		return -1;
	if (max != 0 && min > max)
		return err_field(e, "", "the range of memory ends before it begins");
	*ret_min = min;
	*ret_max = max;
	return 0;
}

static bool word_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A model's name: letters, digits and what NVIDIA puts between them; a number alone is none. */
static bool is_model(struct str s)
{
	bool letters = false;

	if (s.n == 0 || s.n > GPUS_MODEL_LENGTH_MAX || !word_char(s.p[0]) ||
		!word_char(s.p[s.n - 1]))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		letters = letters || (word_char(s.p[i]) && s.p[i] > '9');
		if (!word_char(s.p[i]) && memchr(" -_./()", s.p[i], 7) == NULL)
			return false;
	}
	return letters;
}

int gpus_check_model(struct str model, struct err *e)
{
	return is_model(model)
		       ? 0
		       : err_field(e, "", "must be the name of a GPU model, as H100 or L40S");
}

static bool has_nocase(struct str s, struct str part)
{
	for (size_t i = 0; i + part.n <= s.n; i++)
		if (str_eq_nocase(str_slice(s, i, part.n), part))
			return true;
	return false;
}

/* "1g.18gb", "1c.3g.40gb", "1g.10gb+me" */
static bool is_profile(struct str s)
{
	if (s.n > GPUS_MODEL_LENGTH_MAX || s.n == 0 || s.p[0] < '0' || s.p[0] > '9' ||
		!has_nocase(s, STR("g.")) || !has_nocase(s, STR("gb")))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!word_char(s.p[i]) && memchr(".+-", s.p[i], 3) == NULL)
			return false;
	return true;
}

int gpus_check_mig(struct str profile, struct err *e)
{
	return is_profile(profile) || str_is(profile, "any")
		       ? 0
		       : err_field(e, "", "must be the profile of a MIG slice, as 1g.18gb, or any");
}

static int parse_kind(struct str kind, struct arena *a, struct gpus_want *w, struct err *e)
{
	uint64_t size;

	if (str_find(kind, STR("..")) >= 0)
		return gpus_parse_memory(kind, &w->memory_min, &w->memory_max, e);
	if (num_parse_size(kind, &size) && !num_parse_u64(kind, 0, UINT64_MAX, &size))
		return err_field(e, "", "is one amount of memory; write a range, as \"%.*s..\"",
			STR_ARG(str_slice(kind, 0, 32)));
	if (is_profile(kind)) {
		w->mig = arena_str(a, kind);
		return 0;
	}
	if (!is_model(kind))
		return err_field(
			e, "", "must be as 2, \"H100:4\", \"24GB..80GB:2\" or \"40GiB..\"");
	struct str *model = arena_new_of(a, struct str);
	*model = arena_str(a, kind);
	w->models = model;
	w->models_n = 1;
	return 0;
}

int gpus_parse(struct str text, struct arena *a, struct gpus_want *ret, struct err *e)
{
	struct gpus_want w = { 0 };
	ptrdiff_t colon = str_find_char(text, ':');
	struct str kind = STR_NONE, number = text;
	uint64_t count = 0;

	if (colon >= 0) {
		kind = str_slice(text, 0, (size_t)colon);
		number = str_slice(text, (size_t)colon + 1, text.n);
	} else if (text.n != 0 && !num_parse_u64(text, 0, UINT64_MAX, &count)) {
		kind = text;
		number = STR("1");
	}
	if (number.n != 0 || colon >= 0) {
		if (!num_parse_u64(number, colon >= 0 ? 1 : 0, GPUS_MAX, &count))
			return err_field(e, "", "the number of GPUs must be at most %d%s", GPUS_MAX,
				colon >= 0 ? " and at least 1" : "");
	}
	w.count = (uint32_t)count;
	if ((colon >= 0 || kind.n != 0) && parse_kind(kind, a, &w, e) < 0)
		return -1;
	*ret = w;
	return 0;
}

/* `part` within `whole`, whatever the case, with no letter or digit right before or after it. */
static bool has_words(struct str whole, struct str part)
{
	for (size_t i = 0; part.n != 0 && i + part.n <= whole.n; i++) {
		bool starts = i == 0 || !word_char(whole.p[i - 1]);
		bool ends = i + part.n == whole.n || !word_char(whole.p[i + part.n]);
		if (starts && ends && str_eq_nocase(str_slice(whole, i, part.n), part))
			return true;
	}
	return false;
}

bool gpus_match(const struct gpus_want *w, struct str model, uint64_t memory, struct str mig)
{
	bool named = w->models_n == 0;

	if ((w->mig.n == 0) != (mig.n == 0) ||
		(w->mig.n != 0 && !str_is(w->mig, "any") && !str_eq_nocase(w->mig, mig)))
		return false;
	/* Bounds were held below INT64_MAX / 200 when they were read. */
	if (memory > INT64_MAX / 200)
		memory = INT64_MAX / 200;
	if (memory * 100 < w->memory_min * (100 - SLACK_PERCENT))
		return false;
	if (w->memory_max != 0 && memory * 100 > w->memory_max * (100 + SLACK_PERCENT))
		return false;
	for (size_t i = 0; i < w->models_n && !named; i++)
		named = has_words(model, w->models[i]);
	return named;
}
