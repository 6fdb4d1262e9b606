"""Programs run by a new executor, and the processes that they leave behind."""

import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import Executor
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput
from tests.helpers.support import EVALUATORS
from tests.helpers.waiting import NO_TIMEOUT_SECONDS, find_processes, wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Runs programs with a unique word in their command lines, which their forks inherit."""

    executor: Executor
    word: str
    cwd: Path

    def run(
        self, program: str, *, stdin: bytes = b"{}", timeout_seconds: float = NO_TIMEOUT_SECONDS
    ) -> ProgramOutput:
        return self.executor.run(
            (sys.executable, str(EVALUATORS / program), self.word),
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            cwd=self.cwd,
            environment=make_child_environment({}),
        )

    def left(self) -> list[int]:
        """The ids of the processes that still run."""
        return find_processes(self.word)

    def wait_for_end(self) -> None:
        """Wait until none is left; processes that were not killed outlast the test's timeout."""
        wait_until(lambda: not self.left())


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Marked]:
    """Programs of a local executor that is stopped after the test."""
    executor = LocalExecutor()
    yield Marked(executor=executor, word=f"mark-{uuid.uuid4().hex}", cwd=tmp_path)
    executor.stop()
