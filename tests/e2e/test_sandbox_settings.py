"""Sandbox settings of an evaluator entry and their effect on its program."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from agentci.cli.main import run_command
from agentci.execution.local import LocalExecutor
from agentci.execution.registry import Executors
from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, make_session, run_agentci

LOOKS = """\
import json, os, socket
def has(act):
    try: act()
    except OSError: return False
    return True
print(json.dumps({"score": 1, "details": {
    "seen": [name for name in os.environ if name.endswith("KEY")],
    "network": has(socket.socket),
    "home": os.environ["HOME"],
}}))
"""
KEYS = {"JUDGE_KEY": "one", "OTHER_KEY": "two"}


def _run(folder: Path, program: str, *more: str, kind: str = "code") -> Ran:
    (folder / "trace.json").write_text(otlp())
    (folder / "ev.py").write_text(program)
    (folder / "index.yaml").write_text("evaluators: [{name: ev, path: ev.py}]\n")
    where = ["path: ev.py"] if kind == "code" else ["source: local", "repo: .", "ref: ev.py"]
    lines = "".join(f"  {line}\n" for line in (f"type: {kind}", *where, *more))
    (folder / "agentci.yaml").write_text(f"traces: trace.json\nevaluators:\n- name: ev\n{lines}")
    return run_agentci(["run"], cwd=folder, environ=KEYS)


def _details(ran: Ran) -> Any:
    assert not ran.problems, ran.problems
    result = ran.results["results"][0]
    assert result["reason"] is None
    return result["details"]


def test_program_has_network_but_no_keys_and_private_home(tmp_path: Path) -> None:
    details = _details(_run(tmp_path, LOOKS))
    assert (details["seen"], details["network"]) == ([], True)
    assert not Path(details["home"]).exists()


def test_program_sees_only_variables_listed_in_env(tmp_path: Path) -> None:
    assert _details(_run(tmp_path, LOOKS, "env: [JUDGE_KEY, UNSET_KEY]"))["seen"] == ["JUDGE_KEY"]


@pytest.mark.parametrize("name", ["'*_KEY'", "'*'", "KEY=x", "''"])
def test_env_rejects_wildcards_and_assignments(tmp_path: Path, name: str) -> None:
    ran = _run(tmp_path, LOOKS, f"env: [{name}]")
    assert ran.code == 2
    assert "env" in ran.out


def test_network_false_disables_network(tmp_path: Path) -> None:
    assert not _details(_run(tmp_path, LOOKS, "network: false"))["network"]


def test_remote_evaluator_has_network_only_if_enabled(tmp_path: Path) -> None:
    assert not _details(_run(tmp_path, LOOKS, kind="remote"))["network"]
    assert _details(_run(tmp_path, LOOKS, "network: true", kind="remote"))["network"]


def test_program_over_memory_limit_errors(tmp_path: Path) -> None:
    hungry = "held = bytearray(300 * 1024**2)\nprint('{\"score\": 1}')"
    assert "MemoryError" in _reason(_run(tmp_path, hungry, "memory_mb: 200"))
    assert _run(tmp_path, hungry, "memory_mb: 400").code == 0


@pytest.mark.parametrize(
    ("program", "more", "expected"),
    [
        ("open('out.txt', 'w')", (), "the sandbox allows writing only to TMPDIR"),
        (
            "import socket; socket.socket()",
            ("network: false",),
            "the sandbox has no network access",
        ),
        (
            "import urllib.request as r; r.urlopen('http://localhost.example')",
            ("network: false",),
            "the sandbox has no network access",
        ),
    ],
)
def test_sandbox_violation_is_explained_in_reason(
    tmp_path: Path, program: str, more: tuple[str, ...], expected: str
) -> None:
    assert expected in _reason(_run(tmp_path, program, *more))


def _reason(ran: Ran) -> str:
    assert ran.code == 3, ran.out
    return str(ran.results["results"][0]["reason"])


class Weak(LocalExecutor):
    """Reports a limitation, as on an old kernel."""

    def limitations(self) -> Collection[str]:
        return ("evaluators' programs run wild here",)


def test_sandbox_limitation_is_one_warning_and_does_not_fail_gate(tmp_path: Path) -> None:
    _run(tmp_path, LOOKS)
    session = make_session(tmp_path, {}, executors=Executors({"local": Weak}))
    assert run_command(["run"], session) == 0
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    found = [(each["severity"], each["message"]) for each in report["problems"]]
    assert found == [("warning", "evaluators' programs run wild here")]


def test_config_outside_cwd_can_read_its_own_repository(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    repository, here = tmp_path / "repository", tmp_path_factory.mktemp("here")
    for name in (".git", "evals", "data"):
        (repository / name).mkdir(parents=True)
    (repository / "data" / "score").write_text("0.75")
    (repository / "evals" / "trace.json").write_text(otlp())
    (repository / "evals" / "ev.py").write_text(
        "import pathlib\n"
        "score = pathlib.Path(__file__).parent.parent / 'data' / 'score'\n"
        "print('{\"score\": %s}' % score.read_text())\n"
    )
    config = repository / "evals" / "agentci.yaml"
    config.write_text("traces: trace.json\nevaluators: [{name: ev, type: code, path: ev.py}]\n")
    ran = run_agentci(["run", str(config)], cwd=here)
    [result] = ran.results["results"]
    assert (result["reason"], result["score"]) == (None, 0.75)


@pytest.mark.parametrize(("line", "there"), [("", True), ("isolation: spawn", False)])
def test_standard_library_is_preloaded_unless_isolation_is_spawn(
    tmp_path: Path, line: str, *, there: bool
) -> None:
    looks = (
        "import sys; there = 'statistics' in sys.modules\n"
        "import statistics, json\n"
        "print(json.dumps({'score': 1, 'details': {'there': there}}))"
    )
    [result] = _run(tmp_path, looks, *filter(None, [line])).results["results"]
    assert result["details"]["there"] is there
