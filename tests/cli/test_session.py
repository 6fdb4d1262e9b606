"""Crash reporting and exit of the process."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agentci.version import __version__
from tests.helpers.support import ROOT

CRASH = """\
import os, sys
from agentci.cli.session import run_in_process
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
        "from agentci.cli.session import run_in_process\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n"
        "run_in_process(lambda session: 0, os.environ)\n"
    )
    assert _run(program, tmp_path).stdout == "True\n"


STATUS = """\
import os, subprocess
from agentci.cli.session import run_in_process
def show(session):
    for shown in (open("/proc/self/status").read(), subprocess.getoutput("cat /proc/self/status")):
        print(*(line.split()[1] for line in shown.splitlines() if line.startswith("Cap")))
    return 0
run_in_process(show, os.environ)
"""
SEARCHES = 1 << 2
# CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, KILL, SETGID, SETUID, SETPCAP.
USED = 0b1_1110_1111


def _read_capability_sets(program: str, folder: Path, *prefix: str) -> list[list[int]]:
    """The inheritable, permitted, effective, bounding and ambient set, here and in a child."""
    shown = _run(program, folder, prefix).stdout.splitlines()
    return [[int(number, 16) for number in line.split()] for line in shown]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_gives_up_unused_capabilities(tmp_path: Path) -> None:
    before = int(re.findall("CapPrm:\t(.*)", Path("/proc/self/status").read_text())[0], 16)
    kept = before & USED
    own, child = _read_capability_sets(STATUS, tmp_path)
    assert own == [0, kept, kept, kept, 0]
    assert child == own


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root")
def test_lent_capability_is_kept_and_passed_on(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    caps = "-all,+dac_read_search,+net_raw"
    prefix = ("setpriv", "--reuid=4242", "--inh-caps", caps, "--ambient-caps", caps)
    own, child = _read_capability_sets(STATUS, tmp_path, *prefix)
    assert [own[:3], own[4]] == [[SEARCHES] * 3, SEARCHES]
    assert [child[:3], child[4]] == [[SEARCHES] * 3, SEARCHES]


def test_process_without_capabilities_loads_nothing_to_drop_them(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        tmp_path.chmod(0o777)
    program = (
        "import os, sys\n"
        "from agentci.cli.session import run_in_process\n"
        "if os.geteuid() == 0: os.setgroups([]), os.setgid(4242), os.setuid(4242)\n"
        "run_in_process(lambda session: print('ctypes' in sys.modules) or 0, os.environ)\n"
    )
    assert _run(program, tmp_path).stdout == "False\n"


def _run(
    program: str, folder: Path, prefix: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_modules_of_every_run_do_not_load_pydantic(tmp_path: Path) -> None:
    """Only configs need it; a run with a metric would take half as long again."""
    modules = "agentci.cli.commands.run, agentci.runner.plan, agentci.config.suite"
    ran = _run(f"import sys, {modules}\nprint('pydantic' in sys.modules)", tmp_path)
    assert ran.stdout == "False\n", ran.stderr
