"""What reports say of evaluators that were asked several times."""

from typing import Any

from agentci.gate.aggregation import aggregate_repeats
from agentci.model.judgement import Repetition
from agentci.model.result import CheckResult
from agentci.reports.stability import make_repeat_properties, summarize_repeats
from tests.helpers.reports import make_result


def _result(votes: str, **others: Any) -> CheckResult:
    """A check that was asked as often as ``votes`` has letters: Passed, Failed, Errored."""
    statuses: dict[str, Any] = {"P": "passed", "F": "failed", "E": "errored"}
    results = [make_result(statuses[each], **others) for each in votes]
    return aggregate_repeats(results, Repetition(times=len(votes)))


def _lines(*results: CheckResult) -> list[str]:
    return [each.line for each in summarize_repeats(results)]


def test_an_evaluator_that_was_asked_once_is_none_of_them() -> None:
    assert _lines(make_result("passed", 0.9)) == []


def test_one_that_never_flips_is_stable() -> None:
    results = [_result("PPP", case="a"), _result("FFF", case="b")]
    assert _lines(*results) == ["response_quality: 0 of 2 checks flaky (flip rate 0)"]


def test_the_least_stable_checks_stand_first() -> None:
    results = [_result("PPPPF", case="a"), _result("PPFFP", case="b"), _result("PPPPP", case="c")]
    [line] = _lines(*results)
    told, flaky = "2 of 3 checks flaky (flip rate 0.2)", "b (3 of 5 passed), a (4 of 5 passed)"
    assert line == f"response_quality: {told}: {flaky}"


def test_what_could_not_be_judged_is_neither_stable_nor_unstable() -> None:
    assert _lines(_result("PE", case="a")) == []
    assert _lines(_result("PE", case="a"), _result("PF", case="b")) == [
        "response_quality: 1 of 1 check flaky (flip rate 0.5): b (1 of 2 passed)"
    ]


def test_of_several_configs_each_says_whose_it_is() -> None:
    results = [_result("PP", config=config) for config in ("a.yaml", "b.yaml")]
    assert [line.partition(":")[0] for line in _lines(*results)] == [
        "response_quality of a.yaml",
        "response_quality of b.yaml",
    ]


def test_of_many_unstable_checks_the_first_are_named() -> None:
    [line] = _lines(*(_result("PF", case=f"case{number}") for number in range(12)))
    assert line.endswith("case9 (1 of 2 passed), \N{HORIZONTAL ELLIPSIS} and 2 more")


def test_a_check_has_properties() -> None:
    assert make_repeat_properties(_result("PPF").repeats) == {
        "repeats": "3",
        "flip_rate": "0.333333",
    }
    assert make_repeat_properties(_result("PE").repeats) == {"repeats": "2", "flip_rate": ""}
    assert make_repeat_properties(None) == {}
