"""What became of each evaluator's checks, and whether that can be chance."""

import pytest

from agentci.gate.comparison import compare_runs, describe_outcome, estimate_cases_needed
from agentci.gate.regression import NO_BASELINE, find_regression_reasons
from agentci.gate.rules import GateReason
from agentci.model.case import CaseSummary
from agentci.model.gate import (
    ChangedCheck,
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    Gate,
    GatePolicy,
    RegressionThresholds,
)
from agentci.model.judgement import EvaluatorIdentity, Judgement
from agentci.model.problem import Place
from agentci.model.result import CheckResult, Status
from agentci.model.values import replace

PLACE = Place(file="e.yaml", line=1)
CONFIG = "e.yaml"


def result(
    number: int,
    score: float | None = 1.0,
    *,
    evaluator: str = "tone",
    status: Status | None = None,
    required: bool = True,
    fingerprint: str = "f",
) -> CheckResult:
    passed = score is not None and score >= 0.5
    return CheckResult(
        id=f"{evaluator} {number}",
        config=CONFIG,
        case=CaseSummary(id=f"c{number}", group=f"c{number}", trace_id="t", recording=PLACE),
        evaluator=EvaluatorIdentity(
            name=evaluator,
            type="code",
            criterion="",
            threshold=0.5,
            required=required,
            place=PLACE,
        ),
        status=status or ("passed" if passed else "failed"),
        judgement=Judgement(score=score, passed=passed),
        fingerprint=fingerprint,
    )


def results(*scores: float, evaluator: str = "tone") -> list[CheckResult]:
    return [result(index, score, evaluator=evaluator) for index, score in enumerate(scores)]


def trend(
    before: list[CheckResult], after: list[CheckResult], bar: RegressionThresholds | None = None
) -> EvaluatorComparison:
    bars = {} if bar is None else {CONFIG: bar}
    [found] = compare_runs(before, after, bars, baseline="base").evaluators
    return found


def test_checks_that_passed_and_fail_are_regressions_and_the_other_way_round() -> None:
    found = trend(results(1, 0.2, 1, 1, 1), results(0.25, 0.75, 1, 1, 1))
    assert found.regressions == (ChangedCheck(case="c0", before=1, after=0.25),)
    assert found.improvements == (ChangedCheck(case="c1", before=0.2, after=0.75),)
    assert [found.before, found.after] == pytest.approx([0.84, 0.8])


@pytest.mark.parametrize(
    ("before", "after", "bar", "outcome"),
    [
        ([1] * 5, [0] * 5, RegressionThresholds(), "fail"),
        ([1] * 5, [0] * 4 + [1], RegressionThresholds(), "inconclusive"),
        ([1] * 5, [1] * 5, RegressionThresholds(), "pass"),
        ([0] * 5, [1] * 5, RegressionThresholds(), "pass"),
        ([1] * 8, [0.9] * 8, RegressionThresholds(max_drop=0.1), "pass"),
        ([1] * 8, [0.9] * 8, RegressionThresholds(max_drop=0.05), "fail"),
        ([1] * 8, [0.9] * 8, RegressionThresholds(confidence=0.999), "insufficient-data"),
        ([1] * 4, [0] * 4, RegressionThresholds(), "insufficient-data"),
        ([1] * 4, [0] * 4, RegressionThresholds(confidence=0.9), "fail"),
    ],
)
def test_a_drop_counts_that_is_large_and_sure(
    before: list[float], after: list[float], bar: RegressionThresholds, outcome: ComparisonOutcome
) -> None:
    assert trend(results(*before), results(*after), bar).outcome == outcome


def test_too_few_cases_are_told_with_how_many_more_are_needed() -> None:
    why = "3 cases in both runs; at least 5 are needed"
    assert trend(results(1, 1, 1), results(1, 1, 1)).reason == why


def test_inconclusive_drop_names_p_value_and_cases_needed() -> None:
    found = trend(results(*[1] * 10), results(*[1] * 8, 0, 0))
    assert (found.outcome, found.reason) == (
        "inconclusive",
        "mean score 1 -> 0.8 (10 cases), not significant (p = 0.25); needs about 30 cases",
    )
    assert estimate_cases_needed((0.0,) * 99 + (-1.0, 1.0, -0.001), 0.05) is None


@pytest.mark.parametrize(
    ("before", "after", "label"),
    [
        ([1] * 5, [1] * 5, "unchanged: mean score 1 -> 1 (5 cases)"),
        ([0] * 5, [1] * 5, "improved: mean score 0 -> 1 (5 cases)"),
        ([1] * 5, [0.95] * 5, "allowed drop: mean score 1 -> 0.95 (5 cases)"),
        ([1] * 20, [0] * 20, "regressed: mean score 1 -> 0 (20 cases, p < 0.001)"),
        ([1] * 3, [1] * 3, "has too few cases: 3 cases in both runs; at least 5 are needed"),
    ],
)
def test_outcome_is_described_with_its_scores(
    before: list[float], after: list[float], label: str
) -> None:
    thresholds = RegressionThresholds(max_drop=0.1)
    assert describe_outcome(trend(results(*before), results(*after), thresholds)) == label


def test_of_many_evaluators_one_that_is_unlucky_is_no_wonder() -> None:
    names = [f"e{number}" for number in range(10)]
    before = [each for name in names for each in results(*[1] * 6, evaluator=name)]
    after = [
        each for name in names for each in results(*[0 if name == "e3" else 1] * 6, evaluator=name)
    ]
    alone = trend(results(*[1] * 6), results(*[0] * 6))
    assert (alone.outcome, alone.p_value) == ("fail", 1 / 64)
    fourth = compare_runs(before, after, {}, baseline="base").evaluators[3]
    assert (fourth.outcome, fourth.p_value) == ("inconclusive", 10 / 64)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ([], results(1), "the baseline has none of its checks"),
        (
            [result(0, fingerprint="old")],
            results(1),
            "the evaluator or its eval cases changed",
        ),
        ([result(0, None, status="errored")], results(1), "no check passed or failed in both runs"),
        (results(1), [result(0, None, status="skipped")], "no check passed or failed in both runs"),
    ],
)
def test_what_cannot_be_compared_is_not(
    before: list[CheckResult], after: list[CheckResult], why: str
) -> None:
    found = trend(before, after)
    assert (found.outcome, found.reason, found.before) == ("non-comparable", why, None)


def test_a_check_that_changed_leaves_the_others_comparable() -> None:
    before = [result(index, fingerprint="old" if index == 0 else "f") for index in range(6)]
    assert trend(before, results(*[1] * 6)).pairs == 5


def test_without_a_score_it_counts_whether_a_check_passed() -> None:
    before = [result(index, None, status="passed") for index in range(5)]
    after = [result(index, None, status="failed") for index in range(5)]
    found = trend(before, after)
    assert (found.before, found.after, found.outcome) == (1.0, 0.0, "fail")


def test_checks_of_one_run_alone_are_counted() -> None:
    found = compare_runs(results(1, 1, 1), results(1, evaluator="other"), {}, baseline="base")
    assert (found.added, found.removed) == (1, 3)


class TestTheGate:
    GATE = Gate(
        config=CONFIG, policy=GatePolicy(regression=RegressionThresholds()), evaluators=("tone",)
    )
    WORSE = compare_runs(results(*[1] * 5), results(*[0] * 5), {}, baseline="base")
    UNSURE = compare_runs(results(1), results(0), {}, baseline="base")

    def reasons(self, comparison: Comparison | None, **policy: object) -> list[GateReason]:
        bar = RegressionThresholds(**policy)  # type: ignore[arg-type]  # of a bar
        gate = replace(self.GATE, policy=GatePolicy(regression=bar))
        return list(find_regression_reasons(comparison, [gate]))

    def test_is_shut_by_what_got_worse(self) -> None:
        [reason] = self.reasons(self.WORSE)
        assert reason == GateReason(
            "failed",
            "tone regressed: mean score 1 -> 0 (5 cases, p = 0.031)",
        )

    def test_hears_what_it_does_not_mind(self) -> None:
        [reason] = self.reasons(self.UNSURE)
        assert reason.kind == "remark"
        [reason] = self.reasons(self.UNSURE, fail_on=("insufficient-data",))
        assert reason.kind == "failed"

    def test_is_not_shut_by_an_advisory_evaluator(self) -> None:
        after = [result(index, 0, required=False) for index in range(5)]
        [reason] = self.reasons(compare_runs(results(*[1] * 5), after, {}, baseline="base"))
        assert reason.kind == "remark"

    @pytest.mark.parametrize(
        ("comparison", "why"),
        [(None, NO_BASELINE), (Comparison(baseline="b", not_comparable="it is old"), "it is old")],
    )
    def test_hears_that_there_is_nothing_to_compare_with(
        self, comparison: Comparison | None, why: str
    ) -> None:
        assert self.reasons(comparison) == [GateReason("remark", why)]
        assert self.reasons(comparison, fail_on=("non-comparable",)) == [GateReason("failed", why)]

    def test_hears_nothing_where_no_regression_is_minded(self) -> None:
        gate = replace(self.GATE, policy=GatePolicy())
        assert (
            list(find_regression_reasons(self.WORSE, [gate]))
            == list(find_regression_reasons(None, [gate]))
            == []
        )

    def test_hears_nothing_of_what_did_not_get_worse(self) -> None:
        same = compare_runs(results(*[1] * 5), results(*[1] * 5), {}, baseline="base")
        assert self.reasons(same) == []
