"""Commands to a container engine, and the results of workflow steps, for container tests."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("CONTAINER_TOOLS", ROOT.parent / "shared/tools/container")).resolve()
BASE_IMAGE = os.environ.get("BASE_IMAGE", "python:3.12-slim")
TAG = os.environ.get("IMAGE_TAG", "agentci-under-test")
OWNER = (1234, 1235)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The results of a workflow step."""

    code: int
    log: str
    outputs: Mapping[str, str]
    summary: str


RunAction: TypeAlias = Callable[[Path, Mapping[str, str]], Step]


class RunImage(Protocol):
    """Runs the image by hand on a workspace that is mounted at /repo."""

    def __call__(
        self, workspace: Path, *arguments: str, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]: ...


def output_of(*command: str | Path) -> str:
    """Return what ``command`` prints; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def step_of(done: subprocess.CompletedProcess[str]) -> Step:
    """Parse what run-docker-action.sh prints about the step."""
    log, output, summary, _ = re.split(
        r"^(?:exit=\d+\n)?-- set_(?:output|step_summary|env)\n", done.stdout, flags=re.MULTILINE
    )
    values = re.findall(r"^([^=\n<]+)<<(\S+)\n(.*?)^\2\n", output, flags=re.MULTILINE | re.DOTALL)
    return Step(
        code=done.returncode,
        log=log + done.stderr,
        outputs={name: value.removesuffix("\n") for name, _, value in values},
        summary=summary,
    )
