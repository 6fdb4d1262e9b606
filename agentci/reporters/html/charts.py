"""Small pictures of scores: inline SVG, coloured by the style sheet, said in words as well."""

import math
from collections import Counter
from collections.abc import Sequence

from agentci.reporters.html.markup import Markup, joined, tag
from agentci.text.words import number

BINS = 10

_WIDTH = 120
_HEIGHT = 32
_RADIUS = 4


def histogram(scores: Sequence[float], threshold: float | None) -> Markup:
    """How many scores fall into each tenth of 0 to 1, and where the threshold is.

    A bar whose middle is below the threshold has the colour of failures.
    """
    found = Counter(min(BINS - 1, int(_within(score) * BINS)) for score in scores if score == score)  # noqa: PLR0124 (NaN)
    if not found:
        return Markup("")
    most = max(found.values())
    bars = [_bar(each, found[each] / most, threshold) for each in sorted(found)]
    told = [
        f"{found[each]:,} from {each / BINS:g} to {(each + 1) / BINS:g}" for each in sorted(found)
    ]
    if threshold is not None:
        x = number(_within(threshold) * _WIDTH, 1)
        bars.append(tag("line", class_="threshold", x1=x, x2=x, y1=0, y2=_HEIGHT))
        told.append(f"threshold {number(threshold)}")
    return _picture("histogram", f"Scores: {', '.join(told)}", *bars)


def change(before: float | None, after: float | None) -> Markup:
    """Two mean scores on a line from 0 to 1: a ring where it was, a dot where it is."""
    if before is None or after is None:
        return Markup("")
    kind = "worse" if after < before else "better"
    y = _HEIGHT // 2
    was, now = (
        number(_RADIUS + _within(score) * (_WIDTH - 2 * _RADIUS), 1) for score in (before, after)
    )
    return _picture(
        "change",
        f"From {number(before)} to {number(after)}",
        tag("line", class_="track", x1=0, x2=_WIDTH, y1=y, y2=y),
        tag("line", class_=kind, x1=was, x2=now, y1=y, y2=y),
        tag("circle", class_="before", cx=was, cy=y, r=_RADIUS),
        tag("circle", class_=kind, cx=now, cy=y, r=_RADIUS),
    )


def shares(counts: Sequence[tuple[str, int]]) -> Markup:
    """A bar divided by how many there are of each kind."""
    total = sum(amount for _, amount in counts)
    if not total:
        return Markup("")
    parts, x = [], 0.0
    for kind, amount in counts:
        width = 100 * amount / total
        parts.append(tag("rect", class_=kind, x=number(x), y=0, width=number(width), height=8))
        x += width
    return tag(
        "svg",
        *parts,
        class_="shares",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _bar(place: int, share: float, threshold: float | None) -> Markup:
    width = _WIDTH / BINS
    height = max(2, round(share * _HEIGHT))
    low = threshold is not None and (place + 0.5) / BINS < threshold
    return tag(
        "rect",
        class_="failed" if low else "passed",
        x=number(place * width + 0.5, 1),
        y=_HEIGHT - height,
        width=number(width - 1, 1),
        height=height,
    )


def _picture(kind: str, told: str, *parts: Markup) -> Markup:
    return tag(
        "svg",
        tag("title", told),
        joined(*parts),
        class_=kind,
        role="img",
        width=_WIDTH,
        height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
    )


def _within(score: float) -> float:
    return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0
