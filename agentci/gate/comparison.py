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

from agentci._util.text.format import format_count, format_number
from agentci.model.gate import ChangedCheck, Comparison, EvaluatorComparison, RegressionThresholds
from agentci.model.result import CheckResult, Status
from agentci.model.values import replace

# Exact up to 2 ** 15 sums for each half (0.1 s); above that, a normal approximation is close.
MAX_EXACT_PAIRS: Final = 30
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


def holm_adjust(chances: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values for multiple tests (Holm 1979), in the given order."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    raised = accumulate(
        (min(1.0, (len(chances) - rank) * chances[index]) for rank, index in enumerate(order)), max
    )
    adjusted = dict(zip(order, raised, strict=True))
    return tuple(adjusted[index] for index in range(len(chances)))


def min_pairs_for_significance(alpha: float) -> int:
    """The smallest number of pairs that can reach a p-value of ``alpha``."""
    return max(1, math.ceil(-math.log2(alpha)))


SCORED_STATUSES: Final[tuple[Status, ...]] = ("passed", "failed")


class _ResultPair(Struct, frozen=True):
    before: CheckResult
    after: CheckResult


def compare_runs(
    before: Sequence[CheckResult],
    after: Sequence[CheckResult],
    bars: Mapping[str, RegressionThresholds],
    *,
    baseline: str,
) -> Comparison:
    """Compare the checks of two runs.

    Args:
        before: results of the baseline.
        after: results of this run.
        bars: regression thresholds by config; a config without them fails on any significant drop.
        baseline: where the baseline was found, as shown to the user.
    """
    earlier = {result.id: result for result in before}
    later = {result.id for result in after}
    groups: dict[tuple[str, str], list[CheckResult]] = {}
    for result in after:
        groups.setdefault((result.config, result.evaluator.name), []).append(result)
    return Comparison(
        baseline=baseline,
        evaluators=_adjust_p_values(
            [
                _make_trend(results, earlier, bars.get(config, RegressionThresholds()))
                for (config, _), results in groups.items()
            ],
            bars,
        ),
        added=sum(result.id not in earlier for result in after),
        removed=sum(result.id not in later for result in before),
    )


def _make_trend(
    results: Sequence[CheckResult], earlier: Mapping[str, CheckResult], bar: RegressionThresholds
) -> EvaluatorComparison:
    """Compare the results of one evaluator, before p-values are adjusted for multiple tests."""
    known = [_ResultPair(earlier[each.id], each) for each in results if each.id in earlier]
    alike = [pair for pair in known if pair.before.fingerprint == pair.after.fingerprint]
    pairs = [pair for pair in alike if _is_scored(pair)]
    trend = EvaluatorComparison(
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
        return replace(trend, outcome="non-comparable", reason=_explain_no_pairs(known, alike))
    needed = min_pairs_for_significance(1 - bar.confidence)
    if len(pairs) < needed:
        more = format_count(needed - len(pairs), "case")
        why = (
            f"{format_count(len(pairs), 'case')} cannot show anything for sure: {more} "
            "more are needed"
        )
        return replace(trend, outcome="insufficient-data", reason=why)
    differences = [_score_or_pass(pair.after) - _score_or_pass(pair.before) for pair in pairs]
    drop = -fsum(differences) / len(pairs)
    return replace(
        trend,
        p_value=permutation_test_p_value(differences),
        outcome="inconclusive" if drop > bar.max_drop + SCORE_SUM_TOLERANCE else "pass",
    )


def _adjust_p_values(
    trends: Sequence[EvaluatorComparison], bars: Mapping[str, RegressionThresholds]
) -> tuple[EvaluatorComparison, ...]:
    """Decide each outcome with p-values adjusted for the number of evaluators."""
    tested = [trend for trend in trends if trend.p_value is not None]
    raised = iter(holm_adjust([trend.p_value or 0.0 for trend in tested]))
    return tuple(
        trend
        if trend.p_value is None
        else _decide_trend(
            replace(trend, p_value=next(raised)), bars.get(trend.config, RegressionThresholds())
        )
        for trend in trends
    )


def _decide_trend(trend: EvaluatorComparison, bar: RegressionThresholds) -> EvaluatorComparison:
    before, after = format_number(trend.before or 0.0), format_number(trend.after or 0.0)
    said = f"mean score {after}, was {before}"
    if trend.outcome == "pass":
        return replace(trend, reason=said)
    if trend.p_value is not None and trend.p_value <= 1 - bar.confidence + SCORE_SUM_TOLERANCE:
        return replace(trend, outcome="fail", reason=f"{said}, which is hardly chance")
    return replace(trend, reason=f"{said}, which may be chance")


def _explain_no_pairs(known: Sequence[_ResultPair], alike: Sequence[_ResultPair]) -> str:
    if not known:
        return "the baseline has none of its checks"
    if not alike:
        return "the evaluator or its golden cases have changed"
    return "no check was judged in both runs"


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
