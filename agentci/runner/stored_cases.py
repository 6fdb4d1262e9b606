"""Cases that are set aside until they are judged; what reports show of them is always there."""

from functools import lru_cache
from typing import Final

from msgspec import Struct

from agentci._util.spool import Spool
from agentci.model.case import Case, Golden, Synopsis
from agentci.model.dataset import Row
from agentci.recordings.telemetry.serialize import pack_trace, unpack_trace
from agentci.reports.case_summary import synopsis_of

# Evaluators judge a case one after the other.
RECENT: Final = 8


class Kept(Struct, frozen=True, kw_only=True, eq=False):
    """A case that was set aside; what it is compared with stays in memory, where many share it."""

    synopsis: Synopsis
    golden: Golden | None
    row: Row | None
    spool: Spool
    number: int

    def load(self) -> Case:
        """All that was recorded of it: the same case for as long as it was asked for lately."""
        return _load(self)


def keep(case: Case, spool: Spool) -> Kept:
    """Set ``case`` aside."""
    synopsis, number = synopsis_of(case), spool.put(pack_trace(case.trace))
    return Kept(synopsis=synopsis, golden=case.golden, row=case.row, spool=spool, number=number)


class Held(Struct, frozen=True, kw_only=True):
    """A case that stays in memory: one of an eval file is more than its trace."""

    synopsis: Synopsis
    case: Case

    def load(self) -> Case:
        """The case."""
        return self.case


def hold(case: Case) -> Held:
    """Leave ``case`` in memory."""
    return Held(synopsis=synopsis_of(case), case=case)


@lru_cache(maxsize=RECENT)
def _load(kept: Kept) -> Case:
    synopsis = kept.synopsis
    packed = kept.spool.take(kept.number)
    return Case(
        id=synopsis.id,
        trace=unpack_trace(packed, place=synopsis.recording, warnings=synopsis.warnings),
        golden=kept.golden,
        row=kept.row,
        no_golden_because=synopsis.no_golden_because,
    )
