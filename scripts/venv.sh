#!/usr/bin/env bash
# venv.sh PYTHON VENV LOCK - put what LOCK names and this project into the virtual environment VENV.
# Every package is checked against its hash; the project itself is linked, nothing is built.
set -euo pipefail
python=$1 venv=$2 lock=$3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "$python is $("$python" --version 2>&1): 3.11 or later is needed (make PYTHON=python3.12 ...)" >&2
  exit 1
}
"$venv/bin/python" -m pip --version > /dev/null 2>&1 || "$python" -m venv --clear "$venv"
echo "installing $lock into $venv"
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes --requirement "$lock"

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
pwd > "$site/agentci.pth"
# Compiled now, and not in the middle of the first run, which watches what is made beside programs.
"$venv/bin/python" -m compileall -q agentci

# The first line cannot name the interpreter: its path may be too long, or hold a space.
cat > "$venv/bin/agentci" << SCRIPT
#!/bin/sh
'''exec' "$(cd "$venv" && pwd)/bin/python" "\$0" "\$@"
' '''
import sys
from agentci.__main__ import main
sys.exit(main())
SCRIPT
chmod +x "$venv/bin/agentci"
