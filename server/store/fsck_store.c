#include "server/store/fsck_store.h"

#include "gen/sql.h"

const struct fsck_check fsck_checks[] = {
	{ "runs", "runs that have ended, and their steps", SQL_FSCK_RUNS },
	{ "steps", "steps and how many attempts they have", SQL_FSCK_STEPS },
	{ "ends", "ended steps and their newest attempt", SQL_FSCK_ENDS },
	{ "reused", "steps that were taken over, and their outputs", SQL_FSCK_REUSED },
	{ "gangs", "the attempts of gangs have all their ranks", SQL_FSCK_GANGS },
	{ "epochs", "epochs grow from attempt to attempt", SQL_FSCK_EPOCHS },
	{ "devices", "no GPU is held twice", SQL_FSCK_DEVICES },
	{ "needs", "no step began before those that it needs", SQL_FSCK_NEEDS },
	{ "queue", "the queue holds what is queued", SQL_FSCK_QUEUE },
	{ "groups", "one run of a concurrency group at a time", SQL_FSCK_GROUPS },
	{ "logs", "logs are whole, and final when they must be", SQL_FSCK_LOGS },
	{ "files", "files have the sizes of their bytes", SQL_FSCK_FILES },
	{ "versions", "versions of data sets have the files they say", SQL_FSCK_VERSIONS },
	{ "aliases", "aliases and their history agree", SQL_FSCK_ALIASES },
	{ "windows", "windows have the rows they say", SQL_FSCK_WINDOWS },
	{ "retrainings", "retrainings that are open go on", SQL_FSCK_RETRAININGS },
	{ "owners", "nothing has lost its owner", SQL_FSCK_OWNERS },
	{ 0 },
};

void fsck_store_check(struct db_unit *u, const struct fsck_check *check)
{
	db_stmt0(u, check->statement);
}

void fsck_store_blobs(struct db_unit *u, struct str after, int64_t count)
{
	db_stmt(u, SQL_FSCK_BLOBS, DB_BYTES(after), DB_INT(count));
}

void fsck_store_logs(struct db_unit *u, struct str after, int64_t count)
{
	db_stmt(u, SQL_FSCK_FINAL_LOGS, DB_TEXT(after), DB_INT(count));
}

void fsck_store_blob(struct db_unit *u, struct str digest)
{
	db_stmt(u, SQL_FSCK_BLOB, DB_BYTES(digest));
}
