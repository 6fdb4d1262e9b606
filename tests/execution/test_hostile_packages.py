"""A Python that imports packages which nobody vouches for may say anything; none is believed."""

import marshal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci.execution.child_process import launcher_client, supervised_process
from agentci.execution.child_process.launcher_client import LAUNCHER_POOL
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

# What has been taken over speaks on all of its sockets.
SPEAKS = """\
import os, stat
for number in range(100):
    try:
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, {words!r})
    except OSError:
        pass

"""

# It has the channel by which the program is asked for, and never does anything else.
FLOODS = """\
import os, stat
channels = [
    number for number in range(100)
    if os.path.exists(f"/proc/self/fd/{{number}}") and stat.S_ISSOCK(os.fstat(number).st_mode)
]
while True:
    os.write(channels[-1], {words!r} * 1000)
"""


def _message(content: bytes, length: int | None = None) -> bytes:
    return struct.pack("!I", len(content) if length is None else length) + content


WORDS = {
    "nonsense": _message(b"\xff" * 40),
    "no object": _message(b"[1, 2]"),
    "what only Python reads": _message(marshal.dumps({"ended": True, "code": 0})),
    "a code that is none": _message(b'{"ended": true, "code": "zero"}'),
    "a code that no program ends with": _message(b'{"ended": true, "code": 99999999999}'),
    "a refusal without a reason": _message(b'{"failure": {}}'),
    "facts of another machine": _message(
        b'{"system": "Linux", "users": null, "tasks": 0, "searches": false, "searching": false,'
        b' "root": true, "landlock": 7, "filters": true, "machine": "abacus"}'
    ),
    "the beginning of a long message": _message(b"{", length=0xFFFFFFFF),
    "a deep message": _message(b'{"failure": ' + b"[" * 50_000),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only there programs are forks"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with packages of its own."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalExecutor]:
    """An executor for which a message that never comes is a test that never ends."""
    monkeypatch.setattr(launcher_client, "MAX_START_SECONDS", NO_TIMEOUT_SECONDS)
    monkeypatch.setattr(supervised_process, "MAX_KILL_SECONDS", NO_TIMEOUT_SECONDS)
    executor = LocalExecutor()
    yield executor
    executor.stop()
    LAUNCHER_POOL.close()


@pytest.mark.parametrize("when", ["sitecustomize", "pydantic"])
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_what_it_says_harms_nobody_but_its_own_checks(
    words: bytes, when: str, executor: LocalExecutor, python: Path, tmp_path: Path
) -> None:
    [packages] = (python.parent.parent / "lib").glob("python*/site-packages")
    module, program = packages / f"{when}.py", tmp_path / "program.py"
    program.write_text("print('judged')")
    module.write_text(SPEAKS.format(words=words))
    try:
        response = _run(executor, python, program)
    finally:
        module.unlink()
    assert (response.stdout, response.exit_code) == (b"judged\n", 0)


def test_who_never_stops_telling_that_a_program_has_exited_is_not_listened_to_for_ever(
    executor: LocalExecutor, python: Path, tmp_path: Path
) -> None:
    [packages] = (python.parent.parent / "lib").glob("python*/site-packages")
    module, program = packages / "pydantic.py", tmp_path / "program.py"
    program.write_text("")
    module.write_text(FLOODS.format(words=_message(b'{"code": 0}')))
    try:
        response = _run(executor, python, program)
    finally:
        module.unlink()
    assert response.stdout == b""


def test_a_check_that_closes_the_folder_of_its_user_keeps_no_other_from_being_judged(
    executor: LocalExecutor, python: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib\n"
        "for folder in list(pathlib.Path(os.environ['TMPDIR']).parents)[1:3]:\n"
        "    folder.chmod(0)\n"
        "print('closed')"
    )
    assert _run(executor, python, program).stdout == b"closed\n"
    program.write_text("print('judged')")
    assert _run(executor, python, program).stdout == b"judged\n"


def _run(executor: LocalExecutor, python: Path, program: Path) -> ProgramOutput:
    return executor.run(
        (str(python), str(program)),
        stdin=b"",
        timeout_seconds=NO_TIMEOUT_SECONDS,
        cwd=program.parent,
        environment=make_child_environment({"PATH": "/usr/bin"}),
        sandbox_policy=SandboxPolicy(
            readable=(program.parent, python.parent.parent),
            imports=("pydantic",),
            untrusted_packages=True,
        ),
    )
