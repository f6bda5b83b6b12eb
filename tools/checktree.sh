#!/bin/sh
# Rules about the tree as a whole: includes first, guards that spell the path, a README in each folder, migrations in order.
set -eu
bad=0
say() { echo "$*"; bad=1; }
for f in $(git ls-files '*.h'); do
	case $f in tests/*) continue ;; esac
	guard=$(echo "$f" | tr 'a-z/.-' 'A-Z___')
	grep -q "^#ifndef ${guard}\$" "$f" || say "$f: the include guard must be $guard"
done
for f in $(git ls-files 'lib/*.c' 'server/*.c' 'worker/*.c' 'cli/*.c' 'api/*.c'); do
	own=${f%.c}.h
	[ -f "$own" ] || continue
	first=$(grep -m 1 '^#include' "$f" || true)
	[ "$first" = "#include \"$own\"" ] || say "$f: must include its own header first"
done
for d in $(git ls-files | sed -n 's|^\([^.][^/]*\(/[^/]*\)\{0,1\}\)/[^/]*$|\1|p' | sort -u); do
	case $d in schema/migrations | schema/queries | tests/fixtures* | docs/* | web/* | .ci | lib | docker/* | examples/*) continue ;; esac
	[ -f "$d/README.md" ] || [ "$d" = docs ] || say "$d: a folder needs a README.md"
done
n=0
for f in $(git ls-files 'schema/migrations/*.sql'); do
	n=$((n + 1))
	case $f in schema/migrations/$(printf '%04d' $n)_*) ;; *) say "$f: should have the number $n" ;; esac
done
exit $bad
