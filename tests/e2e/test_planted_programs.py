"""Programs that a pull request could put into a folder on PATH run only in the sandbox."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.repositories import commit, git
from tests.helpers.support import PATH

pytestmark = pytest.mark.slow

PROGRAMS = ("docker", "git", "node", "uv")
SECRET = "value-of-a-secret"
# Leaves a file only outside the sandbox.
SPY = "#!/bin/sh\nenv > {top}/seen\necho v22.18.0\n"
CODE = "traces: trace.json\nevaluators: [{name: e, type: code, path: %s, threshold: 1}]\n"
DOCKER = """\
tests:
- id: one
  input: hi
  criteria: c
  expected_output: hi
  assertions: [{name: j, type: code_judge, command: [python3, j.py], executor: docker, image: i}]
"""
SCORES_ONE = {"ev.py": "print('{\"score\": 1}')\n", "ev.js": "console.log('{\"score\": 1}')\n"}


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder with a home and a git repository that contains a folder with programs."""
    with TemporaryDirectory(dir="/tmp") as folder:
        top = Path(os.path.realpath(folder))
        top.chmod(0o755)
        for name in ("home", "ws/bin", "cache"):
            (top / name).mkdir(parents=True)
        _write(top / "ws", {"trace.json": otlp(), **SCORES_ONE, "ev.ts": SCORES_ONE["ev.js"]})
        for name in PROGRAMS:
            _plant(top, f"ws/bin/{name}")
        git(top / "ws", "init", "-q", "-b", "main")
        commit(top / "ws")
        yield top


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _plant(top: Path, name: str) -> None:
    _write(top, {name: SPY.format(top=top)})
    (top / name).chmod(0o755)


def _run(top: Path, *arguments: str, **variables: str) -> str:
    """Run agentci in the repository, and return all that it shows."""
    command = (sys.executable, "-m", "agentci", *arguments)
    environ = {
        "PATH": f"{top}/ws/bin:{PATH}",
        "HOME": f"{top}/home",
        "XDG_CACHE_HOME": f"{top}/cache",
        "PIP_NO_INDEX": "1",
        "MY_SECRET": SECRET,
        **variables,
    }
    ran = subprocess.run(
        command, cwd=top / "ws", env=environ, capture_output=True, text=True, check=False
    )
    reports = (path for path in (top / "ws/agentci-results").rglob("*") if path.is_file())
    return "".join([ran.stdout, ran.stderr, *(path.read_text() for path in reports)])


@pytest.fixture(params=["absolute", "relative", "empty", "through a link", "behind a link"])
def search_path(request: pytest.FixtureRequest, top: Path) -> str:
    """``PATH`` with a folder in which a pull request decides about the programs."""
    (top / "link").symlink_to("ws/bin")
    (top / "ws/out").symlink_to(top / "elsewhere")
    for name in PROGRAMS:
        _plant(top, f"elsewhere/{name}")
        _plant(top, f"ws/{name}")
    folders = {
        "absolute": f"{top}/ws/bin",
        "relative": "bin",
        "empty": "",
        "through a link": f"{top}/link",
        "behind a link": f"{top}/ws/out",
    }
    return f"{folders[request.param]}:{PATH}"


def test_planted_node_is_not_asked_for_its_version(top: Path, search_path: str) -> None:
    _write(top / "ws", {"agentci.yaml": CODE % "ev.ts"})
    shown = _run(top, "run", "agentci.yaml", PATH=search_path)
    assert not (top / "seen").exists()
    assert "1 of 1 check passed" in shown or "1 passed" in shown, shown


def test_planted_docker_is_not_started(top: Path, search_path: str) -> None:
    outputs = '{"id": "one", "text": "hi"}\n'
    _write(top / "ws", {"a.eval.yaml": DOCKER, "a.outputs.jsonl": outputs, "j.py": ""})
    _run(top, "run", "a.eval.yaml", PATH=search_path)
    assert not (top / "seen").exists()


def test_planted_uv_does_not_see_credentials(top: Path) -> None:
    _write(top, {"ws/bin/uv": '#!/bin/sh\ncat "$HOME/.netrc" >&2\nexit 3\n'})
    _write(top, {"home/.netrc": f"machine m login u password {SECRET}\n"})
    _write(
        top / "ws", {"evals/requirements.txt": "demo==1.0\n", "agentci.yaml": CODE % "evals/ev.py"}
    )
    _write(top / "ws/evals", SCORES_ONE)
    shown = _run(top, "run", "agentci.yaml")
    assert "could not install its requirements" in shown
    assert SECRET not in shown


def test_planted_git_is_not_started(top: Path, search_path: str) -> None:
    _write(top / "ws", {"agentci.yaml": CODE % "ev.py"})
    _run(top, "run", "agentci.yaml", "--baseline", "base", PATH=search_path)
    assert not (top / "seen").exists()


def test_settings_of_git_in_workspace_start_nothing(top: Path) -> None:
    settings = f'[filter "x"]\n\tclean = {top}/ws/bin/git\n'
    _write(top / "ws", {".gitconfig": settings, ".gitattributes": "ev.py filter=x\n"})
    _write(top / "ws", {"agentci.yaml": CODE % "ev.py", "ev.py": SCORES_ONE["ev.py"] + "\n"})
    _run(top, "run", "agentci.yaml", "--baseline", "base", HOME=f"{top}/ws")
    assert not (top / "seen").exists()


def test_program_of_workspace_runs_in_sandbox(top: Path) -> None:
    _write(top / "ws", {"bin/judge": '#!/bin/sh\necho "{\\"score\\": 1}"\n'})
    (top / "ws/bin/judge").chmod(0o755)
    config = DOCKER.replace("[python3, j.py], executor: docker, image: i", "[judge]")
    outputs = '{"id": "one", "output": [{"role": "assistant", "content": "hi"}]}\n'
    _write(top / "ws", {"a.eval.yaml": config, "a.outputs.jsonl": outputs})
    shown = _run(top, "run", "a.eval.yaml")
    assert "1 passed" in shown, shown
