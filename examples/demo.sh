#!/bin/bash
# The whole loop on real data: `make demo` and `make demo-stop`.
#
#   examples/demo.sh start    install what is missing, build, start everything, tell the story (examples/demo/story.py)
#   examples/demo.sh stop     end what start left running; data and logs stay in var/demo
#
#   DEMO_RUNTIME=process|docker   how steps run (process); docker uses the daemon that answers, else one of its own
#   DEMO_PORT=8440                first port that is tried for the server
#   DEMO_DIR=var/demo             where everything lies
#   DEMO_UNTIL=2011Q4             the last quarter of the story
#   DEMO_INSTALL=no               install nothing
#   BASE=IMAGE                    base of the steps' image instead of one made by debootstrap (docker)
#
# What lies there: postgres/, server/, worker/, config/ (the command line's), repo/ (git), parts/ (data),
# summary.json. A second start ends the first and begins anew. When the story breaks off, everything is stopped again.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
ROOT=$PWD
BIN=$ROOT/build/release
RUNTIME=${DEMO_RUNTIME:-process}
LINK=$(realpath -ms "${DEMO_DIR:-var/demo}")
IMAGE=tidemill/python-sklearn:1
DEADLINE=60

say() { echo "==> $*"; }
die() {
	echo "demo: $*" >&2
	exit 1
}

# ---- where ------------------------------------------------------------------------------------------

# The user that PostgreSQL runs as, and the one that steps run as, must be able to reach the folder, and a unix socket
# below it must have a short enough name. Where the tree's own place will not do, var/demo is a link to one that will.
is_reachable() {
	[ ${#1} -le 60 ] && [[ $1 != *[\'\"\\$' \t']* ]] || return 1
	[ "$(id -u)" != 0 ] || setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$1"
}

find_state() {
	local other
	mkdir -p "$(dirname "$LINK")"
	if [ ! -e "$LINK" ] && [ ! -L "$LINK" ]; then
		mkdir "$LINK"
		if ! is_reachable "$LINK"; then
			rmdir "$LINK"
			other=/var/tmp/tidemill-demo-$(id -u)-$(sha256sum <<< "$LINK" | cut -c 1-8)
			say "other users cannot reach $LINK: it becomes a link to $other"
			mkdir -p "$other"
			[ -O "$other" ] && [ ! -L "$other" ] || die "$other belongs to somebody else"
			chmod 755 "$other"
			ln -s "$other" "$LINK"
		fi
	fi
	STATE=$(cd "$LINK" && pwd -P)
}

# ---- processes --------------------------------------------------------------------------------------

# When a living process began, in ticks since the boot. With its pid that names it for ever, and anyone may read it: server
# and worker keep the rest of what /proc says from all but root, even from the user that they run as.
begin_of() {
	local line
	line=$(cat "/proc/$1/stat" 2> /dev/null) || return 1
	# shellcheck disable=SC2086
	set -- ${line##*) }
	[[ $1 != [ZX] ]] && echo "${20}"
}

# The pid in NAME/pid, if that process is still the one that was started.
running() {
	local pid began
	{ read -r pid began < "$STATE/$1/pid"; } 2> /dev/null || return 1
	[[ $pid =~ ^[0-9]+$ ]] && [ -n "$began" ] && [ "$(begin_of "$pid")" = "$began" ] || return 1
	echo "$pid"
}

# launch NAME COMMAND…: in the background, on its own, with its log in NAME/log
launch() {
	local name=$1
	shift
	(cd "$STATE/$name" && exec setsid "$@" < /dev/null >> log 2>&1) &
	echo "$! $(begin_of $!)" > "$STATE/$name/pid"
	disown
}

end() {
	local pid limit=$((SECONDS + 30))
	pid=$(running "$1") || return 0
	kill -TERM "$pid" 2> /dev/null || true
	while running "$1" > /dev/null; do
		[ "$SECONDS" -lt "$limit" ] || {
			kill -KILL "$pid" 2> /dev/null || true
			break
		}
		sleep 0.1
	done
	rm -f "$STATE/$1/pid"
}

# Steps outlive their worker by design. Those of an interrupted story stand in the worker's folder.
end_steps() {
	local pid
	for pid in /proc/[0-9]*; do
		[ "${pid#/proc/}" != $$ ] || continue
		case "$(readlink "$pid/cwd" 2> /dev/null) $(tr '\0' ' ' 2> /dev/null < "$pid/cmdline")" in
		*"$STATE/worker/attempts/"*) kill -KILL "${pid#/proc/}" 2> /dev/null || true ;;
		esac
	done
}

end_containers() {
	local host ids
	host=$(cat "$STATE/docker-host" 2> /dev/null) || return 0
	ids=$(docker -H "$host" ps -aq --filter "label=tidemill.install=$(cat "$STATE/install" 2> /dev/null)" 2> /dev/null) || return 0
	# shellcheck disable=SC2086
	[ -z "$ids" ] || docker -H "$host" rm -f $ids > /dev/null 2>&1 || true
}

stop_all() {
	[ -e "$LINK" ] || return 0
	STATE=$(cd "$LINK" && pwd -P)
	end worker
	end_steps
	end server
	bash tests/lib/postgres.sh stop "$STATE/postgres"
	[ ! -f "$STATE/docker-host" ] || end_containers
	[ ! -d "$STATE/docker" ] || bash tests/lib/dockerd.sh stop "$STATE/docker"
}

# What comes up is waited for; a process that ends meanwhile shows its log.
wait_for() { # NAME COMMAND…
	local name=$1 limit=$((SECONDS + DEADLINE))
	shift
	until "$@" > /dev/null 2>&1; do
		if ! running "$name" > /dev/null || [ "$SECONDS" -ge "$limit" ]; then
			tail -n 20 "$STATE/$name/log" >&2
			die "the $name did not come up (see $STATE/$name/log)"
		fi
		sleep 0.1
	done
}

free_port() {
	local p
	for p in $(seq "${DEMO_PORT:-8440}" "$((${DEMO_PORT:-8440} + 50))"); do
		(exec 3<> "/dev/tcp/127.0.0.1/$p") 2> /dev/null || { echo "$p" && return 0; }
	done
	die "found no free port from ${DEMO_PORT:-8440} on; name another by DEMO_PORT"
}

# ---- what is needed ---------------------------------------------------------------------------------

prepare() {
	local purposes="build web demo"
	[ "$RUNTIME" != docker ] || purposes="$purposes docker"
	if [ "${DEMO_INSTALL:-}" != no ]; then
		# shellcheck disable=SC2086
		bash tools/install.sh $purposes
	fi
	say "Building the dashboard and the programs (log: $STATE/build.log)"
	{ make -s web && make -s -j"$(nproc)" V=release programs; } > "$STATE/build.log" 2>&1 || {
		tail -n 25 "$STATE/build.log" >&2
		die "the build failed"
	}
}

# Sets DOCKER_HOST and makes the image that the steps run in.
prepare_docker() {
	if ! docker version > /dev/null 2>&1; then
		[ "$(id -u)" = 0 ] || die "no Docker daemon answers, and starting one needs root"
		say "Starting a Docker daemon of its own"
		DOCKER_HOST=$(bash tests/lib/dockerd.sh start "$STATE/docker")
		export DOCKER_HOST
	fi
	: "${DOCKER_HOST:=unix:///var/run/docker.sock}"
	[[ $DOCKER_HOST == unix://* ]] || die "the worker speaks to Docker by a unix socket, not by $DOCKER_HOST"
	echo "$DOCKER_HOST" > "$STATE/docker-host"
	if [ -z "${BASE:-}" ]; then
		BASE=tidemill/base:bookworm
		MKBASE_CACHE=$STATE/mkbase bash docker/mkbase.sh "$BASE"
	fi
	say "Building the image of the steps from $BASE"
	docker build -q --network host --build-arg BASE="$BASE" -t "$IMAGE" -f docker/python-sklearn.Dockerfile docker \
		> "$STATE/image.log" 2>&1 || {
		tail -n 25 "$STATE/image.log" >&2
		die "the image cannot be built"
	}
}

start_server() {
	local port url
	say "Starting PostgreSQL"
	url=$(bash tests/lib/postgres.sh start "$STATE/postgres")
	port=$(free_port)
	URL=http://127.0.0.1:$port
	say "Starting the server on $URL"
	mkdir -p "$STATE/server"
	(umask 077 && echo "$url" > "$STATE/server/database-url")
	launch server env -i PATH="$PATH" TIDEMILL_DATABASE_URL_FILE="$STATE/server/database-url" "$BIN/tidemill-server" \
		"--data-dir=$STATE/server/data" "--listen=127.0.0.1:$port" --allow-local-git
	wait_for server curl -fsS -m 2 "$URL/readyz"
}

cli() { XDG_CONFIG_HOME=$STATE/config "$BIN/tidemill" "$@"; }

log_in() {
	# A fresh environment: the variables of this shell are none of the demo's business.
	unset TIDEMILL_SERVER TIDEMILL_TOKEN TIDEMILL_TOKEN_FILE TIDEMILL_PROJECT TIDEMILL_CONFIG
	env -i PATH="$PATH" TIDEMILL_DATABASE_URL_FILE="$STATE/server/database-url" \
		"$BIN/tidemill-server" "--data-dir=$STATE/server/data" bootstrap 2>> "$STATE/server/log" |
		cli auth login --server "$URL" --project demo --bootstrap --token-stdin -q
	cli project create demo --description "Ridership of a station in Chicago" -q > /dev/null
}

start_worker() {
	local settings=("--server=$URL" "--work-dir=$STATE/worker" --name=demo "--runtimes=$RUNTIME" --allow-local-git)
	say "Starting a worker that runs steps as $([ "$RUNTIME" = docker ] && echo containers || echo processes)"
	mkdir -p "$STATE/worker"
	# The server listens on this host alone, so the containers share the host's network.
	[ "$RUNTIME" != docker ] || settings+=("--docker-socket=${DOCKER_HOST#unix://}" --docker-network=host)
	(umask 077 && cli worker join-token -q > "$STATE/worker/join-token")
	launch worker env -i PATH="$PATH" TIDEMILL_JOIN_TOKEN_FILE="$STATE/worker/join-token" "$BIN/tidemill-worker" \
		"${settings[@]}"
	wait_for worker worker_is_online
	rm -f "$STATE/worker/join-token"
	cli worker list | awk -F '\t' 'NR == 2 { print $2 }' > "$STATE/install"
}

worker_is_online() { cli worker list -o jsonl | grep -q '"online":true'; }

# ---- start, stop ------------------------------------------------------------------------------------

# Those that have come about, the newest last: where it broke off is in one of them.
logs() {
	local name found=()
	for name in build.log image.log postgres/postgres.log server/log worker/log; do
		[ ! -s "$STATE/$name" ] || found+=("$STATE/$name")
	done
	[ ${#found[@]} = 0 ] || printf ' (logs: %s)' "$(IFS=, && echo "${found[*]}" | sed 's/,/, /g')"
}

give_up() {
	local rc=$?
	trap - EXIT INT TERM
	[ "$rc" = 0 ] || {
		echo "demo: it broke off; stopping everything$(logs)" >&2
		stop_all
	}
	exit "$rc"
}

start() {
	local token
	case $RUNTIME in process | docker) ;; *) die "DEMO_RUNTIME must be process or docker, not '$RUNTIME'" ;; esac
	find_state
	say "The demo lives in $STATE"
	stop_all
	[ ! -e "$STATE/postgres" ] || say "What the last demo made there is removed"
	(cd "$STATE" && rm -rf postgres server worker config repo parts models summary.json docker-host install ./*.log)
	trap give_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	prepare
	[ "$RUNTIME" != docker ] || prepare_docker
	start_server
	log_in
	start_worker
	XDG_CONFIG_HOME=$STATE/config TIDEMILL=$BIN/tidemill PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 examples/demo/story.py --state "$STATE" --until "${DEMO_UNTIL:-2011Q4}"
	token=$(cli token create dashboard --expires-in 30d -q)
	trap - EXIT INT TERM
	cat <<-END

		Server, worker and PostgreSQL go on running.
		  dashboard     $URL
		  login token   $token
		  command line  export XDG_CONFIG_HOME=$STATE/config; $BIN/tidemill run list
		  stop          make demo-stop${DEMO_DIR:+ DEMO_DIR=$DEMO_DIR}
	END
}

case ${1:-} in
start) start ;;
stop)
	stop_all
	say "The demo is stopped; its data is in $LINK until the next make demo"
	;;
*)
	echo "usage: examples/demo.sh start|stop" >&2
	exit 2
	;;
esac
