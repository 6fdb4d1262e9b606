"""Report files given as input, and the shards among them."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from agentci.model.result import Report, ShardInfo
from agentci.model.values import Place, Problem

REPORT_NAME: Final = "results.json"
MAX_REPORT_BYTES: Final = 256 * 1024**2


class ReportFile(Struct, frozen=True, kw_only=True):
    """A report and the path of its file as shown to the user."""

    file: str
    report: Report

    def make_problem(self, message: str, hint: str | None = None) -> Problem:
        """Make a problem with the file as its place."""
        return Problem(message=message, place=Place(file=self.file), hint=hint)


class ShardReport(Struct, frozen=True, kw_only=True):
    """The report file of a shard and its part of the plan."""

    report_file: ReportFile
    info: ShardInfo

    @property
    def index(self) -> int:
        """Index of the shard, counted from 1."""
        return self.info.shard.index


def select_shards(parts: Sequence[ReportFile]) -> tuple[ShardReport, ...]:
    """Return the reports of shards, sorted by index."""
    shards = (
        ShardReport(report_file=part, info=part.report.shard_info)
        for part in parts
        if part.report.shard_info is not None
    )
    return tuple(sorted(shards, key=lambda shard: shard.index))
