#!/bin/sh
# Starts the server. With TIDEMILL_JOIN_TOKEN_FILE set, a worker that shares that file's folder can enrol: the token is
# made once, by the local bootstrap command, and left there for it.
set -eu
if [ -n "${TIDEMILL_JOIN_TOKEN_FILE:-}" ] && [ ! -s "$TIDEMILL_JOIN_TOKEN_FILE" ]; then
	umask 077
	tidemill-server join-token > "$TIDEMILL_JOIN_TOKEN_FILE.new"
	mv "$TIDEMILL_JOIN_TOKEN_FILE.new" "$TIDEMILL_JOIN_TOKEN_FILE"
fi
exec tidemill-server "$@"
