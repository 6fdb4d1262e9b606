"""Places in the user's files, so that every message can say where to act."""

from typing import Final

from msgspec import Struct


class Place(Struct, frozen=True, kw_only=True):
    """A spot in a file of the user.

    Attributes:
        file: path as the user would write it, with ``/``, relative to the workspace if inside it.
        line: counted from 1.
        column: counted from 1; None where only the line is known.
    """

    file: str
    line: int = 1
    column: int | None = None

    def __str__(self) -> str:
        if self.file == COMMAND_LINE.file:
            return self.file.strip("<>")
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column}"


# Stands for the file of what is given on the command line.
COMMAND_LINE: Final = Place(file="<command line>")
