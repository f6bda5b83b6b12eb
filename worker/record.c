#include "worker/record.h"

#include "lib/base/fs.h"

#include <limits.h>

const char *const job_phase_names[] = { "assigned", "preparing", "starting", "running", "finishing",
	"ended", NULL };

#define AT(member)           offsetof(struct record, member)
#define HAS(member)          FIELD_HAS(struct record, member)
#define E                    FIELD_OMIT_EMPTY
#define REASON(name, member) name, FIELD_ENUM, 0, AT(member), .names = reason_names, .doc = "Reason"

static const struct field record_fields[] = {
	{ "phase", FIELD_ENUM, FIELD_REQUIRED, AT(phase), .names = job_phase_names,
		.doc = "How far it is" },
	{ "result", FIELD_ENUM, 0, AT(result), .names = attempt_state_names,
		.doc = "How it ended" },
	{ REASON("reason", reason) },
	{ REASON("stop", stop) },
	{ "runtime", FIELD_STR, E, AT(runtime), .max = 31, .doc = "What runs it" },
	{ "message", FIELD_STR, E | FIELD_TEXT, AT(message), .max = 4000, .doc = "In words" },
	{ "evidence", FIELD_RAW, E, AT(evidence), .max = 16384, .doc = "What it rests on" },
	{ "secrets", FIELD_STR, E, AT(secrets), .max = 64, .doc = "Digest of its secrets" },
	{ "image_id", FIELD_STR, E, AT(image_id), .max = 127, .doc = "The image that ran" },
	{ "image_ref", FIELD_STR, E, AT(image_ref), .max = 511, .doc = "The same for any host" },
	{ "image_fault", FIELD_STR, E, AT(image_fault), .max = 31,
		.doc = "What was wrong with it" },
	{ "received_elapsed", FIELD_INT, E, AT(received_elapsed), .max = INT64_MAX,
		.doc = "When it came, on the elapsed clock, microseconds" },
	{ "boot", FIELD_STR, E, AT(boot), .max = 63, .doc = "Of the host, which that counts from" },
	{ "killer", FIELD_STR, E, AT(killer), .max = 31, .doc = "Who ended it" },
	{ "started_at", FIELD_TIME, E, AT(started_at), .doc = "When the command started" },
	{ "ended_at", FIELD_TIME, E, AT(ended_at), .doc = "When it ended" },
	{ "exit_code", FIELD_INT, E, AT(exit_code), HAS(has_exit_code), .doc = "Of the command" },
	{ "signal", FIELD_INT, E, AT(signal), HAS(has_signal), .doc = "That ended it" },
	{ "resumed", FIELD_BOOL, 0, AT(resumed), .doc = "It began with a checkpoint" },
	{ "unstarted", FIELD_BOOL, 0, AT(unstarted), .doc = "There was no command" },
	{ 0 },
};

void record_encode(const struct record *r, struct buf *out)
{
	field_encode(record_fields, r, out);
}

int record_write(const char *dir, const char *name, struct str text, struct err *e)
{
	char path[PATH_MAX];

	if (!str_print(path, sizeof path, "%s/%s", dir, name))
		return err_set(e, ERR_INVALID, "the path of the attempt is too long");
	return fs_write_atomic(path, text, 0600, e);
}

static int read_file(const char *dir, const char *name, size_t max, struct buf *text, struct err *e)
{
	char path[PATH_MAX];

	buf_init(text, max);
	if (!str_print(path, sizeof path, "%s/%s", dir, name))
		return err_set(e, ERR_INVALID, "the path of the attempt is too long");
	return fs_read(path, text, e);
}

int record_read(const char *dir, struct arena *a, struct assignment *ret_task, struct record *ret,
	struct err *e)
{
	struct assignment task;
	struct record r;
	struct buf text;
	int rc = read_file(dir, "assignment.json", ASSIGNMENT_MAX, &text, e);

	if (rc == 0)
		rc = field_decode_reply(assignment_fields, buf_str(&text), a, &task, e);
	buf_done(&text);
	if (rc < 0)
		return -1;
	rc = read_file(dir, "state.json", RECORD_MAX, &text, e);
	if (rc == 0)
		rc = field_decode_reply(record_fields, buf_str(&text), a, &r, e);
	buf_done(&text);
	if (rc < 0)
		return -1;
	*ret_task = task;
	*ret = r;
	return 0;
}
