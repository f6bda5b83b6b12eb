#!/bin/bash
# Makes the cluster at the first start, then becomes PostgreSQL. Access is by unix socket and peer authentication alone: the
# kernel says who calls, and the uid of the server's container is that of the user `tidemill` here. No password exists.
set -euo pipefail
data=/var/lib/postgresql/data/15

if [ ! -f "$data/PG_VERSION" ]; then
	rm -rf "$data.new"
	initdb --pgdata="$data.new" --username=postgres --data-checksums --encoding=UTF8 --locale=C.UTF-8 \
		--auth-local=peer --auth-host=reject
	postgres --single -j -D "$data.new" postgres > /dev/null <<-'SQL'
		CREATE ROLE tidemill LOGIN CREATEDB;

		CREATE DATABASE tidemill OWNER tidemill;

	SQL
	mv "$data.new" "$data"
fi
exec postgres -D "$data" -c listen_addresses= -c unix_socket_directories=/run/postgresql -c timezone=UTC "$@"
