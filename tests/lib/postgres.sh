#!/bin/bash
# A private PostgreSQL cluster for the demo, the tests and the benchmarks.
#
#   postgres.sh start DIR [PORT]   make the cluster if there is none, start it if it is down, print its URL
#   postgres.sh stop  DIR          end it in good order (fast, then immediate); nothing to do when it is down
#   postgres.sh crash DIR          end it as a power cut would: SIGKILL for the postmaster and its children
#   postgres.sh url   DIR          print postgresql://tidemill:…@127.0.0.1:PORT/tidemill
#
# DIR gets: data/ (the cluster), socket/, port, password (0600), postgres.log. The role `tidemill` owns the database
# `tidemill` and may create further ones; `postgres` is the superuser, through the socket only:
#   psql -h DIR/socket -p "$(cat DIR/port)" -U postgres
# TCP asks for the password (scram); the socket asks for none, but its folder opens for the cluster's user and root only.
# PostgreSQL refuses to run as root: for root the cluster belongs to the user `postgres` (PG_USER names another), who must
# be able to reach DIR. All calls are idempotent and hold a lock on DIR. A cluster keeps its port; without PORT a free one
# is chosen. PG_BINDIR names another installation, PG_DEADLINE the seconds to wait for it (60).
set -euo pipefail
umask 022

die() {
	echo "postgres.sh: $*" >&2
	exit 1
}

usage() {
	echo "usage: postgres.sh start|stop|crash|url DIR [PORT]" >&2
	exit 2
}

bindir() {
	local d
	for d in ${PG_BINDIR:-} /usr/lib/postgresql/1[5-9]/bin; do
		[ -x "$d/initdb" ] && echo "$d" && return 0
	done
	die "no PostgreSQL 15 or newer is installed (apt-get install postgresql-15, or set PG_BINDIR)"
}

# as_owner COMMAND…: run it as the cluster's user, with a clean environment, outside the caller's lock
as_owner() {
	local env=(env -i PATH="$PG_BIN:/usr/bin:/bin" LC_ALL=C.UTF-8 TZ=UTC)
	if [ "$(id -u)" = 0 ]; then
		runuser -u "$OWNER" -- "${env[@]}" "$@" 9>&-
	else
		"${env[@]}" "$@" 9>&-
	fi
}

# The pid of our postmaster, if it runs: the pid in the file must be a process that stands in our data folder.
running_pid() {
	local pid
	[ -r "$DATA/postmaster.pid" ] || return 1
	pid=$(head -n 1 "$DATA/postmaster.pid" 2>/dev/null) || return 1
	[[ $pid =~ ^[0-9]+$ ]] || return 1
	[ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$DATA" ] || return 1
	echo "$pid"
}

is_alive() {
	grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

# wait_gone PID SECONDS: true once the process is gone (or is only a zombie that its parent has not looked at)
wait_gone() {
	local end=$((SECONDS + $2))
	while is_alive "$1"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# PostgreSQL takes a killed postmaster that nobody has reaped yet for a living one, and refuses to start.
forget_zombie() {
	local f pid
	for f in "$DATA/postmaster.pid" "$DIR"/socket/.s.PGSQL.*.lock; do
		pid=$(head -n 1 "$f" 2>/dev/null) || continue
		if [ -d "/proc/$pid" ] && ! is_alive "$pid"; then
			rm -f "$f"
		fi
	done
}

port_is_free() {
	! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

free_port() {
	local i p
	for i in $(seq 50); do
		p=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
		port_is_free "$p" && echo "$p" && return 0
	done
	die "found no free port on 127.0.0.1 in $i tries"
}

make_cluster() {
	local secret pwfile
	if [ ! -s "$DIR/password" ]; then
		secret=$(od -An -N 24 -tx1 /dev/urandom | tr -d ' \n')
		(umask 077 && echo "$secret" > "$DIR/password.new")
		mv "$DIR/password.new" "$DIR/password"
	fi
	rm -rf "$DATA" "$DIR/data.new"
	install -d -m 0700 ${AS_ROOT:+-o "$OWNER"} "$DIR/data.new" "$DIR/socket"
	# The superuser's password is thrown away: that role comes in by the socket only.
	pwfile=$DIR/data.new.pw
	(umask 077 && od -An -N 24 -tx1 /dev/urandom | tr -d ' \n' > "$pwfile")
	[ -z "${AS_ROOT:-}" ] || chown "$OWNER" "$pwfile"
	as_owner initdb --pgdata="$DIR/data.new" --username=postgres --pwfile="$pwfile" --data-checksums \
		--encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 > "$DIR/initdb.log" 2>&1 || {
		cat "$DIR/initdb.log" >&2
		die "initdb failed"
	}
	rm -f "$pwfile"
	cat >> "$DIR/data.new/postgresql.conf" <<-CONF
		listen_addresses = '127.0.0.1'
		unix_socket_directories = '$DIR/socket'
		unix_socket_permissions = 0700
		password_encryption = 'scram-sha-256'
		fsync = on
		full_page_writes = on
		synchronous_commit = on
		timezone = 'UTC'
		log_timezone = 'UTC'
	CONF
	mv "$DIR/data.new" "$DATA"
}

super() {
	as_owner psql -X -q -v ON_ERROR_STOP=1 -h "$DIR/socket" -p "$(cat "$DIR/port")" -U postgres "$@"
}

# Role and database; the password travels by standard input, never by argv.
make_role() {
	local have
	have=$(super -d postgres -At -c "SELECT count(*) FROM pg_database WHERE datname = 'tidemill'")
	[ "$have" = 0 ] || return 0
	super -d postgres <<-SQL
		DO \$\$ BEGIN
			CREATE ROLE tidemill LOGIN CREATEDB;
		EXCEPTION WHEN duplicate_object THEN NULL;
		END \$\$;
		ALTER ROLE tidemill PASSWORD '$(cat "$DIR/password")';
		CREATE DATABASE tidemill OWNER tidemill;
	SQL
}

launch() {
	as_owner pg_ctl start --pgdata="$DATA" --log="$DIR/postgres.log" --wait --timeout="${PG_DEADLINE:-60}" \
		-o "-p $(cat "$DIR/port")" > "$DIR/pg_ctl.log" 2>&1
}

start_cluster() {
	local try
	[ -f "$DATA/PG_VERSION" ] || make_cluster
	if [ -n "$PORT" ] && ! running_pid > /dev/null; then
		echo "$PORT" > "$DIR/port"
	fi
	[ -s "$DIR/port" ] || free_port > "$DIR/port"
	touch "$DIR/postgres.log"
	[ -z "${AS_ROOT:-}" ] || chown "$OWNER" "$DIR/postgres.log"
	forget_zombie
	for try in 1 2 3 4 5; do
		running_pid > /dev/null && break
		launch && break
		# Somebody else may have taken the port meanwhile. One that was asked for is not exchanged.
		if [ -n "$PORT" ] || port_is_free "$(cat "$DIR/port")" || [ "$try" = 5 ]; then
			tail -n 8 "$DIR/postgres.log" >&2
			die "PostgreSQL did not start on port $(cat "$DIR/port") (see $DIR/postgres.log)"
		fi
		free_port > "$DIR/port"
	done
	[ -z "$PORT" ] || [ "$PORT" = "$(cat "$DIR/port")" ] || die "it runs on port $(cat "$DIR/port") already, not $PORT"
	as_owner pg_isready -q -h "$DIR/socket" -p "$(cat "$DIR/port")" -t "${PG_DEADLINE:-60}" ||
		die "PostgreSQL does not answer (see $DIR/postgres.log)"
	make_role
}

stop_cluster() {
	local pid
	pid=$(running_pid) || return 0
	kill -INT "$pid"
	wait_gone "$pid" 30 && return 0
	echo "postgres.sh: no orderly end within 30 s, ending it at once" >&2
	kill -QUIT "$pid" 2>/dev/null || true
	wait_gone "$pid" 30 || die "process $pid does not end"
}

crash_cluster() {
	local pid kids k
	pid=$(running_pid) || return 0
	kill -STOP "$pid"
	kids=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null || true)
	for k in $pid $kids; do
		kill -KILL "$k" 2>/dev/null || true
	done
	for k in $pid $kids; do
		wait_gone "$k" 30 || die "process $k does not end"
	done
}

print_url() {
	[ -s "$DIR/port" ] && [ -s "$DIR/password" ] || die "there is no cluster in $DIR"
	echo "postgresql://tidemill:$(cat "$DIR/password")@127.0.0.1:$(cat "$DIR/port")/tidemill"
}

[ $# -ge 2 ] && [ $# -le 3 ] || usage
VERB=$1
case $VERB in start | stop | crash | url) ;; *) usage ;; esac
PORT=${3:-}
[ -z "$PORT" ] || { [[ $PORT =~ ^[0-9]{1,5}$ ]] && [ "$PORT" -ge 1024 ] && [ "$PORT" -le 65535 ]; } ||
	die "PORT must be a number from 1024 to 65535, got '$PORT'"
[ "$VERB" != start ] || mkdir -p "$2"
[ -d "$2" ] || { [ "$VERB" != url ] || die "there is no cluster in $2"; exit 0; }
DIR=$(cd "$2" && pwd -P)
DATA=$DIR/data
[ ${#DIR} -le 80 ] || die "$DIR: the path is too long for a unix socket (80 bytes at most)"
[[ $DIR != *[\'\"\\$' \t\n']* ]] || die "$DIR: the path must not contain spaces, quotes or backslashes"
OWNER=$(id -un)
if [ "$(id -u)" = 0 ]; then
	AS_ROOT=1
	OWNER=${PG_USER:-postgres}
	id "$OWNER" > /dev/null 2>&1 || die "there is no user '$OWNER' (PG_USER) to run PostgreSQL as"
fi
PG_BIN=$(bindir)
cd /

exec 9> "$DIR/lock"
flock -w 120 9 || die "$DIR is locked by another call"
case $VERB in
start)
	as_owner test -x "$DIR" || die "user '$OWNER' cannot reach $DIR (a parent folder is closed to others)"
	start_cluster
	print_url
	;;
stop) stop_cluster ;;
crash) crash_cluster ;;
url) print_url ;;
esac
