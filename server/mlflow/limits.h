/* MLflow's rules for names and values. Lengths are in code points. What breaks a rule is answered
 * with 400 INVALID_PARAMETER_VALUE and MLflow's text, which names the parameter
 * ("metrics[3].name").
 */
#ifndef SERVER_MLFLOW_LIMITS_H
#define SERVER_MLFLOW_LIMITS_H
#include "server/mlflow/flow.h"

enum {
	LIMIT_KEY = 250,
	LIMIT_PARAM_VALUE = 6000,
	LIMIT_TAG_VALUE = 8000,
	LIMIT_EXPERIMENT_TAG_VALUE = 5000,
	LIMIT_EXPERIMENT_NAME = 500,
	LIMIT_RUN_NAME = 250,
	LIMIT_LOCATION = 2048,
	LIMIT_METRICS = 1000, /* in a batch */
	LIMIT_PARAMS = 100,
	LIMIT_TAGS = 100,
	LIMIT_BATCH = 1000,
};

/* What a value is called: list[index].member, or the member alone without a list. */
struct limit_name {
	const char *list;
	size_t index;
	const char *member;
};
enum { LIMIT_NAME_TEXT = 96 };
const char *limit_name_text(char out[LIMIT_NAME_TEXT], struct limit_name n); /* returns out */
/* These are false when it has been answered. */
bool limit_key(struct call *c, struct str key, struct limit_name name);
bool limit_length(struct call *c, struct str value, size_t max, const char *name);
/* Longer values are cut, as MLflow does. */
struct str limit_cut(struct str value, size_t max);

#endif
