/* Messages that several operations take. */
#ifndef SERVER_MLFLOW_MESSAGE_H
#define SERVER_MLFLOW_MESSAGE_H
#include "lib/json/field.h"

enum {
	MESSAGE_LIST_MAX = 20000, /* items; the operations have limits of their own */
	MESSAGE_TEXT_MAX = 16 << 20,
};

struct flow_pair { /* a tag or a param */
	struct str key, value;
};
extern const struct field flow_pair_fields[];

#define MESSAGE_TEXT(type, member)                                                                 \
	{                                                                                          \
#member, FIELD_STR, FIELD_TEXT, offsetof(type, member), .max = MESSAGE_TEXT_MAX    \
	}
#define MESSAGE_INT(type, member, has_member)                                                      \
	{                                                                                          \
#member, FIELD_INT, 0, offsetof(type, member), FIELD_HAS(type, has_member)         \
	}
#define MESSAGE_PAIRS(type, member)                                                                \
	{                                                                                          \
#member, FIELD_LIST, 0, offsetof(type, member), .sub = flow_pair_fields,           \
								.size = sizeof(struct flow_pair),  \
								.max = MESSAGE_LIST_MAX            \
	}

#endif
