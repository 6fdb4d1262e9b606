"""Mean scores as a chart that GitHub draws: Mermaid's xychart.

See https://mermaid.js.org/syntax/xyChart.html. It has no legend, so that the title says what is
what; bars of two series hide each other, so that the baseline is a line.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import number
from agentci.model.result import Report
from agentci.reports.locations import file_name
from agentci.reports.report_format import several_configs, tallies

# One bar says no more than its number; more than these are too thin to be told apart.
FEWEST: Final = 2
MOST: Final = 30
MAX_NAME: Final = 40

_EDGES, _BAR = 100, 32
# Blue and amber: told apart by all, on white and on black.
_PALETTE: Final = "#4c8dff, #d9930d"
# All but these may mean something to Mermaid, even inside quotes: a directive, an entity, a tag.
_UNSAFE: Final = re.compile(r"[^\w .,:/+()-]+")


class _Bar(Struct, frozen=True):
    config: str
    evaluator: str
    score: float | None
    before: float | None = None


def chart(report: Report) -> str:
    """A block of Markdown; empty where a chart would show nothing.

    Beside a baseline, both scores are those of the checks of both runs.
    """
    several = several_configs(report.results)
    trends = report.comparison.trends if report.comparison else ()
    paired = [_Bar(each.config, each.evaluator, each.after, each.before) for each in trends]
    paired = [bar for bar in paired if _is_drawn(bar.score) and _is_drawn(bar.before)]
    if FEWEST <= len(paired) <= MOST:
        title = "Mean score over the checks of both runs (line: baseline)"
        return _block(title, paired, several=several)
    alone = [
        _Bar(tally.any.config, tally.any.evaluator.name, tally.totals.score)
        for tally in tallies(report.results)
        if _is_drawn(tally.totals.score)
    ]
    return _block("Mean score", alone, several=several) if FEWEST <= len(alone) <= MOST else ""


def _is_drawn(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _block(title: str, bars: Sequence[_Bar], *, several: bool) -> str:
    init = {
        "xyChart": {"width": 800, "height": _EDGES + _BAR * len(bars)},
        "themeVariables": {"xyChart": {"plotColorPalette": _PALETTE}},
    }
    lines = [
        f"%%{{init: {json.dumps(init)}}}%%",
        "xychart-beta horizontal",
        f'title "{title}"',
        f"x-axis [{', '.join(_names(bars, several=several))}]",
        "y-axis 0 --> 1",
        f"bar [{_numbers(bar.score for bar in bars)}]",
    ]
    if any(bar.before is not None for bar in bars):
        lines.append(f"line [{_numbers(bar.before for bar in bars)}]")
    return "\n".join(["```mermaid", *lines, "```\n"])


def _numbers(scores: Iterable[float | None]) -> str:
    return ", ".join(number(score) for score in scores if score is not None)


def _names(bars: Iterable[_Bar], *, several: bool) -> Iterable[str]:
    """Each bar's own name: those of the same name would be drawn over each other."""
    seen = Counter[str]()
    for bar in bars:
        config = f" ({file_name(bar.config)})" if several else ""
        text = _UNSAFE.sub(" ", f"{bar.evaluator}{config}")
        name = truncate.short(" ".join(text.split()), MAX_NAME)
        seen[name] += 1
        yield f'"{name} ({seen[name]})"' if seen[name] > 1 or not name else f'"{name}"'
