"""Crash reporting and exit of the process."""

import os
import subprocess
import sys
from pathlib import Path

from agentci.version import __version__
from tests.helpers.support import ROOT

CRASH = """\
import os, sys
from agentci.cli.process import run_in_process
def command(session):
    raise LookupError("::error::lost")
sys.exit(run_in_process(command, os.environ))
"""


def test_unexpected_exception_is_reported_as_a_bug(tmp_path: Path) -> None:
    ran = _run(CRASH, tmp_path)
    assert ran.returncode == 70
    assert "LookupError" in ran.stderr
    assert f"This is a bug in agentci {__version__}" in ran.stderr
    assert not [line for line in ran.stderr.splitlines() if line.startswith("::")]


def test_garbage_collector_is_frozen_before_exit(tmp_path: Path) -> None:
    program = (
        "import atexit, gc, os\n"
        "from agentci.cli.process import run_in_process\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        "run_in_process(lambda session: 0, os.environ)\n"
    )
    assert _run(program, tmp_path).stdout == "True\n"


def _run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
