#!/bin/bash
# Installs the Debian packages that a purpose needs and that are missing. Says nothing and asks nobody when all are there.
#
#   tools/install.sh PURPOSE…          build | test | web | browser | docker | distributed | demo | bench
#   tools/install.sh --missing PURPOSE…   print what is missing, install nothing; exit 1 when something is
#
# A word of a list is a package, or package:program where the program may have come from elsewhere. Root installs; others
# need sudo. Packages are fetched from the sources that apt is configured with; apt-get update runs once, and only then.
set -euo pipefail

BUILD="gcc g++:g++ libc6-dev make:make pkg-config:pkg-config mawk:awk git:git
	libcctz-dev libcurl4-openssl-dev libevent-dev libgit2-dev libjansson-dev libpq-dev libre2-dev libssl-dev libyaml-dev
	libzstd-dev tzdata"
POSTGRES="postgresql-15:/usr/lib/postgresql/15/bin/postgres postgresql-client-15:psql util-linux:runuser"
SCIENCE="python3-numpy python3-pandas python3-sklearn"

list() {
	case $1 in
	build) echo "$BUILD" ;;
	web) echo "nodejs:node npm:npm" ;;
	browser) echo "chromium:chromium fonts-dejavu-core" ;;
	docker) echo "docker.io:dockerd docker-compose:docker-compose debootstrap:debootstrap iptables:iptables iproute2:ip
		docker-registry:docker-registry podman:podman" ;;
	distributed) echo "python3-torch python3-numpy openmpi-bin:mpirun python3-mpi4py iproute2:ip" ;;
	demo) echo "$BUILD $POSTGRES $SCIENCE curl:curl" ;;
	bench) echo "$BUILD $POSTGRES $SCIENCE python3-scipy" ;;
	test) echo "$BUILD $POSTGRES $SCIENCE clang-14:clang-14 clang:clang clang-format-14:clang-format-14
		clang-format:clang-format libcmocka-dev libhttp-parser-dev openssl:openssl curl:curl procps:ps
		python3-pytest python3-pytest-xdist python3-scipy python3-venv python3-yaml" ;;
	*)
		echo "install.sh: no purpose \"$1\": build, test, web, browser, docker, distributed, demo or bench" >&2
		exit 2
		;;
	esac
}

installed() {
	local package=${1%%:*} program=${1#*:}
	if [ "$program" != "$1" ] && command -v "$program" > /dev/null; then
		return 0
	fi
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ]
}

only_missing=
if [ "${1:-}" = --missing ]; then
	only_missing=1
	shift
fi
[ $# -gt 0 ] || { echo "usage: install.sh [--missing] build|test|web|browser|docker|distributed|demo|bench…" >&2; exit 2; }

words=
for purpose in "$@"; do
	words="$words $(list "$purpose")"
done
missing=()
for word in $words; do
	installed "$word" || missing+=("${word%%:*}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
if [ -n "$only_missing" ]; then
	printf '%s\n' "${missing[@]}"
	exit 1
fi

command -v apt-get > /dev/null || {
	echo "install.sh: this is not Debian; please install what corresponds to: ${missing[*]}" >&2
	exit 1
}
root=()
if [ "$(id -u)" != 0 ]; then
	command -v sudo > /dev/null || { echo "install.sh: as root: apt-get install ${missing[*]}" >&2; exit 1; }
	root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing ${missing[*]}" >&2
quietly() {
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" > "$log" 2>&1 < /dev/null || {
		tail -n 25 "$log" >&2
		echo "install.sh: \"$*\" failed" >&2
		exit 1
	}
}
# PostgreSQL's package would start a cluster of its own; the tests and the demo make private ones.
case " ${missing[*]} " in *" postgresql-15 "*)
	if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
		quietly sh -c 'mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf'
	fi ;;
esac
quietly apt-get update -q
quietly apt-get install -y -q --no-install-recommends "${missing[@]}"
