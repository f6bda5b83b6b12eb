#!/bin/bash
# Runs the benchmarks (all, or those whose program or line begins with $1) and writes build/bench.json. Installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
bash tools/install.sh bench
make -s V=release programs
make -s V=release build/release/bench_{drift,floor_pg,http,load,place,track}
ulimit -n "$(ulimit -Hn)"
exec env V=release /usr/bin/python3 tests/bench/run.py "${1:-}"
