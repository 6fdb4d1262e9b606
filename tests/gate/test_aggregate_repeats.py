"""Aggregation of the repeats of one check."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.gate.aggregation import aggregate_repeats, compute_flip_rate
from agentci.model.requests import Judgement, Repetition
from agentci.model.result import CheckResult, Status
from agentci.model.values import replace
from tests.helpers.reports import make_result

MEAN = "mean"
STATUSES: list[Status] = ["passed", "failed", "skipped"]


def _result(score: float | str | None) -> CheckResult:
    """A repeat by its score (threshold 0.7); None is skipped, a text is the reason of an error."""
    if isinstance(score, str):
        return make_result("errored", reason=score)
    if score is None:
        skipped = Judgement(score=0.0, passed=None)
        return replace(make_result("skipped", reason="not my language"), judgement=skipped)
    status: Status = "passed" if score >= 0.7 else "failed"
    return make_result(status, score, misses=[f"missed at {score}"])


def _repeated(*scores: float | str | None, by: Any = "majority", times: int = 0) -> CheckResult:
    results = [_result(score) for score in scores]
    return aggregate_repeats(results, Repetition(times=times or len(scores), aggregation=by))


def _summary(result: CheckResult) -> tuple[Status, float | None, str | None]:
    score = None if result.judgement is None else result.judgement.score
    return result.status, score, result.reason


class TestMajority:
    def test_majority_of_repeats_decides_regardless_of_mean(self) -> None:
        result = _repeated(0.7, 0.1, 0.7)
        assert _summary(result) == ("passed", 0.5, "2 of 3 repeats passed: 0.7, 0.1, 0.7")
        assert result.judgement is not None
        assert result.judgement.passed is True

    def test_failing_majority_fails_regardless_of_mean(self) -> None:
        assert _summary(_repeated(1.0, 0.6, 0.65))[0] == "failed"

    @pytest.mark.parametrize("scores", [(0.9, 0.1), (0.1, 0.9), (0.9, 0.9, 0.1, 0.1)])
    def test_tie_does_not_pass(self, scores: Sequence[float]) -> None:
        assert _repeated(*scores).status == "failed"

    def test_misses_come_from_repeat_in_majority(self) -> None:
        judgement = _repeated(0.9, 0.2, 0.4).judgement
        assert judgement is not None
        assert list(judgement.misses) == ["missed at 0.4"]

    def test_unanimous_repeats_add_no_reason(self) -> None:
        assert _summary(_repeated(0.75, 1.0)) == ("passed", 0.875, None)

    def test_unanimous_repeats_keep_their_reason(self) -> None:
        missing = replace(_result(0.9), status="failed", reason="a turn is missing")
        result = aggregate_repeats([missing, missing], Repetition(times=2))
        assert _summary(result) == ("failed", 0.9, "a turn is missing")

    def test_majority_needs_no_scores(self) -> None:
        results = [make_result("passed"), make_result("failed"), make_result("passed")]
        result = aggregate_repeats(results, Repetition(times=3))
        assert _summary(result) == ("passed", None, "2 of 3 repeats passed")


class TestMean:
    def test_mean_above_threshold_passes(self) -> None:
        assert _summary(_repeated(1.0, 0.6, 0.65, by=MEAN)) == (
            *("passed", 0.75),
            "mean of 3 repeats: 1, 0.6, 0.65",
        )

    def test_mean_below_threshold_fails_despite_majority(self) -> None:
        assert _summary(_repeated(0.7, 0.1, 0.7, by=MEAN))[:2] == ("failed", 0.5)

    def test_mean_equal_to_threshold_passes_despite_rounding(self) -> None:
        assert sum([0.7] * 3) / 3 < 0.7
        assert _repeated(0.7, 0.7, 0.7, by=MEAN).status == "passed"

    def test_failed_repeat_with_high_score_fails_mean(self) -> None:
        missing = replace(_result(0.9), status="failed", reason="a turn is missing")
        result = aggregate_repeats([_result(0.8), missing], Repetition(times=2, aggregation="mean"))
        assert result.status == "failed"
        assert result.reason == "repeat 2: a turn is missing; mean of 2 repeats: 0.8, 0.9"

    def test_failed_repeat_without_reason_fails_mean(self) -> None:
        result = aggregate_repeats(
            [replace(_result(0.9), status="failed")], Repetition(aggregation="mean")
        )
        assert str(result.reason).startswith(
            "repeat 1: failed although its score reached the threshold; "
        )

    def test_mean_without_threshold_fails(self) -> None:
        results = [make_result("passed", 0.9, threshold=None)]
        assert (
            aggregate_repeats(results, Repetition(times=1, aggregation="mean")).status == "failed"
        )

    def test_missing_score_makes_mean_errored(self) -> None:
        results = [_result(0.9), make_result("passed")]
        result = aggregate_repeats(results, Repetition(times=2, aggregation="mean"))
        assert _summary(result) == (
            *("errored", None),
            "repeat 2 of 2: no score; the mean of the repeats needs one",
        )


@pytest.mark.parametrize("by", ["majority", "mean"])
class TestErroredRepeat:
    def test_errored_repeat_makes_check_errored(self, by: str) -> None:
        result = _repeated(0.9, "it crashed", by=by, times=5)
        assert _summary(result) == ("errored", None, "repeat 2 of 5: it crashed")

    def test_errored_repeat_keeps_record_of_other_repeats(self, by: str) -> None:
        record = _repeated(0.9, "it crashed", by=by, times=5).repeats
        assert record is not None
        assert [(each.status, each.score, each.reason) for each in record.repeats] == [
            ("passed", 0.9, None),
            ("errored", None, "it crashed"),
        ]
        assert record.flip_rate is None


@pytest.mark.parametrize("by", ["majority", "mean"])
class TestSkippedRepeats:
    def test_majority_of_skipped_repeats_skips_check(self, by: str) -> None:
        result = _repeated(None, 0.9, None, by=by)
        assert result.status == "skipped"
        assert result.reason == "2 of 3 repeats skipped: not my language"

    def test_all_repeats_skipped_keep_their_reason(self, by: str) -> None:
        assert _summary(_repeated(None, None, by=by)) == ("skipped", 0.0, "not my language")

    def test_minority_of_skipped_repeats_is_reported(self, by: str) -> None:
        result = _repeated(None, 0.9, 0.8, by=by)
        assert result.status == "passed"
        assert result.judgement is not None
        assert result.judgement.score == pytest.approx(0.85)
        assert ", 1 skipped: 0.9, 0.8" in str(result.reason)

    def test_half_skipped_and_half_failed_repeats_fail(self, by: str) -> None:
        assert _repeated(None, 0.3, by=by).status == "failed"


def test_skipped_repeat_does_not_count_as_pass() -> None:
    assert _repeated(None, 0.9, 0.3).status == "failed"


class TestRepeatRecord:
    def test_flip_rate_is_share_outside_majority(self) -> None:
        record = _repeated(0.9, 0.1, 0.9, 0.9, 0.2).repeats
        assert record is not None
        assert record.aggregation == "majority"
        assert record.flip_rate == pytest.approx(0.4)

    def test_seconds_are_summed_and_partly_cached_is_uncached(self) -> None:
        results = [replace(_result(0.9), seconds=1.5, cached=cached) for cached in (True, False)]
        result = aggregate_repeats(results, Repetition(times=2))
        assert (result.seconds, result.cached) == (3.0, False)

    def test_all_cached_repeats_make_check_cached(self) -> None:
        assert aggregate_repeats(
            [replace(_result(0.9), cached=True)] * 2, Repetition(times=2)
        ).cached


def test_flip_rate_has_no_rounding_error() -> None:
    assert compute_flip_rate(["passed", "failed", "passed", "passed", "passed"]) == 0.2


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=99))
def test_flip_rate_is_zero_only_if_all_repeats_agree(statuses: list[Status]) -> None:
    rate = compute_flip_rate(statuses)
    assert 0 <= rate < 1
    assert (rate == 0) == (len(set(statuses)) == 1)


@given(st.lists(st.floats(0, 1) | st.none(), min_size=1, max_size=9), st.randoms())
def test_order_of_repeats_does_not_change_status(scores: list[float | None], random: Any) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)
    for by in ("majority", "mean"):
        assert _repeated(*scores, by=by).status == _repeated(*shuffled, by=by).status
