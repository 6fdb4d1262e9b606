"""How alike two directions are."""

import math
from collections.abc import Sequence


def cosine(mine: Sequence[float], its: Sequence[float]) -> float:
    """The cosine of the angle between two vectors of the same length: -1 to 1.

    Raises:
        ValueError: one of them is all zeros, and so has no direction.
    """
    a, b = _scaled(mine), _scaled(its)
    product, squares = _dot(a, b), _dot(a, a) * _dot(b, b)
    # Rounding may put it a little above 1.
    return max(-1.0, min(1.0, product / math.sqrt(squares)))


def _scaled(vector: Sequence[float]) -> list[float]:
    """The same direction, in numbers whose squares are no less and no more than floats can be."""
    largest = max(map(abs, vector))
    if not largest:
        raise ValueError("a vector of zeros has no direction")
    return [each / largest for each in vector]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))
