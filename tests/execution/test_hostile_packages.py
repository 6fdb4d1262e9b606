"""Hostile packages in a preloaded interpreter do not affect other checks."""

import marshal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentci._util.workspace import trust_path
from agentci.execution import launcher_client, local
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.launcher_client import LAUNCHER_POOL
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

# A compromised interpreter writes to all of its sockets.
SPEAKS = """\
import os, stat
for number in range(100):
    try:
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, {words!r})
    except OSError:
        pass

"""

# Floods the channel on which programs are requested, and never stops.
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
    "invalid UTF-8": _message(b"\xff" * 40),
    "not an object": _message(b"[1, 2]"),
    "marshal data": _message(marshal.dumps({"ended": True, "code": 0})),
    "exit code as text": _message(b'{"ended": true, "code": "zero"}'),
    "exit code out of range": _message(b'{"ended": true, "code": 99999999999}'),
    "failure without reason": _message(b'{"failure": {}}'),
    "capabilities of another machine": _message(
        b'{"system": "Linux", "first_user": null, "tasks": 0,'
        b' "grants_read_search": false, "has_read_search": false,'
        b' "private_memory": false, "root": true, "landlock": 7, "filters": true,'
        b' "machine": "abacus"}'
    ),
    "start of a long message": _message(b"{", length=0xFFFFFFFF),
    "deeply nested message": _message(b'{"failure": ' + b"[" * 50_000),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="programs are forked only on Linux"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with its own packages."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalExecutor]:
    """An executor without time limits for messages: if one is missing, the test hangs."""
    monkeypatch.setattr(launcher_client, "MAX_START_SECONDS", NO_TIMEOUT_SECONDS)
    monkeypatch.setattr(local, "MAX_KILL_SECONDS", NO_TIMEOUT_SECONDS)
    executor = LocalExecutor()
    yield executor
    executor.stop()
    LAUNCHER_POOL.close()


@pytest.mark.parametrize("when", ["sitecustomize", "pydantic"])
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_hostile_message_does_not_change_check_result(
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


def test_endless_exit_messages_do_not_block_executor(
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


def test_closed_parent_of_tmpdir_does_not_block_next_check(
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
            readable=(trust_path(program.parent), trust_path(python.parent.parent)),
            imports=("pydantic",),
            untrusted_packages=True,
        ),
    )
