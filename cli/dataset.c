/* dataset, and the downloads of model: files and their versions. */
#include "cli/files.h"
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"

int cmd_dataset_create(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route };
	struct send s;

	send_init(&s);
	send_str(&s, "name", cli_arg(c, 0));
	send_flag(&s, c, "description");
	int rc = send_labels(&s, c, e);
	if (rc == 0)
		rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

/* Makes the data set when there is none; another may make it at the same time. */
static int ensure(struct cli *c, struct str name, struct err *e)
{
	struct api_call get = { .route = "datasets.get", .params = { name } };
	struct api_call create = { .route = "datasets.create" };
	struct api_reply r;
	struct send s;

	if (api_do(c, &get, &r, e) == 0) {
		api_done(&r);
		return 0;
	}
	if (e->code != ERR_NOT_FOUND)
		return -1;
	send_init(&s);
	send_str(&s, "name", name);
	create.body = send_end(&s);
	int rc = api_do(c, &create, &r, e);
	send_done(&s);
	if (rc == 0)
		api_done(&r);
	else if (e->code == ERR_CONFLICT)
		rc = 0;
	return rc;
}

int cmd_dataset_push(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route, .params = { cli_arg(c, 0) } };
	struct list files;
	struct send s;

	if (files_find(c, c->n_args - 1, c->args + 1, &files, e) < 0 ||
		ensure(c, cli_arg(c, 0), e) < 0 || files_upload(c, &files, e) < 0)
		return -1;
	send_init(&s);
	files_send(&s, &files);
	if (cli_has(c, "append")) {
		jsn_key(&s.w, "latest");
		jsn_bool(&s.w, true);
	}
	send_flag(&s, c, "description");
	int rc = send_labels(&s, c, e);
	if (rc == 0)
		rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

int cmd_dataset_download(struct cli *c, struct err *e)
{
	const struct str params[2] = { cli_arg(c, 0), cli_arg(c, 1) };

	return files_download(
		c, "dataset_versions.files", "dataset_versions.file", params, c->args[2], e);
}

int cmd_model_download(struct cli *c, struct err *e)
{
	const struct str params[2] = { cli_arg(c, 0), cli_arg(c, 1) };

	return files_download(
		c, "model_versions.files", "model_versions.file", params, c->args[2], e);
}
