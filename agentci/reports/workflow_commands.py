"""GitHub workflow commands: annotations, those on lines of the diff first, and groups.

Also GitHub's limits on annotations, comments, summaries and SARIF files. Their sources: the
runner's source code (``_maxIssueMessageLength``, ``_maxCountPerIssueType``, the upload of step
summaries) and GitHub's documentation of workflow commands and SARIF files.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, get_args

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci.model.values import Place, Severity

# Annotations per step and type (error, warning, notice); later ones are dropped.
ANNOTATIONS_PER_TYPE = 10

# UTF-16 code units of an annotation's message; the rest is cut.
ANNOTATION_MESSAGE_UNITS = 4096

# Characters of an annotation's title.
ANNOTATION_TITLE_CHARACTERS = 255

# Characters of a comment.
COMMENT_CHARACTERS = 65_536

# Bytes of a step summary; a larger one is dropped as a whole.
SUMMARY_BYTES = 1024 * 1024

# Results per run in a SARIF file; a file with more is rejected.
SARIF_RESULTS = 25_000

# Characters of a result's message: 25,000 of this length stay far below GitHub's file limit of 10
# MB (compressed).
SARIF_MESSAGE_CHARACTERS = 1000


# Lines of the diff's hunks by file, in the new version, with the context lines.
DiffLines: TypeAlias = Mapping[str, tuple[range, ...]]
NO_DIFF: Final[DiffLines] = {}

# File lines in a patch start with " ", "+" or "-", so "@@" is always a hunk header.
_HUNK: Final = re.compile(
    r"^@@ -[0-9,]+ \+(?P<start>[0-9]{1,9})(?:,(?P<count>[0-9]{1,9}))? @@", re.MULTILINE
)


def parse_hunks(patch: str) -> tuple[range, ...]:
    """Parse the line ranges of a file's patch (the hunks of ``git diff`` without file header)."""
    return tuple(
        range(start := int(hunk["start"]), start + int(hunk["count"] or 1))
        for hunk in _HUNK.finditer(patch)
    )


def distance_to_diff(place: Place | None, diff: DiffLines) -> int:
    """Return 0 for a line that the diff shows, 1 for a file of the diff, 2 elsewhere."""
    if place is None or place.file not in diff:
        return 2
    return 0 if any(place.line in lines for lines in diff[place.file]) else 1


# Most severe first.
LEVELS: tuple[Severity, ...] = get_args(Severity)
COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "note": "notice"}


class Annotation(Struct, frozen=True, kw_only=True):
    """A message on a line of the user's files.

    Attributes:
        message: of any length, possibly with untrusted text; rendering cuts and escapes it.
        place: in the workspace; None if no file is concerned.
    """

    level: Severity
    title: str
    message: str
    place: Place | None = None


def exceed_annotation_limit(annotations: Sequence[Annotation]) -> bool:
    """Whether GitHub would drop some of the annotations."""
    levels = Counter(each.level for each in annotations)
    return any(count > ANNOTATIONS_PER_TYPE for count in levels.values())


def render_annotations(annotations: Sequence[Annotation], diff: DiffLines = NO_DIFF) -> str:
    """Render commands for as many annotations per level as GitHub shows, errors first.

    Args:
        annotations: most important first within a level; the last one shown counts the omitted
            ones.
        diff: of a pull request; annotations closer to it come first.
    """
    commands: list[str] = []
    for level in LEVELS:
        of_level = sorted(
            (each for each in annotations if each.level == level),
            key=lambda each: distance_to_diff(each.place, diff),
        )
        shown = of_level[:ANNOTATIONS_PER_TYPE]
        hidden = len(of_level) - len(shown)
        note = f"\n({hidden:,} more not shown here)" if hidden else ""
        commands += map(_render_command, shown[:-1])
        commands += (_render_command(last, note) for last in shown[-1:])
    return "".join(f"{command}\n" for command in commands)


def render_group(title: str, body: str) -> str:
    """Render lines that the log shows folded.

    Args:
        body: whole lines without workflow commands.
    """
    return f"::group::{escape_data(title)}\n{body}::endgroup::\n"


def escape_data(text: str) -> str:
    """Escape the part of a command after its second ``::``."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a command's property."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _render_command(annotation: Annotation, note: str = "") -> str:
    """Render the command of an annotation, with ``note`` at the end of its message."""
    place = annotation.place
    message = escape.escape_for_log(annotation.message)
    kept = truncate.utf16(message, ANNOTATION_MESSAGE_UNITS - len(note))
    title = escape.escape_for_log_line(annotation.title)
    properties = {
        "file": place and escape.escape_for_log_line(place.file),
        "line": place and str(place.line),
        "col": place and place.column and str(place.column),
        "title": truncate.characters(title, ANNOTATION_TITLE_CHARACTERS),
    }
    written = ",".join(f"{k}={escape_property(v)}" for k, v in properties.items() if v)
    return f"::{COMMANDS[annotation.level]} {written}::{escape_data(kept + note)}"
