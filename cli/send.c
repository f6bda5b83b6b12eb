#include "cli/send.h"

#include "cli/generic.h"
#include "cli/view.h"

void send_init(struct send *s)
{
	buf_init(&s->text, SEND_BODY_MAX);
	s->w = jsn_out(&s->text);
	jsn_obj_begin(&s->w);
}

void send_done(struct send *s)
{
	buf_done(&s->text);
}

struct str send_end(struct send *s)
{
	jsn_obj_end(&s->w);
	return buf_str(&s->text);
}

void send_str(struct send *s, const char *name, struct str value)
{
	if (value.p == NULL)
		return;
	jsn_key(&s->w, name);
	jsn_str(&s->w, value);
}

void send_flag(struct send *s, const struct cli *c, const char *flag)
{
	char name[64];

	BUG_ON(!str_print(name, sizeof name, "%s", flag));
	for (char *p = name; *p != '\0'; p++) {
		if (*p == '-')
			*p = '_';
	}
	send_str(s, name, cli_text(c, flag));
}

int send_labels(struct send *s, const struct cli *c, struct err *e)
{
	struct str pair, key, value;
	size_t at = 0;

	if (!cli_has(c, "label"))
		return 0;
	jsn_key(&s->w, "labels");
	jsn_obj_begin(&s->w);
	while (cli_next(c, "label", &at, &pair)) {
		if (cli_split(pair, "label", &key, &value, e) < 0)
			return -1;
		jsn_key_str(&s->w, key);
		jsn_str(&s->w, value);
	}
	jsn_obj_end(&s->w);
	return 0;
}

int send_object(struct send *s, struct cli *c, const struct api_call *q, struct err *e)
{
	struct api_call call = *q;

	call.body = send_end(s);
	if (buf_failed(&s->text))
		return err_set(e, ERR_TOO_LARGE, "the request would have more than %d bytes",
			SEND_BODY_MAX);
	return generic_object(c, &call, e);
}

int send_print(struct send *s, struct cli *c, struct str name, struct err *e)
{
	struct str text = send_end(s);

	if (c->output == OUTPUT_TABLE)
		return 0;
	if (view_print(c->output == OUTPUT_NAME ? name : text, e) < 0 ||
		view_print(STR("\n"), e) < 0)
		return -1;
	return view_flush(e);
}
