"""Dates as YAML 1.1 knows them."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|[ \t]+)"
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[ \t]*(?P<zone>Z|(?P<sign>[-+])(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{2}))?))?"
)


def iso_date(text: str) -> str | None:
    """A date in ISO 8601, as agentevals hands it to evaluators; None for other texts."""
    try:
        if found := _DAY.fullmatch(text):
            return date(int(found[1]), int(found[2]), int(found[3])).isoformat()
        if found := _MOMENT.fullmatch(text):
            return _moment(found).isoformat().replace("+00:00", "Z")
    except ValueError:
        # The 30th of February is text.
        return None
    return None


def _moment(found: re.Match[str]) -> datetime:
    return datetime(
        int(found["year"]),
        int(found["month"]),
        int(found["day"]),
        int(found["hour"]),
        int(found["minute"]),
        int(found["second"]),
        int((found["fraction"] or "")[:6].ljust(6, "0")),
        _zone(found),
    )


def _zone(found: re.Match[str]) -> timezone | None:
    if found["zone"] == "Z":
        return UTC
    if found["sign"] is None:
        return None
    offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or 0))
    return timezone(-offset if found["sign"] == "-" else offset)
