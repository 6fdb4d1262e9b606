"""Compare the results of each evaluator with a baseline, using exact significance tests.

What got worse becomes reasons for the gate decision.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count, format_number, format_score, format_score_pair
from agentci.gate.check_classes import (
    AllowedRemovals,
    ClassifiedCheck,
    UncoveredCases,
    classify_checks,
    count_classes,
    count_contradicted,
    find_fixed_checks,
    find_lower_scores,
    find_missing_cases,
    find_newly_failing,
    find_no_longer_evaluated,
)
from agentci.gate.rules import GateReason, ReasonKind
from agentci.gate.statistics import (
    MIN_SHOWN_GROUPS,
    P_VALUE_TOLERANCE,
    detectable_drop,
    estimate_groups_needed,
    estimate_mean,
    holm_adjust,
    mean_confidence_interval,
    min_groups_for_significance,
    sign_flip_p_value,
)
from agentci.model.case import NAMED_RUN
from agentci.model.gate import (
    ChangedStatus,
    CheckChange,
    CheckClass,
    CheckClasses,
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    Gate,
    GatePolicy,
    RegressionOutcome,
    RegressionThresholds,
)
from agentci.model.result import SCORED_STATUSES, CheckResult
from agentci.model.values import replace

MIN_SHOWN_P_VALUE: Final = 0.001
# Allowance for floating-point error in sums of scores.
SCORE_SUM_TOLERANCE: Final = 1e-9
NO_THRESHOLDS: Final = RegressionThresholds()


class _PairedScore(Struct, frozen=True):
    """The scores of a check in both runs; only compared ones are comparable.

    Others are verdicts: 1 if the check passed, else 0.
    """

    group: str
    before: float
    after: float
    check_class: CheckClass

    @property
    def comparable(self) -> bool:
        """Whether both runs scored the check in the same way."""
        return self.check_class == "compared"


class _Sample(Struct, frozen=True):
    """Changes of scores by group of cases, for one test of whether the scores dropped."""

    changes: tuple[tuple[float, ...], ...]
    max_drop: float

    @property
    def excess(self) -> list[float]:
        """For each group, the sum of its changes beyond the allowed drop."""
        return [fsum(each + self.max_drop for each in group) for group in self.changes]

    @property
    def is_bounded(self) -> bool:
        """Whether no score changed by more than 1, which intervals require; others have scales."""
        return all(abs(change) <= 1 for group in self.changes for change in group)

    @property
    def drops(self) -> bool:
        """Whether the mean score dropped by more than is allowed."""
        return is_drop(fsum(self.excess), sum(map(len, self.changes)))


class _TestedEvaluator(Struct, frozen=True):
    """An evaluator's comparison and the samples of its tests.

    Attributes:
        samples: one for each test, if any: the compared checks, and these with all others.
        shown: the sample of the means, the interval and the power.
        scores: of its checks, as shown.
        can_drop: the number of groups whose score can drop by more than is allowed.
        comparable_drops: whether the mean score of the compared checks dropped.
        drops: whether the mean score dropped by more than is allowed if checks that are not
            comparable only got worse.
        contradicted: the number of checks that got better only by a change to the evaluator.
    """

    comparison: EvaluatorComparison
    thresholds: RegressionThresholds
    samples: tuple[_Sample, ...] = ()
    shown: _Sample = _Sample((), 0.0)
    scores: tuple[_PairedScore, ...] = ()
    can_drop: int = 0
    comparable_drops: bool = False
    drops: bool = False
    contradicted: int = 0


def is_drop(excess: float, count: int) -> bool:
    """Whether a sum of ``count`` changes is below 0 by more than floating-point error."""
    return excess < -SCORE_SUM_TOLERANCE * count


def compare_runs(
    before: Sequence[CheckResult],
    after: Sequence[CheckResult],
    gates: Sequence[Gate],
    *,
    gates_before: Sequence[Gate] = (),
    baseline: str,
    stored: Sequence[CheckResult] = (),
) -> Comparison:
    """Compare the checks of two runs.

    Args:
        before: results of the baseline.
        after: results of this run.
        gates: of this run; a config whose gate has no regression thresholds fails on any
            significant drop.
        gates_before: of the baseline; a config that this run does not have is compared by its gate
            there.
        baseline: where the baseline was found, as shown to the user.
        stored: the baseline's own results of checks that were evaluated again for ``before``.
    """
    configs = {each.config for each in gates}
    removed = {each.config: each.policy for each in gates_before if each.config not in configs}
    policies = {**removed, **{each.config: each.policy for each in gates}}
    thresholds = {name: each.regression or NO_THRESHOLDS for name, each in policies.items()}
    allowed = AllowedRemovals(gates, after)
    uncovered = UncoveredCases(gates_before), UncoveredCases(gates)
    groups: dict[tuple[str, str], list[ClassifiedCheck]] = {}
    for check in classify_checks(before, after, {each.id: each for each in stored}):
        result = check.either
        groups.setdefault((result.config, result.evaluator.name), []).append(check)
    evaluators = _decide_outcomes(
        [
            _pair_scores(checks, allowed, uncovered, thresholds.get(config, NO_THRESHOLDS))
            for (config, _), checks in groups.items()
        ]
    )
    classes = sum((each.classes for each in evaluators), CheckClasses())
    removed_cases, unrecorded_cases = find_missing_cases(before, after, uncovered[1])
    return Comparison(
        baseline=baseline,
        evaluators=evaluators,
        classes=classes,
        removed_cases=removed_cases,
        unrecorded_cases=unrecorded_cases,
        same_run=_find_same_run(before, after),
        removed_policies=removed,
    )


def _find_same_run(before: Sequence[CheckResult], after: Sequence[CheckResult]) -> str:
    """Find a named run in both results, with the tool that named it; empty if there is none."""
    known = {each.case.run for each in before if each.case.run.startswith(NAMED_RUN)}
    for each in after if known else ():
        if each.case.run in known:
            return f"{each.evaluator.type} {each.case.run.removeprefix(NAMED_RUN)}"
    return ""


def select_known(before: Sequence[CheckResult], after: Sequence[CheckResult]) -> list[CheckResult]:
    """Select the checks of the baseline that an interrupted run has: none count as removed."""
    known = {each.id for each in after}
    return [each for each in before if each.id in known]


def describe_outcome(comparison: EvaluatorComparison) -> str:
    """Describe an outcome that is not a pass: "regressed: mean score 1 → 0.5 (40 cases, ...)"."""
    if has_only_removed(comparison):
        failing = len(comparison.newly_failing)
        count = [format_count(failing, "newly failing check")] if failing else []
        return f"has {' and '.join([*count, label_outcome(comparison)])}: {comparison.reason}"
    return f"{_OUTCOME_VERBS[comparison.outcome]}: {comparison.reason}"


NEWLY_FAILING: Final = "newly failing"
NO_LONGER_EVALUATED: Final = "no longer evaluated"
LOWER_SCORE: Final = "with a lower score"
FIXED: Final = "fixed"
NOT_EVALUATED: Final = "not evaluated"


def list_changes(
    evaluators: Sequence[EvaluatorComparison], *, noun: str = ""
) -> Iterator[tuple[str, int, str]]:
    """Yield the groups of changed checks that have any: name, number, and the name with details.

    The details say what happened to checks: "no longer evaluated (6 removed, 2 skipped)".

    Args:
        noun: of what the details always count; empty to count only different ones.
    """
    gone = Counter(each.status for found in evaluators for each in found.no_longer_evaluated)
    parts = [
        f"{format_count(count, noun) if noun else f'{count:,}'} {name_status(status)}"
        for status, count in gone.items()
    ]
    is_one = len(gone) == 1 and not noun
    how = name_status(next(iter(gone))) if is_one else ", ".join(parts)
    groups = {
        NEWLY_FAILING: sum(len(each.newly_failing) for each in evaluators),
        NO_LONGER_EVALUATED: gone.total(),
        LOWER_SCORE: sum(len(each.lower_score) for each in evaluators),
        FIXED: sum(len(each.fixed) for each in evaluators),
    }
    for name, count in groups.items():
        if count:
            yield name, count, f"{name} ({how})" if name == NO_LONGER_EVALUATED else name


def name_status(status: ChangedStatus) -> str:
    """Name the status of checks in a sentence."""
    return "without a recorded run" if status == "unrecorded" else status


def describe_worse(compared: EvaluatorComparison) -> str:
    """Describe the checks that do not pass now: "2 checks newly failing, 1 no longer evaluated"."""
    worse = (NEWLY_FAILING, NO_LONGER_EVALUATED)
    groups = [(count, label) for name, count, label in list_changes([compared]) if name in worse]
    parts = [f"{count:,} {label}" for count, label in groups]
    parts[:1] = [f"{format_count(count, 'check')} {label}" for count, label in groups[:1]]
    return ", ".join([*parts, *list_change_notes(compared.worse)])


def list_change_notes(worse: Sequence[CheckChange]) -> Iterator[str]:
    """Yield how many of the checks that do not pass now changed, or fail in the baseline, too."""
    if changed := sum(each.check_class == "changed" for each in worse):
        yield f"{changed:,} with a changed evaluator or eval case"
    if failing := sum(each.fails_before for each in worse):
        yield f"{failing:,} also failing in the baseline with the current evaluators"


def label_outcome(comparison: EvaluatorComparison) -> str:
    """Name the outcome for a table: "regressed".

    A pass is named by the mean scores of the checks in both runs, which tables show.
    """
    classes = comparison.classes
    if classes.total and classes.total in (classes.added, classes.removed):
        return REMOVED if classes.removed else NEW
    before, after = find_means(comparison)
    change = (after or 0.0) - (before or 0.0)
    is_same = abs(change) <= SCORE_SUM_TOLERANCE
    is_undecided = is_same and not comparison.worse and comparison.outcome == "insufficient-data"
    if comparison.outcome != "pass" and not (is_undecided or has_only_removed(comparison)):
        return _OUTCOME_LABELS[comparison.outcome]
    if comparison.after is None:
        return NOT_EVALUATED
    return _label_same_mean(comparison) if is_same else _label_other_mean(comparison, change)


def _label_same_mean(comparison: EvaluatorComparison) -> str:
    if _has_no_drop(comparison):
        return NO_DROP
    return "the same mean score" if comparison.worse else UNCHANGED


def find_means(comparison: EvaluatorComparison) -> tuple[float | None, float | None]:
    """Find the mean scores of the checks in both runs, else those of the tested ones."""
    if comparison.both_before is None:
        return comparison.before, comparison.after
    return comparison.both_before, comparison.both_after


def _label_other_mean(comparison: EvaluatorComparison, change: float) -> str:
    if change < 0:
        return f"dropped within max_regression {comparison.max_regression or 0:g}"
    if _has_no_drop(comparison):
        return NO_DROP
    return "a higher mean score" if comparison.newly_failing else "improved"


def _has_no_drop(comparison: EvaluatorComparison) -> bool:
    """Whether nothing is known to be worse, but checks are missing."""
    return has_only_removed(comparison) and not comparison.newly_failing


NO_DROP: Final = "no drop in common cases"


def has_only_removed(comparison: EvaluatorComparison) -> bool:
    """Whether only removed checks keep an evaluator from being compared.

    The mean score of the other checks did not drop by more than is allowed.
    """
    classes = comparison.classes
    is_compared = comparison.pairs > 0 and classes.changed == 0 and comparison.after is not None
    return comparison.outcome == "non-comparable" and is_compared and classes.removed > 0


def find_lost_status(compared: EvaluatorComparison) -> str:
    """Return what happened to an evaluator that no longer evaluates anything; empty if it does.

    This is the status of its checks that passed in the baseline, if they have the same.
    """
    gone, classes = compared.no_longer_evaluated, compared.classes
    changed = sum(each.check_class == "changed" for each in gone)
    is_evaluated = classes.compared or classes.newly_evaluated or classes.added
    if not gone or is_evaluated or changed < classes.changed:
        return ""
    statuses = {each.status for each in gone}
    return name_status(statuses.pop()) if len(statuses) == 1 else NOT_EVALUATED


UNCHANGED: Final = "unchanged"
REMOVED: Final = "removed"
NEW: Final = "not in the baseline"
_OUTCOME_VERBS: Final[dict[ComparisonOutcome, str]] = {
    "fail": "regressed",
    "inconclusive": "is inconclusive",
    "insufficient-data": "has too few cases",
    "non-comparable": "is not comparable",
    "stale": "is stale",
}
_OUTCOME_LABELS: Final[dict[ComparisonOutcome, str]] = {
    "fail": "regressed",
    "inconclusive": "inconclusive",
    "insufficient-data": "too few cases",
    "non-comparable": "not comparable",
    "stale": "stale",
}


def _pair_scores(
    checks: Sequence[ClassifiedCheck],
    allowed: AllowedRemovals,
    uncovered: tuple[UncoveredCases, UncoveredCases],
    thresholds: RegressionThresholds,
) -> _TestedEvaluator:
    """Compare the checks of one evaluator up to the outcome.

    Args:
        uncovered: of the baseline and of this run.
    """
    every = [each for check in checks for each in _score_pair(check, *uncovered)]
    tested, scores = _select_tested(every)
    result = checks[0].either
    is_evaluated = any(_has_score(each.after) for each in checks)
    both = [
        (_score_or_pass(each.before), _score_or_pass(each.after))
        for each in checks
        if each.before and each.after and _has_score(each.before) and _has_score(each.after)
    ]
    comparison = EvaluatorComparison(
        config=result.config,
        evaluator=result.evaluator.name,
        required=result.evaluator.required,
        classes=count_classes(checks),
        pairs=len(scores),
        before=_mean_or_none([each.before for each in scores] or _list_removed_scores(checks)),
        after=_mean_or_none([each.after for each in scores]) if is_evaluated else None,
        newly_failing=tuple(find_newly_failing(checks)),
        no_longer_evaluated=tuple(find_no_longer_evaluated(checks, allowed, uncovered[1])),
        lower_score=tuple(find_lower_scores(checks)),
        fixed=tuple(find_fixed_checks(checks)),
        p_value=None,
        outcome="pass",
        reason="",
        max_regression=None if thresholds is NO_THRESHOLDS else thresholds.max_drop,
        in_both=len(both),
        both_before=_mean_or_none([before for before, _ in both]),
        both_after=_mean_or_none([after for _, after in both]),
    )
    if not scores:
        reason = _explain_no_pairs(comparison)
        comparison = replace(comparison, outcome="non-comparable", reason=reason)
        return _TestedEvaluator(comparison, thresholds)
    shown = _make_sample(scores, thresholds.max_drop)
    comparison = _add_interval(replace(comparison, groups=len(shown.changes)), shown)
    return _TestedEvaluator(
        comparison,
        thresholds,
        samples=tuple(_make_sample(each, thresholds.max_drop) for each in tested),
        shown=shown,
        scores=tuple(scores),
        can_drop=_count_droppable(scores, thresholds.max_drop),
        comparable_drops=_make_sample(
            [each for each in scores if each.comparable], thresholds.max_drop
        ).drops,
        drops=_drops_without_gains(scores, thresholds.max_drop),
        contradicted=count_contradicted(checks),
    )


def _add_interval(comparison: EvaluatorComparison, shown: _Sample) -> EvaluatorComparison:
    """Add the interval of the mean change: not beyond what the mean before leaves possible."""
    enough = len(shown.changes) >= MIN_SHOWN_GROUPS and shown.is_bounded
    interval = mean_confidence_interval(shown.changes, low=-1.0) if enough else None
    before, after = comparison.before or 0.0, comparison.after
    if interval is None or after is None:
        return comparison
    low, high = interval.low, interval.high
    if max(before, after) <= 1 and min(before, after) >= 0:
        low, high = max(low, -before), min(high, 1 - before)
    return replace(comparison, change_low=low, change_high=high)


def _score_pair(
    check: ClassifiedCheck, uncovered_before: UncoveredCases, uncovered: UncoveredCases
) -> Iterator[_PairedScore]:
    """Yield the scores of a check that at least one run scored.

    The other run must have the check, or its eval case without a recorded run.
    """
    before, after = check.before, check.after
    is_expected = (
        (before is not None or uncovered_before.contains(check.either)),
        (after is not None or uncovered.contains(check.either)),
    )
    if all(is_expected) and (_has_score(before) or _has_score(after)):
        score = _score_or_pass if check.check_class == "compared" else _pass
        earlier, later = (0.0 if each is None else score(each) for each in (before, after))
        yield _PairedScore(check.either.case.group, earlier, later, check.check_class)


def _has_score(result: CheckResult | None) -> bool:
    return result is not None and (result.status in SCORED_STATUSES or result.is_measurement)


def _select_tested(
    scores: Sequence[_PairedScore],
) -> tuple[Sequence[Sequence[_PairedScore]], Sequence[_PairedScore]]:
    """Select the scores of each test, and the scores whose means are shown.

    Checks that are not comparable are shown only if one of them got worse: that others kept their
    verdicts, or have one again, is not evidence about the scores. Whether they are tested does not
    depend on the direction of their changes, which keeps the error rate.
    """
    comparable = [each for each in scores if each.comparable]
    others = [each for each in scores if not each.comparable and each.before != each.after]
    shown = scores if any(each.after < each.before for each in others) else comparable
    tested = [comparable, scores] if comparable and others else [shown]
    return tested, shown


def _make_sample(scores: Sequence[_PairedScore], max_drop: float) -> _Sample:
    changes: dict[str, list[float]] = {}
    for each in scores:
        changes.setdefault(each.group, []).append(each.after - each.before)
    return _Sample(tuple(map(tuple, changes.values())), max_drop)


def _count_droppable(scores: Sequence[_PairedScore], max_drop: float) -> int:
    worst: dict[str, float] = {}
    for each in scores:
        worst[each.group] = worst.get(each.group, 0.0) + max_drop - each.before
    return sum(each < -SCORE_SUM_TOLERANCE for each in worst.values())


def _drops_without_gains(scores: Sequence[_PairedScore], max_drop: float) -> bool:
    changes = (
        each.after - each.before if each.comparable else min(0.0, each.after - each.before)
        for each in scores
    )
    return is_drop(fsum(each + max_drop for each in changes), len(scores))


def _decide_outcomes(tested: Sequence[_TestedEvaluator]) -> tuple[EvaluatorComparison, ...]:
    """Decide each outcome; p-values of evaluators that share a gate are adjusted together."""
    p_values = [_compute_p_value(each.samples) for each in tested]
    families: dict[str, list[int]] = {}
    for index, each in enumerate(tested):
        if each.samples and each.comparison.required:
            families.setdefault(each.comparison.config, []).append(index)
    tests = [1] * len(tested)
    for family in families.values():
        adjusted = holm_adjust([p_values[index] for index in family])
        for index, p_value in zip(family, adjusted, strict=True):
            p_values[index], tests[index] = p_value, len(family)
    return tuple(
        _decide_outcome(each, p_value, family=count) if each.samples else each.comparison
        for each, p_value, count in zip(tested, p_values, tests, strict=True)
    )


def _compute_p_value(samples: Sequence[_Sample]) -> float:
    """The smallest p-value of all samples, by Bonferroni's correction."""
    p_values = [sign_flip_p_value(each.excess) for each in samples]
    return min(1.0, len(p_values) * min(p_values, default=1.0))


def _decide_outcome(
    tested: _TestedEvaluator, p_value: float, *, family: int
) -> EvaluatorComparison:
    """Decide the outcome of one evaluator.

    Args:
        family: the number of evaluators that ``p_value`` was adjusted for.
    """
    thresholds, comparison = tested.thresholds, tested.comparison
    # Holm's method compares the smallest p-value with alpha divided by the number of tests.
    alpha = (1 - thresholds.confidence) / (family * len(tested.samples))
    needed = min_groups_for_significance(alpha)
    if comparison.groups < needed and thresholds.mode == "detect":
        unit = "case" if comparison.groups == comparison.pairs else "group"
        found = f"{format_count(comparison.groups, unit)} in both runs"
        reason = f"{found}; at least {needed} are needed"
        return replace(
            comparison,
            outcome="insufficient-data",
            reason=reason,
            change_low=None,
            change_high=None,
        )
    comparison = replace(comparison, p_value=p_value, adjusted_for=family)
    comparison = _add_power(comparison, tested, alpha)
    scores, cases = f"mean score {_describe_means(comparison)}", _format_tested(tested)
    shown_p, drops = format_p_value(p_value, family), any(each.drops for each in tested.samples)
    if drops and p_value <= 1 - thresholds.confidence + P_VALUE_TOLERANCE:
        others = any(each.status != "errored" for each in comparison.worse)
        return replace(
            comparison,
            outcome="fail",
            reason=f"{scores} ({cases}, {shown_p})",
            only_errors=not (others or tested.comparable_drops),
        )
    scores = f"{scores} ({cases})"
    bound = _bound_drop(tested) if thresholds.mode == "prove" else 0.0
    if bound > thresholds.max_drop + SCORE_SUM_TOLERANCE:
        reason = f"{scores}, a drop of up to {format_number(bound)} is not excluded"
    elif drops and thresholds.mode == "detect":
        more = _explain_cases_needed(tested, needed, alpha)
        reason = f"{scores}, not significant ({shown_p}){more}"
    elif tested.drops:
        reason = f"{scores}, but some checks got worse, offset only by checks that changed"
    elif lost := _explain_lost_comparison(tested):
        reason = f"{scores}, but {lost}"
        return replace(comparison, outcome="non-comparable", reason=reason)
    else:
        return replace(comparison, outcome="pass", reason=scores)
    return replace(comparison, outcome="inconclusive", reason=reason)


def _describe_means(comparison: EvaluatorComparison) -> str:
    """Format the tested means, after those of the checks in both runs if these changed, too."""
    shown = _format_means(comparison)
    before, after = comparison.both_before, comparison.both_after
    if before is None or after is None or abs(after - before) <= SCORE_SUM_TOLERANCE:
        return shown
    both = format_score_pair(before, after)
    return shown if both == shown else f"{both} in both runs, tested {shown}"


def _format_means(comparison: EvaluatorComparison) -> str:
    """Format ``1 → 0.5``; where this run evaluated nothing, ``1 → skipped``."""
    if comparison.after is None:
        lost = find_lost_status(comparison) or NOT_EVALUATED
        return f"{format_score(comparison.before or 0.0)} \N{RIGHTWARDS ARROW} {lost}"
    return format_score_pair(comparison.before or 0.0, comparison.after)


def _explain_lost_comparison(tested: _TestedEvaluator) -> str:
    """Explain why means that did not drop do not show it; empty if they do."""
    if tested.contradicted:
        count = format_count(tested.contradicted, "check")
        return (
            f"the changed evaluator contradicts the baseline: {count} passed there, fail there "
            "now, and pass in this run"
        )
    return _format_missing(tested.comparison)


def _add_power(
    comparison: EvaluatorComparison, tested: _TestedEvaluator, alpha: float
) -> EvaluatorComparison:
    bounded = tested.shown.is_bounded
    estimate = estimate_mean(tested.shown.changes, low=-1.0) if bounded else None
    if estimate is None:
        return comparison
    drop = tested.thresholds.max_drop + detectable_drop(estimate.error, min(0.5, alpha))
    return replace(comparison, detectable_drop=min(1.0, drop))


def _bound_drop(tested: _TestedEvaluator) -> float:
    """The largest drop of any sample that is not excluded."""
    estimates = [
        estimate_mean(each.changes, low=-1.0) if each.is_bounded else None
        for each in tested.samples
    ]
    confidence = max(0.5, tested.thresholds.confidence)
    return max(1.0 if each is None else min(1.0, -each.bounds(confidence)[0]) for each in estimates)


def _explain_cases_needed(tested: _TestedEvaluator, needed: int, alpha: float) -> str:
    if tested.can_drop < needed:
        return f"; only {format_count(tested.can_drop, 'case')} can drop, {needed} are needed"
    # More cases do not show a drop if only checks that are not evaluated any more count as one.
    is_drop = tested.comparable_drops
    count = estimate_groups_needed(tested.shown.excess, alpha) if is_drop else None
    return "" if count is None else f"; needs about {format_count(count, 'case')}"


def _format_tested(tested: _TestedEvaluator) -> str:
    """Format what was tested: "20 cases, 8 changed, max_regression 0.05"."""
    others = Counter(each.check_class for each in tested.scores if not each.comparable)
    counts = (f"{count:,} {_name_tested(name)}" for name, count in others.items())
    allowed = tested.comparison.max_regression
    limit = [] if allowed is None else [f"max_regression {allowed:g}"]
    return ", ".join([format_count(len(tested.scores), "case"), *counts, *limit])


def _name_tested(check_class: CheckClass) -> str:
    """Name a class of tested checks, of which those that this run lacks have an eval case."""
    return name_status("unrecorded") if check_class == "removed" else check_class.replace("_", " ")


# Of checks that are not in this run.
MISSING: Final[tuple[ChangedStatus, ...]] = ("removed", "unrecorded")


def count_missing(comparison: EvaluatorComparison) -> Mapping[ChangedStatus, int]:
    """Count the checks that passed and are not in this run, by why they are not."""
    counts = Counter(each.status for each in comparison.no_longer_evaluated)
    return {status: counts[status] for status in MISSING if counts[status]}


def _format_missing(comparison: EvaluatorComparison) -> str:
    """Format ``2 checks that passed were removed``; empty for none."""
    texts = []
    for status, count in count_missing(comparison).items():
        was, has = ("was", "has") if count == 1 else ("were", "have")
        verb = f"{was} removed" if status == "removed" else f"{has} no recorded run"
        texts.append(f"{format_count(count, 'check')} that passed {verb}")
    return " and ".join(texts)


def format_p_value(p_value: float, family: int = 1) -> str:
    """Format a p value: ``p = 0.012``, ``p < 0.001``, ``Holm-adjusted p = 0.024``.

    Args:
        family: the number of evaluators that it was adjusted for, by Holm's method.
    """
    shown = "p < 0.001" if p_value < MIN_SHOWN_P_VALUE else f"p = {format_number(p_value)}"
    return f"Holm-adjusted {shown}" if family > 1 else shown


def _explain_no_pairs(comparison: EvaluatorComparison) -> str:
    classes = comparison.classes
    if missing := _format_missing(comparison):
        return missing
    if classes.changed:
        return "the evaluator or its eval cases changed"
    if (
        classes.newly_skipped
        or classes.newly_errored
        or classes.newly_evaluated
        or classes.not_evaluated
    ):
        return "no check passed or failed in both runs"
    return "the baseline has none of its checks" if classes.added else "its checks were removed"


def _pass(result: CheckResult) -> float:
    return float(result.status == "passed")


def _score_or_pass(result: CheckResult) -> float:
    """The score; 1 if the check passed and 0 otherwise without one, or if lower ones are better."""
    if result.score is None or result.evaluator.better == "lower":
        return _pass(result)
    return result.score


def _list_removed_scores(checks: Sequence[ClassifiedCheck]) -> list[float]:
    """List the scores in the baseline of an evaluator that only that has."""
    removed = [each.before for each in checks if each.before and each.after is None]
    scored = [_score_or_pass(each) for each in removed if _has_score(each)]
    return scored if len(removed) == len(checks) else []


def _mean_or_none(scores: Sequence[float]) -> float | None:
    return fsum(scores) / len(scores) if scores else None


NO_BASELINE = "no baseline found; `max_regression` needs one"


def find_regression_reasons(
    comparison: Comparison | None, gates: Sequence[Gate]
) -> Iterator[GateReason]:
    """List what got worse than the baseline: what fails the gate, and what is only reported.

    Checks that no longer pass are reported in any case; outcomes only with regression thresholds.
    Required checks that got worse are part of the summary of a gate that passes.

    Args:
        gates: the gates of all configs.
    """
    by_config = {gate.config: gate.policy.regression for gate in gates if gate.policy.regression}
    if comparison is None or comparison.no_baseline:
        text = NO_BASELINE if comparison is None else comparison.no_baseline
        shown_elsewhere = comparison is not None
        yield from _make_overall_reason(
            by_config, "no-baseline", text, shown_elsewhere=shown_elsewhere
        )
        return
    if comparison.stale:
        yield from _make_overall_reason(by_config, "stale", comparison.stale, shown_elsewhere=True)
    several = len({each.config for each in comparison.evaluators}) > 1
    policies = {**comparison.removed_policies, **{gate.config: gate.policy for gate in gates}}
    for each in comparison.evaluators:
        prefix = f"{each.config}: " if several else ""
        policy = policies.get(each.config, GatePolicy())
        if policy.regression is not None and each.outcome != "pass":
            fails = each.required and _is_failing_outcome(each, policy.regression)
            text = f"{prefix}{each.evaluator} {describe_outcome(each)}"
            kind: ReasonKind = "errored" if each.only_errors else "failed"
            yield GateReason(kind if fails else "remark", text, shown_elsewhere=True)
        if each.worse:
            fails = each.required and _has_forbidden_removal(each, policy)
            text = f"{prefix}{each.evaluator}: {describe_worse(each)}"
            yield GateReason("failed" if fails else "remark", text, shown_elsewhere=True)
    for text in list_worse(comparison):
        yield GateReason("worse", text)


MAX_LOST: Final = 3


def list_worse(comparison: Comparison) -> list[str]:
    """List required evaluators that evaluate nothing any more, then the numbers of other checks.

    These passed in the baseline, and fail or are not evaluated now. Empty if there are none.
    """
    required = [each for each in comparison.evaluators if each.required]
    several = len({each.config for each in comparison.evaluators}) > 1
    lost = [each for each in required if find_lost_status(each)][:MAX_LOST]
    texts = [
        f"{each.evaluator}{f' of {each.config}' if several else ''} {label}"
        for each in lost
        for name, _, label in list_changes([each], noun="check")
        if name == NO_LONGER_EVALUATED
    ]
    for name, count, label in list_changes([each for each in required if each not in lost]):
        if name in (NEWLY_FAILING, NO_LONGER_EVALUATED):
            other = "other " if lost and name == NO_LONGER_EVALUATED else ""
            texts.append(f"{count:,} {other}{label}")
    return texts


def fails_gate(compared: EvaluatorComparison, policy: GatePolicy) -> bool:
    """Whether the comparison of an evaluator fails the gate of its config."""
    is_failing = has_failing_outcome(compared, policy)
    return is_failing or (compared.required and _has_forbidden_removal(compared, policy))


def has_failing_outcome(compared: EvaluatorComparison, policy: GatePolicy) -> bool:
    """Whether the outcome of a comparison fails the gate, whatever was removed."""
    regression = policy.regression
    return (
        compared.required and regression is not None and _is_failing_outcome(compared, regression)
    )


def _has_forbidden_removal(compared: EvaluatorComparison, policy: GatePolicy) -> bool:
    return bool(count_missing(compared)) and policy.on_removed == "fail"


def _is_failing_outcome(compared: EvaluatorComparison, thresholds: RegressionThresholds) -> bool:
    if thresholds.mode == "prove" and compared.outcome != "pass":
        # Nothing can be shown about an evaluator that the baseline does not have.
        added = compared.classes.added
        return compared.outcome != "non-comparable" or compared.classes.total > added
    return compared.outcome in thresholds.fail_on


def _make_overall_reason(
    by_config: Mapping[str, RegressionThresholds],
    outcome: RegressionOutcome,
    text: str,
    *,
    shown_elsewhere: bool,
) -> Iterator[GateReason]:
    """One reason for all configs; it fails the gate if any config lists ``outcome`` as failing."""
    if by_config:
        fails = any(outcome in each.fail_on for each in by_config.values())
        yield GateReason("failed" if fails else "remark", text, shown_elsewhere=shown_elsewhere)
