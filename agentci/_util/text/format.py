"""Formats numbers, the same way in all reports, and reads durations.

Scores and their changes have two decimals, rates none: 0.91, \u22120.04, 98%. They have more where
a difference that matters would be hidden otherwise.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Final

# Enough to show any difference larger than the gate's tolerance.
_MOST_DIGITS = 12


def format_count(number: int, noun: str) -> str:
    """Format ``1 check``, ``12,000 checks``, for nouns with a plural in -s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# Scores and thresholds recur in all reports.
@lru_cache(maxsize=4096)
def format_number(value: float, digits: int = 3) -> str:
    """Format ``0.7``, ``0.333``, ``1``: at most ``digits`` decimals, without trailing zeros."""
    if not math.isfinite(value):
        return str(value)
    written = f"{value:.{digits}f}"
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def format_signed(value: float, digits: int = 2) -> str:
    """Format a change with a typographic minus: ``+0.05``, ``\u22120.07``, ``0``."""
    shown = format_number(value, digits)
    return f"+{shown}" if value > 0 and shown != "0" else shown.replace("-", "\N{MINUS SIGN}")


@lru_cache(maxsize=4096)
def format_score(score: float, threshold: float | None = None) -> str:
    """Format ``0.58``: two decimals, or as many as tell it from 0, 1 and ``threshold``."""
    return format_number(score, _find_fewest_digits(2, lambda d: _is_faithful(score, threshold, d)))


def format_score_pair(before: float, after: float) -> str:
    """Format ``0.91 → 0.58``; different scores look different."""
    old, new, _ = format_score_triple(before, after)
    return f"{old} → {new}"


def format_score_triple(before: float, after: float) -> tuple[str, str, str]:
    """Format ``0.996``, ``0.902``, ``\u22120.094``: two scores, and what the shown ones differ by.

    All have the same number of decimals; different scores look different.
    """

    def is_enough(digits: int) -> bool:
        shown = [format_number(each, digits) for each in (before, after)]
        faithful = all(_is_faithful(each, None, digits) for each in (before, after))
        return faithful and (shown[0] != shown[1] or before == after)

    digits = _find_fewest_digits(2, is_enough)
    old, new = format_number(before, digits), format_number(after, digits)
    return old, new, format_signed(float(new) - float(old), digits)


def _is_faithful(score: float, threshold: float | None, digits: int) -> bool:
    shown = float(format_number(score, digits))
    if threshold is not None and score < threshold <= shown:
        return False
    return all((shown == each) == (score == each) for each in (0.0, 1.0))


def format_criterion(threshold: float) -> str:
    """Format what a score must reach: ``score >= 0.7``."""
    return f"score >= {threshold:g}"


def format_distinct(value: float, threshold: float) -> tuple[str, str]:
    """Format two numbers with enough decimals to show that they differ."""
    digits = _find_fewest_digits(
        3, lambda d: format_number(value, d) != format_number(threshold, d)
    )
    return format_number(value, digits), format_number(threshold, digits)


def format_duration(milliseconds: float, digits: int = 3) -> str:
    """Format ``0.85 s``, ``1 min 30 s``, ``2 h``, with at most ``digits`` decimals."""
    minutes, seconds = divmod(round(milliseconds / 1000, digits), 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours:,} h"] if hours else []
    parts += [f"{minutes} min"] if minutes else []
    written = format_number(seconds, digits)
    parts += [f"{written} s"] if written != "0" or not parts else []
    return " ".join(parts)


# Numbers with units, such as `1m30s`.
DURATION_PATTERN: Final = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def parse_duration(text: str) -> float:
    """Parse ``1m30s``, which matches ``DURATION_PATTERN``, to milliseconds."""
    parts = _DURATION_PART.findall(text)
    return float(sum(Decimal(number) * _MILLISECONDS[unit] for number, unit in parts))


def parse_seconds(text: str) -> float | None:
    """Parse ``1m30s`` or ``90`` to seconds; None for another text or an infinite number."""
    if _SECONDS.fullmatch(text):
        text += "s"
    if re.fullmatch(DURATION_PATTERN, text) is None:
        return None
    seconds = parse_duration(text) / 1000
    return seconds if math.isfinite(seconds) else None


def format_distinct_durations(value: float, limit: float) -> tuple[str, str]:
    """Format two durations in milliseconds with enough decimals to show that they differ."""
    digits = _find_fewest_digits(
        3, lambda d: format_duration(value, d) != format_duration(limit, d)
    )
    return format_duration(value, digits), format_duration(limit, digits)


def format_percent(rate: float) -> str:
    """Format ``98%``: no decimals, or as many as tell it from 0% and 100%."""
    digits = _find_fewest_digits(
        0, lambda d: (_format_percent(rate, d) in ("0%", "100%")) == (rate in (0.0, 1.0))
    )
    return _format_percent(rate, digits)


def format_distinct_percents(value: float, threshold: float) -> tuple[str, str]:
    """Format two ratios as percentages with enough decimals to show that they differ."""
    digits = _find_fewest_digits(
        0, lambda d: _format_percent(value, d) != _format_percent(threshold, d)
    )
    return _format_percent(value, digits), _format_percent(threshold, digits)


def _format_percent(ratio: float, digits: int) -> str:
    return f"{format_number(ratio * 100, digits)}%"


def _find_fewest_digits(least: int, enough: Callable[[int], bool]) -> int:
    """Return the smallest sufficient number of decimals; ``least`` if there is none."""
    return next((digits for digits in range(least, _MOST_DIGITS) if enough(digits)), least)
