"""Small charts of scores: inline SVG, coloured by the style sheet, with a text alternative."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from agentci._util.text.format import format_number
from agentci.reports.html.markup import Markup, join_markup, tag

BINS = 10

_WIDTH = 120
_HEIGHT = 32
_RADIUS = 4


def make_histogram(
    passed: Sequence[float], failed: Sequence[float], threshold: float | None
) -> Markup:
    """Draw the scores per tenth of 0 to 1, failed checks on top, and the threshold."""
    good, bad = _count_tenths(passed), _count_tenths(failed)
    found = good + bad
    if not found:
        return Markup("")
    most = max(found.values())
    counts = [
        f"{found[each]:,} from {each / BINS:g} to {(each + 1) / BINS:g}" for each in sorted(found)
    ]
    parts: list[Markup] = []
    for each in sorted(found):
        height = _height(good[each], most)
        parts += _bar("passed", each, height, floor=0)
        parts += _bar("failed", each, _height(bad[each], most), floor=height)
    if threshold is not None:
        x = format_number(_clamp(threshold) * _WIDTH, 1)
        parts.append(tag("line", class_="threshold", x1=x, x2=x, y1=0, y2=_HEIGHT))
        counts.append(f"threshold {format_number(threshold)}")
    return _make_svg("histogram", f"Scores: {', '.join(counts)}", *parts)


def make_change_chart(before: float | None, after: float | None) -> Markup:
    """Draw two mean scores on an axis from 0 to 1: a ring for before, a dot for after."""
    if before is None or after is None:
        return Markup("")
    kind = "worse" if after < before else "better" if after > before else "same"
    y = _HEIGHT // 2
    was, now = (
        format_number(_RADIUS + _clamp(score) * (_WIDTH - 2 * _RADIUS), 1)
        for score in (before, after)
    )
    return _make_svg(
        "change",
        f"From {format_number(before)} to {format_number(after)}",
        tag("line", class_="track", x1=0, x2=_WIDTH, y1=y, y2=y),
        tag("line", class_=kind, x1=was, x2=now, y1=y, y2=y),
        tag("circle", class_="before", cx=was, cy=y, r=_RADIUS),
        tag("circle", class_=kind, cx=now, cy=y, r=_RADIUS),
    )


def make_share_bar(counts: Sequence[tuple[str, int]]) -> Markup:
    """Draw one bar divided in proportion to the counts."""
    total = sum(amount for _, amount in counts)
    if not total:
        return Markup("")
    parts, x = [], 0.0
    for kind, amount in counts:
        width = 100 * amount / total
        parts.append(
            tag("rect", class_=kind, x=format_number(x), y=0, width=format_number(width), height=8)
        )
        x += width
    return tag(
        "svg",
        *parts,
        class_="shares",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _count_tenths(scores: Sequence[float]) -> Counter[int]:
    whole = (min(BINS - 1, int(_clamp(score) * BINS)) for score in scores if math.isfinite(score))
    return Counter(whole)


def _height(amount: int, most: int) -> float:
    """Return the height of a bar; at least 1 unit, so that a small count stays visible."""
    return max(1.0, amount / most * _HEIGHT) if amount else 0.0


def _bar(kind: str, place: int, height: float, *, floor: float) -> Iterator[Markup]:
    if height:
        width = _WIDTH / BINS
        yield tag(
            "rect",
            class_=kind,
            x=format_number(place * width + 0.5, 1),
            y=format_number(_HEIGHT - floor - height, 1),
            width=format_number(width - 1, 1),
            height=format_number(height, 1),
        )


def _make_svg(kind: str, title: str, *parts: Markup) -> Markup:
    return tag(
        "svg",
        tag("title", title),
        join_markup(*parts),
        class_=kind,
        role="img",
        width=_WIDTH,
        height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
    )


def _clamp(score: float) -> float:
    return min(1.0, max(0.0, score))
