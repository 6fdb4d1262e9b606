"""Programs run by a fresh executor, and a look at what they leave behind."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import Executor
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput
from tests.helpers.support import EVALUATORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Runs programs with a word of their own in the command line, which their forks share."""

    executor: Executor
    word: str
    cwd: Path

    def run(
        self, program: str, *, stdin: bytes = b"{}", timeout_seconds: float = 30
    ) -> ProgramOutput:
        return self.executor.run(
            (sys.executable, str(EVALUATORS / program), self.word),
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            cwd=self.cwd,
            environment=make_child_environment({}),
        )

    def left(self) -> list[str]:
        """The numbers of those that are still there."""
        return [
            entry.name
            for entry in Path("/proc").glob("[0-9]*")
            if self.word in _command_line(entry)
        ]

    def are_gone(self) -> bool:
        """Whether none is left, once the system had time to bury the dead."""
        return _soon(lambda: not self.left())


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Marked]:
    """Programs under a local executor; nothing of them outlives the test."""
    executor = LocalExecutor()
    yield Marked(executor=executor, word=f"mark-{uuid.uuid4().hex}", cwd=tmp_path)
    executor.stop()


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _soon(happens: Callable[[], bool], within_seconds: float = 10) -> bool:
    end = time.monotonic() + within_seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
