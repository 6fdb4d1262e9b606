"""What is wrong, or worth knowing, about the input: values that are collected."""

from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.model.place import Place

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
