"""Which checks keep their evaluator input and output, within the size limit."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentci._util.text.secrets import Redactor
from agentci.model.program import LocalProgram
from agentci.model.requests import RunProgram
from agentci.model.result import CheckResult
from agentci.model.values import CallScope, replace
from agentci.runner.evaluator_calls import EvaluatorCallLog, ExternalCall
from tests.helpers.reports import make_result

LIMIT = 1_000


def external_call(stdin: str) -> ExternalCall:
    program = LocalProgram(path="/w/judge.py")
    request = RunProgram(program=program, stdin=stdin, timeout_seconds=1)
    return ExternalCall(name="tone", request=request, error="timed out")


def result(
    id_: str, status: Any = "failed", score: float | None = 0.5, **others: Any
) -> CheckResult:
    return replace(make_result(status, score, **others), id=id_)


def log_of(
    *results: CheckResult, of: CallScope = "failed", stdin: str = "x" * 300
) -> EvaluatorCallLog:
    log = EvaluatorCallLog(of, max_characters=LIMIT)
    for each in results:
        log.add(each, [external_call(stdin)], Redactor())
    return log


@pytest.mark.parametrize(
    ("of", "kept"),
    [("failed", {"f", "e", "s"}), ("all", {"f", "e", "s", "p"}), ("none", set())],
)
def test_calls_are_kept_for_selected_checks(of: CallScope, kept: set[str]) -> None:
    found = [
        result("p", "passed"),
        result("f"),
        result("e", "errored", None),
        result("s", "skipped", None),
    ]
    calls = log_of(*found, of=of, stdin="x").select_worst()
    assert (set(calls.json_by_check), calls.omitted_checks) == (kept, frozenset())


def test_worst_checks_keep_their_calls() -> None:
    found = [
        result("poor", score=0.5),
        result("passed", "passed", 0),
        result("skipped", "skipped", None),
        result("advisory", score=0.0, required=False),
        result("bad", score=0.1),
        result("errored", "errored", None),
    ]
    calls = log_of(*found, of="all").select_worst()
    assert list(calls.json_by_check) == ["errored", "bad"]
    assert calls.omitted_checks == {"poor", "advisory", "skipped", "passed"}


def test_kept_calls_do_not_depend_on_order() -> None:
    found = [result(f"{number}", score=number / 100) for number in range(100)]
    kept = {"0", "1"}
    assert set(log_of(*found).select_worst().json_by_check) == kept
    assert set(log_of(*reversed(found)).select_worst().json_by_check) == kept


def test_ties_are_resolved_independently_of_order() -> None:
    found = [result(f"{number:03}") for number in range(100)]
    assert set(log_of(*found).select_worst().json_by_check) == set(
        log_of(*reversed(found)).select_worst().json_by_check
    )


def test_small_call_is_omitted_after_worse_one() -> None:
    log = log_of(*(result(f"{number}", score=0.1) for number in range(10)))
    log.add(result("small", score=0.9), [external_call("")], Redactor())
    assert "small" in log.select_worst().omitted_checks


def test_better_rerun_drops_earlier_calls() -> None:
    log = log_of(*(result(f"{number}", score=0.1) for number in range(10)))
    log.add(result("0", score=0.9), [external_call("")], Redactor())
    calls = log.select_worst()
    assert ("0" in calls.json_by_check, "0" in calls.omitted_checks) == (False, True)


def test_kept_calls_fit_character_limit() -> None:
    calls = log_of(*(result(f"{number}") for number in range(10))).select_worst()
    assert sum(map(len, calls.json_by_check.values())) <= LIMIT
    assert len(calls.json_by_check) + len(calls.omitted_checks) == 10


def test_last_run_of_check_replaces_earlier_calls() -> None:
    log = EvaluatorCallLog("failed", max_characters=LIMIT)
    for stdin in ("x", "y"):
        log.add(result("1"), [external_call(stdin)], Redactor())
    calls = log.select_worst()
    [call] = json.loads(calls.json_by_check["1"])
    assert (call["texts"][0]["content"], calls.omitted_checks) == ("y", frozenset())


def test_call_json_is_safe_in_html() -> None:
    packed = log_of(result("1"), stdin="</script>\u00e9").select_worst().json_by_check["1"]
    assert packed.isascii()
    assert "<" not in packed
    assert json.loads(packed) == [
        {
            "name": "tone",
            "outcome": "program: timed out",
            "texts": [{"name": "stdin", "content": "</script>\u00e9", "size": 11, "notes": []}],
        }
    ]


def test_calls_are_added_from_several_threads() -> None:
    log = EvaluatorCallLog("failed", max_characters=100 * LIMIT)
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(
            pool.map(
                lambda n: log.add(result(f"{n}"), [external_call("x")], Redactor()), range(500)
            )
        )
    calls = log.select_worst()
    assert len(calls.json_by_check) == 500
