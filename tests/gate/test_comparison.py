"""Comparison of two runs per evaluator: outcome, p-value and reason."""

from collections.abc import Sequence

import pytest

from agentci.gate.check_classes import find_renamed_configs, rename_configs
from agentci.gate.comparison import (
    NO_BASELINE,
    compare_runs,
    describe_outcome,
    describe_worse,
    find_lost_status,
    find_regression_reasons,
    label_outcome,
    list_worse,
)
from agentci.gate.rules import GateReason
from agentci.model.case import CaseSummary
from agentci.model.gate import (
    ChangedStatus,
    CheckChange,
    CheckClasses,
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    Gate,
    GatePolicy,
    RegressionThresholds,
)
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.result import CheckResult, Status
from agentci.model.values import OnRemoved, Place, replace

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
    group: str = "",
) -> CheckResult:
    passed = score is not None and score >= 0.5
    return CheckResult(
        id=f"{evaluator} {number}",
        config=CONFIG,
        case=CaseSummary(
            id=f"c{number}", group=group or f"c{number}", trace_id="t", recording=PLACE
        ),
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


def gates(
    regression: RegressionThresholds | None = None,
    *,
    on_removed: OnRemoved = "warn",
    uncovered: tuple[str, ...] = (),
) -> list[Gate]:
    policy = GatePolicy(regression=regression, on_removed=on_removed)
    return [Gate(config=CONFIG, policy=policy, evaluators=("tone",), uncovered=uncovered)]


def trend(
    before: list[CheckResult],
    after: list[CheckResult],
    thresholds: RegressionThresholds | None = None,
) -> EvaluatorComparison:
    [found] = compare_runs(before, after, gates(thresholds), baseline="base").evaluators
    return found


def make_change(
    case: str,
    before: float | None,
    after: float | None,
    *,
    was: Status | None,
    status: ChangedStatus,
) -> CheckChange:
    return CheckChange(case=case, before=before, after=after, status_before=was, status=status)


def test_changed_checks_are_listed_by_group() -> None:
    found = trend(results(1, 0.2, 1, 0.8, 0.8), results(0.25, 0.75, 1, 0.75, 0.76))
    assert found.newly_failing == (make_change("c0", 1, 0.25, was="passed", status="failed"),)
    assert found.fixed == (make_change("c1", 0.2, 0.75, was="failed", status="passed"),)
    assert found.lower_score == (make_change("c3", 0.8, 0.75, was="passed", status="passed"),)
    assert found.no_longer_evaluated == ()


@pytest.mark.parametrize(("before", "after"), [(0.9, 0.3), (0.8, 0.9), (0.9, 0.86), (0.3, 0.2)])
def test_other_changes_are_no_lower_scores(before: float, after: float) -> None:
    assert trend(results(before), results(after)).lower_score == ()


def test_check_that_only_this_run_has_and_fails_is_newly_failing_but_not_worse() -> None:
    found = trend(results(1), results(1, 0.2))
    change = make_change("c1", None, 0.2, was=None, status="failed")
    assert found.newly_failing == (replace(change, check_class="added"),)
    assert found.worse == ()


@pytest.mark.parametrize(
    ("statuses", "lost"),
    [
        (("skipped", "skipped"), "skipped"),
        (("errored", "errored"), "errored"),
        (("skipped", "errored"), "not evaluated"),
        (("skipped", "passed"), ""),
    ],
)
def test_evaluator_that_evaluates_nothing_any_more_has_no_score(
    statuses: tuple[Status, Status], lost: str
) -> None:
    after = [
        each
        if status == "passed"
        else replace(each, status=status, judgement=None, reason="no verdict")
        for each, status in zip(results(1, 1), statuses, strict=True)
    ]
    thresholds = RegressionThresholds(confidence=0)
    found = trend(results(1, 1), after, thresholds)
    assert find_lost_status(found) == lost
    assert (found.after is None) == bool(lost)
    assert found.outcome == "fail"
    assert f"mean score 1 \N{RIGHTWARDS ARROW} {lost or '0.5'} (2 cases, " in found.reason
    assert len(found.no_longer_evaluated) == 2 - statuses.count("passed")


def test_required_checks_that_got_worse_are_part_of_the_summary_of_a_passed_gate() -> None:
    before, after = results(1, 1, 1), results(1, 0)
    comparison = compare_runs(before, after, gates(), baseline="base")
    found = [*find_regression_reasons(comparison, gates())]
    assert [each.text for each in found if each.kind == "worse"] == [
        "1 newly failing",
        "1 no longer evaluated (removed)",
    ]
    advisory = [replace(each, evaluator=replace(each.evaluator, required=False)) for each in before]
    comparison = compare_runs(advisory, advisory[:1], gates(), baseline="base")
    kinds = [each.kind for each in find_regression_reasons(comparison, gates())]
    assert kinds == ["remark"]


def test_means_are_those_of_both_runs() -> None:
    found = trend(results(1, 0.2, 1, 1, 1), results(0.25, 0.75, 1, 1, 1))
    assert [found.before, found.after] == pytest.approx([0.84, 0.8])


@pytest.mark.parametrize(
    ("before", "after", "thresholds", "outcome"),
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
        ([1], [0], RegressionThresholds(confidence=0), "fail"),
        ([1] * 2, [0, 1], RegressionThresholds(confidence=0), "fail"),
        ([1] * 2, [1] * 2, RegressionThresholds(confidence=0, mode="prove"), "pass"),
    ],
)
def test_significant_drop_above_max_drop_fails(
    before: list[float],
    after: list[float],
    thresholds: RegressionThresholds,
    outcome: ComparisonOutcome,
) -> None:
    assert trend(results(*before), results(*after), thresholds).outcome == outcome


def test_too_few_cases_states_required_number() -> None:
    why = "3 cases in both runs; at least 5 are needed"
    assert trend(results(1, 1, 1), results(1, 1, 1)).reason == why


def test_inconclusive_drop_names_p_value_and_cases_needed() -> None:
    found = trend(results(*[1] * 10), results(*[1] * 8, 0, 0))
    assert (found.outcome, found.reason) == (
        "inconclusive",
        "mean score 1 → 0.8 (10 cases), not significant (p = 0.25); needs about 30 cases",
    )


def test_drop_by_lost_checks_only_names_no_cases_needed() -> None:
    """More cases would not tell more, as nothing failed."""
    errored = result(9, None, status="errored")
    found = trend(results(*[1] * 10), [*results(*[1] * 9), errored])
    assert (found.outcome, found.reason) == (
        "inconclusive",
        "mean score 1 → 0.9 (10 cases, 1 newly errored), not significant (p = 1)",
    )


def test_reason_has_the_means_of_tables_and_of_what_is_tested() -> None:
    errored = result(19, None, status="errored")
    found = trend(results(*[1] * 20), [*results(*[0.9] * 19), errored])
    assert found.reason.startswith(
        "mean score 1 → 0.9 in both runs, tested 1 → 0.86 (20 cases, 1 newly errored, "
    )


@pytest.mark.parametrize(
    ("before", "after", "label"),
    [
        ([1] * 5, [1] * 5, "unchanged"),
        ([0] * 5, [1] * 5, "improved"),
        ([1] * 5, [0.95] * 5, "dropped within max_regression 0.1"),
        ([1] * 19 + [0], [1] * 18 + [0, 1], "the same mean score"),
        ([1] * 18 + [0, 0], [1] * 17 + [0, 1, 1], "a higher mean score"),
    ],
)
def test_label_names_a_drop_and_new_failures(
    before: list[float], after: list[float], label: str
) -> None:
    thresholds = RegressionThresholds(max_drop=0.1)
    assert label_outcome(trend(results(*before), results(*after), thresholds)) == label


def test_label_of_a_drop_to_no_evaluated_check_is_not_that_of_a_mean_score() -> None:
    found = trend(results(*[1] * 6), not_evaluated("skipped", 6), RegressionThresholds(max_drop=1))
    assert (found.outcome, found.after, label_outcome(found)) == ("pass", None, "not evaluated")


@pytest.mark.parametrize(
    ("before", "after", "label"),
    [
        (
            [1] * 20,
            [0] * 20,
            "regressed: mean score 1 → 0 (20 cases, max_regression 0.1, p < 0.001)",
        ),
        ([1] * 3, [1] * 3, "has too few cases: 3 cases in both runs; at least 5 are needed"),
        (
            [1] * 21,
            [1] * 20,
            (
                "has no drop in common cases: mean score 1 → 1 (20 cases, max_regression 0.1), "
                "but 1 check that passed was removed"
            ),
        ),
        (
            [0.5] * 21,
            [0.6] * 20,
            (
                "has no drop in common cases: mean score 0.5 → 0.6 (20 cases, max_regression 0.1), "
                "but 1 check that passed was removed"
            ),
        ),
        (
            [1] * 21,
            [1] * 19 + [0],
            (
                "has 1 newly failing check and dropped within max_regression 0.1: mean score "
                "1 → 0.95 (20 cases, max_regression 0.1), but 1 check that passed was removed"
            ),
        ),
    ],
)
def test_outcome_is_described_with_its_scores(
    before: list[float], after: list[float], label: str
) -> None:
    thresholds = RegressionThresholds(max_drop=0.1)
    assert describe_outcome(trend(results(*before), results(*after), thresholds)) == label


def test_p_value_is_corrected_for_many_evaluators() -> None:
    names = [f"e{number}" for number in range(10)]
    before = [each for name in names for each in results(*[1] * 8, evaluator=name)]
    after = [
        each
        for name in names
        for each in results(*[0 if name == "e3" else 1] * 7, 1, evaluator=name)
    ]
    single = trend(results(*[1] * 8), results(*[0] * 7, 1))
    assert (single.outcome, single.p_value) == ("fail", 1 / 128)
    fourth = compare_runs(before, after, (), baseline="base").evaluators[3]
    assert (fourth.outcome, fourth.p_value) == ("inconclusive", 10 / 128)


def _compare_evaluators(
    required: int, advisory: int, *, config: str = CONFIG
) -> tuple[EvaluatorComparison, ...]:
    """Compare evaluators with six cases each, all of which break for the first evaluator."""
    before, after = [], []
    for number in range(required + advisory):
        for index in range(6):
            same = result(index, evaluator=f"e{number}", required=number < required)
            same = replace(same, config=config if number else CONFIG)
            before.append(same)
            broken = replace(same, status="failed", judgement=Judgement(score=0.0, passed=False))
            after.append(same if number else broken)
    return compare_runs(before, after, (), baseline="base").evaluators


@pytest.mark.parametrize(
    ("required", "advisory", "config"), [(1, 6, CONFIG), (7, 0, "other.yaml"), (1, 0, CONFIG)]
)
def test_evaluators_of_no_common_gate_do_not_change_the_p_value(
    required: int, advisory: int, config: str
) -> None:
    first = _compare_evaluators(required, advisory, config=config)[0]
    assert (first.outcome, first.p_value) == ("fail", 1 / 64)


def test_minimum_number_of_cases_includes_the_correction() -> None:
    assert _compare_evaluators(2, 0)[0].outcome == "fail"
    found = _compare_evaluators(5, 0)[0]
    why = "6 cases in both runs; at least 7 are needed"
    assert (found.outcome, found.reason) == ("insufficient-data", why)


def test_drop_must_be_significantly_larger_than_the_allowed_one() -> None:
    """The drop of 0.06 is significantly above 0, but not above 0.05."""
    before, after = results(*[1] * 100), results(*[0] * 6, *[1] * 94)
    assert trend(before, after).outcome == "fail"
    found = trend(before, after, RegressionThresholds(max_drop=0.05))
    assert found.outcome == "inconclusive"
    assert found.p_value == pytest.approx(0.3457, abs=5e-4)


def test_large_drop_above_the_allowed_one_fails() -> None:
    before, after = results(*[1] * 100), results(*[0] * 15, *[1] * 85)
    assert trend(before, after, RegressionThresholds(max_drop=0.05)).outcome == "fail"


@pytest.mark.parametrize(
    ("cases", "broken", "outcome", "reason"),
    [
        (200, 0, "pass", "mean score 1 → 1 (200 cases, max_regression 0.05)"),
        (
            20,
            0,
            "inconclusive",
            (
                "mean score 1 → 1 (20 cases, max_regression 0.05), "
                "a drop of up to 0.114 is not excluded"
            ),
        ),
        (
            2,
            0,
            "inconclusive",
            "mean score 1 → 1 (2 cases, max_regression 0.05), a drop of up to 1 is not excluded",
        ),
        (
            1,
            0,
            "inconclusive",
            "mean score 1 → 1 (1 case, max_regression 0.05), a drop of up to 1 is not excluded",
        ),
        (40, 20, "fail", "mean score 1 → 0.5 (40 cases, max_regression 0.05, p < 0.001)"),
    ],
)
def test_prove_mode_passes_only_if_a_larger_drop_is_excluded(
    cases: int, broken: int, outcome: ComparisonOutcome, reason: str
) -> None:
    thresholds = RegressionThresholds(max_drop=0.05, mode="prove")
    after = results(*[0] * broken, *[1] * (cases - broken))
    found = trend(results(*[1] * cases), after, thresholds)
    assert (found.outcome, found.reason) == (outcome, reason)
    gate = Gate(config=CONFIG, policy=GatePolicy(regression=thresholds), evaluators=("tone",))
    comparison = Comparison(baseline="base", evaluators=(found,))
    kinds = [each.kind for each in find_regression_reasons(comparison, [gate])]
    assert kinds == [] if outcome == "pass" else kinds[0] == "failed"


def test_runs_of_one_case_are_one_observation() -> None:
    """Ten recorded runs of each of three cases are not thirty independent cases."""
    before = [result(number, group=f"g{number % 3}") for number in range(30)]
    after = [result(number, 0.0, group=f"g{number % 3}") for number in range(30)]
    found = trend(before, after)
    why = "3 groups in both runs; at least 5 are needed"
    assert (found.outcome, found.reason, found.groups, found.pairs) == (
        "insufficient-data",
        why,
        3,
        30,
    )


def test_cases_that_cannot_drop_do_not_count_as_evidence() -> None:
    found = trend(results(*[1] * 3, *[0] * 30), results(*[0] * 33))
    assert found.outcome == "inconclusive"
    assert found.reason.endswith("not significant (p = 0.125); only 3 cases can drop, 5 are needed")


def test_comparison_has_interval_and_detectable_drop() -> None:
    found = trend(results(*[1] * 30), results(*[1] * 29, 0))
    assert found.change_low is not None
    assert found.change_high is not None
    assert found.detectable_drop is not None
    assert found.change_low < -1 / 30 < found.change_high
    assert 0.1 < found.detectable_drop < 0.2


@pytest.mark.parametrize(("before", "after"), [([4, 5], [3, 5]), ([-1, 1], [-2, 1])])
def test_interval_of_other_scores_than_0_to_1_has_no_bounds(
    before: list[float], after: list[float]
) -> None:
    found = trend(results(*before * 8), results(*after * 8))
    assert found.change_low is not None
    assert found.change_high is not None
    assert found.change_low < -0.5 < found.change_high


def test_interval_is_within_what_scores_can_change() -> None:
    """From a mean of 1 there is no way up; with too few cases there is no interval."""
    assert trend(results(*[1] * 30), results(*[1] * 29, 0)).change_high == 0
    assert trend(results(*[0.02] * 30), results(*[0.01] * 30)).change_low == pytest.approx(-0.02)
    few = trend(results(1, 1, 1), results(1, 1, 0))
    assert (few.outcome, few.change_low, few.change_high) == ("insufficient-data", None, None)


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
        (results(0), [result(0, None, status="skipped")], "no check passed or failed in both runs"),
        (results(0), [], "its checks were removed"),
        (results(1), [], "1 check that passed was removed"),
    ],
)
def test_changed_or_missing_checks_are_not_comparable(
    before: list[CheckResult], after: list[CheckResult], why: str
) -> None:
    found = trend(before, after)
    assert (found.outcome, found.reason, found.after) == ("non-comparable", why, None)


def test_removed_evaluator_has_its_mean_score_in_the_baseline() -> None:
    before = [*results(1, 1), *results(1, 0.5, evaluator="other")]
    _, removed = compare_runs(before, results(1, 1), (), baseline="base").evaluators
    assert (removed.before, removed.after, removed.pairs) == (0.75, None, 0)


def test_required_evaluators_that_evaluate_nothing_are_named_in_a_verdict_that_passes() -> None:
    before = [*results(1, 1), *results(1, 1, 1, evaluator="other")]
    comparison = compare_runs(before, results(1), (), baseline="base")
    assert list_worse(comparison) == [
        "other no longer evaluated (3 checks removed)",
        "1 other no longer evaluated (removed)",
    ]
    assert list_worse(compare_runs(before, before, (), baseline="base")) == []


def test_changed_check_leaves_other_checks_comparable() -> None:
    before = [result(index, fingerprint="old" if index == 0 else "f") for index in range(6)]
    assert trend(before, results(*[1] * 6)).pairs == 5


def test_checks_without_scores_are_compared_by_status() -> None:
    before = [result(index, None, status="passed") for index in range(5)]
    after = [result(index, None, status="failed") for index in range(5)]
    found = trend(before, after)
    assert (found.before, found.after, found.outcome) == (1.0, 0.0, "fail")


def test_added_and_removed_checks_are_counted() -> None:
    found = compare_runs(results(1, 1, 1), results(1, evaluator="other"), (), baseline="base")
    assert found.classes == CheckClasses(added=1, removed=3)
    assert [each.evaluator for each in found.evaluators] == ["other", "tone"]


def named(config: str, *scores: float, fingerprint: str = "f") -> list[CheckResult]:
    """Like ``results``, of another config."""
    found = (replace(each, fingerprint=fingerprint) for each in results(*scores))
    return [replace(each, id=f"{config} {each.id}", config=config) for each in found]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (named("a", 1, 1), named("b", 1, 0), {"a": "b"}),
        ([*named("a", 1), *named("c", 1)], [*named("b", 1), *named("c", 1)], {"a": "b"}),
        (named("a", 1, 1), named("b", 1), {}),
        (named("a", 1), named("b", 1, fingerprint="looser"), {}),
        (named("a", 1), [*named("b", 1), *named("c", 1)], {}),
        (named("a", 1) * 2, named("b", 1) * 2, {}),
        (named("a", 1), named("a", 1), {}),
    ],
)
def test_renamed_config_is_found_only_with_equal_checks(
    before: list[CheckResult], after: list[CheckResult], names: dict[str, str]
) -> None:
    assert find_renamed_configs(before, after) == names
    [*kept] = rename_configs(before, after, names)
    assert {each.config for each in kept} == {
        names.get(each.config, each.config) for each in before
    }


def test_check_of_a_renamed_config_that_fails_now_is_worse() -> None:
    before, after = named("a", 1, 1), named("b", 1, 0)
    renamed = rename_configs(before, after, find_renamed_configs(before, after))
    [found] = compare_runs(renamed, after, (), baseline="base").evaluators
    assert found.worse == (make_change("c1", 1, 0, was="passed", status="failed"),)


def changed(*scores: float, evaluator: str = "tone") -> list[CheckResult]:
    """Like ``results``, evaluated by another version of the evaluator."""
    return [replace(each, fingerprint="new") for each in results(*scores, evaluator=evaluator)]


def not_evaluated(status: Status, count: int) -> list[CheckResult]:
    return [result(index, None, status=status) for index in range(count)]


class TestClasses:
    """Each check of either run is in exactly one class."""

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            (results(1, 0), results(0, 1), CheckClasses(compared=2)),
            (results(1, 1), changed(1, 0), CheckClasses(changed=2)),
            (results(1), not_evaluated("skipped", 1), CheckClasses(newly_skipped=1)),
            (results(1), not_evaluated("errored", 1), CheckClasses(newly_errored=1)),
            (
                not_evaluated("skipped", 1),
                not_evaluated("errored", 1),
                CheckClasses(newly_errored=1),
            ),
            (
                not_evaluated("errored", 1),
                not_evaluated("skipped", 1),
                CheckClasses(newly_skipped=1),
            ),
            (not_evaluated("errored", 1), results(0), CheckClasses(newly_evaluated=1)),
            (
                not_evaluated("skipped", 2),
                not_evaluated("skipped", 2),
                CheckClasses(not_evaluated=2),
            ),
            (results(1), results(1, 1), CheckClasses(compared=1, added=1)),
            (results(1, 1), results(1), CheckClasses(compared=1, removed=1)),
            (results(1), [], CheckClasses(removed=1)),
        ],
    )
    def test_class_depends_on_both_results(
        self, before: list[CheckResult], after: list[CheckResult], expected: CheckClasses
    ) -> None:
        comparison = compare_runs(before, after, (), baseline="base")
        assert comparison.classes == comparison.evaluators[0].classes == expected

    def test_counts_of_all_classes_cover_both_runs(self) -> None:
        before = [*results(1, 1, 0, 1, 1), *results(1, 1, evaluator="other")]
        skipped = result(3, None, status="skipped")
        after = [*results(1), *changed(1, 0)[1:], skipped, *results(1, evaluator="new")]
        comparison = compare_runs(before, after, (), baseline="base")
        ids = {each.id for each in (*before, *after)}
        assert comparison.classes.total == len(ids) == 8


class TestWorse:
    """Checks that passed in the baseline and do not pass now."""

    def test_edited_expectations_do_not_hide_a_drop(self) -> None:
        """8 of 20 checks fail now, and what these are evaluated by changed."""
        after = [*changed(*[0] * 8), *results(*[1] * 20)[8:]]
        found = trend(results(*[1] * 20), after)
        assert found.outcome == "fail"
        assert found.reason == "mean score 1 → 0.6 (20 cases, 8 changed, p = 0.008)"
        assert len(found.worse) == 8
        assert {each.check_class for each in found.worse} == {"changed"}

    @pytest.mark.parametrize(
        ("after", "reason"),
        [
            (
                changed(*[0] * 12, *[1] * 28),
                "mean score 1 → 0.7 (40 cases, 40 changed, p < 0.001)",
            ),
            (
                [*changed(*[0] * 12), *results(*[1] * 40)[12:]],
                "mean score 1 → 0.7 (40 cases, 12 changed, p < 0.001)",
            ),
            (
                [*not_evaluated("skipped", 34), *results(*[1] * 40)[34:]],
                "mean score 1 → 0.15 (40 cases, 34 newly skipped, p < 0.001)",
            ),
            (
                [*not_evaluated("errored", 34), *results(*[1] * 40)[34:]],
                "mean score 1 → 0.15 (40 cases, 34 newly errored, p < 0.001)",
            ),
        ],
        ids=["all changed", "some changed", "skipped", "errored"],
    )
    def test_checks_that_no_longer_pass_are_a_drop(
        self, after: list[CheckResult], reason: str
    ) -> None:
        found = trend(results(*[1] * 40), after)
        assert (found.outcome, found.reason) == ("fail", reason)

    def test_one_changed_check_that_fails_is_never_a_pass(self) -> None:
        found = trend(results(*[1] * 20), [*changed(0), *results(*[1] * 20)[1:]])
        assert found.outcome == "inconclusive"
        assert [each.case for each in found.worse] == ["c0"]

    def test_better_changed_checks_do_not_hide_worse_ones(self) -> None:
        """The edit of 10 failing checks lets them pass, while 10 others get worse."""
        before = results(*[1] * 10, *[0] * 10)
        after = [*results(*[0] * 10), *changed(*[1] * 20)[10:]]
        assert trend(before, after).outcome == "fail"
        found = trend(before, changed(*[0] * 10, *[1] * 10))
        assert found.outcome == "inconclusive"
        assert found.reason == (
            "mean score 0.5 → 0.5 (20 cases, 20 changed), but some checks got worse, offset only "
            "by checks that changed"
        )

    def test_changed_checks_that_still_pass_are_no_evidence(self) -> None:
        found = trend(results(*[1] * 40), changed(*[1] * 40))
        assert (found.outcome, found.pairs) == ("non-comparable", 0)
        assert found.reason == "the evaluator or its eval cases changed"

    def test_errors_of_the_baseline_are_no_low_scores(self) -> None:
        before = [*not_evaluated("errored", 10), *results(*[1] * 20)[10:]]
        found = trend(before, results(*[1] * 20))
        assert (found.outcome, found.before, found.after, found.pairs) == ("pass", 1, 1, 10)

    def test_changed_check_without_a_score_of_its_own_is_worse(self) -> None:
        """A higher threshold changes the verdict, not the score."""
        after = [replace(each, status="failed") for each in changed(*[1] * 20)]
        assert trend(results(*[1] * 20), after).outcome == "fail"

    def test_only_errors_are_no_failure_of_the_agent(self) -> None:
        thresholds = RegressionThresholds()
        after = not_evaluated("errored", 20)
        comparison = compare_runs(results(*[1] * 20), after, gates(thresholds), baseline="base")
        first, *_ = find_regression_reasons(comparison, gates(thresholds))
        assert first.kind == "errored"
        # The scores of the other checks dropped, too.
        after = [*not_evaluated("errored", 1), *results(*[0.8] * 20)[1:]]
        comparison = compare_runs(results(*[1] * 20), after, gates(thresholds), baseline="base")
        first, *_ = find_regression_reasons(comparison, gates(thresholds))
        assert first.kind == "failed"


def _of_eval_case(result: CheckResult) -> CheckResult:
    return replace(result, case=replace(result.case, eval_case_id=result.case.id))


def test_worse_checks_are_described_with_what_else_explains_them() -> None:
    before = results(*[1] * 6)
    after = [*changed(0, 0), *results(*[1] * 6)[2:5]]
    found = trend(before, after)
    assert describe_worse(found) == (
        "2 checks newly failing, 1 no longer evaluated (removed), "
        "2 with a changed evaluator or eval case"
    )
    [first, *others] = found.newly_failing
    again = replace(found, newly_failing=(replace(first, fails_before=True), *others))
    note = ", 1 also failing in the baseline with the current evaluators"
    assert describe_worse(again) == describe_worse(found) + note


class TestRemoved:
    """Checks that passed in the baseline and are not in this run."""

    BEFORE = results(*[1] * 20)
    AFTER = BEFORE[:18]

    @pytest.mark.parametrize(
        ("on_removed", "kinds"),
        [
            ("warn", ["remark", "worse"]),
            ("fail", ["failed", "worse"]),
            ("allow", []),
        ],
    )
    def test_removed_check_is_worse_unless_allowed(
        self, on_removed: OnRemoved, kinds: list[str]
    ) -> None:
        own = gates(on_removed=on_removed)
        comparison = compare_runs(self.BEFORE, self.AFTER, own, baseline="base")
        [found] = comparison.evaluators
        assert [each.kind for each in find_regression_reasons(comparison, own)] == kinds
        assert found.classes == CheckClasses(compared=18, removed=2)
        assert [each.case for each in found.worse] == (["c18", "c19"] if kinds else [])
        assert found.outcome == ("non-comparable" if kinds else "pass")

    def test_eval_case_without_a_recorded_run_is_a_drop(self) -> None:
        before, uncovered = [_of_eval_case(each) for each in self.BEFORE], ("c18", "c19")
        own = gates(on_removed="allow", uncovered=uncovered)
        [found] = compare_runs(before, before[:18], own, baseline="base").evaluators
        assert [each.case for each in found.worse] == ["c18", "c19"]
        assert found.outcome == "inconclusive"
        assert found.reason.startswith("mean score 1 → 0.9 (20 cases, 2 without a recorded run), ")
        [fewer] = compare_runs(before, before[:14], own, baseline="base").evaluators
        assert [each.case for each in fewer.worse] == ["c18", "c19"]

    def test_eval_cases_that_get_a_recorded_run_keep_the_error_rate(self) -> None:
        """As many checks are in only one run as in only the other."""
        cases = [_of_eval_case(each) for each in self.BEFORE]
        uncovered = tuple(each.case.id for each in cases)
        comparison = compare_runs(
            cases[:14],
            cases[6:],
            gates(uncovered=uncovered[:6]),
            gates_before=gates(uncovered=uncovered[14:]),
            baseline="base",
        )
        [found] = comparison.evaluators
        assert found.classes == CheckClasses(compared=8, added=6, removed=6)
        assert (found.outcome, found.p_value) == ("inconclusive", 1.0)

    def test_removed_evaluator_is_worse_while_its_cases_remain(self) -> None:
        before = [*self.BEFORE, *results(1, 1, 0, evaluator="other")]
        own = gates(on_removed="allow")
        _, other = compare_runs(before, self.BEFORE, own, baseline="base").evaluators
        assert (other.evaluator, other.outcome) == ("other", "non-comparable")
        assert other.reason == "2 checks that passed were removed"
        assert {each.status for each in other.worse} == {"removed"}

    def test_failed_check_may_be_removed(self) -> None:
        [found] = compare_runs(
            [*self.AFTER, result(18, 0)], self.AFTER, gates(), baseline="base"
        ).evaluators
        assert (found.outcome, found.worse) == ("pass", ())

    def test_prove_mode_needs_checks_that_were_in_the_baseline(self) -> None:
        prove = gates(RegressionThresholds(max_drop=0.5, mode="prove"))
        for before, after, kinds in (
            (results(*[1] * 9), changed(*[1] * 9), ["failed"]),
            ([], results(*[1] * 9), ["remark"]),
        ):
            comparison = compare_runs(before, after, prove, baseline="base")
            assert [each.kind for each in find_regression_reasons(comparison, prove)] == kinds


class TestRegressionReasons:
    GATE = Gate(
        config=CONFIG, policy=GatePolicy(regression=RegressionThresholds()), evaluators=("tone",)
    )
    WORSE = compare_runs(results(*[1] * 5), results(*[0] * 5), (), baseline="base")
    UNSURE = compare_runs(results(1), results(0), (), baseline="base")

    def reasons(self, comparison: Comparison | None, **policy: object) -> list[GateReason]:
        thresholds = RegressionThresholds(**policy)  # type: ignore[arg-type]  # fields of a struct
        gate = replace(self.GATE, policy=GatePolicy(regression=thresholds))
        return list(find_regression_reasons(comparison, [gate]))

    def test_regression_fails_gate(self) -> None:
        assert self.reasons(self.WORSE) == [
            GateReason(
                "failed",
                "tone regressed: mean score 1 → 0 (5 cases, p = 0.031)",
                shown_elsewhere=True,
            ),
            GateReason("remark", "tone: 5 checks newly failing", shown_elsewhere=True),
            GateReason("worse", "5 newly failing"),
        ]

    def test_insufficient_data_fails_gate_only_if_configured(self) -> None:
        reason, *_ = self.reasons(self.UNSURE)
        assert reason.kind == "remark"
        reason, *_ = self.reasons(self.UNSURE, fail_on=("insufficient-data",))
        assert reason.kind == "failed"

    def test_advisory_evaluator_regression_does_not_fail_gate(self) -> None:
        after = [result(index, 0, required=False) for index in range(5)]
        reasons = self.reasons(compare_runs(results(*[1] * 5), after, (), baseline="base"))
        assert {reason.kind for reason in reasons} == {"remark"}

    @pytest.mark.parametrize(
        ("comparison", "why"),
        [(None, NO_BASELINE), (Comparison(baseline="b", no_baseline="it is old"), "it is old")],
    )
    def test_missing_baseline_is_reported_and_optionally_fails(
        self, comparison: Comparison | None, why: str
    ) -> None:
        listed = comparison is not None
        assert self.reasons(comparison) == [GateReason("remark", why, listed)]
        found = self.reasons(comparison, fail_on=("no-baseline",))
        assert found == [GateReason("failed", why, listed)]

    def test_without_thresholds_worse_checks_are_only_reported(self) -> None:
        gate = replace(self.GATE, policy=GatePolicy())
        assert list(find_regression_reasons(self.WORSE, [gate])) == [
            GateReason("remark", "tone: 5 checks newly failing", shown_elsewhere=True),
            GateReason("worse", "5 newly failing"),
        ]
        assert list(find_regression_reasons(None, [gate])) == []

    def test_unchanged_scores_give_no_reasons(self) -> None:
        same = compare_runs(results(*[1] * 5), results(*[1] * 5), (), baseline="base")
        assert self.reasons(same) == []


def test_interval_of_the_change_needs_ten_cases_and_ends_where_scores_end() -> None:
    def compare(count: int) -> EvaluatorComparison:
        before = results(*[1] * count)
        after = results(*[1] * (count - 1), 0)
        return compare_runs(before, after, gates(), baseline="main").evaluators[0]

    assert (compare(9).change_low, compare(9).change_high) == (None, None)
    found = compare(10)
    assert found.change_low is not None
    assert -1 < found.change_low < -0.1
    assert found.change_high == 0


def test_p_value_is_marked_as_adjusted_if_several_evaluators_are_required() -> None:
    def compare(names: Sequence[str]) -> EvaluatorComparison:
        before, after = (
            [
                replace(
                    each,
                    id=f"{name} {each.id}",
                    evaluator=replace(each.evaluator, name=name),
                )
                for name in names
                for each in results(*[score] * 20)
            ]
            for score in (1, 0)
        )
        return compare_runs(before, after, gates(), baseline="main").evaluators[0]

    assert compare(["tone"]).reason.endswith("(20 cases, p < 0.001)")
    assert compare(["tone"]).adjusted_for == 1
    found = compare(["tone", "facts"])
    assert found.reason.endswith("(20 cases, Holm-adjusted p < 0.001)")
    assert found.adjusted_for == 2


def test_checks_that_pass_only_by_a_changed_evaluator_are_no_improvement() -> None:
    """An inverted evaluator fails the baseline's runs, which had passed, and passes the new."""
    scores = [0.0] * 10
    [found] = compare_runs(
        results(*scores),
        results(*[1.0] * 10),
        gates(),
        baseline="main",
        stored=results(*[1.0] * 10),
    ).evaluators
    assert (found.outcome, found.fixed) == ("non-comparable", ())
    assert "the changed evaluator contradicts the baseline: 10 checks passed there" in found.reason
