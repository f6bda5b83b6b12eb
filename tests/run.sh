#!/bin/bash
# Runs the tests and ends with one line: "N passed, N failed, N skipped". Exit 1 when anything failed.
#
#   tests/run.sh [GROUP]     unit | integration | faults | distributed | e2e | peers; none: all of them, with builds and
#                            house rules
#
# Installs what is missing (tools/install.sh). Logs and JUnit reports go to build/test/. A group that cannot run on this
# machine (no Docker daemon can be started, no browser …) is skipped with its reason; with CI=true that is a failure.
# SOAK=1 runs the campaigns of tests/faults and tests/sim in full; SEED=n repeats one.
set -uo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD
GROUP=${1:-all}
OUT=$ROOT/build/test
PYTEST=(/usr/bin/python3 -m pytest -q -p no:cacheprovider -ra --color=no)
JOBS=$(nproc)
strict=
case ${CI:-} in 1 | true | yes) strict=1 ;; esac
export CI=${strict:+true} PYTHONDONTWRITEBYTECODE=1
CC_GCC=${CC:-gcc} CC_CLANG=clang
if command -v ccache > /dev/null; then
	CC_GCC=${CC:-ccache gcc} CC_CLANG="ccache clang"
	export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
fi

case $GROUP in
all | unit | integration | faults | distributed | e2e | peers) ;;
*)
	echo "run.sh: no group \"$GROUP\": unit, integration, faults, distributed, e2e or peers" >&2
	exit 2
	;;
esac
wants() { [ "$GROUP" = all ] || [ "$GROUP" = "$1" ]; }

passed=0 failed=0 skipped=0

# record NAME SECONDS PASSED FAILED SKIPPED
record() {
	passed=$((passed + $3)) failed=$((failed + $4)) skipped=$((skipped + $5))
	printf '%-22s %5d passed %3d failed %3d skipped %5d s\n' "$1" "$3" "$4" "$5" "$2"
}

# skip NAME REASON: what cannot run here
skip() {
	echo "$1: skipped: $2"
	if [ -n "$strict" ]; then
		record "$1" 0 0 1 0
	else
		record "$1" 0 0 0 1
	fi
}

# part NAME REPORT COMMAND…: runs it into a log. REPORT: a JUnit file, "lines" (ok … / FAIL …), or "-" for one result.
part() {
	local name=$1 report=$2 log=$OUT/$1.log rc=0 counts p f s begin=$SECONDS
	shift 2
	[ "$report" = - ] || [ "$report" = lines ] || rm -f "$report"
	"$@" > "$log" 2>&1 < /dev/null || rc=$?
	case $report in
	-) counts="$((rc == 0)) $((rc != 0)) 0" ;;
	lines) counts="$(grep -c '^ok ' "$log") $(grep -c '^FAIL ' "$log") 0" ;;
	*) counts=$(/usr/bin/python3 tests/lib/junit.py "$report") ;;
	esac
	read -r p f s <<< "$counts"
	# Whatever ended badly without saying which test it was: a crash, a leak, a deadline.
	[ "$rc" = 0 ] || [ "$f" != 0 ] || f=1
	if [ "$f" != 0 ]; then
		echo "---- $name (exit $rc), the end of $log:"
		tail -n 60 "$log"
		echo "----"
	fi
	record "$name" $((SECONDS - begin)) "$p" "$f" "$s"
	[ "$f" = 0 ]
}

pytests() { # NAME PATH…
	local name=$1
	shift
	part "$name" "$OUT/$name.xml" "${PYTEST[@]}" --junitxml="$OUT/$name.xml" "$@"
}

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}

has_tests() { compgen -G "$1/test_*.py" > /dev/null; }

unit_binary() {
	CMOCKA_MESSAGE_OUTPUT=xml CMOCKA_XML_FILE=$OUT/unit-c.xml build/debug/unit
}

run_unit() {
	part unit-c "$OUT/unit-c.xml" unit_binary
	pytests unit-python tests/unit
	part sim-worlds lines build/debug/sim_place --seed "${SEED:-1}"
	part sim-recorded lines build/debug/sim_place tests/sim/recorded/*
	if [ -n "$web_missing" ]; then
		skip unit-web "$web_missing"
	else
		part unit-web "$OUT/unit-web.xml" bash -c 'cd web && npx --no-install vitest run --reporter=default \
			--reporter=junit --outputFile.junit="$0"' "$OUT/unit-web.xml"
	fi
}

run_integration() {
	if [ -n "$postgres_missing" ]; then
		skip integration "$postgres_missing"
	else
		# Files are shared out among processes, each with a PostgreSQL of its own: most tests wait more than they compute.
		pytests integration -n "$JOBS" --dist loadfile tests/integration
	fi
}

# Many seeds take an optimised build.
sim_full() {
	make -s -j"$JOBS" V=release CC="$CC_GCC" CFLAGS=-Werror build/release/sim_place &&
		build/release/sim_place --full --seed "${SEED:-1}"
}

run_faults() {
	[ -z "${SOAK:-}" ] || part sim-full lines sim_full
	if [ -n "$postgres_missing" ]; then
		skip faults "$postgres_missing"
	else
		# As above: most of the time is spent waiting.
		pytests faults -n "$JOBS" --dist loadfile tests/faults
	fi
}

# Large packages, so with a line of its own for how long they take.
run_distributed() {
	local missing=$postgres_missing
	part install-distributed - bash tools/install.sh distributed || missing="packages could not be installed"
	[ "$(id -u)" = 0 ] || missing="network namespaces need root"
	if [ -n "$missing" ]; then
		skip distributed "$missing"
	else
		pytests distributed tests/distributed
	fi
}

run_e2e() {
	local missing=$web_missing browser=
	command -v chromium > /dev/null || browser="there is no chromium"
	# What each needs and nothing more: no browser is no reason to leave out the installation.
	if [ -n "$missing$browser" ]; then
		skip e2e-fake "${missing:-$browser}"
	else
		part e2e-fake lines node tests/e2e/dashboard.mjs --fake
	fi
	if [ -n "$missing$browser$postgres_missing" ]; then
		skip e2e "${missing:-${browser:-$postgres_missing}}"
	else
		pytests e2e tests/e2e --ignore=tests/e2e/test_compose.py
	fi
	if [ -n "$missing$docker_missing" ]; then
		skip e2e-compose "${missing:-$docker_missing}"
	else
		pytests e2e-compose tests/e2e/test_compose.py
	fi
}

# The clients that tests/peers names, in a virtual environment of their own.
peers_env() {
	local stamp=build/venv/requirements.txt
	cmp -s tests/peers/requirements.txt "$stamp" && return 0
	/usr/bin/python3 -m venv build/venv &&
		build/venv/bin/pip install --quiet --disable-pip-version-check -r tests/peers/requirements.txt &&
		cp tests/peers/requirements.txt "$stamp"
}

run_peers() {
	if has_tests tests/peers; then
		part peers-install - peers_env || return
		pytests peers tests/peers
	elif [ "$GROUP" = peers ]; then
		echo "peers: there are none yet"
	fi
}

mkdir -p "$OUT"
purposes="build test web"
! wants e2e || purposes="$purposes browser"
[ "$(id -u)" != 0 ] || { ! wants integration && ! wants e2e; } || purposes="$purposes docker"
# shellcheck disable=SC2086
part install - bash tools/install.sh $purposes || true

web_missing=
if wants unit || wants e2e || wants integration; then
	part build-web - make -s web || web_missing="the dashboard could not be built"
fi
postgres_missing=
[ -x /usr/lib/postgresql/15/bin/postgres ] || postgres_missing="PostgreSQL 15 is missing"
docker_missing=$(bash tools/install.sh --missing docker | paste -s -d ' ')
docker_missing=${docker_missing:+missing: $docker_missing}
[ "$(id -u)" = 0 ] || docker_missing="a private Docker daemon needs root"

part build-debug - make -s -j"$JOBS" V=debug CC="$CC_GCC" CFLAGS=-Werror all build/debug/unit || finish
if [ "$GROUP" = all ]; then
	part build-release - make -s -j"$JOBS" V=release CC="$CC_GCC" CFLAGS=-Werror all
	part build-clang - make -s -j"$JOBS" V=release B=build/clang CC="$CC_CLANG" CFLAGS=-Werror programs
	part check - make -s V=debug CC="$CC_GCC" CFLAGS=-Werror check
fi
! wants unit || run_unit
! wants integration || run_integration
! wants faults || run_faults
! wants distributed || run_distributed
! wants peers || run_peers
! wants e2e || run_e2e
finish
