#!/bin/bash
# Migrates an empty database and prepares every statement of schema/queries there: names, types and columns that are not
# so fail here, with file and line, and not in a request. So do migrations that would hold up a large table. The cluster is kept in build/checksql between calls (but runs
# during them only), and so is the database as long as the migrations are the same.
# usage: checksql.sh [SCHEMA_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
schema=${1:-schema}
program=build/${V:-debug}/checksql
shopt -s nullglob
migrations=("$schema"/migrations/*.sql)
queries=("$schema"/queries/*.sql)
[ ${#queries[@]} -gt 0 ] || { echo "checksql: there are no statements in $schema/queries"; exit 0; }

awk -f tools/migrations.awk "${migrations[@]}" /dev/null

# The cluster's user must be able to reach the folder, which a home folder may not allow.
dir=${CHECKSQL_DIR:-$PWD/build/checksql}
mkdir -p "$dir"
if [ "$(id -u)" = 0 ] && ! runuser -u "${PG_USER:-postgres}" -- test -x "$dir"; then
	dir=/tmp/tidemill-checksql-$(pwd | sha256sum | cut -c1-12)
fi
[ ${#dir} -le 80 ] || dir=/tmp/tidemill-checksql-$(pwd | sha256sum | cut -c1-12)
trap 'bash tests/lib/postgres.sh stop "$dir"' EXIT
url=$(bash tests/lib/postgres.sh start "$dir")
psql=(psql -X -q -At -v ON_ERROR_STOP=1)
export PGOPTIONS="-c client_min_messages=warning"

name=checksql_$(cat "$0" "${migrations[@]}" < /dev/null | sha256sum | cut -c1-16)
target=${url%/*}/$name
if [ "$("${psql[@]}" "$url" -c "SELECT count(*) FROM pg_database WHERE datname = '$name'")" = 0 ]; then
	for old in $("${psql[@]}" "$url" -c "SELECT datname FROM pg_database WHERE datname LIKE 'checksql_%'"); do
		"${psql[@]}" "$url" -c "DROP DATABASE IF EXISTS \"$old\" WITH (FORCE)"
	done
	new=${url%/*}/checksql_new
	"${psql[@]}" "$url" -c "CREATE DATABASE checksql_new"
	# The one table that no migration makes: lib/db/migrate.c does.
	"${psql[@]}" "$new" -c "CREATE TABLE schema_migration (version bigint PRIMARY KEY, name text, checksum text, applied_at timestamptz)"
	for m in "${migrations[@]}"; do
		whole=(--single-transaction)
		[ "$(head -n 1 "$m")" != "-- outside a transaction" ] || whole=()
		"${psql[@]}" "${whole[@]}" "$new" -f "$m" > /dev/null
	done
	"${psql[@]}" "$url" -c "ALTER DATABASE checksql_new RENAME TO \"$name\""
fi
awk -v mode=list -f tools/sqlgen.awk "${queries[@]}" | "$program" "$target"
