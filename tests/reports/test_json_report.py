"""``results.json``: the documented contract."""

import json
from typing import Any

import msgspec
import pytest

from agentci.model.case import Case
from agentci.model.gate import Gate, GatePolicy, GateThresholds
from agentci.model.trace import Turn
from agentci.model.values import Place, Problem, replace
from agentci.reports import json_report
from agentci.reports.contents import MAX_FIELD_CHARACTERS
from agentci.reports.json_report import JsonReport
from agentci.reports.run_content import make_case_summary
from tests.conftest import Golden
from tests.helpers.reports import (
    make_case,
    make_report,
    make_result,
    mixed_report,
    shard_report,
    text_of,
)

REPORT = JsonReport(tool_version="1.2.3")


def _rendered(*results: Any, **others: Any) -> Any:
    return json.loads(text_of(REPORT, make_report(results, **others)))


def test_results_json_matches_snapshot(golden: Golden) -> None:
    golden("results.json", text_of(REPORT, mixed_report()))


def test_empty_results_json_matches_snapshot(golden: Golden) -> None:
    golden("results-empty.json", text_of(REPORT, make_report([])))


def test_result_keys_keep_documented_order() -> None:
    [result] = _rendered(make_result("passed", 0.9))["results"]
    contract = (
        "id config case evaluator type status score criterion threshold required turn_scores hits "
        "misses reasoning details reason seconds cached place"
    )
    more = {"trace", "eval_case", "file", "weight", "fingerprint"}
    assert [key for key in result if key not in more] == contract.split()


def test_keys_without_a_value_of_a_result_are_left_out() -> None:
    [result] = _rendered(make_result("passed", 0.9))["results"]
    assert {"warnings", "trials", "repeats"} & {*result} == set()


def test_errored_check_has_no_score() -> None:
    [result] = _rendered(make_result("errored", reason="it crashed"))["results"]
    assert (result["score"], result["reason"]) == (None, "it crashed")
    assert (result["turn_scores"], result["misses"], result["details"]) == ([], [], {})


def test_non_finite_numbers_are_null() -> None:
    details = {"a": [float("nan"), {"b": float("-inf")}]}
    result = make_result("passed", float("nan"), details=details, seconds=float("inf"))
    [written] = _rendered(result)["results"]
    assert (written["score"], written["seconds"]) == (None, None)
    assert written["details"] == {"a": [None, {"b": None}]}


def test_two_runs_differ_only_in_seconds_and_cached() -> None:
    first = mixed_report()
    again = replace(
        first,
        results=tuple(replace(each, seconds=9.9, cached=True) for each in first.results),
    )
    before, after = (json.loads(text_of(REPORT, report)) for report in (first, again))
    assert before != after
    for each in (*before["results"], *after["results"]):
        del each["seconds"], each["cached"]
    assert before == after


def test_case_of_several_evaluators_is_listed_once() -> None:
    rendered = _rendered(
        make_result("passed", evaluator="a", warnings=["guessed"]),
        make_result("passed", evaluator="b", warnings=["guessed"]),
        make_result("passed", evaluator="a", case="other"),
    )
    assert [case["id"] for case in rendered["cases"]] == ["books_a_flight", "other"]
    assert rendered["cases"][0] == {
        "id": "books_a_flight",
        "trace": "trace-of-books_a_flight",
        "group": "books_a_flight",
        "eval_case": "books_a_flight",
        "unmatched_reason": None,
        "file": "evals/recordings/books_a_flight.json",
        "line": 3,
        "eval_case_place": {"file": "evals/eval_set.json", "line": 5, "column": None},
        "content": "excerpt",
        "turn_count": 2,
        "turns": [
            {"user": "Hello", "answer": None},
            {"user": "Book it", "answer": None},
        ],
        "warnings": ["guessed"],
        "performance": None,
        "run": "0e778c59505b4b08",
    }


def test_case_without_eval_case_states_reason() -> None:
    trace = replace(make_case().trace, performance={"latency_ms": 12})
    case = Case(id="t", trace=trace, unmatched_reason="no eval set")
    [written] = _rendered(replace(make_result("passed"), case=make_case_summary(case)))["cases"]
    assert (written["eval_case"], written["unmatched_reason"]) == (None, "no eval set")
    assert written["performance"] == {"latency_ms": 12}


def test_problem_keeps_its_place_if_any() -> None:
    problems = [
        Problem(message="is wrong", place=Place(file="a.yaml", line=2, column=5), hint="fix it"),
        Problem(message="is odd", severity="note"),
    ]
    rendered = _rendered(make_result("passed"), problems=problems)
    assert rendered["problems"] == [
        {
            "severity": "error",
            "message": "is wrong",
            "hint": "fix it",
            "place": {"file": "a.yaml", "line": 2, "column": 5},
        },
        {"severity": "note", "message": "is odd", "hint": None, "place": None},
    ]


def test_turn_text_is_cut_to_excerpt_length() -> None:
    case = make_case()
    turn = Turn(id="t", user_text="a\n" * 200, answer_parts=("b", "c" * 200))
    case = replace(case, trace=replace(case.trace, turns=(turn,)))
    [written] = _rendered(replace(make_result("passed"), case=make_case_summary(case)))["cases"]
    [turn_text] = written["turns"]
    assert turn_text["user"].startswith("a a a")
    assert turn_text["answer"].startswith("bccc")
    assert {len(each) for each in turn_text.values()} == {100}


def test_gates_include_all_thresholds() -> None:
    own = GatePolicy(
        overall=GateThresholds(min_score=0.5), evaluators={"tone": GateThresholds(on_error="warn")}
    )
    gate = Gate(
        config="a.yaml",
        policy=own,
        evaluators=("tone", "b"),
        uncovered=("c", "d"),
        missing=("d",),
        unmatched=("e",),
    )
    report = replace(make_report([make_result("passed")]), gates=(gate,))
    policy, thresholds = (msgspec.to_builtins(each) for each in (GatePolicy(), GateThresholds()))
    # Defaults are in the file, too, so that readers need not know them.
    assert (policy["on_missing"], thresholds["min_pass_rate"]) == ("fail", 1.0)
    assert json.loads(text_of(REPORT, report))["gates"] == [
        {
            "config": "a.yaml",
            "evaluators": ["tone", "b"],
            "uncovered": ["c", "d"],
            "missing": ["d"],
            "unmatched": ["e"],
            "policy": {
                **policy,
                "overall": {**thresholds, "min_score": 0.5},
                "evaluators": {"tone": {**thresholds, "on_error": "warn"}},
            },
            "settings": [],
            "eval_cases": {},
            "recorded_runs": None,
            "selection": {},
            "case_names": {},
            "trials": "",
            "inputs": {},
            "case_values": {},
        }
    ]


def test_shard_report_identifies_its_shard() -> None:
    assert json.loads(text_of(REPORT, shard_report([])))["shard"] == {
        "index": 2,
        "total": 3,
        "plan_digest": "0" * 64,
        "checks": ["0" * 16],
        "shard_keys": {},
    }


def test_every_result_is_on_its_own_line() -> None:
    lines = text_of(REPORT, mixed_report()).splitlines()
    assert sum(line.startswith('    {"id": "id of ') for line in lines) == 6


def test_long_fields_of_results_are_cut_and_counted() -> None:
    long = "x" * (MAX_FIELD_CHARACTERS + 5)
    [written] = _rendered(
        make_result("failed", 0.1, reasoning=long, misses=["a", long], details={"a": long})
    )["results"]
    assert written["cut"] == {"reasoning": 5, "misses[1]": 5, "details": len(long) + 8}
    assert written["details"] == {}


def test_details_of_passed_checks_have_a_limit_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_report, "MAX_PASSED_DETAILS", 15)
    rendered = _rendered(
        make_result("passed", 1.0, details={"a": 1}),
        make_result("failed", 0.1, case="b", details={"a": "failed"}),
        make_result("passed", 1.0, case="c", details={"a": "12345"}),
        make_result("passed", 1.0, case="d", details={"a": 2}),
    )["results"]
    assert [each["details"] for each in rendered] == [{"a": 1}, {"a": "failed"}, {}, {"a": 2}]
    assert rendered[2]["cut"] == {"details": 13}
