"""The gates of the base commit, from a folder with its files."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentci._util.workspace import Workspace
from agentci.config.settings import Settings, parse_settings
from agentci.github.baseline.policy import BaseGates, load_base_gates
from agentci.runner.load_configs import load_suites
from tests.helpers.recordings import eval_case, eval_set_of, otlp
from tests.helpers.support import make_services

METRIC = {"name": "response_match_score", "type": "builtin"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "base"


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return tmp_path / "head"


def write(folder: Path, name: str = "agentci.yaml", *, traces: int = 1, **content: Any) -> None:
    """Write a config, its eval set and its traces."""
    folder.mkdir(exist_ok=True)
    whole = {"evaluators": [METRIC], "traces": "t*.json", "eval_set": "set.json", **content}
    (folder / name).write_text(json.dumps(whole))
    (folder / "set.json").write_text(eval_set_of([eval_case("Hello", "Hi", calls=(), case="a")]))
    for number in range(traces):
        text = otlp("Hello", "Hi", trace=number + 1)
        (folder / f"t{number}.json").write_text(text + " " * number)


def load(
    base: Path, head: Path, *configs: str, settings: Settings | None = None, **options: str
) -> BaseGates:
    given = {name.replace("_", "-"): [value] for name, value in options.items()}
    settings = settings or parse_settings(configs, given)
    services = make_services(head, {})
    suites = load_suites(settings, services)
    workspace = Workspace(root=base, cwd=base)
    return load_base_gates(workspace, suites, settings, services)


def test_configs_of_the_base_are_read(base: Path, head: Path) -> None:
    write(base, threshold=0.7)
    write(head, threshold=0.2)
    write(head, "new.eval.yaml")
    [gate] = load(base, head).gates
    assert (gate.config, gate.settings[0].threshold) == ("agentci.yaml", 0.7)


def test_invalid_config_is_a_note(base: Path, head: Path) -> None:
    write(base, treshold=0.7)
    write(head)
    found = load(base, head)
    assert found.gates == ()
    assert found.notes[0].startswith(
        "agentci.yaml is not compared: it is invalid in the base commit: agentci.yaml:1:"
    )


def test_invalid_eval_set_is_a_note(base: Path, head: Path) -> None:
    write(base)
    write(head)
    (base / "set.json").write_text("{")
    found = load(base, head)
    assert found.gates == ()
    assert "invalid in the base commit: set.json:1" in found.notes[0]


def test_metrics_of_the_command_line_need_no_config(base: Path, head: Path) -> None:
    write(base)
    write(head)
    [gate] = load(base, head, metric="response_match_score", traces="t*.json").gates
    assert gate.evaluators == ("response_match_score",)


def test_excluded_configs_are_left_out(base: Path, head: Path) -> None:
    for folder in (base, head):
        write(folder)
        write(folder, "b.eval.yaml", evaluators=[{**METRIC, "name": "tool_trajectory_avg_score"}])
    [gate] = load(base, head, only="tool_trajectory_avg_score").gates
    assert gate.config == "b.eval.yaml"


def test_absolute_paths_are_moved_to_the_base(base: Path, head: Path) -> None:
    write(base, traces=3)
    write(head, traces=1)
    (base / "other.json").write_text(eval_set_of([eval_case("Bye", "Bye", calls=(), case="b")]))
    (head / "other.json").write_text((head / "set.json").read_text())
    found = load(
        base,
        head,
        f"{head}/agentci.yaml",
        traces=f"{head}/t*.json",
        eval_set=f"{head}/other.json",
    )
    assert {*found.gates[0].eval_cases} == {"b"}
    assert found.more_runs == {"agentci.yaml": 2}


class TestRecordedRuns:
    def test_difference_is_counted(self, base: Path, head: Path) -> None:
        write(base, traces=4)
        write(head, traces=1)
        assert load(base, head).more_runs == {"agentci.yaml": 3}
        assert load(head, base).more_runs == {"agentci.yaml": -3}

    def test_added_health_check_makes_no_note(self, base: Path, head: Path) -> None:
        write(base)
        write(head)
        span = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "GET /", "attributes": []}
        (head / "t9.json").write_text(json.dumps([span]))
        found = load(base, head)
        assert (found.more_runs, found.notes) == ({"agentci.yaml": 0}, ())

    def test_files_of_equal_size_are_not_read(self, base: Path, head: Path) -> None:
        write(base, traces=2)
        write(head, traces=2)
        (base / "t0.json").write_text("x" * (head / "t0.json").stat().st_size)
        assert load(base, head).more_runs == {"agentci.yaml": 0}

    def test_traces_that_are_not_committed_are_not_compared(self, base: Path, head: Path) -> None:
        write(base, traces=0)
        write(head, traces=2)
        assert load(base, head).more_runs == {"agentci.yaml": -2}
