#!/bin/bash
# Prints docs/files.md, the file $2: what is written there by hand, then every key as the server in the build folder $1
# knows it.
set -euo pipefail
sed '/^### Pipeline$/,$d' "$2"
"$1"/tidemill-server --files
