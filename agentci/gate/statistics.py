"""Confidence intervals of means and rates, bounds of pass rates, tests of differences, agreement.

docs/statistics.md and docs/comparison.md name their sources, and the measured error rates.
"""

import math
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, combinations
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text.format import format_count, format_distinct_percents, format_number
from agentci.model.result import CheckResult

PERCENT = 100


class PassRateBound(Struct, frozen=True, kw_only=True):
    """A pass rate of independent cases, checked against a required rate with confidence.

    Attributes:
        rate: the required pass rate, above 0 and below 1.
        confidence: the exact one-sided lower bound of the pass rate, at this confidence, must reach
            ``rate``.
    """

    passed: int
    total: int
    rate: float
    confidence: float

    @property
    def is_reached(self) -> bool:
        """Whether the lower bound of the pass rate reaches ``rate``."""
        return (
            binomial_tail_probability(self.passed, self.total, self.rate)
            <= 1 - self.confidence + TOLERANCE
        )

    @property
    def summary(self) -> str:
        """The lower bound in one sentence; if it is too low, also the number of cases needed."""
        bound, required = format_distinct_percents(
            clopper_pearson_lower_bound(self.passed, self.total, self.confidence), self.rate
        )
        confidence = f"{format_number(self.confidence * PERCENT)}%"
        cases = f"{self.passed:,} of {format_count(self.total, 'case')} passed"
        text = f"pass rate {confidence} confidence bound {bound}"
        if self.is_reached:
            return f"{text} reaches {required} ({cases})"
        needed = cases_needed(self.total - self.passed, self.rate, self.confidence)
        more = format_count(needed - self.total, "more passing case")
        return f"{text} is below {required} ({cases}; {more} needed)"


def make_pass_rate_bound(
    passes: Iterable[bool], rate: float | None, confidence: float | None
) -> PassRateBound | None:
    """Make the bound of a pass rate; None if there is nothing to check.

    A rate of 0 or 1 has no bound, because no number of cases can confirm it.

    Args:
        passes: whether each independent case passed.
        rate: the required pass rate.
        confidence: as in ``PassRateBound``; None requires no bound.
    """
    outcomes = [*passes]
    if confidence is None or rate is None or not 0 < rate < 1 or not outcomes:
        return None
    return PassRateBound(
        passed=sum(outcomes), total=len(outcomes), rate=rate, confidence=confidence
    )


def group_passes(results: Iterable[CheckResult]) -> Iterable[bool]:
    """Whether all checks passed, for each group of cases; cases of a group are not independent."""
    groups: dict[str, bool] = {}
    for result in results:
        passed = groups.get(result.case.group, True) and result.status == "passed"
        groups[result.case.group] = passed
    return groups.values()


CONFIDENCE: Final = 0.95
# A single group has no variance between groups.
MIN_GROUPS: Final = 2
# Fewer give intervals that say nothing: 5 of 5 passed is 46 to 100%.
MIN_SHOWN_GROUPS: Final = 10
# For the continued fraction: it ends at a change below CONVERGENCE; MAX_TERMS exceeds any need.
MAX_TERMS: Final = 100_000
CONVERGENCE: Final = 1e-15
TINY: Final = 1e-300
# Enough halvings to reach the precision of a float.
BISECTION_STEPS: Final = 100
# Allowance for floating-point error in sums of scores.
TOLERANCE: Final = 1e-9

# Student's t of single cases or of groups of cases.
IntervalMethod: TypeAlias = Literal["t", "clustered-t"]


class MeanEstimate(Struct, frozen=True, kw_only=True):
    """A mean of bounded values, and its uncertainty.

    Attributes:
        center: centre of all confidence intervals; slightly nearer to the middle than the mean.
        error: standard error of ``center``; never 0.
        degrees: degrees of freedom of Student's t.
    """

    center: float
    error: float
    degrees: int

    def bounds(self, share: float) -> tuple[float, float]:
        """The lower and the upper one-sided bound, each at the confidence ``share``."""
        reach = t_quantile(share, self.degrees) * self.error
        return self.center - reach, self.center + reach


class ConfidenceInterval(Struct, frozen=True, kw_only=True):
    """A 95% confidence interval of a mean or a share."""

    low: float
    high: float
    method: IntervalMethod


def estimate_mean(
    groups: Sequence[Sequence[float]], *, low: float = 0.0, high: float = 1.0
) -> MeanEstimate | None:
    """Estimate the mean of values from ``low`` to ``high``; None for fewer than two groups.

    Uses the clustered standard error (Miller 2024), after adding one group at each bound, of
    average size, as Agresti and Coull (1998) do for shares and Bonett and Price (2012) for
    differences. Otherwise intervals are too narrow near the bounds, and vanish for equal values.

    Args:
        groups: values that belong together, such as the scores of several recorded runs of one
            case. Independent values are in groups of one.
    """
    if len(groups) < MIN_GROUPS:
        return None
    size = sum(map(len, groups))
    added = size / len(groups)
    sums = [*map(math.fsum, groups), low * added, high * added]
    sizes = [*map(len, groups), added, added]
    whole = math.fsum(sizes)
    center = math.fsum(sums) / whole
    squares = math.fsum(
        (total - center * count) ** 2 for total, count in zip(sums, sizes, strict=True)
    )
    error = math.sqrt(squares * len(sums) / (len(sums) - 1)) / whole
    return MeanEstimate(center=center, error=error, degrees=len(groups) - 1)


def mean_confidence_interval(
    groups: Sequence[Sequence[float]], *, low: float = 0.0, high: float = 1.0
) -> ConfidenceInterval | None:
    """The 95% confidence interval of the mean of values from ``low`` to ``high``.

    It is mean +- t * SE, with Student's t at C - 1 degrees of freedom for C groups of n values, and
    SE = sqrt(sum over groups of (sum of (value - mean))^2 * C / (C - 1)) / n, corrected for few
    groups. Near the ends of the scale it would be too narrow without the two groups that
    ``estimate_mean`` adds.

    None for fewer than two groups. Pass rates are means of values that are 0 or 1.

    Args:
        groups: as in ``estimate_mean``.
    """
    estimate = estimate_mean(groups, low=low, high=high)
    if estimate is None:
        return None
    lower, upper = estimate.bounds((1 + CONFIDENCE) / 2)
    is_single = all(len(group) == 1 for group in groups)
    return ConfidenceInterval(
        low=max(low, lower), high=min(high, upper), method="t" if is_single else "clustered-t"
    )


def clopper_pearson_lower_bound(passed: int, whole: int, confidence: float) -> float:
    """The exact one-sided lower bound of a pass rate, after Clopper and Pearson.

    This is the rate at which ``passed`` or more passes have a probability of 1 - ``confidence``.
    """
    if not passed:
        return 0.0
    return _solve_by_bisection(
        lambda rate: binomial_tail_probability(passed, whole, rate), 1 - confidence
    )


def binomial_tail_probability(passed: int, whole: int, rate: float) -> float:
    """The probability that ``passed`` or more of ``whole`` cases pass at the pass rate ``rate``."""
    return beta_cdf(rate, passed, whole - passed + 1) if passed else 1.0


def cases_needed(failed: int, rate: float, confidence: float) -> int:
    """The number of cases needed to confirm ``rate`` if all but ``failed`` of them pass.

    Args:
        rate: above 0 and below 1.
    """

    def is_enough(whole: int) -> bool:
        return binomial_tail_probability(whole - failed, whole, rate) <= 1 - confidence + TOLERANCE

    most = failed + 1
    while not is_enough(most):
        most *= 2
    least = failed
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if is_enough(middle) else (middle, most)
    return most


@lru_cache(maxsize=1024)
def t_quantile(share: float, degrees: int) -> float:
    """The ``share`` quantile of Student's t distribution, for a share above one half."""
    part = _solve_by_bisection(lambda x: beta_cdf(x, degrees / 2, 0.5), 2 * (1 - share))
    return math.sqrt(degrees * (1 - part) / part)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, computed from its continued fraction."""
    if not 0 < x < 1:
        return float(x > 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log) * _beta_continued_fraction(x, a, b) / a


def _beta_continued_fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction by Lentz's method."""
    c, d = 1.0, 1 / _avoid_zero(1 - (a + b) * x / (a + 1))
    found, change, m = d, 0.0, 0
    while abs(change - 1) > CONVERGENCE and m < MAX_TERMS:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _avoid_zero(1 + term * d), _avoid_zero(1 + term / c)
            change = c * d
            found *= change
    return found


def _avoid_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def _solve_by_bisection(rising: Callable[[float], float], target: float) -> float:
    """Find x in 0 to 1 where a function that rises from 0 to 1 reaches ``target``."""
    low, high = 0.0, 1.0
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):  # no number is between them
            break
        low, high = (middle, high) if rising(middle) < target else (low, middle)
    return (low + high) / 2


# Scores are rounded to this unit, which makes sums of differences countable.
SCORE_UNITS: Final = 1000
# This many of the largest differences are counted exactly; the sum of all smaller ones is close to
# normal, because none of them has much weight.
MAX_COUNTED: Final = 200
# Probabilities are integers of this many bits below the decimal point, in fields of 64 bits.
PROBABILITY_BITS: Final = 62
FIELD_BYTES: Final = 8
# Above this multiple of the cases, an estimate of the cases needed is of little use.
MAX_MULTIPLE: Final = 20
# Probability with which a comparison is to detect a drop.
POWER: Final = 0.8
# Allowance for floating-point error in p-values.
P_VALUE_TOLERANCE: Final = 1e-9


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """The probability of a sum at or below that of ``differences`` if each sign were random.

    One-sided permutation test of independent differences, such as the sums of groups of cases. If
    all differences have one size, this is McNemar's exact test. Exact for up to ``MAX_COUNTED``
    differences other than 0, rounded to thousandths.
    """
    units = [round(each * SCORE_UNITS) for each in differences]
    units = sorted(filter(None, units), key=abs, reverse=True)
    if not units:
        return 1.0
    unit = math.gcd(*units)
    counted = [abs(each) // unit for each in units[:MAX_COUNTED]]
    probabilities = _subset_sum_probabilities(counted)
    # A sum of signed sizes is twice the sum of the positive ones minus the sum of all sizes.
    positive = sum(each for each in units if each > 0) // unit
    if len(units) <= MAX_COUNTED:
        return math.ldexp(sum(probabilities[: positive + 1]), -PROBABILITY_BITS)
    others = [abs(each) / unit for each in units[MAX_COUNTED:]]
    # The positive ones of the others have this mean and deviation. Sums far from the middle have a
    # probability of 0.
    rest = NormalDist(math.fsum(others) / 2, math.sqrt(math.fsum(each**2 for each in others)) / 2)
    chances = (
        each * rest.cdf(positive - total) for total, each in enumerate(probabilities) if each
    )
    return math.ldexp(math.fsum(chances), -PROBABILITY_BITS)


def _subset_sum_probabilities(sizes: Sequence[int]) -> tuple[int, ...]:
    """The probability of each sum of a random subset of ``sizes``, by sum.

    All probabilities are fields of one integer: taking a size or not is one shift of it.
    """
    fields = sum(sizes) + 1
    # Halving moves the lowest bit of a field into the highest one of its neighbour.
    keep = int.from_bytes((b"\xff" * (FIELD_BYTES - 1) + b"\x7f") * fields, "little")
    packed = 1 << PROBABILITY_BITS
    for size in sorted(sizes):  # the integer is short until the large ones follow
        packed = (packed + (packed << 8 * FIELD_BYTES * size)) >> 1 & keep
    return struct.unpack(f"<{fields}Q", packed.to_bytes(FIELD_BYTES * fields, "little"))


def holm_adjust(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values for multiple tests (Holm 1979), in the given order."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    raised = accumulate(
        (min(1.0, (len(p_values) - rank) * p_values[index]) for rank, index in enumerate(order)),
        max,
    )
    adjusted = dict(zip(order, raised, strict=True))
    return tuple(adjusted[index] for index in range(len(p_values)))


def min_groups_for_significance(alpha: float) -> int:
    """The smallest number of groups whose drop can reach a p-value of ``alpha``."""
    return max(1, math.ceil(-math.log2(alpha)))


def estimate_groups_needed(differences: Sequence[float], alpha: float) -> int | None:
    """Estimate how many groups it takes until a drop is significant.

    More groups are assumed to differ like the ones there are. None if the number is unreasonable.
    """

    def is_enough(times: int) -> bool:
        return sign_flip_p_value([*differences] * times) <= alpha + P_VALUE_TOLERANCE

    times = bisect_left(range(1, MAX_MULTIPLE + 1), 1, key=is_enough) + 1
    return None if times > MAX_MULTIPLE else times * len(differences)


def detectable_drop(standard_error: float, alpha: float) -> float:
    """The drop that is found significant with a probability of ``POWER``, by normal approximation.

    Args:
        standard_error: of the mean difference.
    """
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha) + normal.inv_cdf(POWER)) * standard_error


class Proportion(Struct, frozen=True, kw_only=True):
    """A share of results: ``part`` of ``whole``.

    Attributes:
        groups: for each case, which of its results count, if a case may have several; results of
            one case are not independent.
    """

    part: int
    whole: int
    groups: tuple[tuple[bool, ...], ...] = ()

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None if ``whole`` is 0."""
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the share; None for fewer than two cases."""
        single = [(True,)] * self.part + [(False,)] * (self.whole - self.part)
        found = mean_confidence_interval(self.groups or single)
        return None if found is None else (found.low, found.high)


class ConfusionMatrix(Struct, frozen=True, kw_only=True):
    """Counts of cases by human label and by the judge's result.

    Attributes:
        true_passes, false_fails: cases labelled as passed that the judge passed or failed.
        false_passes, true_fails: cases labelled as failed that the judge passed or failed.
    """

    true_passes: int = 0
    false_fails: int = 0
    false_passes: int = 0
    true_fails: int = 0

    @property
    def true_pass_rate(self) -> Proportion:
        """The share of the cases labelled as passed that the judge passed."""
        return Proportion(part=self.true_passes, whole=self.true_passes + self.false_fails)

    @property
    def true_fail_rate(self) -> Proportion:
        """The share of the cases labelled as failed that the judge failed."""
        return Proportion(part=self.true_fails, whole=self.true_fails + self.false_passes)

    @property
    def agreement(self) -> Proportion:
        """The share of all cases in which the label and the judge agree."""
        whole = self.true_pass_rate.whole + self.true_fail_rate.whole
        return Proportion(part=self.true_passes + self.true_fails, whole=whole)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: 1 is full agreement, 0 is the agreement expected by chance.

        None if there are no cases, or if the expected agreement is 1. J. Cohen, A Coefficient of
        Agreement for Nominal Scales, 1960.
        """
        agreed = self.agreement
        if agreed.value is None:
            return None
        judge_passes = self.true_passes + self.false_passes
        both_pass = judge_passes * self.true_pass_rate.whole
        both_fail = (agreed.whole - judge_passes) * self.true_fail_rate.whole
        expected = (both_pass + both_fail) / agreed.whole**2
        return None if expected == 1 else (agreed.value - expected) / (1 - expected)


def make_confusion_matrix(pairs: Iterable[tuple[bool, bool]]) -> ConfusionMatrix:
    """Count the cases.

    Args:
        pairs: for each case, whether its label is passed and whether the judge passed it.
    """
    listed = list(pairs)
    return ConfusionMatrix(
        true_passes=listed.count((True, True)),
        false_fails=listed.count((True, False)),
        false_passes=listed.count((False, True)),
        true_fails=listed.count((False, False)),
    )


def measure_flips(repeats: Iterable[Sequence[bool]]) -> Proportion:
    """Compute the share of pairs of results for the same case that differ.

    Args:
        repeats: the judge's results for each case.
    """
    flips = [tuple(a != b for a, b in combinations(verdicts, 2)) for verdicts in repeats]
    groups = tuple(filter(None, flips))
    return Proportion(part=sum(map(sum, groups)), whole=sum(map(len, groups)), groups=groups)


class Calibration(Struct, frozen=True, kw_only=True):
    """How well one evaluator agrees with human labels.

    Attributes:
        without_result: number of labelled cases without a result.
        flips: share of repeated results that differ; ``whole`` is 0 if no case was repeated.
    """

    evaluator: str
    confusion: ConfusionMatrix
    without_result: int
    flips: Proportion
