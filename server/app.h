/* What the server is made of, passed to whoever needs it; there is no global. Owned by main.c. */
#ifndef SERVER_APP_H
#define SERVER_APP_H
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "server/settings.h"

struct app {
	struct loop *loop;
	const struct clock *clock;
	struct settings conf;
	struct db *db;
	struct db_listen *listen;
	struct db_notify *notify;
	struct http_server *http;
	struct static_files *ui;
	struct pepper *pepper; /* store/credential.h */
	struct auth *auth; /* rest/auth.h: token cache */
	struct grants *grants; /* rest/grants.h: cache of roles */
	struct blobs *blobs; /* blob/blob.h */
	struct metric_group *points; /* store/metric_group.h */
	struct run_access *run_access; /* mlflow/run_access.h */
	struct hub *hub; /* sched/hub.h: the outbox, told to the parts of this server */
	struct launcher *launcher; /* sched/launch.h */
	struct reporter *reporter; /* rest/sync.h */
	struct sync_group *sync_group; /* rest/sync_group.h */
	struct progress *progress; /* sched/progress.h */
	struct logs *logs; /* rest/logs.h: ingest and followers */
	struct access *access; /* rest/access.h: open streams of callers */
	struct streams *streams; /* rest/events.h */
	struct fleet *fleet; /* sched/fleet.h: parked workers */
	struct windows *windows; /* sched/windows.h */
	struct finish *finish; /* sched/finish.h */
	struct sched *sched; /* sched/sched.h: leader duties */
	struct why *why; /* sched/why.h: why steps wait */
	struct schedules *schedules; /* sched/schedules.h */
	struct metrics *metrics; /* rest/metrics.h */
	char instance[ID_MAX];
	int64_t schema; /* the newest migration that is compiled in */
	bool draining;
	int64_t started_at;
};

/* Something durable has changed: wakes this server's hub, scheduler and parked workers in a later
 * turn, and tells the other servers. Called after every committed write of state; cheap. */
void app_changed(struct app *app);

#endif
