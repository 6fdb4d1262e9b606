"""What a config says of the walls around a program, from its entry to what the program meets."""

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


def test_a_program_sees_no_key_and_has_a_network_and_a_home_of_its_own(tmp_path: Path) -> None:
    details = _details(_run(tmp_path, LOOKS))
    assert (details["seen"], details["network"]) == ([], True)
    assert not Path(details["home"]).exists()


def test_it_sees_the_variables_that_its_entry_names_and_no_others(tmp_path: Path) -> None:
    assert _details(_run(tmp_path, LOOKS, "env: [JUDGE_KEY, UNSET_KEY]"))["seen"] == ["JUDGE_KEY"]


@pytest.mark.parametrize("name", ["'*_KEY'", "'*'", "KEY=x", "''"])
def test_variables_are_named_in_full(tmp_path: Path, name: str) -> None:
    ran = _run(tmp_path, LOOKS, f"env: [{name}]")
    assert ran.code == 2
    assert "env" in ran.out


def test_network_false_takes_the_network_away(tmp_path: Path) -> None:
    assert not _details(_run(tmp_path, LOOKS, "network: false"))["network"]


def test_a_program_that_is_kept_elsewhere_has_none_unless_it_is_given(tmp_path: Path) -> None:
    assert not _details(_run(tmp_path, LOOKS, kind="remote"))["network"]
    assert _details(_run(tmp_path, LOOKS, "network: true", kind="remote"))["network"]


def test_one_that_needs_more_memory_or_processes_than_its_entry_says_errs(tmp_path: Path) -> None:
    hungry = "held = bytearray(300 * 1024**2)\nprint('{\"score\": 1}')"
    assert "MemoryError" in _reason(_run(tmp_path, hungry, "memory_mb: 200"))
    assert _run(tmp_path, hungry, "memory_mb: 400").code == 0


@pytest.mark.parametrize(
    ("program", "more", "told"),
    [
        ("open('out.txt', 'w')", (), "it may write to its TMPDIR alone"),
        ("import socket; socket.socket()", ("network: false",), "`network: true` in its entry"),
        (
            "import urllib.request as r; r.urlopen('http://localhost.example')",
            ("network: false",),
            "`network: true` in its entry",
        ),
    ],
)
def test_one_that_runs_into_a_wall_is_told_so(
    tmp_path: Path, program: str, more: tuple[str, ...], told: str
) -> None:
    assert told in _reason(_run(tmp_path, program, *more))


def _reason(ran: Ran) -> str:
    assert ran.code == 3, ran.out
    return str(ran.results["results"][0]["reason"])


class Weak(LocalExecutor):
    """Lacks something, as on an old kernel."""

    def limitations(self) -> Collection[str]:
        return ("evaluators' programs run wild here",)


def test_what_cannot_be_enforced_is_told_once_and_changes_no_verdict(tmp_path: Path) -> None:
    _run(tmp_path, LOOKS)
    session = make_session(tmp_path, {}, executors=Executors({"local": Weak}))
    assert run_command(["run"], session) == 0
    report = json.loads((tmp_path / "agentci-results" / "results.json").read_text())
    told = [(each["severity"], each["message"]) for each in report["problems"]]
    assert told == [("warning", "evaluators' programs run wild here")]


def test_a_config_from_elsewhere_has_its_own_repository_to_read(
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
def test_one_finds_its_imports_done_unless_it_is_to_start_by_itself(
    tmp_path: Path, line: str, *, there: bool
) -> None:
    looks = (
        "import sys; there = 'statistics' in sys.modules\n"
        "import statistics, json\n"
        "print(json.dumps({'score': 1, 'details': {'there': there}}))"
    )
    [result] = _run(tmp_path, looks, *filter(None, [line])).results["results"]
    assert result["details"]["there"] is there
