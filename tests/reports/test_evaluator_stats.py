"""Pass rate and mean score of an evaluator, with confidence intervals."""

import pytest

from agentci.model.result import CheckResult, Status
from agentci.model.values import replace
from agentci.reports.groups_and_totals import (
    compute_evaluator_stats,
    format_mean_score,
    format_pass_rate,
)
from tests.helpers.reports import make_result


def _results(*scores: float | None, groups: int = 99) -> list[CheckResult]:
    """One check per score, which passes from 0.7; None is an error."""
    results = []
    for number, score in enumerate(scores):
        status: Status = "errored" if score is None else "passed" if score >= 0.7 else "failed"
        result = make_result(status, score, case=f"c{number}")
        group = replace(result.case, group=f"g{number % groups}")
        results.append(replace(result, case=group))
    return results


def test_errored_checks_do_not_count_in_pass_rate() -> None:
    stats = compute_evaluator_stats(_results(1.0, 0.0, None))
    assert (stats.pass_rate, stats.groups) == (0.5, 2)


def test_statistics_are_empty_without_evaluated_checks() -> None:
    stats = compute_evaluator_stats(_results(None))
    assert (stats.pass_rate, stats.pass_rate_interval) == (None, None)
    assert (format_pass_rate(stats), format_mean_score(None, stats)) == ("", "")


def test_interval_needs_ten_cases() -> None:
    few, enough = (compute_evaluator_stats(_results(*[0.9] * count)) for count in (9, 10))
    assert (format_pass_rate(few), format_mean_score(0.9, few)) == ("100%", "0.9")
    assert format_pass_rate(enough) == "100% (72 to 100%)"
    assert format_mean_score(0.9, enough) == "0.9 (0.66 to 1)"


def test_mean_of_binary_scores_shows_no_interval() -> None:
    stats = compute_evaluator_stats(_results(*[1.0] * 8, *[0.0] * 4))
    assert stats.score_interval == stats.pass_rate_interval
    assert format_mean_score(2 / 3, stats) == "0.67"


def test_interval_bounds_are_rounded_outwards() -> None:
    stats = compute_evaluator_stats(_results(*[1.0] * 9, 0.0))
    interval = stats.pass_rate_interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.579142, 1.0), abs=5e-7)
    assert format_pass_rate(stats) == "90% (57 to 100%)"


def test_pass_rate_below_100_is_not_rounded_to_100() -> None:
    assert (
        format_pass_rate(compute_evaluator_stats(_results(*[1.0] * 999, 0.0)))
        == "99.9% (96 to 100%)"
    )


def test_cases_of_one_group_widen_interval() -> None:
    scores = [*[1.0] * 18, *[0.0] * 9, *[1.0] * 18]
    apart = compute_evaluator_stats(_results(*scores)).pass_rate_interval
    together = compute_evaluator_stats(_results(*scores, groups=15)).pass_rate_interval
    in_threes = [
        replace(each, case=replace(each.case, group=str(number // 3)))
        for number, each in enumerate(_results(*scores))
    ]
    clustered = compute_evaluator_stats(in_threes).pass_rate_interval
    assert apart is not None
    assert together is not None
    assert clustered is not None
    assert [each.method for each in (apart, together, clustered)] == [
        *("t", "clustered-t", "clustered-t")
    ]
    assert clustered.high - clustered.low > apart.high - apart.low


def test_non_finite_score_is_ignored() -> None:
    scores = [float("inf"), *[0.5] * 10]
    assert compute_evaluator_stats(_results(*scores)).score_interval is not None
    assert compute_evaluator_stats([make_result("passed")]).score_interval is None
