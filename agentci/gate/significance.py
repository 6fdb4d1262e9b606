"""Tests of differences between two runs: sign flips per group, and Holm's correction.

Formulas and their sources are in docs/comparison.md, measured error rates in docs/statistics.md.
"""

import math
import struct
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from statistics import NormalDist
from typing import Final

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
    # The positive ones of the others have this mean and deviation.
    rest = NormalDist(math.fsum(others) / 2, math.sqrt(math.fsum(each**2 for each in others)) / 2)
    chances = (each * rest.cdf(positive - total) for total, each in enumerate(probabilities))
    return math.ldexp(math.fsum(chances), -PROBABILITY_BITS)


def _subset_sum_probabilities(sizes: Sequence[int]) -> tuple[int, ...]:
    """The probability of each sum of a random subset of ``sizes``, by sum.

    All probabilities are fields of one integer: taking a size or not is one shift of it.
    """
    fields = sum(sizes) + 1
    # Halving moves the lowest bit of a field into the highest one of its neighbour.
    keep = int.from_bytes((b"\xff" * (FIELD_BYTES - 1) + b"\x7f") * fields, "little")
    packed = 1 << PROBABILITY_BITS
    for size in sizes:
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
