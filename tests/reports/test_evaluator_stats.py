"""What the checks of an evaluator come to, and how much that says of all other cases."""

import pytest

from agentci.model.result import CheckResult, Status
from agentci.model.values import replace
from agentci.reports.evaluator_stats import (
    compute_evaluator_stats,
    format_mean_score,
    format_pass_rate,
)
from tests.helpers.reports import make_result


def _results(*scores: float | None, groups: int = 99) -> list[CheckResult]:
    """A check a score, which passes from 0.7 on; None could not be judged."""
    results = []
    for number, score in enumerate(scores):
        status: Status = "errored" if score is None else "passed" if score >= 0.7 else "failed"
        result = make_result(status, score, case=f"c{number}")
        group = replace(result.case, group=f"g{number % groups}")
        results.append(replace(result, case=group))
    return results


def test_what_was_not_judged_counts_in_nothing() -> None:
    standing = compute_evaluator_stats(_results(1.0, 0.0, None))
    assert (standing.pass_rate, standing.groups) == (0.5, 2)


def test_without_anything_judged_there_is_nothing_to_say() -> None:
    standing = compute_evaluator_stats(_results(None))
    assert (standing.pass_rate, standing.pass_rate_interval) == (None, None)
    assert (format_pass_rate(standing), format_mean_score(None, standing)) == ("", "")


def test_an_interval_is_there_from_two_cases_on() -> None:
    one, two = compute_evaluator_stats(_results(0.9)), compute_evaluator_stats(_results(0.9, 0.8))
    assert (format_pass_rate(one), format_mean_score(0.9, one)) == ("100%", "0.9")
    assert format_pass_rate(two) == "100% (34 to 100%)"
    assert format_mean_score(0.85, two) == "0.85 (0.21 to 1)"


def test_of_scores_that_only_say_whether_it_passed_the_rate_says_all() -> None:
    standing = compute_evaluator_stats(_results(1.0, 1.0, 0.0))
    assert standing.score_interval == standing.pass_rate_interval
    assert format_mean_score(2 / 3, standing) == "0.667"


def test_bounds_are_rounded_outwards_so_that_no_more_is_said_than_is_so() -> None:
    standing = compute_evaluator_stats(_results(*[1.0] * 9, 0.0))
    interval = standing.pass_rate_interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.595850, 0.982124), abs=5e-7)
    assert format_pass_rate(standing) == "90% (59 to 99%)"


def test_a_rate_that_is_not_all_is_not_said_to_be() -> None:
    assert (
        format_pass_rate(compute_evaluator_stats(_results(*[1.0] * 999, 0.0)))
        == "99.9% (99 to 100%)"
    )


def test_recordings_of_one_case_count_for_less_than_as_many_cases() -> None:
    scores = [*[1.0] * 6, *[0.0] * 3, *[1.0] * 6]
    apart = compute_evaluator_stats(_results(*scores)).pass_rate_interval
    together = compute_evaluator_stats(_results(*scores, groups=3)).pass_rate_interval
    in_threes = [
        replace(each, case=replace(each.case, group=str(number // 3)))
        for number, each in enumerate(_results(*scores))
    ]
    clustered = compute_evaluator_stats(in_threes).pass_rate_interval
    assert apart is not None
    assert together is not None
    assert clustered is not None
    assert [each.method for each in (apart, together, clustered)] == [
        *("wilson", "wilson", "clustered-t")
    ]
    assert clustered.high - clustered.low > apart.high - apart.low


def test_a_score_that_is_no_number_is_none() -> None:
    assert compute_evaluator_stats(_results(float("inf"), 0.5, 0.6)).score_interval is not None
    assert compute_evaluator_stats([make_result("passed")]).score_interval is None
