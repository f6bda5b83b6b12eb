#include "api/event.h"

#define AT(member) offsetof(struct THIS, member)
#define R          FIELD_READONLY

#define THIS event
const struct field event_fields[] = {
	{ "id", FIELD_INT, R, AT(id), .doc = "Grows with time" },
	{ "at", FIELD_TIME, R, AT(at), .doc = "When it happened" },
	{ "project", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(project), .doc = "Name of the project" },
	{ "type", FIELD_STR, R, AT(type), .doc = "What happened, as run.succeeded" },
	{ "subject", FIELD_STR, R, AT(subject), .doc = "The object it happened to" },
	{ "parent", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(parent), .doc = "What that belongs to" },
	{ "actor", FIELD_STR, R | FIELD_OMIT_EMPTY, AT(actor), .doc = "Who did it" },
	{ "data", FIELD_RAW, R, AT(data), .doc = "More about it" },
	{ 0 },
};
#undef THIS
#define THIS event_query
const struct field event_query_fields[] = {
	{ "topic", FIELD_LIST, 0, AT(topic), .item = FIELD_STR, .item_max = 63, .max = 64,
		.doc = "Ids of objects, or the word project for all of it, as without any" },
	{ "from", FIELD_INT, 0, AT(from), FIELD_HAS(struct event_query, has_from), .min = 0,
		.max = INT64_MAX, .doc = "After this event" },
	{ 0 },
};
#undef THIS
