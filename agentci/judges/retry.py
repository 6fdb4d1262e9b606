"""Which answers are worth another try, and how long a service is left alone before it."""

import random
import re
from collections.abc import Mapping
from typing import Final

from agentci._util.http.retries import moment_of

TRIED_AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TOO_MANY_REQUESTS: Final = 429

FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_GUESS_SECONDS: Final = 30.0
# Of a wait; so that those who failed together do not come back together.
MAX_JITTER: Final = 0.25

_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)


def is_passing(status: int, headers: Mapping[str, str]) -> bool:
    """Whether another try may do better; a service that says so itself is believed.

    Args:
        headers: by name in lower case.
    """
    said = headers.get("x-should-retry", "").strip().lower()
    return said == "true" or (status in TRIED_AGAIN and said != "false")


def asked_seconds(headers: Mapping[str, str], *, now: float) -> float | None:
    """How long a service asks to be left alone; None where it does not.

    Args:
        now: seconds since 1970, for a date where the service does not say its own time.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    said = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(said):
        return float(said)
    until, here = moment_of(said), moment_of(headers.get("date", ""))
    if until is None:
        return None
    return max(0.0, until - (now if here is None else here))


def guessed_seconds(tries: int) -> float:
    """How long to wait after ``tries`` tries where nobody says: twice as long each time."""
    seconds = min(LONGEST_GUESS_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (tries - 1))
    return seconds * (1 - random.uniform(0, MAX_JITTER))  # noqa: S311 (nothing to guess)
