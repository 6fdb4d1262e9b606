"""What several answers of one evaluator about one case come to."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.aggregation import aggregate_repeats, compute_flip_rate
from agentci.model.judgement import Judgement, Repetition
from agentci.model.result import CheckResult, Status
from agentci.model.values import replace
from tests.helpers.reports import make_result

MEAN = "mean"
STATUSES: list[Status] = ["passed", "failed", "skipped"]


def _result(score: float | str | None) -> CheckResult:
    """By its score against 0.7; None declines to judge, and a text says why there is no answer."""
    if isinstance(score, str):
        return make_result("errored", reason=score)
    if score is None:
        declined = Judgement(score=0.0, passed=None)
        return replace(make_result("skipped", reason="not my language"), judgement=declined)
    status: Status = "passed" if score >= 0.7 else "failed"
    return make_result(status, score, misses=[f"missed at {score}"])


def _repeated(*scores: float | str | None, by: Any = "majority", times: int = 0) -> CheckResult:
    results = [_result(score) for score in scores]
    return aggregate_repeats(results, Repetition(times=times or len(scores), aggregation=by))


def _told(result: CheckResult) -> tuple[Status, float | None, str | None]:
    score = None if result.judgement is None else result.judgement.score
    return result.status, score, result.reason


class TestTheMajority:
    def test_decides_whatever_the_mean_is(self) -> None:
        result = _repeated(0.7, 0.1, 0.7)
        assert _told(result) == ("passed", 0.5, "2 of 3 repeats passed: 0.7, 0.1, 0.7")
        assert result.judgement is not None
        assert result.judgement.passed is True

    def test_that_fails_fails_whatever_the_mean_is(self) -> None:
        assert _told(_repeated(1.0, 0.6, 0.65))[0] == "failed"

    @pytest.mark.parametrize("scores", [(0.9, 0.1), (0.1, 0.9), (0.9, 0.9, 0.1, 0.1)])
    def test_is_more_than_half_so_that_a_tie_does_not_pass(self, scores: Sequence[float]) -> None:
        assert _repeated(*scores).status == "failed"

    def test_is_shown_with_the_reasons_of_an_answer_that_is_of_it(self) -> None:
        judgement = _repeated(0.9, 0.2, 0.4).judgement
        assert judgement is not None
        assert list(judgement.misses) == ["missed at 0.4"]

    def test_needs_no_reason_where_all_say_the_same(self) -> None:
        assert _told(_repeated(0.75, 1.0)) == ("passed", 0.875, None)

    def test_keeps_the_reason_of_an_answer_where_all_say_the_same(self) -> None:
        missing = replace(_result(0.9), status="failed", reason="a turn is missing")
        result = aggregate_repeats([missing, missing], Repetition(times=2))
        assert _told(result) == ("failed", 0.9, "a turn is missing")

    def test_does_without_scores(self) -> None:
        results = [make_result("passed"), make_result("failed"), make_result("passed")]
        result = aggregate_repeats(results, Repetition(times=3))
        assert _told(result) == ("passed", None, "2 of 3 repeats passed")


class TestTheMean:
    def test_is_what_has_to_reach_the_bar(self) -> None:
        assert _told(_repeated(1.0, 0.6, 0.65, by=MEAN)) == (
            *("passed", 0.75),
            "mean of 3 repeats: 1, 0.6, 0.65",
        )

    def test_fails_below_it_whatever_most_say(self) -> None:
        assert _told(_repeated(0.7, 0.1, 0.7, by=MEAN))[:2] == ("failed", 0.5)

    def test_that_is_the_bar_passes_whatever_is_lost_in_sums(self) -> None:
        assert sum([0.7] * 3) / 3 < 0.7
        assert _repeated(0.7, 0.7, 0.7, by=MEAN).status == "passed"

    def test_does_not_outvote_an_answer_that_fails_whatever_its_score(self) -> None:
        missing = replace(_result(0.9), status="failed", reason="a turn is missing")
        result = aggregate_repeats([_result(0.8), missing], Repetition(times=2, aggregation="mean"))
        assert result.status == "failed"
        assert result.reason == "repeat 2: a turn is missing; mean of 2 repeats: 0.8, 0.9"

    def test_does_not_outvote_one_that_does_not_say_why_either(self) -> None:
        result = aggregate_repeats(
            [replace(_result(0.9), status="failed")], Repetition(aggregation="mean")
        )
        assert str(result.reason).startswith(
            "repeat 1: failed although its score reached the threshold; "
        )

    def test_without_a_bar_passes_nothing(self) -> None:
        results = [make_result("passed", 0.9, threshold=None)]
        assert (
            aggregate_repeats(results, Repetition(times=1, aggregation="mean")).status == "failed"
        )

    def test_cannot_be_taken_where_a_score_is_lacking(self) -> None:
        results = [_result(0.9), make_result("passed")]
        result = aggregate_repeats(results, Repetition(times=2, aggregation="mean"))
        assert _told(result) == (
            *("errored", None),
            "repeat 2 of 2: no score; the mean of the repeats needs one",
        )


@pytest.mark.parametrize("by", ["majority", "mean"])
class TestAnAnswerThatIsNone:
    def test_leaves_the_check_without_a_judgement(self, by: str) -> None:
        result = _repeated(0.9, "it crashed", by=by, times=5)
        assert _told(result) == ("errored", None, "repeat 2 of 5: it crashed")

    def test_hides_nothing_of_the_others(self, by: str) -> None:
        record = _repeated(0.9, "it crashed", by=by, times=5).repeats
        assert record is not None
        assert [(each.status, each.score, each.reason) for each in record.repeats] == [
            ("passed", 0.9, None),
            ("errored", None, "it crashed"),
        ]
        assert record.flip_rate is None


@pytest.mark.parametrize("by", ["majority", "mean"])
class TestAnswersThatDecline:
    def test_skip_the_check_where_they_are_most(self, by: str) -> None:
        result = _repeated(None, 0.9, None, by=by)
        assert result.status == "skipped"
        assert result.reason == "2 of 3 repeats skipped: not my language"

    def test_skip_it_with_their_reason_where_they_are_all(self, by: str) -> None:
        assert _told(_repeated(None, None, by=by)) == ("skipped", 0.0, "not my language")

    def test_are_told_where_they_are_few(self, by: str) -> None:
        result = _repeated(None, 0.9, 0.8, by=by)
        assert result.status == "passed"
        assert result.judgement is not None
        assert result.judgement.score == pytest.approx(0.85)
        assert ", 1 skipped: 0.9, 0.8" in str(result.reason)

    def test_pass_nothing_where_they_are_half(self, by: str) -> None:
        assert _repeated(None, 0.3, by=by).status == "failed"


def test_declining_is_no_vote_to_pass() -> None:
    assert _repeated(None, 0.9, 0.3).status == "failed"


class TestTheRecord:
    def test_says_how_often_an_answer_was_another_than_most(self) -> None:
        record = _repeated(0.9, 0.1, 0.9, 0.9, 0.2).repeats
        assert record is not None
        assert record.aggregation == "majority"
        assert record.flip_rate == pytest.approx(0.4)

    def test_adds_up_what_all_took(self) -> None:
        results = [replace(_result(0.9), seconds=1.5, cached=cached) for cached in (True, False)]
        result = aggregate_repeats(results, Repetition(times=2))
        assert (result.seconds, result.cached) == (3.0, False)

    def test_is_of_an_earlier_run_where_all_answers_are(self) -> None:
        assert aggregate_repeats(
            [replace(_result(0.9), cached=True)] * 2, Repetition(times=2)
        ).cached


def test_the_flip_rate_is_a_share_to_the_last_digit() -> None:
    assert compute_flip_rate(["passed", "failed", "passed", "passed", "passed"]) == 0.2


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=99))
def test_fewer_than_all_flip_and_none_do_where_all_are_the_same(statuses: list[Status]) -> None:
    rate = compute_flip_rate(statuses)
    assert 0 <= rate < 1
    assert (rate == 0) == (len(set(statuses)) == 1)


@given(st.lists(st.floats(0, 1) | st.none(), min_size=1, max_size=9), st.randoms())
def test_the_order_of_the_answers_decides_nothing(scores: list[float | None], random: Any) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)
    for by in ("majority", "mean"):
        assert _repeated(*scores, by=by).status == _repeated(*shuffled, by=by).status
