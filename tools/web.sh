#!/bin/bash
# Builds the dashboard into web/dist. Does nothing when nothing has changed: packages are installed anew only when the
# lock file or Node has changed, the build runs only when a source has.
# usage: web.sh [--test]    --test also runs its unit tests
set -euo pipefail
cd "$(dirname "$0")/../web"

say() { echo "web: $*" >&2; }
command -v node >/dev/null && command -v npm >/dev/null || { say "needs Node 18 or later with npm (Debian: apt-get install nodejs npm)"; exit 1; }
node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' || { say "needs Node 18 or later, this is $(node --version)"; exit 1; }

# One build at a time: two would remove each other's packages.
exec 9< package-lock.json
flock 9

modules=node_modules/.tidemill-lock
want="$(node --version) $(sha256sum package-lock.json .npmrc | sha256sum | cut -c1-64)"
if [ "$(cat "$modules" 2>/dev/null || true)" != "$want" ]; then
	say "installing packages"
	npm ci --no-audit --no-fund --loglevel=error
	echo "$want" > "$modules"
fi

built=node_modules/.tidemill-built
want="$want $(find src public tools index.html package.json tsconfig.json vite.config.mts ../api/openapi.json -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64)"
if [ ! -f dist/index.html ] || [ "$(cat "$built" 2>/dev/null || true)" != "$want" ]; then
	rm -f "$built"
	npm run --silent build
	echo "$want" > "$built"
fi
[ "${1:-}" != --test ] || npm run --silent test
