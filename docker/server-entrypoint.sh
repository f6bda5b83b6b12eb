#!/bin/sh
# Starts the server. With LEAVE_JOIN_TOKEN_AT set, a worker that shares that file's folder can enrol: each start leaves a
# new token there, made by the local command, since one enrols a single worker and lives for an hour.
set -eu
if [ -n "${LEAVE_JOIN_TOKEN_AT:-}" ]; then
	(umask 077 && tidemill-server join-token > "$LEAVE_JOIN_TOKEN_AT.new")
	mv "$LEAVE_JOIN_TOKEN_AT.new" "$LEAVE_JOIN_TOKEN_AT"
fi
exec tidemill-server "$@"
