"""What every reporter is, and what the reporters say alike."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import count, number
from agentci.gate.decision import totals
from agentci.model.case import Synopsis
from agentci.model.json import JsonObject
from agentci.model.place import Place
from agentci.model.problem import Problem, Severity
from agentci.model.result import (
    EXIT_INVALID,
    EXIT_UNJUDGED,
    Decision,
    Report,
    Result,
    Status,
    Totals,
)
from agentci.model.values import Same
from agentci.reports.check_text import headline
from agentci.reports.evaluator_stats import Standing, standing_of
from agentci.reports.locations import in_a_file
from agentci.reports.workflow_commands import Annotation

MAX_NAMES = 5

Verdict: TypeAlias = Literal["open", "shut", "error", "invalid", "partial"]


class Reporter(Protocol):
    """One form of the report that is written to a file."""

    @property
    def name(self) -> str:
        """What the form is called in messages and outputs."""
        ...

    @property
    def file_name(self) -> str:
        """The file in the output folder that takes it."""
        ...

    def render(self, report: Report) -> Iterator[str]:
        """The whole file, in pieces of text that UTF-8 can encode; only one need be in memory."""
        ...


class Tally(Struct, frozen=True, kw_only=True, dict=True):
    """The checks of one evaluator of one config."""

    results: tuple[Result, ...]
    totals: Totals

    @property
    def any(self) -> Result:
        """One of them, for what all have in common: name, bar, place."""
        return self.results[0]

    @cached_property
    def standing(self) -> Standing:
        """What they say of cases that were not judged."""
        return standing_of(self.results)


def tallies(results: tuple[Result, ...], *, by_place: bool = False) -> tuple[Tally, ...]:
    """Results by config and evaluator, in the order in which these come up.

    Args:
        by_place: whether evaluators of one name are told apart that stand on different lines, as
            those of different cases of an eval file may.
    """
    return _tallies(Same(results), by_place=by_place)


# Nearly all reports of a run ask for them.
@lru_cache(maxsize=2)
def _tallies(results: Same[tuple[Result, ...]], *, by_place: bool) -> tuple[Tally, ...]:
    groups: dict[tuple[str, str, Place | None], list[Result]] = {}
    for result in results.value:
        place = result.evaluator.place if by_place else None
        key = (result.config, result.evaluator.name, place)
        groups.setdefault(key, []).append(result)
    return tuple(Tally(results=tuple(group), totals=totals(group)) for group in groups.values())


def several_configs(results: Sequence[Result]) -> bool:
    """Whether an evaluator's name alone may stand for two."""
    return len({result.config for result in results}) > 1


def of_status(results: Sequence[Result], status: Status) -> tuple[Result, ...]:
    """The results that ended so."""
    return tuple(result for result in results if result.status == status)


def worst_first(results: Sequence[Result]) -> list[Result]:
    """Required before advisory, low scores before high ones; what has no score stands first."""

    def badness(result: Result) -> tuple[bool, float]:
        score = None if result.judgement is None else result.judgement.score
        return (not result.evaluator.required, -1.0 if score is None else score)

    return sorted(results, key=badness)


def verdict(decision: Decision) -> Verdict:
    """The decision in one word; ``partial`` where a shard alone does not keep the gate shut."""
    if not (decision.open or decision.shuts):
        return "partial"
    return "open" if decision.open else _SHUT_BY.get(decision.exit_code, "shut")


def conclusion(report: Report) -> str:
    """The decision in a few words: "Gate open", "Gate shut in shard 2 of 3"."""
    decision = report.decision
    what = "gate" if report.portion is None else str(report.portion.shard)
    if decision.open or decision.shuts:
        where = "" if report.portion is None else f" in {what}"
        return f"Gate {'open' if decision.open else 'shut'}{where}"
    return f"{what.capitalize()} passed"


def tally_line(totals: Totals) -> str:
    """All counts on a line: "12 checks: 9 passed, 2 failed, 1 errored, 0 skipped; ..."."""
    counts = (
        f"{totals.passed:,} passed, {totals.failed:,} failed, "
        f"{totals.errored:,} errored, {totals.skipped:,} skipped"
    )
    mean = "" if totals.score is None else f"; mean score {number(totals.score)}"
    return f"{count(totals.checks, 'check')}: {counts}{mean}"


def counts(report: Report) -> str:
    """The counts of a report, and how many of the checks are those of an earlier run."""
    cached = sum(result.cached for result in report.results)
    return f"{tally_line(report.totals)}{f'; {cached:,} cached' if cached else ''}"


def by_reason(results: Sequence[Result]) -> dict[tuple[str, str, str], list[Synopsis]]:
    """The cases that one thing befell, by config, evaluator and headline."""
    groups: dict[tuple[str, str, str], list[Synopsis]] = {}
    for result in results:
        key = (result.config, result.evaluator.name, headline(result))
        groups.setdefault(key, []).append(result.case)
    return groups


def case_names(cases: Sequence[Synopsis], write: Callable[[str], str]) -> str:
    """The first cases by name, and how many they are: "7 cases: a, b, c, d, e, … and 2 more".

    Args:
        write: makes of an id what may stand in the form.
    """
    names = [write(case.id) for case in cases[:MAX_NAMES]]
    if len(cases) > MAX_NAMES:
        names.append(truncate.more(len(cases) - MAX_NAMES))
    return f"{count(len(cases), 'case')}: {', '.join(names)}"


def cases(results: Sequence[Result]) -> tuple[Synopsis, ...]:
    """The cases that were judged, each once, in the order in which they come up."""
    return tuple({case_key(result.case): result.case for result in results}.values())


def case_key(case: Synopsis) -> tuple[str | None, ...]:
    """What tells cases apart."""
    return (case.id, case.trace, case.recording.file, case.golden)


def warnings(results: Sequence[Result]) -> dict[str, list[Synopsis]]:
    """What had to be guessed or dropped while recordings were read, and in which cases."""
    found: dict[str, list[Synopsis]] = {}
    for case in cases(results):
        for warning in case.warnings:
            found.setdefault(warning, []).append(case)
    return found


def problem_fields(problem: Problem) -> JsonObject:
    """A problem as JSON."""
    return {
        "severity": problem.severity,
        "message": problem.message,
        "hint": problem.hint,
        "place": None if problem.place is None else place_fields(problem.place),
    }


def place_fields(place: Place) -> JsonObject:
    """A place as JSON."""
    return {"file": place.file, "line": place.line, "column": place.column}


def problem_annotation(problem: Problem) -> Annotation:
    """A problem as a remark on its line."""
    return Annotation(
        level=problem.severity,
        title=_TITLES[problem.severity],
        message=problem.message if problem.hint is None else f"{problem.message}\n{problem.hint}",
        place=in_a_file(problem.place),
    )


_SHUT_BY: dict[int, Verdict] = {EXIT_INVALID: "invalid", EXIT_UNJUDGED: "error"}
_TITLES: dict[Severity, str] = {
    "error": "agentci cannot use this",
    "warning": "agentci warns",
    "notice": "agentci notes",
}
