/*
 * How objects of the API are shown: as a table on a terminal, separated by tabs when not, or
 * unchanged as JSON. Which columns there are is data (views.c).
 */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H
#include "cli/cell.h"
#include "cli/shape.h"

struct column {
	const char *title, *pointer; /* JSON pointer of the value */
	enum column_kind kind;
	bool show_only; /* left out of lists */
	bool gives_way; /* left out of tables on a terminal that is too narrow */
	const char *until; /* COLUMN_LENGTH: pointer of the end */
	shape_fn *shape; /* COLUMN_SHAPE; for single objects only */
};

struct view {
	const char *name; /* JSON pointer of what -o name prints */
	const struct column *columns; /* ends with title NULL */
};

extern const struct view view_token, view_principal, view_project, view_member, view_retention,
	view_project_content, view_dataset, view_dataset_version, view_file, view_pipeline,
	view_run, view_step, view_attempt, view_artifact, view_model, view_model_version,
	view_alias, view_alias_change, view_monitor, view_window, view_drift_value, view_decision,
	view_observation, view_closed, view_forgotten, view_worker, view_self, view_event,
	view_wait, view_quota, view_pool, view_end, view_rank;

/* A list that is printed as its items come, page by page. */
struct view_list;
struct view_list *view_list_new(struct cli *c, const struct view *v)
	__attribute__((returns_nonnull));
void view_list_add(struct view_list *l, const struct jsn *item);
/* Prints what is left; `more` is the cursor of what was not asked for, or STR_NONE. */
int view_list_end(struct view_list *l, struct str more, struct err *e) MUST_CHECK;
void view_list_free(struct view_list *l); /* without printing; after a failure */

/* One object, its fields one below the other: `text` is the reply as it came. */
int view_object(struct cli *c, const struct view *v, struct str text, const struct jsn *object,
	struct err *e) MUST_CHECK;

/* Bytes to stdout; ERR_IO when that fails. */
int view_print(struct str bytes, struct err *e) MUST_CHECK;
int view_flush(struct err *e) MUST_CHECK;
/* A line of a log for a terminal: colours stay, everything else that could move its cursor or
 * change its state goes. */
void view_clean(struct str line, struct buf *out);

#endif
