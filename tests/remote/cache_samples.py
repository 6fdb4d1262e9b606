"""Sample evaluators and helpers for tests of the cache."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.cache_index import EvaluatorKey
from agentci.remote.evaluator_cache import EvaluatorCache
from tests.helpers.support import ROOT

NOBODY = 65534
KEY = EvaluatorKey(source="github", repository="org/evals", commit="8c1f" * 10, ref="tone/tone.py")
OTHER_KEY = EvaluatorKey(
    source="github", repository="org/evals", commit="77aa" * 10, ref="tone/tone.py"
)
FILES = {
    "tone.py": ProgramFile(content=b"#!/usr/bin/env python3\nprint(1)\n", executable=True),
    "words/rude.txt": ProgramFile(content=b"damn\n"),
    "evaluator.yaml": ProgramFile(content=b"name: tone\n"),
}
SNAPSHOT = ProgramSnapshot(entry="tone.py", files=FILES)
OTHER_SNAPSHOT = ProgramSnapshot(entry="a.py", files={"a.py": ProgramFile(content=b"pass\n")})


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop root for the user ``nobody``, because file modes do not restrict root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def index_of(store: EvaluatorCache) -> list[Path]:
    """Return all index files, sorted."""
    folder = store.folder / "evaluators" / "index"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def trees_of(store: EvaluatorCache) -> list[Path]:
    """Return all folders of evaluators, sorted."""
    return sorted((store.folder / "evaluators" / "trees").iterdir())


def leftovers(folder: Path) -> list[Path]:
    """Return all temporary files and folders below ``folder``."""
    return sorted(folder.rglob(".tmp-*"))


def start_python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script that can import agentci and the tests in a new process.

    Coverage is disabled: many of these processes are killed or may not write files.
    """
    environ = {k: v for k, v in os.environ.items() if k != "COVERAGE_PROCESS_CONFIG"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Wait for all processes, assert that each succeeds, and return their output."""
    outputs = [process.communicate(timeout=250) for process in processes]
    for process, (_, err) in zip(processes, outputs, strict=True):
        assert (process.returncode, err) == (0, ""), err
    return [out for out, _ in outputs]


def run_python(script: str, *arguments: object) -> str:
    """Run a script as :func:`start_python` does, and return its output."""
    return finish([start_python(script, *arguments)])[0]
