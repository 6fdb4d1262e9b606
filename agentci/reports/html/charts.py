"""Small pictures of scores: inline SVG, coloured by the style sheet, said in words as well."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from agentci._util.text.format import number
from agentci.reports.html.markup import Markup, joined, tag

BINS = 10

_WIDTH = 120
_HEIGHT = 32
_RADIUS = 4


def histogram(passed: Sequence[float], failed: Sequence[float], threshold: float | None) -> Markup:
    """How many scores fall into each tenth of 0 to 1, what failed on top, and the threshold."""
    good, bad = _tenths(passed), _tenths(failed)
    found = good + bad
    if not found:
        return Markup("")
    most = max(found.values())
    told = [
        f"{found[each]:,} from {each / BINS:g} to {(each + 1) / BINS:g}" for each in sorted(found)
    ]
    parts: list[Markup] = []
    for each in sorted(found):
        height = _height(good[each], most)
        parts += _bar("passed", each, height, floor=0)
        parts += _bar("failed", each, _height(bad[each], most), floor=height)
    if threshold is not None:
        x = number(_within(threshold) * _WIDTH, 1)
        parts.append(tag("line", class_="threshold", x1=x, x2=x, y1=0, y2=_HEIGHT))
        told.append(f"threshold {number(threshold)}")
    return _picture("histogram", f"Scores: {', '.join(told)}", *parts)


def change(before: float | None, after: float | None) -> Markup:
    """Two mean scores on a line from 0 to 1: a ring where it was, a dot where it is."""
    if before is None or after is None:
        return Markup("")
    kind = "worse" if after < before else "better" if after > before else "same"
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


def _tenths(scores: Sequence[float]) -> Counter[int]:
    whole = (min(BINS - 1, int(_within(score) * BINS)) for score in scores if math.isfinite(score))
    return Counter(whole)


def _height(amount: int, most: int) -> float:
    """Of a bar, which is to be seen however low it is."""
    return max(1.0, amount / most * _HEIGHT) if amount else 0.0


def _bar(kind: str, place: int, height: float, *, floor: float) -> Iterator[Markup]:
    if height:
        width = _WIDTH / BINS
        yield tag(
            "rect",
            class_=kind,
            x=number(place * width + 0.5, 1),
            y=number(_HEIGHT - floor - height, 1),
            width=number(width - 1, 1),
            height=number(height, 1),
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
    return min(1.0, max(0.0, score))
