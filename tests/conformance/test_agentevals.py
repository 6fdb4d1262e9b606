"""agentci returns the results of agentevals 0.11.0, except for the listed differences."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from agentevals_evaluator_sdk import (  # type: ignore[import-untyped] # ships no types
    EvalInput,
    InvocationData,
)

from agentci.model.requests import CHANGED_FACTS, CHANGED_WORDS
from tests.helpers.support import run_agentci

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("agentevals/*/case.json"))
STATUS = {"PASSED": "passed", "FAILED": "failed", "NOT_EVALUATED": "skipped"}
DEFAULT_METRIC = "tool_trajectory_avg_score"

Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class Difference:
    """An intended difference: the reason, our exit code and one line for each of our results."""

    why: str
    code: int
    rows: tuple[str, ...] = ()


MISMATCH = "missing or unexpected turns fail a conversation"
NO_TURNS = "an error is reported for each evaluator, not for '(all)'"
LOST = "an answer that is in the trace is found"
# No server listens on this port.
WITHOUT_NETWORK = {"AGENTCI_GITHUB_API_URL": "http://127.0.0.1:9"}
REFUSED = "it is a configuration error, so the run does not start"

DIFFERENCES = {
    "c11-camel-case-top-level": Difference(
        "camelCase keys are also read at the top level of an eval set",
        0,
        ("tool_trajectory_avg_score passed 1.0",),
    ),
    "c12-eval-set-unknown-invocation-key": Difference(
        "without its eval set a run would evaluate nothing, so it does not start", 2
    ),
    "c14-invocation-events-golden": Difference(
        "an expected trajectory reaches programs in each notation",
        0,
        ("tool_trajectory_avg_score passed 1.0", "echo passed 1.0"),
    ),
    "d05-group-by-conversation": Difference(MISMATCH, 1, ("tool_trajectory_avg_score failed 1.0",)),
    "d06-missing-turn": Difference(
        MISMATCH,
        1,
        ("tool_trajectory_avg_score failed 1.0", "response_match_score failed 1.0"),
    ),
    "d07-unexpected-turn": Difference(
        MISMATCH,
        1,
        ("tool_trajectory_avg_score failed 1.0", "response_match_score failed 1.0"),
    ),
    "e13-unrecognised-json": Difference(
        "it is an error in the trace file, reported with its location", 2
    ),
    "e14-bad-jsonl-line": Difference("it is an error in the trace file, reported with its line", 2),
    "c15-empty-eval-cases": Difference("an eval set without cases evaluates nothing", 2),
    "e17-no-genai-spans": Difference("traces without agent activity are ignored, here all", 2),
    "f06-openai-content-messages": Difference(
        LOST, 0, ("tool_trajectory_avg_score passed 1.0", "echo passed 1.0")
    ),
    "f26-placeholders-redacted": Difference(
        "content that was not captured cannot be evaluated",
        3,
        ("response_match_score errored None", "echo errored None"),
    ),
    "f29-agent-without-anything": Difference(
        NO_TURNS, 3, ("tool_trajectory_avg_score errored None",)
    ),
    "f39-model-without-provider": Difference(LOST, 0, ("response_match_score passed 1.0",)),
    "g21-missing-evaluator-file": Difference(REFUSED, 2),
    "g22-unknown-executor": Difference(REFUSED, 2),
    "h01-unknown-metric": Difference(REFUSED, 2),
    "h02-efficiency-metric": Difference(REFUSED, 2),
    "h04-top-level-threshold": Difference(
        "agentevals 0.7.3 read this key, and so does agentci",
        0,
        ("tool_trajectory_avg_score passed 0.0",),
    ),
    "h05-unknown-keys": Difference(REFUSED, 2),
    "h10-remote-offline": Difference(
        "a failed fetch fails only its own checks, not the whole trace",
        3,
        ("tool_trajectory_avg_score passed 1.0", "contains errored None"),
    ),
}


@pytest.mark.parametrize(
    "folder",
    [folder for folder in FOLDERS if folder.name not in DIFFERENCES],
    ids=lambda folder: folder.name,
)
def test_recorded_run_gets_results_of_agentevals(folder: Path, tmp_path: Path) -> None:
    code, report = _run(folder, tmp_path)
    theirs = list(_their_rows(json.loads((folder / "expected.json").read_text())))
    assert theirs
    assert list(_our_rows(report)) == theirs
    assert code == _code(theirs)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_listed_difference_from_agentevals_is_unchanged(name: str, tmp_path: Path) -> None:
    code, report = _run(Path(__file__).parent / "agentevals" / name, tmp_path)
    rows = tuple(f"{r['evaluator']} {r['status']} {r['score']}" for r in report["results"])
    assert (code, rows) == (DIFFERENCES[name].code, DIFFERENCES[name].rows)
    assert code != 2 or report["problems"]


def _run(folder: Path, into: Path) -> tuple[int, Mapping[str, Any]]:
    shutil.copytree(folder, into, dirs_exist_ok=True)
    command = json.loads((folder / "case.json").read_text())["command"]
    ran = run_agentci(list(_arguments(command)), cwd=into, environ=WITHOUT_NETWORK)
    return ran.code, ran.results


def _arguments(command: Sequence[str]) -> Iterator[str]:
    """Translate a command line of agentevals into one of agentci."""
    yield "run"
    if not {"-c", "--config", "-m", "--metric"} & set(command):
        yield from ("--metric", DEFAULT_METRIC)
    words = iter(command[2:])
    for word in words:
        match word:
            case "--output":
                next(words)
            case "--config":
                yield next(words)
            case "-m":
                yield from ("--metric", next(words))
            case _ if word.startswith("-"):
                yield from (word, next(words))
            case _:
                yield from ("--traces", word)


def _their_rows(report: Mapping[str, Any]) -> Iterator[Row]:
    for trace in report["traces"]:
        for metric in trace["metrics"]:
            details = dict(metric.get("details", {}))
            skipped = metric["eval_status"] == "NOT_EVALUATED" and not metric["error"]
            yield {
                "trace": trace["trace_id"],
                "turns": trace["num_invocations"],
                "warnings": trace["conversion_warnings"],
                "performance": trace["performance_metrics"],
                "evaluator": metric["metric_name"],
                "status": "errored" if metric["error"] else STATUS[metric["eval_status"]],
                "score": metric["score"],
                "turn_scores": metric["per_invocation_scores"],
                "reason": details.pop("reason", None) if skipped else None,
                "details": details,
            }


def _our_rows(report: Mapping[str, Any]) -> Iterator[Row]:
    cases = {case["trace"]: case for case in report["cases"]}
    for result in report["results"]:
        case = cases[result["trace"]]
        yield {
            "trace": result["trace"],
            "turns": case["turn_count"],
            "warnings": case["warnings"],
            "performance": case["performance"],
            "evaluator": result["evaluator"],
            "status": result["status"],
            "score": result["score"],
            "turn_scores": result["turn_scores"],
            "reason": result["reason"] if result["status"] == "skipped" else None,
            "details": _without_additions(result["details"]),
        }


def _without_additions(details: Any) -> Any:
    """Leave out facts of answers, and what agentci adds to the input that `echo` returns."""
    details = {
        key: value
        for key, value in (details or {}).items()
        if key not in (CHANGED_FACTS, CHANGED_WORDS)
    }
    given = details.get("input")
    if not isinstance(given, dict):
        return details
    kept = {key: given[key] for key in given if key in EvalInput.model_fields}
    for key in ("invocations", "expected_invocations"):
        kept[key] = given[key] and [
            {name: turn[name] for name in turn if name in InvocationData.model_fields}
            for turn in given[key]
        ]
    return {**details, "input": kept}


def _code(rows: Sequence[Row]) -> int:
    """The exit code for such results with default thresholds."""
    statuses = {row["status"] for row in rows}
    if "failed" in statuses:
        return 1
    if "errored" in statuses:
        return 3
    return 0 if "passed" in statuses else 1
