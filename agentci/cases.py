"""Cases that are set aside until they are judged; what reports show of them is always there."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agentci.model.case import Case, Golden, Synopsis
from agentci.reporters.synopsis import synopsis_of
from agentci.spool import Spool
from agentci.telemetry.packing import pack_trace, unpack_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known of a case, and what brings all of it."""

    synopsis: Synopsis
    load: Callable[[], Case]


def keep(case: Case, spool: Spool) -> Kept:
    """Set ``case`` aside; its golden case stays in memory, where many may share it."""
    synopsis, number = synopsis_of(case), spool.put(pack_trace(case.trace))
    return Kept(synopsis=synopsis, load=partial(_load, synopsis, case.golden, spool, number))


def hold(case: Case) -> Kept:
    """Leave ``case`` in memory: one of an eval file is more than its trace."""
    return Kept(synopsis=synopsis_of(case), load=lambda: case)


def _load(synopsis: Synopsis, golden: Golden | None, spool: Spool, number: int) -> Case:
    packed = spool.take(number)
    return Case(
        id=synopsis.id,
        trace=unpack_trace(packed, place=synopsis.recording, warnings=synopsis.warnings),
        golden=golden,
        no_golden_because=synopsis.no_golden_because,
    )
