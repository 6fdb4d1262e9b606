"""Workflow commands that make annotations, in the grammar of the runner (``ActionCommand.cs``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentci.model.place import Place
from agentci.text import clip, escape

Level: TypeAlias = Literal["error", "warning", "notice"]

LEVELS: tuple[Level, ...] = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A remark beside a line of the user's files.

    Attributes:
        message: of any length and origin.
        place: in the workspace; None where no file is to blame.
    """

    level: Level
    title: str
    message: str
    place: Place | None = None


def annotate(
    annotations: Sequence[Annotation], *, per_level: int, message_units: int, title_characters: int
) -> str:
    """Commands for as many annotations of each level as are shown, errors first.

    Args:
        annotations: the weightiest of a level first.
        per_level: how many of a level are shown; the last one counts the others.
        message_units: UTF-16 code units that a message may have.
        title_characters: that a title may have.
    """
    commands: list[str] = []
    for level in LEVELS:
        of_level = [each for each in annotations if each.level == level]
        hidden = len(of_level) - per_level
        for number, annotation in enumerate(of_level[:per_level], start=1):
            is_last = hidden > 0 and number == per_level
            note = f"\n({hidden:,} more not shown here)" if is_last else ""
            message = clip.utf16(escape.log(annotation.message), message_units - len(note))
            title = clip.characters(escape.one_line(annotation.title), title_characters)
            commands.append(_command(level, annotation.place, title, message + note))
    return "".join(f"{command}\n" for command in commands)


def data(text: str) -> str:
    """Escape what stands after the second ``::`` of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def property_value(text: str) -> str:
    """Escape what stands after the ``=`` of a command's property."""
    return data(text).replace(":", "%3A").replace(",", "%2C")


def _command(level: Level, place: Place | None, title: str, message: str) -> str:
    properties = {
        "file": place and escape.one_line(place.file),
        "line": place and str(place.line),
        "col": place and place.column and str(place.column),
        "title": title,
    }
    written = ",".join(f"{k}={property_value(v)}" for k, v in properties.items() if v)
    return f"::{level} {written}::{data(message)}"
