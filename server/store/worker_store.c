#include "server/store/worker_store.h"

#include "api/run.h"
#include "gen/sql.h"
#include "lib/base/arena.h"
#include "lib/json/json_write.h"

enum { LIST_MAX = 4 << 20 };

static struct str text(struct str s)
{
	return s.p != NULL ? s : STR("");
}

void worker_store_enroll(struct db_unit *u, struct str token_id, struct str id, struct str name)
{
	db_stmt(u, SQL_WORKER_ENROLL, DB_TEXT(token_id), DB_TEXT(id), DB_TEXT(name));
}

void worker_store_add_token(
	struct db_unit *u, struct str id, struct str mac, struct str worker_id, int64_t expires_at)
{
	db_stmt(u, SQL_WORKER_TOKEN_INSERT, DB_TEXT(id), DB_BYTES(mac), DB_TEXT(worker_id),
		DB_TIME(expires_at));
}

void worker_store_get(struct db_unit *u, struct str id_or_name, int64_t offline_after)
{
	db_stmt(u, SQL_WORKER_GET, DB_TEXT(id_or_name), DB_INT(offline_after));
}

void worker_store_list(struct db_unit *u, struct str after, int64_t count, int64_t offline_after)
{
	db_stmt(u, SQL_WORKER_LIST, DB_TEXT(after), DB_INT(count), DB_INT(offline_after));
}

void worker_store_set_state(struct db_unit *u, struct str id_or_name, int state, struct str actor)
{
	db_stmt(u, SQL_WORKER_SET_STATE, DB_TEXT(id_or_name), DB_TEXTZ(worker_state_names[state]),
		DB_TEXT(actor));
}

void worker_store_delete(struct db_unit *u, struct str id_or_name, struct str actor)
{
	db_stmt(u, SQL_WORKER_DELETE, DB_TEXT(id_or_name), DB_TEXT(actor));
}

void worker_store_seen(struct db_unit *u, const struct str *ids, const int64_t *ago, size_t n)
{
	db_stmt(u, SQL_WORKER_SEEN, DB_TEXTS(ids, n), DB_INTS(ago, n));
}

void worker_store_inventory(struct db_unit *u, struct str id, const struct sync_request *in)
{
	struct buf devices, warnings;

	buf_init(&devices, LIST_MAX);
	struct jsn_out w = jsn_out(&devices);
	jsn_list_begin(&w);
	for (size_t i = 0; i < in->devices.n; i++) {
		struct buf one;
		buf_init(&one, 65536);
		field_encode(device_fields, list_at(&in->devices, struct device, i), &one);
		jsn_raw(&w, buf_str(&one));
		devices.failed |= one.failed;
		buf_done(&one);
	}
	jsn_list_end(&w);
	buf_init(&warnings, LIST_MAX);
	w = jsn_out(&warnings);
	jsn_list_begin(&w);
	for (size_t i = 0; i < in->warnings.n; i++)
		jsn_str(&w, *list_at(&in->warnings, struct str, i));
	jsn_list_end(&w);
	db_stmt(u, SQL_WORKER_INVENTORY, DB_TEXT(id), DB_TEXT(in->boot_id),
		DB_TEXT(text(in->release)), DB_TEXTS(in->runtimes.items, in->runtimes.n),
		DB_REAL(in->cpus), DB_INT(in->memory), DB_INT(in->disk_free), DB_JSON_OF(&devices),
		DB_JSON_OF(&warnings), DB_TEXTS(in->isolated.items, in->isolated.n));
	db_stmt(u, SQL_WORKER_DISK, DB_TEXT(id), DB_INT(in->disk_free));
	buf_done(&devices);
	buf_done(&warnings);
}

void worker_store_holds(struct db_unit *u, struct str id, const struct holds *h, struct str keys)
{
	struct buf b;

	buf_init(&b, LIST_MAX);
	field_encode(holds_fields, h, &b);
	db_stmt(u, SQL_WORKER_HOLDS_PUT, DB_TEXT(id), DB_JSON_OF(&b), DB_BYTES(keys));
	buf_done(&b);
}

struct reports {
	struct str *worker_ids, *ids, *states, *reasons, *messages, *runtimes, *evidence,
		*addresses;
	int64_t *ords, *epochs, *exit_codes, *signals, *started_at, *ended_at, *ports;
	bool *no_exit, *no_signal, *no_start, *no_end;
	size_t n;
};

struct reports *reports_new(struct arena *a, size_t room)
{
	struct reports *r = arena_new_of(a, struct reports);
	struct str **texts[] = { &r->worker_ids, &r->ids, &r->states, &r->reasons, &r->messages,
		&r->runtimes, &r->evidence, &r->addresses };
	int64_t **numbers[] = { &r->ords, &r->epochs, &r->exit_codes, &r->signals, &r->started_at,
		&r->ended_at, &r->ports };
	bool **flags[] = { &r->no_exit, &r->no_signal, &r->no_start, &r->no_end };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		*texts[i] = arena_array_of(a, struct str, room);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		*numbers[i] = arena_array_of(a, int64_t, room);
	for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
		*flags[i] = arena_array_of(a, bool, room);
	return r;
}

void reports_put(struct reports *r, int64_t ord, struct str worker_id, const struct sync_attempt *s)
{
	size_t i = r->n++;

	r->ords[i] = ord;
	r->worker_ids[i] = worker_id;
	r->ids[i] = s->id;
	r->states[i] = str_c(attempt_state_names[s->state]);
	r->reasons[i] = text(s->reason);
	r->messages[i] = text(s->message);
	r->runtimes[i] = text(s->runtime);
	r->evidence[i] = s->evidence.n != 0 ? s->evidence : STR("{}");
	r->addresses[i] = text(s->address);
	r->ports[i] =
		s->ready && s->address.n != 0 ? s->port : 0; /* without both nobody finds it */
	r->epochs[i] = s->epoch;
	r->exit_codes[i] = s->exit_code;
	r->signals[i] = s->signal;
	r->started_at[i] = s->started_at;
	r->ended_at[i] = s->ended_at;
	r->no_exit[i] = !s->has_exit_code;
	r->no_signal[i] = !s->has_signal;
	r->no_start[i] = s->started_at == 0;
	r->no_end[i] = s->ended_at == 0;
}

void worker_store_report(struct db_unit *u, const struct reports *r)
{
	struct str faults[REASON_COUNT];
	size_t n = r->n, k = 0;

	for (int i = 0; i < REASON_COUNT; i++)
		if (reason_is_host((enum reason)i))
			faults[k++] = str_c(reason_names[i]);
	const struct db_arg args[] = { DB_INTS(r->ords, n), DB_TEXTS(r->worker_ids, n),
		DB_TEXTS(r->ids, n), DB_INTS(r->epochs, n), DB_TEXTS(r->states, n),
		DB_TEXTS(r->reasons, n), DB_TEXTS(r->messages, n), DB_TEXTS(r->runtimes, n),
		db_with_nulls(DB_INTS(r->exit_codes, n), r->no_exit),
		db_with_nulls(DB_INTS(r->signals, n), r->no_signal),
		db_with_nulls(DB_TIMES(r->started_at, n), r->no_start),
		db_with_nulls(DB_TIMES(r->ended_at, n), r->no_end), DB_JSONS(r->evidence, n),
		DB_TEXTS(faults, k), DB_TEXTS(r->addresses, n), DB_INTS(r->ports, n) };

	db_add(u, SQL_SYNC_REPORT, args, sizeof args / sizeof args[0]);
}

void worker_store_compare(
	struct db_unit *u, struct str worker_id, const struct str *named, size_t n)
{
	db_stmt(u, SQL_SYNC_COMPARE, DB_TEXT(worker_id), DB_TEXTS(named, n));
}

void worker_store_cancel_unheard(
	struct db_unit *u, struct str worker_id, const struct str *known, size_t n)
{
	db_stmt(u, SQL_SYNC_CANCEL_UNHEARD, DB_TEXT(worker_id), DB_TEXTS(known, n));
}

void worker_store_refuse(
	struct db_unit *u, struct str worker_id, struct str attempt_id, struct str why)
{
	db_stmt(u, SQL_SYNC_REFUSE, DB_TEXT(worker_id), DB_TEXT(attempt_id), DB_TEXT(why));
}

void worker_store_assignment(struct db_unit *u, struct str attempt_id)
{
	db_stmt(u, SQL_SYNC_ASSIGNMENT, DB_TEXT(attempt_id));
}

void attempt_store_held(
	struct db_unit *u, struct str attempt_id, struct str worker_id, int64_t epoch)
{
	db_stmt(u, SQL_ATTEMPT_HELD, DB_TEXT(attempt_id), DB_TEXT(worker_id), DB_INT(epoch));
}

void attempt_store_other_values(struct db_unit *u, struct str attempt_id)
{
	db_stmt(u, SQL_ATTEMPT_OTHER_VALUES, DB_TEXT(attempt_id));
}

void attempt_store_reads_blob(struct db_unit *u, struct str attempt_id, struct str digest)
{
	db_stmt(u, SQL_ATTEMPT_READS_BLOB, DB_TEXT(attempt_id), DB_BYTES(digest));
}

void attempt_store_outputs(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, const struct output_rows *r, struct str summary)
{
	db_stmt(u, SQL_OUTPUTS_PUT, DB_TEXT(attempt_id), DB_TEXT(worker_id), DB_INT(epoch),
		DB_TEXTS(r->names, r->n), DB_TEXTS(r->paths, r->n), DB_INTS(r->sizes, r->n),
		DB_BLOBS(r->digests, r->n), DB_JSON(summary));
}

void attempt_store_tracking(
	struct db_unit *u, struct str attempt_id, struct str worker_id, int64_t epoch)
{
	db_stmt(u, SQL_ATTEMPT_TRACKING, DB_TEXT(attempt_id), DB_TEXT(worker_id), DB_INT(epoch));
}

void attempt_store_warning(struct db_unit *u, struct str attempt_id, struct str worker_id,
	const struct attempt_warning *w)
{
	db_stmt(u, SQL_ATTEMPT_WARNING_PUT, DB_TEXT(attempt_id), DB_TEXT(worker_id),
		DB_INT(w->epoch), DB_TEXT(w->kind), DB_TEXT(w->message));
}

void attempt_store_matches(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, struct str matches)
{
	db_stmt(u, SQL_LOG_MATCHES_PUT, DB_TEXT(attempt_id), DB_TEXT(worker_id), DB_INT(epoch),
		DB_JSON(matches));
}

void attempt_store_checkpoint(struct db_unit *u, struct str attempt_id, struct str worker_id,
	int64_t epoch, const struct output_rows *r)
{
	db_stmt(u, SQL_CHECKPOINT_PUT, DB_TEXT(attempt_id), DB_TEXT(worker_id), DB_INT(epoch),
		DB_TEXTS(r->paths, r->n), DB_INTS(r->sizes, r->n), DB_BLOBS(r->digests, r->n));
}

void checkpoint_store_useless(struct db_unit *u, const struct str *step_ids, size_t n)
{
	db_stmt(u, SQL_CHECKPOINT_USELESS, DB_TEXTS(step_ids, n));
}

void step_store_output(struct db_unit *u, struct str step_id, struct str name, struct str path)
{
	db_stmt(u, SQL_STEP_OUTPUT_FILE, DB_TEXT(step_id), DB_TEXT(name), DB_TEXT(path));
}

void worker_store_delivered(struct db_unit *u, const struct str *attempt_ids, size_t n)
{
	db_stmt(u, SQL_SYNC_DELIVERED, DB_TEXTS(attempt_ids, n));
}
