"""Problems with the input of a user, and the places in files that they point to."""

from typing import Final, Literal, TypeAlias

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


Severity: TypeAlias = Literal["error", "warning", "notice"]


class Problem(Struct, frozen=True, kw_only=True):
    """One thing to tell the user about a config, an eval set or a recording.

    Attributes:
        message: one sentence that says what is wrong, without a full stop.
        place: where; None where no file is to blame (a flag, say).
        hint: a way out, where one is known ("did you mean 'threshold'?").
        severity: an ``error`` makes the input unusable (exit 2), the others are only shown.
    """

    message: str
    place: Place | None = None
    hint: str | None = None
    severity: Severity = "error"

    def __str__(self) -> str:
        where = "" if self.place is None else f"{self.place}: "
        hint = "" if self.hint is None else f" ({self.hint})"
        return f"{where}{self.message}{hint}"
