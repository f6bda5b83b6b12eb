/*
 * drift_case FILE: one drift vector in, its result out. Samples come as arrays (null, "NaN",
 * "Infinity", "-Infinity" allowed) or as generators. Everything that is computed comes from the
 * product's own functions.
 */
#include "tests/tools/drift_case/case.h"

#include <stdio.h>
#include <string.h>

static const char *sql_join(struct test_case *t)
{
	(void)t;
	return "labels are joined with predictions by the store, in SQL";
}

static const char *not_yet(struct test_case *t)
{
	(void)t;
	return "not among the metrics of this version";
}

static const struct {
	const char *name;
	const char *(*run)(struct test_case *t);
} tests[] = {
	{ "psi_numeric", psi_numeric },
	{ "psi_counts", psi_counts },
	{ "psi_evidently", psi_evidently },
	{ "categorical_distances", categorical_distances },
	{ "ks_2samp", ks_2samp },
	{ "wasserstein", wasserstein },
	{ "wasserstein_binned", wasserstein_binned },
	{ "chi2_categorical", chi2_categorical },
	{ "two_by_two", two_by_two },
	{ "type_rules", type_rules },
	{ "domain_auc", domain_auc },
	{ "quality", quality },
	{ "constant_columns", constant_columns },
	{ "status_rules", status_rules },
	{ "multiple_testing", multiple_testing },
	{ "trigger_policy", trigger_policy },
	{ "label_join", sql_join },
};

static const char *run(const char *name, struct test_case *t)
{
	for (size_t i = 0; name != NULL && i < sizeof(tests) / sizeof(*tests); i++)
		if (strcmp(tests[i].name, name) == 0)
			return tests[i].run(t);
	return not_yet(t);
}

int main(int argc, char **argv)
{
	json_error_t bad;
	json_t *in, *out = json_object();
	struct test_case t = { .r = json_object() };
	const char *skipped, *name;

	if (argc != 2)
		die("usage: drift_case FILE (- for standard input)");
	in = strcmp(argv[1], "-") == 0 ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &bad)
				       : json_load_file(argv[1], JSON_REJECT_DUPLICATES, &bad);
	if (!json_is_object(in))
		die(in == NULL ? bad.text : "a case is an object");
	t.params = json_object_get(in, "params");
	t.ref = json_object_get(in, "reference");
	t.cur = json_object_get(in, "current");
	name = json_string_value(json_object_get(in, "test"));
	skipped = run(name, &t);
	json_object_set(out, "name", json_object_get(in, "name"));
	if (skipped != NULL) {
		json_object_set_new(out, "skipped", json_string(skipped));
		json_decref(t.r);
	} else {
		json_object_set_new(out, "result", t.r);
	}
	json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
	putchar('\n');
	json_decref(out);
	json_decref(in);
	return 0;
}
