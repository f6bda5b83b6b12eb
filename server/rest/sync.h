/* The group commit that the workers' reports share; owned by the app. */
#ifndef SERVER_REST_SYNC_H
#define SERVER_REST_SYNC_H

struct app;
struct reporter;

struct reporter *reporter_new(struct app *app);
void reporter_free(struct reporter *r); /* NULL is fine */

#endif
