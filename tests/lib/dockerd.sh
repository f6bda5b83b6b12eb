#!/bin/bash
# A private Docker daemon for tests and for the demo on machines where none runs.
#
#   dockerd.sh start  DIR    start it if it is down; prints unix://DIR/docker.sock (a value for DOCKER_HOST)
#   dockerd.sh stop   DIR    end it, its containers and its bridge; images and volumes stay in DIR/data
#   dockerd.sh socket DIR    print unix://DIR/docker.sock
#
# Needs root. DIR gets: data/ (images), exec/ (run time), docker.sock, dockerd.pid, dockerd.log, bridge, lock. The daemon
# has live-restore on and a subnet 10.213.N.0/24 of its own, the lower half for its bridge tdmN, the upper for networks
# that compose makes. It never touches docker0 or another daemon's rules: its containers reach the world by three
# firewall rules of their own, which `stop` removes. All calls are idempotent and hold a lock on DIR. DOCKERD_DEADLINE is
# the number of seconds to wait for it (60), DOCKERD_ARGS is appended to its command line.
set -euo pipefail
umask 022

die() {
	echo "dockerd.sh: $*" >&2
	exit 1
}

usage() {
	echo "usage: dockerd.sh start|stop|socket DIR" >&2
	exit 2
}

is_alive() {
	grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

# Our daemon's pid, if it runs: the file's process must have been started with our pid file.
running_pid() {
	local pid
	pid=$(cat "$DIR/dockerd.pid" 2>/dev/null) && [[ $pid =~ ^[0-9]+$ ]] && is_alive "$pid" || return 1
	tr '\0' '\n' < "/proc/$pid/cmdline" | grep -qxF "$DIR/dockerd.pid" || return 1
	echo "$pid"
}

# wait_for SECONDS COMMAND…
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

is_dead() { ! is_alive "$1"; }
answers() { docker -H "unix://$DIR/docker.sock" version > /dev/null 2>&1; }
answers_or_died() { answers || is_dead "$1"; }

# Makes a bridge of its own on the first free subnet; the kernel refuses a name that exists, so two calls cannot share one.
make_bridge() {
	local n=0 name
	if [ -s "$DIR/bridge" ]; then
		read -r name n < "$DIR/bridge"
		ip link show "$name" > /dev/null 2>&1 && return 0
	fi
	for n in $(seq 1 250); do
		ip -4 -o addr show | grep -q " 10\.213\.$n\." && continue
		ip link add name "tdm$n" type bridge 2>/dev/null || continue
		echo "tdm$n $n" > "$DIR/bridge"
		ip addr add "10.213.$n.1/25" dev "tdm$n"
		ip link set "tdm$n" up
		rm -rf "$DIR/data/network" # it remembers the subnet of a bridge that is gone
		return 0
	done
	die "no free subnet in 10.213.0.0/16"
}

# rules add|remove
rules() {
	local name n net table rule
	command -v iptables > /dev/null || return 1
	read -r name n < "$DIR/bridge"
	net=10.213.$n.0/24
	while read -r table rule; do
		# shellcheck disable=SC2086
		if iptables -w 10 -t "$table" -C $rule 2>/dev/null; then
			[ "$1" = add ] || iptables -w 10 -t "$table" -D $rule 2>/dev/null || return 1
		elif [ "$1" = add ]; then
			iptables -w 10 -t "$table" -I $rule 2>/dev/null || return 1
		fi
	done <<-RULES
		nat POSTROUTING -s $net ! -d $net -j MASQUERADE
		filter FORWARD -s $net -j ACCEPT
		filter FORWARD -d $net -j ACCEPT
	RULES
}

start_daemon() {
	local pid name n
	pid=$(running_pid) && { answers || wait_for "$DEADLINE" answers || die "it runs (pid $pid), but does not answer"; } && return 0
	[ "$(id -u)" = 0 ] || die "a Docker daemon needs root"
	command -v dockerd > /dev/null || die "dockerd is missing (apt-get install docker.io)"
	make_bridge
	read -r name n < "$DIR/bridge"
	rules add || echo "dockerd.sh: the firewall's rules cannot be set: build with --network host" >&2
	rm -f "$DIR/dockerd.pid" "$DIR/docker.sock"
	forget_containerd
	# shellcheck disable=SC2086
	setsid dockerd --host "unix://$DIR/docker.sock" --data-root "$DIR/data" --exec-root "$DIR/exec" \
		--pidfile "$DIR/dockerd.pid" --bridge "$name" --fixed-cidr "10.213.$n.0/25" \
		--default-address-pool "base=10.213.$n.128/25,size=28" --iptables=false --ip6tables=false --ip-masq=false \
		--live-restore ${DOCKERD_ARGS:-} < /dev/null >> "$DIR/dockerd.log" 2>&1 9>&- &
	pid=$!
	wait_for "$DEADLINE" answers_or_died "$pid" || true
	answers || {
		tail -n 15 "$DIR/dockerd.log" >&2
		kill -TERM "$pid" 2>/dev/null || true
		die "the daemon did not come up within $DEADLINE s (see $DIR/dockerd.log)"
	}
}

# With live-restore containers outlive the daemon, so they are removed while it can still do that.
stop_daemon() {
	local pid ids name n link
	if pid=$(running_pid); then
		if answers && ids=$(docker -H "unix://$DIR/docker.sock" ps -aq) && [ -n "$ids" ]; then
			# shellcheck disable=SC2086
			docker -H "unix://$DIR/docker.sock" rm -f -v $ids > /dev/null 2>&1 || true
		fi
		kill -TERM "$pid"
		wait_for 30 is_dead "$pid" || {
			kill -KILL "$pid" 2>/dev/null || true
			wait_for 10 is_dead "$pid" || die "process $pid does not end"
		}
	fi
	stop_containerd
	rm -f "$DIR/docker.sock" "$DIR/dockerd.pid"
	if [ -s "$DIR/bridge" ]; then
		read -r name n < "$DIR/bridge"
		rules remove || true
		# Its bridge, and those of networks that compose made.
		ip -4 -o addr show | awk -v a="10.213.$n." 'index($4, a) == 1 { print $2 }' | while read -r link; do
			ip link del "$link" 2>/dev/null || true
		done
		ip link del "$name" 2>/dev/null || true
		rm -f "$DIR/bridge"
	fi
	awk -v d="$DIR/" 'index($2, d) == 1 { print $2 }' /proc/self/mounts | sort -r | while read -r m; do
		umount -l "$m" 2>/dev/null || true
	done
}

# Prints the pid of our containerd, if it runs.
containerd_pid() {
	local pid
	pid=$(cat "$DIR/exec/containerd/containerd.pid" 2>/dev/null) && [[ $pid =~ ^[0-9]+$ ]] && is_alive "$pid" || return 1
	tr '\0' '\n' < "/proc/$pid/cmdline" | grep -qF "$DIR/exec/containerd" || return 1
	echo "$pid"
}

# dockerd takes a killed containerd that nobody has reaped yet for a living one, and waits for it in vain.
forget_containerd() {
	containerd_pid > /dev/null || rm -f "$DIR/exec/containerd/containerd.pid"
}

# A daemon that was killed may leave its containerd behind.
stop_containerd() {
	local pid
	pid=$(containerd_pid) || return 0
	kill -TERM "$pid" 2>/dev/null || true
	wait_for 10 is_dead "$pid" || kill -KILL "$pid" 2>/dev/null || true
}

[ $# = 2 ] || usage
VERB=$1
case $VERB in start | stop | socket) ;; *) usage ;; esac
[ "$VERB" != start ] || mkdir -p "$2"
[ -d "$2" ] || { [ "$VERB" = stop ] && exit 0; die "there is no daemon in $2"; }
DIR=$(cd "$2" && pwd -P)
DEADLINE=${DOCKERD_DEADLINE:-60}
[ ${#DIR} -le 80 ] || die "$DIR: the path is too long for a unix socket (80 bytes at most)"
[[ $DIR != *[$' \t\n']* ]] || die "$DIR: the path must not contain spaces"
cd /

exec 9> "$DIR/lock"
flock -w 180 9 || die "$DIR is locked by another call"
case $VERB in
start)
	start_daemon
	echo "unix://$DIR/docker.sock"
	;;
stop) stop_daemon ;;
socket) echo "unix://$DIR/docker.sock" ;;
esac
