"""If the launcher or agentci itself dies, no program is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentci.errors import EvaluatorError
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.launcher_client import LAUNCHER_POOL, PreforkInterpreter
from agentci.execution.local import LocalExecutor
from tests.execution.conftest import Marked
from tests.helpers.support import EVALUATORS, ROOT
from tests.helpers.waiting import NO_TIMEOUT_SECONDS, wait_until

KILLED = """\
import pathlib, sys
from agentci._util.workspace import trust_path
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor

LocalExecutor().run(
    (sys.executable, *sys.argv[1:]), stdin=b"", timeout_seconds=900, cwd=pathlib.Path.cwd(),
    environment={},
    sandbox_policy=SandboxPolicy(readable=(trust_path(pathlib.Path(sys.argv[1]).parent),)),
)
"""


def _launcher() -> int:
    return LAUNCHER_POOL.get_launcher().process_id or 0


@pytest.mark.slow
def test_killed_launcher_is_replaced(marked: Marked) -> None:
    LAUNCHER_POOL.close()
    launcher, before = LAUNCHER_POOL.get_launcher(), _launcher()
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: not launcher.is_alive())
    assert marked.run("exits_3.py").exit_code == 3
    assert _launcher() != before


def test_running_program_survives_death_of_launcher(marked: Marked, tmp_path: Path) -> None:
    program = tmp_path / "kills_the_launcher.py"
    program.write_text(f"import os; os.kill({_launcher()}, 9); print('here')")
    assert marked.run(str(program)).stdout == b"here\n"
    assert marked.run("exits_3.py").exit_code == 3


def test_killed_supervisor_raises_error_and_leaves_no_process(
    marked: Marked, tmp_path: Path
) -> None:
    program = tmp_path / "kills_its_ward.py"
    program.write_text(
        "import os, signal, time\n"
        "ward = os.getppid()\n"
        "os.fork() == 0 and os.setsid()\n"
        "os.kill(ward, signal.SIGKILL)\n"
        "time.sleep(300)"
    )
    with pytest.raises(EvaluatorError, match="launcher process was killed"):
        marked.run(str(program))
    marked.wait_for_end()


def test_programs_die_if_agentci_is_killed(tmp_path: Path) -> None:
    program = EVALUATORS / "forks_and_sleeps.py"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, program, str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    marked = Marked(executor=LocalExecutor(), word=str(tmp_path), cwd=tmp_path)
    wait_until(lambda: len(marked.left()) >= 3)  # agentci, the program and its child
    process.kill()
    process.wait()
    marked.wait_for_end()


def test_forked_process_gets_its_own_launcher(tmp_path: Path) -> None:
    ours = _launcher()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(_launcher()).encode())
            LAUNCHER_POOL.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reader, 100)) != ours
    os.close(reader)
    os.close(writer)
    assert _launcher() == ours
    assert tmp_path.exists()


def test_start_error_of_sandboxed_program_names_path(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"^could not be started: .*`/nonexistent/program`"):
        _run_sandboxed(("/nonexistent/program",), tmp_path)
    with pytest.raises(EvaluatorError, match=r"^could not be started: .*`/nonexistent`"):
        _run_sandboxed(("/bin/true",), Path("/nonexistent"))


def test_sandboxed_program_can_open_dev_stdin(tmp_path: Path) -> None:
    assert _run_sandboxed(("/bin/cat", "/dev/stdin"), tmp_path) == b"input"


def _run_sandboxed(command: tuple[str, ...], cwd: Path) -> bytes:
    response = LocalExecutor().run(
        command,
        stdin=b"input",
        timeout_seconds=NO_TIMEOUT_SECONDS,
        cwd=cwd,
        environment={},
        sandbox_policy=SandboxPolicy(),
    )
    return response.stdout


def test_missing_interpreter_leaves_no_open_files() -> None:
    cold, descriptors = LAUNCHER_POOL.get_launcher(), Path("/proc/self/fd")
    before = {path.name for path in descriptors.iterdir()}
    assert LAUNCHER_POOL.get_launcher(PreforkInterpreter("/nonexistent/python", ())) is cold
    assert {path.name for path in descriptors.iterdir()} == before
