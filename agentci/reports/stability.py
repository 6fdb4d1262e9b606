"""Evaluators that were asked several times about each case: how often they said something else."""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import count, number
from agentci.model.json import JsonObject
from agentci.model.result import RepeatRecord, Result
from agentci.reports.locations import file_name
from agentci.reports.report_format import several_configs, tallies

MAX_CASES: Final = 10


class Stability(Struct, frozen=True, kw_only=True):
    """One evaluator that was asked several times.

    Attributes:
        name: with its config where there are several.
        told: how often it said something else.
        unstable: the cases in which it did, the worst of them, with its verdicts.
    """

    name: str
    told: str
    unstable: tuple[str, ...]

    @property
    def line(self) -> str:
        """All of it."""
        return f"{self.name}: {self.told}{': ' if self.unstable else ''}{', '.join(self.unstable)}"


def stabilities(results: tuple[Result, ...]) -> Iterator[Stability]:
    """The evaluators that were asked several times, in the order in which they come up."""
    several = several_configs(results)
    for tally in tallies(results):
        records = [
            (each.case.id, each.repeats, each.repeats.flip_rate)
            for each in tally.results
            if each.repeats is not None and each.repeats.flip_rate is not None
        ]
        if not records:
            continue
        flipped = sorted((each for each in records if each[2]), key=lambda each: -each[2])
        rate = number(flip_rate(tally.results) or 0.0)
        of = f" of {file_name(tally.any.config)}" if several else ""
        cases = [f"{case} ({_votes(record)})" for case, record, _ in flipped]
        yield Stability(
            name=f"{tally.any.evaluator.name}{of}",
            told=f"flip rate {rate}, {len(flipped):,} of {count(len(records), 'check')} unstable",
            unstable=tuple(truncate.listed(cases, MAX_CASES)),
        )


def flip_rate(results: Sequence[Result]) -> float | None:
    """The mean of the checks that were asked several times and judged; None without any."""
    records = (result.repeats for result in results)
    rates = [each.flip_rate for each in records if each and each.flip_rate is not None]
    return fsum(rates) / len(rates) if rates else None


def record_fields(record: RepeatRecord | None) -> JsonObject | None:
    """A record as JSON."""
    if record is None:
        return None
    return {
        "by": record.by,
        "flip_rate": record.flip_rate,
        "repeats": [
            {"status": each.status, "score": each.score, "reason": each.reason}
            for each in record.repeats
        ],
    }


def properties_of(record: RepeatRecord | None) -> dict[str, str]:
    """What is said of one check; nothing where its evaluator was asked once."""
    if record is None:
        return {}
    rate = "" if record.flip_rate is None else number(record.flip_rate, digits=6)
    return {"repeats": f"{len(record.repeats)}", "flip_rate": rate}


def _votes(record: RepeatRecord) -> str:
    statuses = [each.status for each in record.repeats]
    return f"{statuses.count('passed')} of {len(statuses)} passed"
