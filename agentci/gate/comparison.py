"""Compare the results of each evaluator with a baseline, using exact significance tests."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from math import fsum
from statistics import NormalDist
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count, format_distinct, format_number
from agentci.gate.groups import SCORED_STATUSES
from agentci.model.gate import (
    ChangedCheck,
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    RegressionThresholds,
)
from agentci.model.result import CheckResult, Status
from agentci.model.values import replace

# Exact up to 2 ** 15 sums for each half (0.1 s); above that, a normal approximation is close.
MAX_EXACT_PAIRS: Final = 30
# Above this multiple of the cases, an estimate of the cases needed is of little use.
MAX_MULTIPLE: Final = 20
MIN_SHOWN_P_VALUE: Final = 0.001
# Allowance for floating-point error in sums of scores.
SCORE_SUM_TOLERANCE: Final = 1e-9


def sign_test_p_value(at_least: int, trials: int) -> float:
    """The probability of at least ``at_least`` heads in ``trials`` tosses of a fair coin.

    For ``at_least`` regressions among ``trials`` changed checks, this is McNemar's exact test,
    one-sided.
    """
    ways = sum(math.comb(trials, heads) for heads in range(at_least, trials + 1))
    return float(Fraction(ways, 1 << trials))


def permutation_test_p_value(differences: Sequence[float]) -> float:
    """The probability of a sum at or below that of ``differences`` if each sign were random.

    One-sided permutation test of paired differences. Differences of 0 are ignored.
    """
    sizes = [abs(each) for each in differences if abs(each) > SCORE_SUM_TOLERANCE]
    observed = math.fsum(differences)
    if not sizes:
        return 1.0
    if max(sizes) - min(sizes) <= SCORE_SUM_TOLERANCE:
        down = sum(each < -SCORE_SUM_TOLERANCE for each in differences)
        return sign_test_p_value(down, len(sizes))
    if len(sizes) <= MAX_EXACT_PAIRS:
        return _exact_permutation_p_value(sizes, observed)
    deviation = math.sqrt(math.fsum(size * size for size in sizes))
    return NormalDist().cdf(observed / deviation)


def _exact_permutation_p_value(sizes: Sequence[float], observed: float) -> float:
    """Count the sign choices with a sum at or below ``observed``, by combining two half-sums."""
    middle = len(sizes) // 2
    left, right = _signed_sums(sizes[:middle]), sorted(_signed_sums(sizes[middle:]))
    low = sum(bisect_right(right, observed - each + SCORE_SUM_TOLERANCE) for each in left)
    return float(Fraction(low, 1 << len(sizes)))


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    """The sums of ``sizes`` for every choice of signs."""
    sums = [0.0]
    for size in sizes:
        sums = [each + signed for each in sums for signed in (size, -size)]
    return sums


def holm_adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values for multiple tests (Holm 1979), in the given order."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    raised = accumulate(
        (min(1.0, (len(p_values) - rank) * p_values[index]) for rank, index in enumerate(order)),
        max,
    )
    adjusted = dict(zip(order, raised, strict=True))
    return tuple(adjusted[index] for index in range(len(p_values)))


def min_pairs_for_significance(alpha: float) -> int:
    """The smallest number of pairs that can reach a p-value of ``alpha``."""
    return max(1, math.ceil(-math.log2(alpha)))


def estimate_cases_needed(differences: Sequence[float], alpha: float) -> int | None:
    """Estimate how many cases it takes until a drop is significant.

    More cases are assumed to differ like the ones there are. None if the number is unreasonable.
    """
    times = 1
    while permutation_test_p_value([*differences] * times) > alpha + SCORE_SUM_TOLERANCE:
        times += 1
        if times > MAX_MULTIPLE:
            return None
    return times * len(differences)


class _ResultPair(Struct, frozen=True):
    before: CheckResult
    after: CheckResult


class _PairedScores(Struct, frozen=True):
    """An evaluator's comparison, and the differences of its scores; none if there is no test."""

    comparison: EvaluatorComparison
    differences: tuple[float, ...] = ()


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
        evaluators=_decide_outcomes(paired, thresholds),
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
        return _PairedScores(replace(comparison, outcome="non-comparable", reason=reason))
    needed = min_pairs_for_significance(1 - thresholds.confidence)
    if len(pairs) < needed:
        reason = f"{format_count(len(pairs), 'case')} in both runs; at least {needed} are needed"
        return _PairedScores(replace(comparison, outcome="insufficient-data", reason=reason))
    return _PairedScores(
        comparison,
        tuple(_score_or_pass(pair.after) - _score_or_pass(pair.before) for pair in pairs),
    )


def _decide_outcomes(
    paired: Sequence[_PairedScores], thresholds: Mapping[str, RegressionThresholds]
) -> tuple[EvaluatorComparison, ...]:
    """Decide each outcome, with p-values adjusted for the number of evaluators."""
    tested = [each.differences for each in paired if each.differences]
    p_values = iter(holm_adjust([permutation_test_p_value(each) for each in tested]))
    return tuple(
        _decide_outcome(
            each,
            next(p_values),
            thresholds.get(each.comparison.config, RegressionThresholds()),
            tests=len(tested),
        )
        if each.differences
        else each.comparison
        for each in paired
    )


def _decide_outcome(
    paired: _PairedScores, p_value: float, thresholds: RegressionThresholds, *, tests: int
) -> EvaluatorComparison:
    comparison, differences = replace(paired.comparison, p_value=p_value), paired.differences
    before, after = format_distinct(comparison.before or 0.0, comparison.after or 0.0)
    scores, cases = f"mean score {before} -> {after}", format_count(comparison.pairs, "case")
    drop = -fsum(differences) / len(differences)
    if drop <= thresholds.max_drop + SCORE_SUM_TOLERANCE:
        return replace(comparison, outcome="pass", reason=f"{scores} ({cases})")
    alpha, shown_p = 1 - thresholds.confidence, _format_p_value(p_value)
    if p_value <= alpha + SCORE_SUM_TOLERANCE:
        return replace(comparison, outcome="fail", reason=f"{scores} ({cases}, {shown_p})")
    # Holm's method compares the smallest p-value with alpha divided by the number of tests.
    needed = estimate_cases_needed(differences, alpha / tests)
    more = "" if needed is None else f"; needs about {format_count(needed, 'case')}"
    reason = f"{scores} ({cases}), not significant ({shown_p}){more}"
    return replace(comparison, outcome="inconclusive", reason=reason)


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
                case=pair.after.case.id,
                before=pair.before.score,
                after=pair.after.score,
            )


def _is_scored(pair: _ResultPair) -> bool:
    return pair.before.status in SCORED_STATUSES and pair.after.status in SCORED_STATUSES


def _score_or_pass(result: CheckResult) -> float:
    """The score; without one, 1 if the check passed and 0 otherwise."""
    score = result.score
    return float(result.status == "passed") if score is None else score


def _mean_or_none(scores: Sequence[float]) -> float | None:
    return fsum(scores) / len(scores) if scores else None
