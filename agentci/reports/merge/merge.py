"""Merge the reports of all shards, or of several whole runs, into one report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, shorten_commit
from agentci.errors import InputError
from agentci.gate.comparison import find_regression_reasons
from agentci.gate.decision import compute_totals, decide
from agentci.gate.policy_changes import (
    add_fail_on,
    choose_fail_on,
    find_policy_reasons,
    merge_policies,
)
from agentci.gate.rules import find_coverage, group_results_by_policy
from agentci.model.gate import Comparison, Gate, PolicyComparison
from agentci.model.result import (
    BaselineCheck,
    CheckResult,
    EvaluatorCalls,
    Provenance,
    Report,
    sum_by_config,
)
from agentci.model.values import FailOn, Problem
from agentci.reports.merge.read import ReportFile, ShardReport, select_shards

MAX_NAMES: Final = 5
MAX_ERROR_CHARACTERS: Final = 300

SAME_INPUT_HINT: Final = "run all shards with the same checkout, recorded runs and options"
MISSING_SHARD_HINT: Final = (
    "check that each job wrote and uploaded its report, and that all were downloaded and named here"
)


def find_mismatches(parts: Sequence[ReportFile]) -> Iterator[Problem]:
    """Yield reasons why the reports do not form one run, or runs of separate configs."""
    shards = select_shards(parts)
    for part in parts:
        if not part.report.complete:
            message = "the run was interrupted before all checks were evaluated"
            yield part.make_problem(message, "run it again")
        if shards and part.report.shard_info is None:
            message = "the report of a whole run cannot be merged with shards"
            yield part.make_problem(message, "leave it out, or name only this report")
    yield from _find_overlaps(parts)
    if shards:
        reference = _pick_reference(shards)
        yield from (
            _explain_mismatch(each, reference)
            for each in shards
            if not _is_same_run(each, reference)
        )
        yield from _find_duplicates_and_missing(
            [each for each in shards if _is_same_run(each, reference)]
        )


def _find_overlaps(parts: Sequence[ReportFile]) -> Iterator[Problem]:
    """Yield whole runs that share a config, since it is unclear which one counts."""
    first: dict[str, ReportFile] = {}
    for part in parts:
        for gate in part.report.gates if part.report.shard_info is None else ():
            other = first.setdefault(gate.config, part)
            if other is not part:
                message = f"{gate.config} was also evaluated in {other.file}"
                yield part.make_problem(message, "name only one of the two reports")


def find_inconsistencies(parts: Sequence[ReportFile]) -> Iterator[Problem]:
    """Yield contradictions within the reports, which agentci itself never writes."""
    for part in parts:
        yield from _find_stray_results(part)
    shards = select_shards(parts)
    for shard in shards:
        yield from _find_missing_results(shard)
    yield from _find_changed_evaluators(shards)


def _pick_reference(shards: Sequence[ShardReport]) -> ShardReport:
    """Return a shard of the largest group of shards from the same run.

    Shards with checks take precedence, since a shard with invalid input has none.
    """
    sizes = Counter(_run_key(shard) for shard in shards)
    return max(shards, key=lambda shard: (bool(shard.info.checks), sizes[_run_key(shard)]))


def _run_key(shard: ShardReport) -> tuple[str, int]:
    return shard.info.plan_digest, shard.info.shard.total


def _is_same_run(one: ShardReport, other: ShardReport) -> bool:
    return (
        _run_key(one) == _run_key(other)
        and one.info.checks == other.info.checks
        and one.info.shard_keys == other.info.shard_keys
        and one.report_file.report.gates == other.report_file.report.gates
        and not _have_different_commits(one, other)
    )


def _have_different_commits(one: ShardReport, other: ShardReport) -> bool:
    commits = {one.report_file.report.commit, other.report_file.report.commit} - {""}
    return len(commits) > 1


def _explain_mismatch(part: ShardReport, other: ShardReport) -> Problem:
    name, total = part.info.shard, other.info.shard.total
    if name.total != total:
        message = f"{name}, but {other.report_file.file} is one of {total} shards"
        return part.report_file.make_problem(message, "name only the shards of one run")
    if _have_different_commits(part, other):
        own, others = (shorten_commit(each.report_file.report.commit) for each in (part, other))
        message = f"{name} ran on commit {own}, but {other.report_file.file} on {others}"
        return part.report_file.make_problem(message, SAME_INPUT_HINT)
    errors = [each for each in part.report_file.report.problems if each.severity == "error"]
    if errors and not part.info.checks:
        error = truncate.short(str(errors[0]), MAX_ERROR_CHARACTERS)
        return part.report_file.make_problem(f"{name} ran no checks; its input is invalid: {error}")
    message = (
        f"{name} has other checks, gates, evaluators or recorded runs than {other.report_file.file}"
    )
    return part.report_file.make_problem(message, SAME_INPUT_HINT)


def _find_duplicates_and_missing(shards: Sequence[ShardReport]) -> Iterator[Problem]:
    total = shards[0].info.shard.total
    files: dict[int, list[ShardReport]] = {}
    for shard in shards:
        files.setdefault(shard.index, []).append(shard)
    for first, *others in files.values():
        for other in others:
            message = f"{other.info.shard} is also in {first.report_file.file}"
            yield other.report_file.make_problem(message, "leave out one of the two")
    missing = [str(index) for index in range(1, total + 1) if index not in files]
    if missing:
        word, verb = ("shard", "is") if len(missing) == 1 else ("shards", "are")
        yield Problem(
            message=f"{word} {', '.join(missing)} of {total} {verb} missing",
            hint=MISSING_SHARD_HINT,
        )


def _find_stray_results(part: ReportFile) -> Iterator[Problem]:
    """Yield results that are duplicates, of another shard, or of an unknown config or check."""
    report, info = part.report, part.report.shard_info
    ids = Counter(result.id for result in report.results)
    yield from _list_results(
        part, (each for each, times in ids.items() if times > 1), "duplicate results"
    )
    configs = {gate.config for gate in report.gates}
    others = {result.config for result in report.results} - configs
    yield from _list_results(part, sorted(others), "results of a config without a gate")
    if info is not None:
        known = set(info.checks)
        yield from _list_results(
            part, (each for each in ids if each not in known), "results of unknown checks"
        )
        elsewhere = (each for each in ids if each in known and not info.contains(each))
        yield from _list_results(part, elsewhere, f"results that do not belong to {info.shard}")


def _list_results(part: ReportFile, names: Iterable[str], what: str) -> Iterator[Problem]:
    if found := [*names]:
        shown = ", ".join(truncate.truncate_list([quote_name(each) for each in found], MAX_NAMES))
        yield part.make_problem(f"{what}: {shown}")


def _find_missing_results(shard: ShardReport) -> Iterator[Problem]:
    checks, info = shard.info.checks, shard.info
    if len(set(checks)) != len(checks):
        yield shard.report_file.make_problem("`shard.checks` lists a check twice")
    present = {result.id for result in shard.report_file.report.results}
    missing = sum(info.contains(check) and check not in present for check in checks)
    if missing:
        message = f"the results of {format_count(missing, 'check')} of {info.shard} are missing"
        yield shard.report_file.make_problem(message)


def _find_changed_evaluators(shards: Sequence[ShardReport]) -> Iterator[Problem]:
    """Yield remote evaluators that differ between shards."""
    first: dict[tuple[str, ...], tuple[Provenance, ShardReport]] = {}
    for shard in shards:
        for own in shard.report_file.report.provenance:
            named = (own.config, own.evaluator, own.source, own.repository, own.revision, own.ref)
            before, where = first.setdefault(named, (own, shard))
            if own != before:
                message = (
                    f"{quote_name(own.evaluator)} is at commit {quote_name(own.commit)}, but in "
                    f"{where.report_file.file} at {quote_name(before.commit)}"
                )
                yield shard.report_file.make_problem(message, "lock it with `agentci lock`")


T = TypeVar("T")
BaselineComparer: TypeAlias = Callable[
    [Sequence[CheckResult], Sequence[Gate], str],
    tuple[Comparison, Mapping[str, BaselineCheck]] | None,
]
PolicyComparer: TypeAlias = Callable[[Sequence[Gate], str], PolicyComparison | None]


def merge_reports(
    parts: Sequence[ReportFile],
    *,
    fail_on: FailOn,
    compare: BaselineComparer = lambda *_: None,
    compare_policy: PolicyComparer = lambda *_: None,
) -> Report:
    """Merge reports into the report of the whole run and apply the gate to all results.

    Args:
        parts: the reports of all shards of one run, in any order; or of whole runs without a common
            config.
        fail_on: which reasons may fail the run.
        compare: compares results, gates and commit with a baseline, and returns its results by
            check id, too; None without one.
        compare_policy: likewise compares the policy; of runs that did so only the option of this
            merge.

    Raises:
        InputError: if shards are missing, incomplete, duplicated or from different runs; lists
            every problem.
    """
    if problems := tuple(find_mismatches(parts)) or tuple(find_inconsistencies(parts)):
        raise InputError(problems)
    shards = select_shards(parts)
    reports = [shard.report_file.report for shard in shards] or [part.report for part in parts]
    results = [result for report in reports for result in report.results]
    if shards:
        order = {check: index for index, check in enumerate(shards[0].info.checks)}
        results.sort(key=lambda result: order[result.id])
    gates = reports[0].gates if shards else tuple(g for each in reports for g in each.gates)
    problems = _union(reports, lambda report: report.problems)
    commit = _commit(reports)
    comparison, baseline = compare(results, gates, commit) or (None, {})
    policy = add_fail_on(
        merge_policies(report.policy for report in reports), compare_policy(gates, commit)
    )
    return Report(
        complete=True,
        decision=decide(
            group_results_by_policy(gates, results),
            problems=problems,
            coverage=find_coverage(gates),
            complete=True,
            fail_on=choose_fail_on(policy, fail_on),
            also=(*find_regression_reasons(comparison, gates), *find_policy_reasons(policy)),
        ),
        totals=compute_totals(results),
        results=tuple(results),
        problems=problems,
        provenance=_union(reports, lambda report: report.provenance),
        gates=gates,
        spending=sum_by_config(each for report in reports for each in report.spending),
        comparison=comparison,
        policy=policy,
        commit=commit,
        evaluator_calls=EvaluatorCalls(kept_in_parts=True),
        baseline=baseline,
    )


def _commit(reports: Sequence[Report]) -> str:
    """Return the common commit, or "" if the runs differ; they may be of several repositories."""
    commits = {report.commit for report in reports}
    return commits.pop() if len(commits) == 1 else ""


def _union(reports: Sequence[Report], select: Callable[[Report], Iterable[T]]) -> tuple[T, ...]:
    """Return distinct items of all reports; shards of one run mostly repeat the same ones."""
    return tuple(dict.fromkeys(each for report in reports for each in select(report)))
