#include "cli/sse.h"

void sse_init(struct sse_parser *p, sse_message_cb *fn, void *arg)
{
	*p = (struct sse_parser){ .fn = fn, .arg = arg };
	buf_init(&p->line, SSE_LINE_MAX);
	buf_init(&p->data, SSE_LINE_MAX);
}

void sse_done(struct sse_parser *p)
{
	buf_done(&p->line);
	buf_done(&p->data);
}

static void forget(struct sse_parser *p)
{
	buf_clear(&p->data);
	p->event[0] = '\0';
	p->has_data = false;
}

void sse_restart(struct sse_parser *p)
{
	buf_clear(&p->line);
	p->after_cr = false;
	forget(p);
}

static int dispatch(struct sse_parser *p, struct err *e)
{
	struct sse_message m = { .event = p->event[0] != '\0' ? str_c(p->event) : STR("message"),
		.data = buf_str(&p->data) };
	int rc = p->has_data ? p->fn(p->arg, &m, e) : 0;

	forget(p);
	return rc;
}

static void take_field(struct sse_parser *p, struct str name, struct str value)
{
	if (str_is(name, "data")) {
		if (p->has_data)
			buf_addc(&p->data, '\n');
		p->has_data = true;
		buf_add(&p->data, value);
	} else if (str_is(name, "event")) {
		if (!str_print(p->event, sizeof p->event, "%.*s", STR_ARG(value)))
			p->event[0] = '\0';
	} else if (str_is(name, "id") && value.n < sizeof p->id && !str_has_control(value)) {
		(void)str_print(p->id, sizeof p->id, "%.*s", STR_ARG(value));
	}
}

static int take_line(struct sse_parser *p, struct err *e)
{
	struct str line = buf_str(&p->line), value;
	ptrdiff_t colon = str_find_char(line, ':');
	int rc = 0;

	if (line.n == 0) {
		rc = dispatch(p, e);
	} else if (colon != 0) { /* else a comment */
		size_t name = colon < 0 ? line.n : (size_t)colon;
		value = str_slice(line, name + 1, line.n);
		if (value.n > 0 && value.p[0] == ' ')
			value = str_slice(value, 1, value.n);
		take_field(p, str_slice(line, 0, name), value);
	}
	buf_clear(&p->line);
	return rc;
}

/* Lines end with LF, CR or CR LF; the LF after a CR is passed over, wherever it comes. */
int sse_add(struct sse_parser *p, struct str bytes, struct err *e)
{
	size_t i = 0;

	while (i < bytes.n) {
		size_t start = i;
		if (p->after_cr && bytes.p[i] == '\n')
			start = ++i;
		p->after_cr = false;
		while (i < bytes.n && bytes.p[i] != '\n' && bytes.p[i] != '\r')
			i++;
		buf_add(&p->line, str_slice(bytes, start, i - start));
		if (buf_failed(&p->line) || buf_failed(&p->data))
			return err_set(
				e, ERR_TOO_LARGE, "an event has more than %d bytes", SSE_LINE_MAX);
		if (i == bytes.n)
			break;
		p->after_cr = bytes.p[i++] == '\r';
		if (take_line(p, e) < 0)
			return -1;
	}
	return 0;
}
