#include "server/app.h"

#include "lib/db/listen.h"

void app_changed(struct app *app)
{
	if (app->notify != NULL)
		db_notify_send(app->notify, "tidemill_changed", STR_NONE);
}
