"""Plans (dry runs), and warnings about valid input with surprising results."""

import json
from pathlib import Path

import pytest

from tests.helpers.recordings import eval_set, otlp
from tests.helpers.support import Ran, run_agentci

BUILTIN = "evaluators:\n- {name: tool_trajectory_avg_score, type: builtin}\n"
CODE = "evaluators:\n- {name: mine, type: code, path: ev.py}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "eval_config.yaml").write_text(f"{BUILTIN}traces: trace.json\n")
    (tmp_path / "golden.json").write_text(eval_set())
    (tmp_path / "trace.json").write_text(otlp())
    (tmp_path / "ev.py").write_text("print('{\"score\": 1}')")
    return tmp_path


def _lines(ran: Ran, text: str) -> list[str]:
    return [line for line in ran.out.splitlines() if text in line]


class TestMissingEvalSet:
    @pytest.mark.parametrize("command", ["run", "validate", "plan"])
    def test_missing_eval_set_is_reported_at_evaluator(self, folder: Path, command: str) -> None:
        ran = run_agentci([command], cwd=folder)
        assert ran.code == 2
        shown = [*ran.out.splitlines(), *map(str, ran.problems)]
        text = "tool_trajectory_avg_score cannot be evaluated without an eval set"
        [line] = [line for line in shown if text in line]
        assert "eval_config.yaml:2" in line

    def test_eval_set_option_suppresses_warning(self, folder: Path) -> None:
        ran = run_agentci(["run", "--eval-set", "golden.json"], cwd=folder)
        assert (ran.code, _lines(ran, "without an eval set")) == (0, [])

    def test_eval_set_option_of_validate_suppresses_error(self, folder: Path) -> None:
        assert run_agentci(["validate", "--eval-set", "golden.json"], cwd=folder).code == 0

    def test_programs_do_not_require_eval_set(self, folder: Path) -> None:
        (folder / "eval_config.yaml").write_text(f"{CODE}traces: trace.json\n")
        assert not _lines(run_agentci(["validate"], cwd=folder), "eval set")

    def test_empty_eval_set_is_reported(self, folder: Path) -> None:
        (folder / "golden.json").write_text('{"eval_set_id": "x", "eval_cases": []}')
        ran = run_agentci(["run", "--eval-set", "golden.json"], cwd=folder)
        assert ran.code == 2
        assert _lines(ran, "no case of the eval set has a turn")


class TestUnusedConfig:
    def test_unused_config_is_reported_with_metric_option(self, folder: Path) -> None:
        arguments = ["--metric", "response_match_score", "--eval-set", "golden.json"]
        ran = run_agentci(["run", *arguments, "--traces", "trace.json"], cwd=folder)
        assert _lines(ran, "eval_config.yaml is not used")
        both = run_agentci(["run", "eval_config.yaml", *arguments], cwd=folder)
        assert not _lines(both, "is not used")
        assert both.results["totals"]["checks"] == 2


class TestPlan:
    def test_plan_prints_one_line_per_check(self, folder: Path) -> None:
        (folder / "eval_config.yaml").write_text(
            f"{CODE}- {{name: tool_trajectory_avg_score, type: builtin}}\n"
            "traces: trace.json\neval_set: golden.json\n"
        )
        ran = run_agentci(["plan"], cwd=folder)
        metric = "tool_trajectory_avg_score"
        assert ran.out.splitlines() == [
            f"eval_config.yaml:2:3: weather, mine: run {folder}/ev.py for at most 30 s",
            f"eval_config.yaml:3:3: weather, {metric}: compute {metric}",
            "2 checks",
        ]
        assert not (folder / "agentci-results").exists()

    def test_plan_places_checks_of_eval_cases_at_their_cases(self, folder: Path) -> None:
        cases = "eval_cases:\n- id: a\n  input: A\n  calls: []\n- id: b\n  input: B\n  calls: []\n"
        (folder / "cases.yaml").write_text(cases)
        (folder / "t.jsonl").write_text(f"{otlp('A', trace=1)}\n{otlp('B', trace=2)}\n")
        ran = run_agentci(["plan", "--traces", "t.jsonl", "--eval-set", "cases.yaml"], cwd=folder)
        shown = [line.partition(", ")[0] for line in _lines(ran, "case:calls")]
        assert shown == ["cases.yaml:2:3: a", "cases.yaml:5:3: b"]

    def test_plan_option_prints_same_as_plan_command(self, folder: Path) -> None:
        ran = run_agentci(["run", "--plan"], cwd=folder)
        assert ran.out == run_agentci(["plan"], cwd=folder).out

    def test_plan_shows_skipped_and_errored_checks(self, folder: Path) -> None:
        span = {"traceId": "1", "spanId": "1", "attributes": {"gen_ai.operation.name": "chat"}}
        (folder / "bare.json").write_text(json.dumps([span]))
        (folder / "other.json").write_text(otlp("Who?", trace=2))
        given = [
            word for name in ("trace", "bare", "other") for word in ("--traces", f"{name}.json")
        ]
        ran = run_agentci(["plan", *given, "--eval-set", "golden.json"], cwd=folder)
        assert _lines(ran, "skip: no matching eval case")
        assert _lines(ran, "error: The content of the turn was not captured")

    def test_plan_reports_unreadable_traces(self, folder: Path) -> None:
        ran = run_agentci(["plan", "--traces", "ev.py", "--eval-set", "golden.json"], cwd=folder)
        assert ran.code == 2
        assert _lines(ran, "ev.py:1")


class TestMisplacedFiles:
    @pytest.mark.parametrize(
        ("name", "option"), [("golden.json", "--eval-set"), ("trace.json", "--traces")]
    )
    def test_file_passed_as_config_names_its_option(
        self, folder: Path, name: str, option: str
    ) -> None:
        ran = run_agentci(["run", name], cwd=folder)
        assert ran.code == 2
        assert option in ran.out


def test_schemas_are_printed(folder: Path) -> None:
    for name in ("config", "results", "lock"):
        ran = run_agentci(["schema", name], cwd=folder)
        assert '"$schema": "https://json-schema.org/draft/2020-12/schema"' in ran.out
