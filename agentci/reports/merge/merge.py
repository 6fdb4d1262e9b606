"""Merge the reports of all shards, or of several whole runs, into one report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, shorten_commit
from agentci.errors import InputError
from agentci.gate.decision import compute_totals, decide, group_results_by_policy
from agentci.gate.regression import find_regression_reasons
from agentci.model.choices import FailOn
from agentci.model.gate import Comparison, Gate
from agentci.model.problem import Problem
from agentci.model.result import CheckResult, EvaluatorCalls, Provenance, Report, sum_by_config
from agentci.reports.merge.report_files import ReportFile, ShardReport, select_shards

MAX_NAMES: Final = 5
MAX_ERROR_CHARACTERS: Final = 300

SAME_INPUT_HINT: Final = "give all shards the same checkout, recordings and options"
MISSING_SHARD_HINT: Final = (
    "did its job write a report, and was that uploaded, downloaded and named here?"
)


def find_mismatches(parts: Sequence[ReportFile]) -> Iterator[Problem]:
    """Yield reasons why the reports are not from one run, or from runs of separate configs."""
    pieces = select_shards(parts)
    for part in parts:
        if not part.report.complete:
            message = "the run was broken off before all of its checks were judged"
            yield part.make_problem(message, "run it again")
        if pieces and part.report.shard_info is None:
            message = "this is the report of a whole run, which goes together with no shards"
            yield part.make_problem(message, "leave it out, or name it alone")
    yield from _find_overlaps(parts)
    if pieces:
        model = _pick_reference(pieces)
        yield from (
            _explain_mismatch(each, model) for each in pieces if not _is_same_run(each, model)
        )
        yield from _find_duplicates_and_missing(
            [each for each in pieces if _is_same_run(each, model)]
        )


def _find_overlaps(parts: Sequence[ReportFile]) -> Iterator[Problem]:
    """Yield whole runs that share a config, since it is unclear which one counts."""
    first: dict[str, ReportFile] = {}
    for part in parts:
        for gate in part.report.gates if part.report.shard_info is None else ():
            other = first.setdefault(gate.config, part)
            if other is not part:
                message = f"{gate.config} was judged in {other.file}, too"
                yield part.make_problem(message, "name one of the two")


def find_inconsistencies(parts: Sequence[ReportFile]) -> Iterator[Problem]:
    """Yield contradictions within the reports, which agentci itself never writes."""
    for part in parts:
        yield from _find_stray_results(part)
    pieces = select_shards(parts)
    for piece in pieces:
        yield from _find_missing_results(piece)
    yield from _find_changed_evaluators(pieces)


def _pick_reference(pieces: Sequence[ShardReport]) -> ShardReport:
    """Return a shard of the largest group of shards from the same run.

    Shards with checks take precedence, since a shard with invalid input has none.
    """
    sizes = Counter(_run_key(piece) for piece in pieces)
    return max(pieces, key=lambda piece: (bool(piece.portion.checks), sizes[_run_key(piece)]))


def _run_key(piece: ShardReport) -> tuple[str, int]:
    return piece.portion.plan_digest, piece.portion.shard.total


def _is_same_run(one: ShardReport, other: ShardReport) -> bool:
    return (
        _run_key(one) == _run_key(other)
        and one.portion.checks == other.portion.checks
        and one.portion.shard_keys == other.portion.shard_keys
        and one.report_file.report.gates == other.report_file.report.gates
        and not _have_different_commits(one, other)
    )


def _have_different_commits(one: ShardReport, other: ShardReport) -> bool:
    commits = {one.report_file.report.commit, other.report_file.report.commit} - {""}
    return len(commits) > 1


def _explain_mismatch(piece: ShardReport, model: ShardReport) -> Problem:
    shard, total = piece.portion.shard, model.portion.shard.total
    if shard.total != total:
        message = f"this is {shard}, where {model.report_file.file} is one of {total}"
        return piece.report_file.make_problem(message, "name the shards of one run alone")
    if _have_different_commits(piece, model):
        own, others = (shorten_commit(each.report_file.report.commit) for each in (piece, model))
        message = f"{shard} is of the commit {own}, where {model.report_file.file} is of {others}"
        return piece.report_file.make_problem(message, SAME_INPUT_HINT)
    errors = [each for each in piece.report_file.report.problems if each.severity == "error"]
    if errors and not piece.portion.checks:
        told = truncate.short(str(errors[0]), MAX_ERROR_CHARACTERS)
        return piece.report_file.make_problem(
            f"{shard} judged nothing, its input was wrong: {told}"
        )
    message = (
        f"{shard} had other checks, gates, evaluators or recordings than {model.report_file.file}"
    )
    return piece.report_file.make_problem(message, SAME_INPUT_HINT)


def _find_duplicates_and_missing(pieces: Sequence[ShardReport]) -> Iterator[Problem]:
    total = pieces[0].portion.shard.total
    files: dict[int, list[ShardReport]] = {}
    for piece in pieces:
        files.setdefault(piece.index, []).append(piece)
    for first, *others in files.values():
        for other in others:
            message = f"{other.portion.shard} is here again, after {first.report_file.file}"
            yield other.report_file.make_problem(message, "leave one of them out")
    missing = [str(index) for index in range(1, total + 1) if index not in files]
    if missing:
        word, verb = ("shard", "is") if len(missing) == 1 else ("shards", "are")
        yield Problem(
            message=f"{word} {', '.join(missing)} of {total} {verb} missing",
            hint=MISSING_SHARD_HINT,
        )


def _find_stray_results(part: ReportFile) -> Iterator[Problem]:
    """Yield results that are duplicates, of another shard or config, or of no known check."""
    report, portion = part.report, part.report.shard_info
    ids = Counter(result.id for result in report.results)
    yield from _list_results(
        part, (each for each, times in ids.items() if times > 1), "there twice"
    )
    configs = {gate.config for gate in report.gates}
    others = {result.config for result in report.results} - configs
    yield from _list_results(part, sorted(others), "of a config that has no gate")
    if portion is not None:
        known = set(portion.checks)
        yield from _list_results(
            part, (each for each in ids if each not in known), "of no known check"
        )
        elsewhere = (each for each in ids if each in known and not portion.contains(each))
        yield from _list_results(part, elsewhere, f"not of {portion.shard}")


def _list_results(part: ReportFile, names: Iterable[str], what: str) -> Iterator[Problem]:
    if found := [*names]:
        shown = ", ".join(truncate.truncate_list([quote_name(each) for each in found], MAX_NAMES))
        yield part.make_problem(f"it has results that are {what}: {shown}")


def _find_missing_results(piece: ShardReport) -> Iterator[Problem]:
    checks, portion = piece.portion.checks, piece.portion
    if len(set(checks)) != len(checks):
        yield piece.report_file.make_problem("it lists a check twice")
    judged = {result.id for result in piece.report_file.report.results}
    lacking = sum(portion.contains(check) and check not in judged for check in checks)
    if lacking:
        lacks = f"it lacks the results of {format_count(lacking, 'check')} of {portion.shard}"
        yield piece.report_file.make_problem(lacks)


def _find_changed_evaluators(pieces: Sequence[ShardReport]) -> Iterator[Problem]:
    """Yield remote evaluators that differ between shards."""
    first: dict[tuple[str, ...], tuple[Provenance, ShardReport]] = {}
    for piece in pieces:
        for own in piece.report_file.report.provenance:
            named = (own.config, own.evaluator, own.source, own.repository, own.revision, own.ref)
            before, where = first.setdefault(named, (own, piece))
            if own != before:
                message = (
                    f"{quote_name(own.evaluator)} was not the same as in {where.report_file.file}: "
                    f"commit {quote_name(own.commit)}, there {quote_name(before.commit)}"
                )
                yield piece.report_file.make_problem(message, "pin it, with `agentci lock`")


T = TypeVar("T")
BaselineComparer: TypeAlias = Callable[
    [Sequence[CheckResult], Sequence[Gate], str], Comparison | None
]


def merge_reports(
    parts: Sequence[ReportFile],
    *,
    fail_on: FailOn,
    beside: BaselineComparer = lambda *_: None,
) -> Report:
    """Merge reports into the report of the whole run and apply the gate to all results.

    Args:
        parts: the reports of all shards of one run, in any order; or of whole runs without a common
            config.
        fail_on: which reasons may fail the run.
        beside: compares results, gates and commit with a baseline; returns None without one.

    Raises:
        InputError: if shards are missing, incomplete, duplicated or from different runs; lists
            every problem.
    """
    if problems := tuple(find_mismatches(parts)) or tuple(find_inconsistencies(parts)):
        raise InputError(problems)
    pieces = select_shards(parts)
    reports = [piece.report_file.report for piece in pieces] or [part.report for part in parts]
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
            group_results_by_policy(gates, results),
            problems=problems,
            uncovered=sum(gate.uncovered for gate in gates),
            complete=True,
            fail_on=fail_on,
            also=tuple(find_regression_reasons(comparison, gates)),
        ),
        totals=compute_totals(results),
        results=tuple(results),
        problems=problems,
        provenance=_union(reports, lambda report: report.provenance),
        gates=gates,
        spending=sum_by_config(each for report in reports for each in report.spending),
        comparison=comparison,
        commit=commit,
        evaluator_calls=EvaluatorCalls(kept_in_parts=True),
    )


def _commit(reports: Sequence[Report]) -> str:
    """Return the common commit, or "" if the runs differ; they may be of several repositories."""
    commits = {report.commit for report in reports}
    return commits.pop() if len(commits) == 1 else ""


def _union(reports: Sequence[Report], told: Callable[[Report], Iterable[T]]) -> tuple[T, ...]:
    """Return distinct items of all reports; shards of one run mostly repeat the same ones."""
    return tuple(dict.fromkeys(each for report in reports for each in told(report)))
