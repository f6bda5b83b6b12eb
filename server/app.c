#include "server/app.h"

#include "lib/db/listen.h"
#include "server/sched/hub.h"

void app_changed(struct app *app)
{
	if (app->hub != NULL)
		hub_wake(app->hub);
	if (app->notify != NULL)
		db_notify_send(app->notify, "tidemill_changed", str_c(app->instance));
}
