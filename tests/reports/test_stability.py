"""Stability of evaluators that ran several times per case."""

from typing import Any

from agentci.gate.aggregation import aggregate_repeats
from agentci.model.requests import Repetition
from agentci.model.result import CheckResult
from agentci.reports.stability import make_repeat_properties, summarize_repeats
from tests.helpers.reports import make_result


def _result(votes: str, **others: Any) -> CheckResult:
    """A check with one repeat per letter of ``votes``: Passed, Failed, Errored."""
    statuses: dict[str, Any] = {"P": "passed", "F": "failed", "E": "errored"}
    results = [make_result(statuses[each], **others) for each in votes]
    return aggregate_repeats(results, Repetition(times=len(votes)))


def _lines(*results: CheckResult) -> list[str]:
    return [each.line for each in summarize_repeats(results)]


def test_single_run_has_no_stability_line() -> None:
    assert _lines(make_result("passed", 0.9)) == []


def test_stable_evaluator_has_flip_rate_0() -> None:
    results = [_result("PPP", case="a"), _result("FFF", case="b")]
    assert _lines(*results) == ["response_quality: 0 of 2 checks flaky (flip rate 0)"]


def test_flakiest_checks_come_first() -> None:
    results = [_result("PPPPF", case="a"), _result("PPFFP", case="b"), _result("PPPPP", case="c")]
    [line] = _lines(*results)
    summary, flaky = "2 of 3 checks flaky (flip rate 0.2)", "b (3 of 5 passed), a (4 of 5 passed)"
    assert line == f"response_quality: {summary}: {flaky}"


def test_errored_repeats_do_not_count_as_flaky() -> None:
    assert _lines(_result("PE", case="a")) == []
    assert _lines(_result("PE", case="a"), _result("PF", case="b")) == [
        "response_quality: 1 of 1 check flaky (flip rate 0.5): b (1 of 2 passed)"
    ]


def test_evaluators_name_their_config_if_several() -> None:
    results = [_result("PP", config=config) for config in ("a.yaml", "b.yaml")]
    assert [line.partition(":")[0] for line in _lines(*results)] == [
        "response_quality of a.yaml",
        "response_quality of b.yaml",
    ]


def test_flaky_checks_above_limit_are_counted() -> None:
    [line] = _lines(*(_result("PF", case=f"case{number}") for number in range(12)))
    assert line.endswith("case9 (1 of 2 passed), \N{HORIZONTAL ELLIPSIS} and 2 more")


def test_repeated_check_has_properties() -> None:
    assert make_repeat_properties(_result("PPF").repeats) == {
        "repeats": "3",
        "flip_rate": "0.333333",
    }
    assert make_repeat_properties(_result("PE").repeats) == {"repeats": "2", "flip_rate": ""}
    assert make_repeat_properties(None) == {}
