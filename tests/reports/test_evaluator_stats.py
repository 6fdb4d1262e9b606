"""What the checks of an evaluator come to, and how much that says of all other cases."""

import pytest

from agentci.model.result import Result, Status
from agentci.model.values import replace
from agentci.reports.evaluator_stats import rate_in_words, score_in_words, standing_of
from tests.helpers.reports import make_result


def _results(*scores: float | None, groups: int = 99) -> list[Result]:
    """A check a score, which passes from 0.7 on; None could not be judged."""
    results = []
    for number, score in enumerate(scores):
        status: Status = "errored" if score is None else "passed" if score >= 0.7 else "failed"
        result = make_result(status, score, case=f"c{number}")
        group = replace(result.case, group=f"g{number % groups}")
        results.append(replace(result, case=group))
    return results


def test_what_was_not_judged_counts_in_nothing() -> None:
    standing = standing_of(_results(1.0, 0.0, None))
    assert (standing.pass_rate, standing.groups) == (0.5, 2)


def test_without_anything_judged_there_is_nothing_to_say() -> None:
    standing = standing_of(_results(None))
    assert (standing.pass_rate, standing.pass_rate_interval) == (None, None)
    assert (rate_in_words(standing), score_in_words(None, standing)) == ("", "")


def test_an_interval_is_there_from_two_cases_on() -> None:
    one, two = standing_of(_results(0.9)), standing_of(_results(0.9, 0.8))
    assert (rate_in_words(one), score_in_words(0.9, one)) == ("100%", "0.9")
    assert rate_in_words(two) == "100% (34 to 100%)"
    assert score_in_words(0.85, two) == "0.85 (0.21 to 1)"


def test_of_scores_that_only_say_whether_it_passed_the_rate_says_all() -> None:
    standing = standing_of(_results(1.0, 1.0, 0.0))
    assert standing.score_interval == standing.pass_rate_interval
    assert score_in_words(2 / 3, standing) == "0.667"


def test_bounds_are_rounded_outwards_so_that_no_more_is_said_than_is_so() -> None:
    standing = standing_of(_results(*[1.0] * 9, 0.0))
    interval = standing.pass_rate_interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.595850, 0.982124), abs=5e-7)
    assert rate_in_words(standing) == "90% (59 to 99%)"


def test_a_rate_that_is_not_all_is_not_said_to_be() -> None:
    assert rate_in_words(standing_of(_results(*[1.0] * 999, 0.0))) == "99.9% (99 to 100%)"


def test_recordings_of_one_case_count_for_less_than_as_many_cases() -> None:
    scores = [*[1.0] * 6, *[0.0] * 3, *[1.0] * 6]
    apart = standing_of(_results(*scores)).pass_rate_interval
    together = standing_of(_results(*scores, groups=3)).pass_rate_interval
    in_threes = [
        replace(each, case=replace(each.case, group=str(number // 3)))
        for number, each in enumerate(_results(*scores))
    ]
    clustered = standing_of(in_threes).pass_rate_interval
    assert apart is not None
    assert together is not None
    assert clustered is not None
    assert [each.method for each in (apart, together, clustered)] == [
        *("wilson", "wilson", "clustered-t")
    ]
    assert clustered.high - clustered.low > apart.high - apart.low


def test_a_score_that_is_no_number_is_none() -> None:
    assert standing_of(_results(float("inf"), 0.5, 0.6)).score_interval is not None
    assert standing_of([make_result("passed")]).score_interval is None
