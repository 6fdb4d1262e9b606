"""Makes one report of several; ``wholeness`` says whether they go together, and are all."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from agentci.errors import InputError
from agentci.gate.decision import decide, judged_by, totals
from agentci.gate.regression import reasons_of
from agentci.model.call import Exchanges
from agentci.model.choices import FailOn
from agentci.model.comparison import Comparison
from agentci.model.policy import Gate
from agentci.model.result import Report, Result
from agentci.model.spending import by_config
from agentci.reports.merge.part import Part, pieces_of
from agentci.reports.merge.validate import disunity, flaws

T = TypeVar("T")
Beside: TypeAlias = Callable[[Sequence[Result], Sequence[Gate], str], Comparison | None]


def merged(
    parts: Sequence[Part],
    *,
    fail_on: FailOn,
    beside: Beside = lambda *_: None,
) -> Report:
    """The report of the whole run, as it would be without shards; the gate is held over all of it.

    Args:
        parts: the reports of all shards of one run, in any order; or of whole runs, none of which
            has a config of another.
        fail_on: which reasons may shut the gate.
        beside: compares the results, of those gates and that commit, with a baseline, where there
            is one.

    Raises:
        InputError: shards are missing, broken off, there twice, or not of one run; with all that
            is wrong.
    """
    if problems := tuple(disunity(parts)) or tuple(flaws(parts)):
        raise InputError(problems)
    pieces = pieces_of(parts)
    reports = [piece.part.report for piece in pieces] or [part.report for part in parts]
    results = [result for report in reports for result in report.results]
    if pieces:
        order = {check: index for index, check in enumerate(pieces[0].portion.checks)}
        results.sort(key=lambda result: order[result.id])
    gates = reports[0].gates if pieces else tuple(g for each in reports for g in each.gates)
    problems = _union(reports, lambda report: report.problems)
    commit = _commit(reports)
    comparison = beside(results, gates, commit)
    return Report(
        complete=True,
        decision=decide(
            judged_by(gates, results),
            problems=problems,
            uncovered=sum(gate.uncovered for gate in gates),
            complete=True,
            fail_on=fail_on,
            also=tuple(reasons_of(comparison, gates)),
        ),
        totals=totals(results),
        results=tuple(results),
        problems=problems,
        provenance=_union(reports, lambda report: report.provenance),
        gates=gates,
        spending=by_config(each for report in reports for each in report.spending),
        comparison=comparison,
        commit=commit,
        exchanges=Exchanges(elsewhere=True),
    )


def _commit(reports: Sequence[Report]) -> str:
    """What all of them are of; whole runs need not be of one repository."""
    commits = {report.commit for report in reports}
    return commits.pop() if len(commits) == 1 else ""


def _union(reports: Sequence[Report], told: Callable[[Report], Iterable[T]]) -> tuple[T, ...]:
    """What any of them tells, once; shards of one run mostly tell the same."""
    return tuple(dict.fromkeys(each for report in reports for each in told(report)))
