"""What several runs of a case come to, by the numbers of AgentV 2.7.0."""

from collections.abc import Sequence
from typing import Any

import pytest

from agentci.gate.aggregation import (
    T_CRITICAL_VALUES_95,
    aggregate_scores,
    aggregate_trials,
    compute_case_scores,
    mean_lower_bound,
)
from agentci.model.result import CheckResult, TrialRecord, TrialScore, TrialStrategy
from tests.helpers.reports import make_result

SCORES = (0.2, 0.9, 0.4, 0.6)


def _result(score: float | None, **others: Any) -> CheckResult:
    if score is None:
        return make_result("errored", reason="it hung", **others)
    return make_result("passed" if score >= 0.7 else "failed", score, **others)


def _combined(
    scores: Sequence[float | None], strategy: TrialStrategy, best: int = 0
) -> CheckResult:
    runs = [(number, _result(score)) for number, score in enumerate(scores)]
    return aggregate_trials(runs, best, strategy, cost_limited=False)


class TestScores:
    @pytest.mark.parametrize(
        ("strategy", "score"),
        [("pass_at_k", 0.9), ("mean", 0.525), ("confidence_interval", 0.049914861138904254)],
    )
    def test_are_put_together_as_agentv_does(self, strategy: TrialStrategy, score: float) -> None:
        assert aggregate_scores(SCORES, strategy) == score

    def test_of_one_run_are_its_own(self) -> None:
        assert mean_lower_bound([0.3]) == 0.3

    def test_that_are_all_the_same_leave_no_doubt(self) -> None:
        assert mean_lower_bound([0.75] * 3) == 0.75

    def test_that_are_far_apart_end_at_nothing(self) -> None:
        assert mean_lower_bound([0.0, 1.0]) == 0.0

    def test_of_many_runs_go_by_the_normal_distribution(self) -> None:
        scores = [0.5, 0.7] * 15 + [0.6]
        assert len(scores) == len(T_CRITICAL_VALUES_95) + 2
        deviation = (30 * 0.1**2 / 30) ** 0.5
        assert mean_lower_bound(scores) == pytest.approx(0.6 - 1.96 * deviation / 31**0.5)


class TestTheBest:
    def test_is_what_counts(self) -> None:
        result = _combined(SCORES, "pass_at_k", best=1)
        assert (result.status, result.reason) == (
            "passed",
            "best of 4 trials: 0.2, 0.9, 0.4, 0.6",
        )

    def test_keeps_its_own_reason(self) -> None:
        runs = [(0, _result(0.2)), (1, _result(0.6, reason="borderline"))]
        result = aggregate_trials(runs, 1, "pass_at_k", cost_limited=False)
        assert result.reason == "borderline; best of 2 trials: 0.2, 0.6"

    def test_may_be_the_only_one_that_could_be_judged(self) -> None:
        result = _combined([None, 0.9], "pass_at_k", best=1)
        assert result.status == "passed"
        assert result.trials == TrialRecord(
            strategy="pass_at_k",
            trials=(
                TrialScore(attempt=0, score=None, reason="it hung"),
                TrialScore(attempt=1, score=0.9),
            ),
        )

    def test_of_none_that_could_be_judged_is_errored(self) -> None:
        result = _combined([None, None], "pass_at_k")
        assert (result.status, result.reason) == ("errored", "it hung")


class TestTheMean:
    def test_is_held_against_the_bar(self) -> None:
        result = _combined([0.5, 1.0], "mean", best=1)
        assert (result.status, result.judgement and result.judgement.score) == ("passed", 0.75)
        assert result.reason == "mean of 2 trials: 0.5, 1"
        assert _combined([0.5, 0.8], "mean").status == "failed"

    def test_passes_where_there_is_no_bar(self) -> None:
        runs = [(number, _result(0.1, threshold=None)) for number in range(2)]
        assert aggregate_trials(runs, 0, "mean", cost_limited=False).status == "passed"

    def test_is_not_taken_over_what_happened_to_be_judged(self) -> None:
        result = _combined([1.0, None, 1.0], "mean")
        assert (result.status, result.judgement) == ("errored", None)
        assert result.reason == "1 of 3 trials errored; trial 1: it hung"

    def test_of_a_single_run_is_that_run(self) -> None:
        result = _combined([0.5], "mean")
        assert (result.status, result.reason) == ("failed", None)
        assert result.trials is not None

    def test_leaves_out_what_had_nothing_to_judge(self) -> None:
        skipped = make_result("skipped", 0.0, reason="not this time")
        runs = [(0, _result(0.9)), (1, skipped)]
        result = aggregate_trials(runs, 0, "mean", cost_limited=False)
        assert (result.status, result.judgement and result.judgement.score) == ("passed", 0.9)
        runs = [(0, skipped), (1, skipped)]
        assert aggregate_trials(runs, 0, "mean", cost_limited=False).status == "skipped"


class TestTheScoreOfACase:
    def test_is_the_interval_of_its_own_scores(self) -> None:
        first, second = (
            aggregate_trials(
                [(number, _result(score, evaluator=name)) for number, score in enumerate(scores)],
                0,
                "confidence_interval",
                cost_limited=False,
            )
            for name, scores in {"one": (0.2, 0.8), "other": (0.8, 0.2)}.items()
        )
        # Each evaluator by itself says nothing for sure; together they say the same each time.
        assert [each.judgement and each.judgement.score for each in (first, second)] == [0.0, 0.0]
        assert compute_case_scores([first, second]) == {"books_a_flight": 0.5}

    def test_is_the_mean_of_means(self) -> None:
        results = [_combined([0.2, 0.4], "mean"), _result(0.7, evaluator="other")]
        assert compute_case_scores(results) == {"books_a_flight": pytest.approx(0.5)}


@pytest.mark.parametrize("strategy", ["mean", "confidence_interval"])
def test_a_run_that_fails_whatever_its_score_is_not_made_up_for(strategy: TrialStrategy) -> None:
    missed = make_result("failed", 0.9, reason="required criteria not met: [a]")
    runs = [(0, _result(0.9)), (1, missed), (2, _result(0.9))]
    result = aggregate_trials(runs, 0, strategy, cost_limited=False)
    assert (result.status, result.judgement and result.judgement.score) == ("failed", 0.9)
    assert result.reason is not None
    assert result.reason.startswith("trial 1: required criteria not met: [a]; ")
