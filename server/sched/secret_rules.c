#include "server/sched/secret_rules.h"

static char variable_char(char c)
{
	return c == '-' || c == '.' ? '_' : c;
}

/* Names have no capitals. */
static bool same_variable(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (variable_char(a.p[i]) != variable_char(b.p[i]))
			return false;
	return true;
}

static int check_step(const struct step_spec *s, struct err *e)
{
	for (size_t i = 1; i < s->secrets.n; i++) {
		struct str name = list_at(&s->secrets, struct secret_use, i)->name;
		for (size_t k = 0; k < i; k++) {
			struct str other = list_at(&s->secrets, struct secret_use, k)->name;
			if (!same_variable(name, other))
				continue;
			(void)err_field(e, "/name", "would hide the secret '%.*s'", STR_ARG(other));
			err_field_index(e, i);
			err_field_prefix(e, "secrets");
			return -1;
		}
	}
	return 0;
}

int secret_rules_check(const struct pipeline_spec *spec, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < spec->steps.n; i++) {
		const struct step_spec *s = list_at(&spec->steps, struct step_spec, i);
		if (check_step(s, e) == 0)
			continue;
		err_field_prefix(e, arena_str(a, s->name).p);
		err_field_prefix(e, "steps");
		return -1;
	}
	return 0;
}
