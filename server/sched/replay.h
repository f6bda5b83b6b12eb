/* Decides a recorded snapshot anew. Pure but for its arenas. */
#ifndef SERVER_SCHED_REPLAY_H
#define SERVER_SCHED_REPLAY_H
#include "server/sched/snapshot.h"

bool replay_has_step(const struct snapshot_file *f, struct str step);
/* Says in words how the decision compares with the recorded one; true when it is the same. `step`:
 * also why this step waits, or where it goes (it must be there); "" for none. */
bool replay_snapshot(const struct snapshot_file *f, struct str step, struct buf *out);

#endif
