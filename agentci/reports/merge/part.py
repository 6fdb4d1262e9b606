"""Reports that were handed in, and those of shards among them."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.model.result import Report
from agentci.model.shard import Portion

REPORT_NAME: Final = "results.json"
MAX_REPORT_BYTES: Final = 256 * 1024**2


class Part(Struct, frozen=True, kw_only=True):
    """A report, and where it was found, as shown to the user."""

    file: str
    report: Report

    def problem(self, message: str, hint: str | None = None) -> Problem:
        """Something that is wrong with it."""
        return Problem(message=message, place=Place(file=self.file), hint=hint)


class Piece(Struct, frozen=True, kw_only=True):
    """The report of a shard."""

    part: Part
    portion: Portion

    @property
    def index(self) -> int:
        """Which shard it is, counted from 1."""
        return self.portion.shard.index


def pieces_of(parts: Sequence[Part]) -> tuple[Piece, ...]:
    """The reports of shards, by their index."""
    pieces = (
        Piece(part=part, portion=part.report.portion)
        for part in parts
        if part.report.portion is not None
    )
    return tuple(sorted(pieces, key=lambda piece: piece.index))
