"""How likely it is that a difference is chance; exact where that is quick, with no randomness."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from statistics import NormalDist
from typing import Final

# Of 2 ** 15 sums a half, which takes a tenth of a second; beyond, the normal distribution is near.
MAX_EXACT: Final = 30
# Sums of scores are off by less than this.
TOLERANCE: Final = 1e-9


def tail(at_least: int, trials: int) -> float:
    """The chance of heads ``at_least`` so often when a fair coin is tossed ``trials`` times.

    For ``at_least`` regressions among as many changes this is McNemar's exact test, one-sided.
    """
    ways = sum(math.comb(trials, heads) for heads in range(at_least, trials + 1))
    return float(Fraction(ways, 1 << trials))


def sign_flip(differences: Sequence[float]) -> float:
    """The chance of a sum as low as that of ``differences``, were each as likely up as down.

    One-sided permutation test of paired differences; those that are 0 say nothing.
    """
    sizes = [abs(each) for each in differences if abs(each) > TOLERANCE]
    observed = math.fsum(differences)
    if not sizes:
        return 1.0
    if max(sizes) - min(sizes) <= TOLERANCE:
        down = sum(each < -TOLERANCE for each in differences)
        return tail(down, len(sizes))
    if len(sizes) <= MAX_EXACT:
        return _exact(sizes, observed)
    deviation = math.sqrt(math.fsum(size * size for size in sizes))
    return NormalDist().cdf(observed / deviation)


def _exact(sizes: Sequence[float], observed: float) -> float:
    """Count the pairs of half sums that do not exceed ``observed``."""
    middle = len(sizes) // 2
    left, right = _sums(sizes[:middle]), sorted(_sums(sizes[middle:]))
    low = sum(bisect_right(right, observed - each + TOLERANCE) for each in left)
    return float(Fraction(low, 1 << len(sizes)))


def _sums(sizes: Sequence[float]) -> list[float]:
    """The sums of ``sizes`` with all choices of signs."""
    sums = [0.0]
    for size in sizes:
        sums = [each + signed for each in sums for signed in (size, -size)]
    return sums


def holm(chances: Sequence[float]) -> tuple[float, ...]:
    """The chances, each made as large as testing all of them asks for (Holm 1979)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    raised = accumulate(
        (min(1.0, (len(chances) - rank) * chances[index]) for rank, index in enumerate(order)), max
    )
    adjusted = dict(zip(order, raised, strict=True))
    return tuple(adjusted[index] for index in range(len(chances)))


def pairs_needed(alpha: float) -> int:
    """How many pairs there have to be for any result to be less likely than ``alpha``."""
    return max(1, math.ceil(-math.log2(alpha)))
