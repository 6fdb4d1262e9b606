"""Reports that were handed in, and those of shards among them."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from agentci.model.problem import Place, Problem
from agentci.model.result import Report
from agentci.model.shard import ShardInfo

REPORT_NAME: Final = "results.json"
MAX_REPORT_BYTES: Final = 256 * 1024**2


class ReportFile(Struct, frozen=True, kw_only=True):
    """A report, and where it was found, as shown to the user."""

    file: str
    report: Report

    def make_problem(self, message: str, hint: str | None = None) -> Problem:
        """Something that is wrong with it."""
        return Problem(message=message, place=Place(file=self.file), hint=hint)


class ShardReport(Struct, frozen=True, kw_only=True):
    """The report of a shard."""

    report_file: ReportFile
    portion: ShardInfo

    @property
    def index(self) -> int:
        """Which shard it is, counted from 1."""
        return self.portion.shard.index


def select_shards(parts: Sequence[ReportFile]) -> tuple[ShardReport, ...]:
    """The reports of shards, by their index."""
    pieces = (
        ShardReport(report_file=part, portion=part.report.shard_info)
        for part in parts
        if part.report.shard_info is not None
    )
    return tuple(sorted(pieces, key=lambda piece: piece.index))
