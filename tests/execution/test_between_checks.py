"""What one check was given of our environment, no other check finds in its own memory."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import SandboxPolicy
from agentci.execution.local import LocalExecutor
from tests.helpers.waiting import NO_TIMEOUT_SECONDS

SECRET = "s3cr3t-of-another-check-"
# It puts the word together by itself: what it looks for must not be there because it looks for it.
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

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there programs are forks")


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor()
    yield executor
    executor.stop()


@pytest.mark.parametrize("own_packages", [False, True], ids=["ours", "packages of its own"])
@pytest.mark.parametrize("size", [8, 400, 3000])
def test_a_secret_of_one_is_not_in_the_memory_of_the_next(
    size: int, executor: LocalExecutor, tmp_path: Path, *, own_packages: bool
) -> None:
    program = tmp_path / "looks.py"

    def said(text: str, secrets: Mapping[str, str]) -> str:
        program.write_text(text)
        response = executor.run(
            (sys.executable, str(program)),
            stdin=b"",
            timeout_seconds=NO_TIMEOUT_SECONDS,
            cwd=tmp_path,
            environment={**make_child_environment(os.environ), **secrets},
            sandbox_policy=SandboxPolicy(
                readable=(tmp_path,), imports=(), untrusted_packages=own_packages, network=False
            ),
        )
        assert response.stderr == ""
        return response.stdout.decode()

    secrets = {f"KEY_{n}": f"{SECRET}{n:04}" + size * "x" for n in range(30)}
    everything = [f"{n:04}" for n in range(30)]
    assert said(LOOKS, secrets).startswith(str(everything))
    assert said(LOOKS, {}) == "[] False\n"
    assert said(LOOKS, {}) == "[] False\n"
