#!/bin/bash
# Prints docs/config.md: the reference of all settings, as the programs in the build folder $1 know them.
set -euo pipefail
cat << 'TEXT'
# Settings
Written by `make docs` from the tables that the programs read; `make check` compares.

A value comes from the command line (`--name=value`), else from the environment, else from the settings file (`name = value` lines,
`#` comments; `--config=FILE` or `TIDEMILL_CONFIG`), else it is the default. A secret is never taken from the command line, where
every user of the host could read it; `NAME_FILE` in the environment names a file that holds it. Times are written `30s`, `10m`, `1h`,
`2d`; sizes `512MiB`, `1GiB`.

## tidemill-server

TEXT
"$1"/tidemill-server --settings
printf '\n## tidemill-worker\n\n'
"$1"/tidemill-worker --settings
