"""Environment variables of one check do not remain in the memory of later checks."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agentci._util.workspace import trust_path
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

SECRET = "s3cr3t-of-another-check-"
# Joins the word at run time: as a literal, the word would be in the program's own memory.
LOOKS = """\
import sys
word, found = b"".join((b"s3cr3t-of-", b"another-", b"check-")), set()
for line in open("/proc/self/maps"):
    start, end = (int(each, 16) for each in line.split()[0].split("-"))
    with open("/proc/self/mem", "rb", 0) as memory:
        try:
            memory.seek(start)
            content = memory.read(end - start)
        except (OSError, OverflowError, ValueError):
            continue
    places = content.split(word)[1:]
    found.update(place[:4].decode() for place in places if place[:4].isdigit())
print(sorted(found), word in open("/proc/self/environ", "rb").read())
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are forked only on Linux")


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor()
    yield executor
    executor.stop()


@pytest.mark.parametrize(
    "own_packages", [False, True], ids=["trusted packages", "untrusted packages"]
)
@pytest.mark.parametrize("size", [8, 400, 3000])
def test_secret_does_not_remain_in_memory_for_next_check(
    size: int, executor: LocalExecutor, tmp_path: Path, *, own_packages: bool
) -> None:
    program = tmp_path / "looks.py"

    def run_program(text: str, secrets: Mapping[str, str]) -> str:
        program.write_text(text)
        response = executor.run(
            (sys.executable, str(program)),
            stdin=b"",
            timeout_seconds=NO_TIMEOUT_SECONDS,
            cwd=tmp_path,
            environment={**make_child_environment(os.environ), **secrets},
            sandbox_policy=SandboxPolicy(
                readable=(trust_path(tmp_path),),
                imports=(),
                untrusted_packages=own_packages,
                network=False,
            ),
        )
        assert response.stderr == ""
        return response.stdout.decode()

    secrets = {f"KEY_{n}": f"{SECRET}{n:04}" + size * "x" for n in range(30)}
    everything = [f"{n:04}" for n in range(30)]
    assert run_program(LOOKS, secrets).startswith(str(everything))
    assert run_program(LOOKS, {}) == "[] False\n"
    assert run_program(LOOKS, {}) == "[] False\n"
