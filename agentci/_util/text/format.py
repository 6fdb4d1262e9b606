"""Formats numbers, the same way in all reports."""

import math
from collections.abc import Callable
from functools import lru_cache

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


def format_criterion(threshold: float) -> str:
    """Format what a score must reach: ``score >= 0.7``."""
    return f"score >= {threshold:g}"


def format_distinct(value: float, threshold: float) -> tuple[str, str]:
    """Format two numbers with enough decimals to show that they differ."""
    digits = _find_fewest_digits(
        3, lambda d: format_number(value, d) != format_number(threshold, d)
    )
    return format_number(value, digits), format_number(threshold, digits)


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
