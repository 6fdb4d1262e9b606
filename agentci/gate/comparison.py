"""Compare the results of each evaluator with a baseline, using exact significance tests."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count, format_distinct, format_number
from agentci.gate.groups import SCORED_STATUSES
from agentci.gate.significance import (
    P_VALUE_TOLERANCE,
    detectable_drop,
    estimate_groups_needed,
    holm_adjust,
    min_groups_for_significance,
    sign_flip_p_value,
)
from agentci.gate.statistics import estimate_mean, mean_confidence_interval
from agentci.model.gate import (
    ChangedCheck,
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    RegressionThresholds,
)
from agentci.model.result import CheckResult, Status
from agentci.model.values import replace

MIN_SHOWN_P_VALUE: Final = 0.001
# Allowance for floating-point error in sums of scores.
SCORE_SUM_TOLERANCE: Final = 1e-9


class _ResultPair(Struct, frozen=True):
    before: CheckResult
    after: CheckResult


class _PairedScores(Struct, frozen=True):
    """An evaluator's comparison, and the changes of its scores by group of cases; none if untested.

    Attributes:
        can_drop: the number of groups whose score can drop by more than is allowed.
    """

    comparison: EvaluatorComparison
    thresholds: RegressionThresholds
    changes: tuple[tuple[float, ...], ...] = ()
    can_drop: int = 0

    @property
    def excess(self) -> list[float]:
        """For each group, the sum of its changes beyond the allowed drop."""
        return [fsum(each + self.thresholds.max_drop for each in group) for group in self.changes]


def compare_runs(
    before: Sequence[CheckResult],
    after: Sequence[CheckResult],
    thresholds: Mapping[str, RegressionThresholds],
    *,
    baseline: str,
) -> Comparison:
    """Compare the checks of two runs.

    Args:
        before: results of the baseline.
        after: results of this run.
        thresholds: by config; a config without them fails on any significant drop.
        baseline: where the baseline was found, as shown to the user.
    """
    earlier = {result.id: result for result in before}
    later = {result.id for result in after}
    groups: dict[tuple[str, str], list[CheckResult]] = {}
    for result in after:
        groups.setdefault((result.config, result.evaluator.name), []).append(result)
    paired = [
        _pair_scores(results, earlier, thresholds.get(config, RegressionThresholds()))
        for (config, _), results in groups.items()
    ]
    return Comparison(
        baseline=baseline,
        evaluators=_decide_outcomes(paired),
        added=sum(result.id not in earlier for result in after),
        removed=sum(result.id not in later for result in before),
    )


def describe_outcome(comparison: EvaluatorComparison) -> str:
    """Describe the outcome with its reason: "regressed: mean score 1 -> 0.5 (40 cases, ...)"."""
    if comparison.outcome == "pass":
        return f"{label_outcome(comparison)}: {comparison.reason}"
    return f"{_OUTCOME_VERBS[comparison.outcome]}: {comparison.reason}"


def label_outcome(comparison: EvaluatorComparison) -> str:
    """Name the outcome for a table: "regressed"."""
    if comparison.outcome != "pass":
        return _OUTCOME_LABELS[comparison.outcome]
    before, after = comparison.before or 0.0, comparison.after or 0.0
    if abs(after - before) <= SCORE_SUM_TOLERANCE:
        return "unchanged"
    return "improved" if after > before else "allowed drop"


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
    results: Sequence[CheckResult],
    earlier: Mapping[str, CheckResult],
    thresholds: RegressionThresholds,
) -> _PairedScores:
    """Pair the results of one evaluator with those of the baseline."""
    known = [_ResultPair(earlier[each.id], each) for each in results if each.id in earlier]
    unchanged = [pair for pair in known if pair.before.fingerprint == pair.after.fingerprint]
    pairs = [pair for pair in unchanged if _is_scored(pair)]
    comparison = EvaluatorComparison(
        config=results[0].config,
        evaluator=results[0].evaluator.name,
        required=results[0].evaluator.required,
        pairs=len(pairs),
        before=_mean_or_none([_score_or_pass(pair.before) for pair in pairs]),
        after=_mean_or_none([_score_or_pass(pair.after) for pair in pairs]),
        regressions=tuple(_find_changes(pairs, "passed", "failed")),
        improvements=tuple(_find_changes(pairs, "failed", "passed")),
        p_value=None,
        outcome="pass",
        reason="",
    )
    if not pairs:
        reason = _explain_no_pairs(known, unchanged)
        comparison = replace(comparison, outcome="non-comparable", reason=reason)
        return _PairedScores(comparison, thresholds)
    changes: dict[str, list[float]] = {}
    worst: dict[str, float] = {}
    for pair in pairs:
        before, group = _score_or_pass(pair.before), pair.after.case.group
        changes.setdefault(group, []).append(_score_or_pass(pair.after) - before)
        worst[group] = worst.get(group, 0.0) + thresholds.max_drop - before
    groups = tuple(map(tuple, changes.values()))
    interval = mean_confidence_interval(groups, low=-1.0)
    comparison = replace(comparison, groups=len(groups))
    if interval is not None:
        comparison = replace(comparison, change_low=interval.low, change_high=interval.high)
    can_drop = sum(each < -SCORE_SUM_TOLERANCE for each in worst.values())
    return _PairedScores(comparison, thresholds, groups, can_drop)


def _decide_outcomes(paired: Sequence[_PairedScores]) -> tuple[EvaluatorComparison, ...]:
    """Decide each outcome; p-values of evaluators that share a gate are adjusted together."""
    p_values = [sign_flip_p_value(each.excess) for each in paired]
    families: dict[str, list[int]] = {}
    for index, each in enumerate(paired):
        if each.changes and each.comparison.required:
            families.setdefault(each.comparison.config, []).append(index)
    tests = [1] * len(paired)
    for family in families.values():
        adjusted = holm_adjust([p_values[index] for index in family])
        for index, p_value in zip(family, adjusted, strict=True):
            p_values[index], tests[index] = p_value, len(family)
    return tuple(
        _decide_outcome(each, p_value, tests=count) if each.changes else each.comparison
        for each, p_value, count in zip(paired, p_values, tests, strict=True)
    )


def _decide_outcome(paired: _PairedScores, p_value: float, *, tests: int) -> EvaluatorComparison:
    """Decide the outcome of one evaluator.

    Args:
        tests: the number of tests that ``p_value`` was adjusted for.
    """
    thresholds, comparison = paired.thresholds, paired.comparison
    # Holm's method compares the smallest p-value with alpha divided by the number of tests.
    alpha = (1 - thresholds.confidence) / tests
    needed = min_groups_for_significance(alpha)
    if len(paired.changes) < needed and thresholds.mode == "detect":
        unit = "case" if comparison.groups == comparison.pairs else "group"
        found = f"{format_count(comparison.groups, unit)} in both runs"
        reason = f"{found}; at least {needed} are needed"
        return replace(comparison, outcome="insufficient-data", reason=reason)
    comparison = replace(comparison, p_value=p_value)
    bound, estimate = 1.0, estimate_mean(paired.changes, low=-1.0)
    if estimate is not None:
        bound = min(1.0, -estimate.bounds(max(0.5, thresholds.confidence))[0])
        drop = thresholds.max_drop + detectable_drop(estimate.error, min(0.5, alpha))
        comparison = replace(comparison, detectable_drop=min(1.0, drop))
    before, after = format_distinct(comparison.before or 0.0, comparison.after or 0.0)
    scores, cases = f"mean score {before} -> {after}", format_count(comparison.pairs, "case")
    shown_p, excess = _format_p_value(p_value), paired.excess
    drops = fsum(excess) < -SCORE_SUM_TOLERANCE * comparison.pairs
    if drops and p_value <= 1 - thresholds.confidence + P_VALUE_TOLERANCE:
        return replace(comparison, outcome="fail", reason=f"{scores} ({cases}, {shown_p})")
    if thresholds.mode == "prove":
        if bound > thresholds.max_drop + SCORE_SUM_TOLERANCE:
            reason = f"{scores} ({cases}), a drop of up to {format_number(bound)} is not excluded"
            return replace(comparison, outcome="inconclusive", reason=reason)
    elif drops:
        if paired.can_drop < needed:
            more = f"; only {format_count(paired.can_drop, 'case')} can drop, {needed} are needed"
        else:
            count = estimate_groups_needed(excess, alpha)
            more = "" if count is None else f"; needs about {format_count(count, 'case')}"
        reason = f"{scores} ({cases}), not significant ({shown_p}){more}"
        return replace(comparison, outcome="inconclusive", reason=reason)
    return replace(comparison, outcome="pass", reason=f"{scores} ({cases})")


def _format_p_value(p_value: float) -> str:
    return "p < 0.001" if p_value < MIN_SHOWN_P_VALUE else f"p = {format_number(p_value)}"


def _explain_no_pairs(known: Sequence[_ResultPair], unchanged: Sequence[_ResultPair]) -> str:
    if not known:
        return "the baseline has none of its checks"
    if not unchanged:
        return "the evaluator or its eval cases changed"
    return "no check passed or failed in both runs"


def _find_changes(
    pairs: Sequence[_ResultPair], before: Status, after: Status
) -> Iterator[ChangedCheck]:
    for pair in pairs:
        if (pair.before.status, pair.after.status) == (before, after):
            yield ChangedCheck(
                case=pair.after.case.id, before=pair.before.score, after=pair.after.score
            )


def _is_scored(pair: _ResultPair) -> bool:
    return pair.before.status in SCORED_STATUSES and pair.after.status in SCORED_STATUSES


def _score_or_pass(result: CheckResult) -> float:
    """The score; without one, 1 if the check passed and 0 otherwise."""
    score = result.score
    return float(result.status == "passed") if score is None else score


def _mean_or_none(scores: Sequence[float]) -> float | None:
    return fsum(scores) / len(scores) if scores else None
