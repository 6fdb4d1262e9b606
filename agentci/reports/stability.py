"""Stability of evaluators that ran several times per case: how often the repeats disagree."""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_number
from agentci.model.result import CheckResult, RepeatRecord
from agentci.reports.report_format import format_path, group_by_evaluator, has_several_configs

MAX_CASES: Final = 10


class RepeatStability(Struct, frozen=True, kw_only=True):
    """Stability of one evaluator that ran several times per case.

    Attributes:
        name: of the evaluator, with its config where there are several.
        flip_summary: the flip rate and the number of flaky checks.
        flaky: cases whose repeats disagree, the flakiest first, at most ``MAX_CASES``.
    """

    name: str
    flip_summary: str
    flaky: tuple[str, ...]

    @property
    def line(self) -> str:
        """The name, the summary and the cases on one line."""
        return f"{self.name}: " + ": ".join(
            filter(None, [self.flip_summary, ", ".join(self.flaky)])
        )


def summarize_repeats(results: tuple[CheckResult, ...]) -> Iterator[RepeatStability]:
    """Yield the stability of each repeated evaluator, in report order."""
    several = has_several_configs(results)
    for checks in group_by_evaluator(results):
        records = [
            (each.case.id, each.repeats, each.repeats.flip_rate)
            for each in checks.results
            if each.repeats is not None and each.repeats.flip_rate is not None
        ]
        if not records:
            continue
        flaky = sorted((each for each in records if each[2]), key=lambda each: -each[2])
        rate = format_number(mean_flip_rate(checks.results) or 0.0)
        of = f" of {format_path(checks.representative.config)}" if several else ""
        cases = [f"{case} ({_format_votes(record)})" for case, record, _ in flaky]
        share = f"{len(flaky):,} of {format_count(len(records), 'check')}"
        yield RepeatStability(
            name=f"{checks.representative.evaluator.name}{of}",
            flip_summary=f"{share} flaky (flip rate {rate})",
            flaky=tuple(truncate.truncate_list(cases, MAX_CASES)),
        )


def mean_flip_rate(results: Sequence[CheckResult]) -> float | None:
    """Return the mean flip rate of repeated checks with a verdict; None without any."""
    records = (result.repeats for result in results)
    rates = [each.flip_rate for each in records if each and each.flip_rate is not None]
    return fsum(rates) / len(rates) if rates else None


def make_repeat_properties(record: RepeatRecord | None) -> dict[str, str]:
    """Return the JUnit properties of one check; empty if its evaluator ran once."""
    if record is None:
        return {}
    rate = "" if record.flip_rate is None else format_number(record.flip_rate, digits=6)
    return {"repeats": f"{len(record.repeats)}", "flip_rate": rate}


def _format_votes(record: RepeatRecord) -> str:
    statuses = [each.status for each in record.repeats]
    return f"{statuses.count('passed')} of {len(statuses)} passed"
