"""The mark by which a comment is found again: hidden in its first line."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

_DIGITS: Final = 16
_MARK: Final = re.compile(r"<!-- agentci:([0-9a-f]{16}):([0-9a-f]{16}) -->\r?\n", re.ASCII)


class Mark(Struct, frozen=True, kw_only=True):
    """Which comment it is, and what it tells.

    Attributes:
        key: the same for all runs of a step, a job and a leg of its matrix.
        result: the same for all runs that came to the same.
    """

    key: str
    result: str

    def over(self, text: str) -> str:
        """The body of a comment."""
        return f"<!-- agentci:{self.key}:{self.result} -->\n{text}"


def mark_of(body: str) -> Mark | None:
    """The mark of a comment; None where it has none."""
    found = _MARK.match(body)
    return Mark(key=found[1], result=found[2]) if found else None


def key_of(*, workflow: str, job: str, step: str, configs: Sequence[str], matrix: str) -> str:
    """What tells the comments of a pull request apart.

    Commits, runs, attempts, events, results and the order of a matrix do not: whatever changes from
    run to run would leave a comment behind each time.

    Args:
        workflow: its file; job, step: their ids in it.
        configs: as the user named them.
        matrix: the leg of it that the job is, in JSON.
    """
    return digest_of([workflow, job, step, sorted(configs), _leg(matrix)])


def digest_of(value: object) -> str:
    """A short digest of what JSON can say."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _leg(matrix: str) -> object:
    try:
        return json.loads(matrix)
    except (ValueError, RecursionError):
        return matrix
