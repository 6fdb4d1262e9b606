"""Workflow commands that make annotations, in the grammar of the runner (``ActionCommand.cs``)."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci.model.place import Place
from agentci.model.problem import Severity
from agentci.reports import github_limits
from agentci.reports.diff_lines import NO_DIFF, Diff, distance

# The weightiest first.
LEVELS: tuple[Severity, ...] = get_args(Severity)


class Annotation(Struct, frozen=True, kw_only=True):
    """A remark beside a line of the user's files.

    Attributes:
        message: of any length and origin.
        place: in the workspace; None where no file is to blame.
    """

    level: Severity
    title: str
    message: str
    place: Place | None = None


def are_too_many(annotations: Sequence[Annotation]) -> bool:
    """Whether GitHub would not show all of them."""
    levels = Counter(each.level for each in annotations)
    return any(count > github_limits.ANNOTATIONS_PER_TYPE for count in levels.values())


def annotate(annotations: Sequence[Annotation], diff: Diff = NO_DIFF) -> str:
    """Commands for as many annotations of each level as GitHub shows, errors first.

    Args:
        annotations: the weightiest of a level first; the last one shown counts the others.
        diff: of a pull request; what is nearer to it goes before what is weightier.
    """
    commands: list[str] = []
    for level in LEVELS:
        of_level = sorted(
            (each for each in annotations if each.level == level),
            key=lambda each: distance(each.place, diff),
        )
        shown = of_level[: github_limits.ANNOTATIONS_PER_TYPE]
        hidden = len(of_level) - len(shown)
        note = f"\n({hidden:,} more not shown here)" if hidden else ""
        commands += map(_command, shown[:-1])
        commands += (_command(last, note) for last in shown[-1:])
    return "".join(f"{command}\n" for command in commands)


def data(text: str) -> str:
    """Escape what stands after the second ``::`` of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def property_value(text: str) -> str:
    """Escape what stands after the ``=`` of a command's property."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def _command(annotation: Annotation, note: str = "") -> str:
    """The command for an annotation, with ``note`` at the end of its message."""
    place = annotation.place
    message = escape.log(annotation.message)
    kept = truncate.utf16(message, github_limits.ANNOTATION_MESSAGE_UNITS - len(note))
    title = escape.one_line(annotation.title)
    properties = {
        "file": place and escape.one_line(place.file),
        "line": place and str(place.line),
        "col": place and place.column and str(place.column),
        "title": truncate.characters(title, github_limits.ANNOTATION_TITLE_CHARACTERS),
    }
    written = ",".join(f"{k}={property_value(v)}" for k, v in properties.items() if v)
    return f"::{annotation.level} {written}::{data(kept + note)}"
