"""Days out of texts, always in UTC, whatever the machine's time zone.

In this order: ISO 8601 (``2026``, ``2026-03``, ``2026-03-05``, with a time and an offset, too);
days with the English name of a month (``5-MAR-2026``, ``5 March 2026``, ``March 5, 2026``); and
``a/b/2026`` or ``a-b-2026``, month first, unless the formats say or one of the numbers shows that
the day comes first.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Final

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
LEAST_LETTERS: Final = 3
MOST_MONTHS: Final = 12

_PARTIAL: Final = re.compile(r"(\d{4})(?:-(\d{2}))?")
_DAY_FIRST: Final = re.compile(r"(\d{1,2})[- ]([A-Za-z]+)\.?[- ](\d{4})")
_MONTH_FIRST: Final = re.compile(r"([A-Za-z]+)\.? (\d{1,2}),? (\d{4})")
_NUMBERS: Final = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")


def day_of(text: str, formats: Sequence[str]) -> date | None:
    """The day that ``text`` names, None where it names none.

    Args:
        formats: ``MM/DD/YYYY`` and the like; what they leave open is told from the text.
    """
    text = text.strip()
    return _iso(text) or _named(text) or _numbered(text, formats)


def _iso(text: str) -> date | None:
    if found := _PARTIAL.fullmatch(text):
        return _date(int(found[1]), int(found[2] or 1), 1)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.date() if at.tzinfo is None else at.astimezone(UTC).date()


def _named(text: str) -> date | None:
    if found := _DAY_FIRST.fullmatch(text):
        day, name, year = found.groups()
    elif found := _MONTH_FIRST.fullmatch(text):
        name, day, year = found.groups()
    else:
        return None
    meant = [i for i, month in enumerate(MONTHS, 1) if month.startswith(name.lower())]
    if len(name) < LEAST_LETTERS or len(meant) != 1:
        return None
    return _date(int(year), meant[0], int(day))


def _numbered(text: str, formats: Sequence[str]) -> date | None:
    found = _NUMBERS.fullmatch(text)
    if found is None:
        return None
    first, second, year = map(int, found.groups())
    leads = {each.strip().upper()[:1] for each in formats} & {"D", "M"}
    day_leads = first > MOST_MONTHS if len(leads) != 1 else leads == {"D"}
    return _date(year, second, first) if day_leads else _date(year, first, second)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
