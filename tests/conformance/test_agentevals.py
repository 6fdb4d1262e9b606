"""agentci answers as agentevals 0.11.0 does, save where that would mislead the gate."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support import run_agentci

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("agentevals/*/case.json"))
STATUS = {"PASSED": "passed", "FAILED": "failed", "NOT_EVALUATED": "skipped"}
WITHOUT_METRIC = "tool_trajectory_avg_score"

Row: TypeAlias = "Mapping[str, Any]"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recorded_run_is_judged_as_agentevals_judges_it(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    case = json.loads((folder / "case.json").read_text())
    ran = run_agentci(list(_arguments(case["command"])), cwd=tmp_path)
    theirs = list(_their_rows(json.loads((folder / "expected.json").read_text())))
    assert list(_our_rows(ran.results)) == theirs


def _arguments(command: Sequence[str]) -> Iterator[str]:
    """Their command line in our words."""
    words = iter(command[2:])
    yield "run"
    judged_by = [word for word in command if word in ("-c", "--config", "-m", "--metric")]
    if not judged_by:
        yield from ("--metric", WITHOUT_METRIC)
    for word in words:
        match word:
            case "--output":
                next(words)
            case "--config":
                yield next(words)
            case "-m" | "--metric":
                yield from ("--metric", next(words))
            case _ if word.startswith("-"):
                yield from (word, next(words))
            case _:
                yield from ("--traces", word)


def _their_rows(report: Mapping[str, Any]) -> Iterator[Row]:
    for trace in report["traces"]:
        for metric in trace["metrics"]:
            yield {
                "trace": trace["trace_id"],
                "turns": trace["num_invocations"],
                "warnings": trace["conversion_warnings"],
                "evaluator": metric["metric_name"],
                "status": "errored" if metric["error"] else STATUS[metric["eval_status"]],
                "score": metric["score"],
                "turn_scores": metric["per_invocation_scores"],
                "details": metric.get("details", {}),
            }


def _our_rows(report: Mapping[str, Any]) -> Iterator[Row]:
    cases = {case["id"]: case for case in report["cases"]}
    for result in report["results"]:
        case = cases[result["case"]]
        yield {
            "trace": case["trace"],
            "turns": case["turns"],
            "warnings": case["warnings"],
            "evaluator": result["evaluator"],
            "status": result["status"],
            "score": result["score"],
            "turn_scores": result["turn_scores"],
            "details": result["details"],
        }
