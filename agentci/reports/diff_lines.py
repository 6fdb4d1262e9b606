"""The lines that a pull request's diff shows, and how near to them a remark is."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from agentci.model.place import Place

# By file, as the pull request leaves it: the lines of its hunks, those around a change included.
Diff: TypeAlias = Mapping[str, tuple[range, ...]]
NO_DIFF: Final[Diff] = {}

# Lines of a file begin with another character.
_HUNK: Final = re.compile(
    r"^@@ -[0-9,]+ \+(?P<start>[0-9]{1,9})(?:,(?P<count>[0-9]{1,9}))? @@", re.MULTILINE
)


def lines_shown(patch: str) -> tuple[range, ...]:
    """The lines of a file's hunks, in the form of ``git diff`` without its head."""
    return tuple(
        range(start := int(hunk["start"]), start + int(hunk["count"] or 1))
        for hunk in _HUNK.finditer(patch)
    )


def distance(place: Place | None, diff: Diff) -> int:
    """0 on a line that is shown, 1 in a file of the diff, 2 elsewhere."""
    if place is None or place.file not in diff:
        return 2
    return 0 if any(place.line in lines for lines in diff[place.file]) else 1
