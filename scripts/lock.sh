#!/usr/bin/env bash
# lock.sh UV [--upgrade] - write the lock files: every package with its version and hashes, for
# every platform and Python from 3.11, and no word of where it was fetched from.
set -euo pipefail
uv=$1
shift

compile() {
  local out=$1
  shift
  "$uv" pip compile --quiet --universal --generate-hashes --python-version 3.11 \
    --custom-compile-command 'make lock' pyproject.toml --output-file "$out" "$@"
}

compile requirements.lock "$@"                                              # to run
compile requirements-evaluators.lock --extra evaluators "$@"                # and what evaluators use: the image
compile requirements-dev.lock --extra evaluators --group dev "$@"           # and what `make test` needs
