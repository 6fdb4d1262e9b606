"""Result files of other tools: found, read, planned as checks and turned into results.

Other tools have found the verdicts of these checks. One file without a config makes a report.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from math import fsum
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct

from agentci._util.archives import ArchiveError, NoZstandardError, iterate_members
from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import suggest_name
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    is_folder,
    limit_input,
    read_file,
    read_start,
)
from agentci.config.discovery import find_given_files
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.gate.aggregation import aggregate_repeats, compute_flip_rate
from agentci.gate.decision import compute_totals, decide
from agentci.gate.rules import group_results_by_policy
from agentci.model.case import NAMED_RUN, Case, CaseSummary, MetricThreshold, ResultsSource
from agentci.model.gate import Gate, GatePolicy
from agentci.model.requests import (
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    Repetition,
    Request,
    Response,
)
from agentci.model.result import (
    CASE_METRIC,
    SCORED_STATUSES,
    CheckResult,
    RepeatOutcome,
    RepeatRecord,
    Report,
    Status,
)
from agentci.model.values import COMMAND_LINE, FailOn, Place, Problem, replace
from agentci.result_files.python_tools import is_needed_member
from agentci.result_files.registry import (
    MAX_ARCHIVE_BYTES,
    MAX_FILE_BYTES,
    MAX_MEMBER_BYTES,
    is_archive,
    read_result_archive,
    read_result_file,
)
from agentci.result_files.row import AUTO_TOOL, ResultFile, ResultRow, digest_facts
from agentci.runner.check import Check
from agentci.runner.select_runs import fill_file_name
from agentci.runner.suite_files import LoadedSuite

_NO_ZSTANDARD_HINT = (
    "install `agent-eval-action[inspect]`, or write logs with `inspect eval --log-format json`"
)


class SourcedResults(Struct, frozen=True, kw_only=True):
    """The rows of one file, and the entry of the config that it belongs to."""

    source: ResultsSource
    path: Path
    found: ResultFile


def find_result_files(
    loaded: LoadedSuite, workspace: Workspace
) -> tuple[tuple[ResolvedPath, ResultsSource | None], ...]:
    """Find the result files of a suite with their entries; None for files of the command line.

    Raises:
        InputError: a path or glob matches no file.
    """
    suite = loaded.suite
    found: dict[ResolvedPath, ResultsSource | None] = {}
    if suite.given_results:
        for pattern, paths in find_given_files(suite.given_results, workspace).items():
            _require_matches(pattern, paths, COMMAND_LINE)
            found.update(dict.fromkeys(paths))
        return tuple(found.items())
    for source in suite.results:
        paths = loaded.locator.matches(source.path, source.place)
        _require_matches(source.path, paths, source.place)
        for path in paths:
            found.setdefault(path, source)
    return tuple(found.items())


def _require_matches(pattern: str, paths: Sequence[ResolvedPath], place: Place) -> None:
    if not paths:
        message = f"no result file matches {pattern}"
        hint = "check the path or the glob, and that the step that writes it has run"
        raise InputError.from_message(message, place=place, hint=hint)


def read_result_files(
    files: Sequence[tuple[ResolvedPath, ResultsSource | None]], suite: Suite, workspace: Workspace
) -> tuple[list[SourcedResults], list[Problem]]:
    """Read the files; also returns the problems of those that cannot be read."""
    results: list[SourcedResults] = []
    problems: list[Problem] = []
    for path, source in files:
        tool = AUTO_TOOL if source is None else source.tool
        try:
            found = read_results(path, workspace, tool=tool)
        except InputError as error:
            problems += error.problems
            continue
        problems += found.warnings
        own = _choose_source(suite.results, found.tool) if source is None else source
        results.append(SourcedResults(source=own, path=path.path, found=found))
    return results, problems


def read_results(path: ResolvedPath, workspace: Workspace, *, tool: str = AUTO_TOOL) -> ResultFile:
    """Read one result file.

    Raises:
        InputError: it is not a result file, or it is invalid.
    """
    name = workspace.display_path(path.path)
    if is_folder(path.path):
        raise InputError.from_message(f"{name} is a folder", hint=f"name the files in it: {name}/*")
    with limit_input(name):
        data = read_file(path, name=name, limit_bytes=MAX_FILE_BYTES)
        if not is_archive(data):
            return read_result_file(data, file=name, tool=tool)
        return read_result_archive(_iterate_archive(data, name), file=name, tool=tool)


def _iterate_archive(data: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    try:
        yield from iterate_members(
            data,
            is_needed_member,
            member_bytes=MAX_MEMBER_BYTES,
            total_bytes=MAX_ARCHIVE_BYTES,
        )
    except ArchiveError as error:
        missing = isinstance(error, NoZstandardError)
        hint = _NO_ZSTANDARD_HINT if missing else "check that the file is complete"
        raise InputError.from_message(f"{error}", place=Place(file=name), hint=hint) from None


def _choose_source(sources: Sequence[ResultsSource], tool: str) -> ResultsSource:
    """The entry of the config whose settings apply to a file of the command line."""
    for wanted in (tool, AUTO_TOOL):
        for source in sources:
            if source.tool == wanted:
                return source
    return ResultsSource(path="", place=COMMAND_LINE)


NO_THRESHOLD: Final = "no threshold"
MAX_SCORE: Final = 10**9
MAX_SHOWN: Final = 5
_NO_REASON: Final[Mapping[Status, str]] = {
    "errored": "the tool states an error without a reason",
    "skipped": "skipped by the tool",
}
_NO_SCORE: Final = "no score to compare with the threshold"
_NOT_IN_RESULTS: Final = "not in the results, though `expect` lists it"


class RecordedMetric(Struct, frozen=True, kw_only=True, eq=False):
    """A metric of another tool, which stands for an evaluator."""

    identity: EvaluatorIdentity

    @property
    def needs(self) -> tuple[Prerequisite, ...]:
        """Nothing has to be prepared."""
        return ()

    def ask(self, case: Case) -> Request:
        """Never called: the result is known."""
        raise TypeError(f"{self.identity.name} of {case.id} is recorded")

    def read(self, response: Response) -> Judgement:
        """Never called: the result is known."""
        raise TypeError(f"{self.identity.name} is recorded: {response}")


class RecordedChecks(Struct, frozen=True, kw_only=True):
    """The checks of the result files of one suite.

    Attributes:
        metrics: the names of the metrics, in the order of the files.
    """

    checks: tuple[Check, ...]
    metrics: tuple[str, ...]
    problems: tuple[Problem, ...]


def plan_recorded_checks(
    results: Sequence[SourcedResults], *, config: str, reserved: Sequence[str], only: Sequence[str]
) -> RecordedChecks:
    """Make one check of each case and metric; repeats of a case are one check.

    Args:
        reserved: names of the suite's evaluators, which no metric may have.
        only: names of the only metrics to plan; empty for all.
    """
    planner = _Planner(config, reserved)
    problems: list[Problem] = []
    for own in _group_by_source(results):
        missing = [*_make_expected_rows(own)]
        for each in own:
            planner.add_file(each, missing if each is own[-1] else ())
        problems += _find_missing(own)
    problems = [*planner.problems, *problems]
    checks = tuple(check for check in planner.checks if not only or _name(check) in only)
    metrics = tuple(dict.fromkeys(map(_name, checks)))
    return RecordedChecks(checks=checks, metrics=metrics, problems=tuple(problems))


def _name(check: Check) -> str:
    return check.evaluator.identity.name


class _Planner:
    """Makes checks, which share cases and identities."""

    def __init__(self, config: str, reserved: Sequence[str]) -> None:
        self.checks: list[Check] = []
        self.problems: list[Problem] = []
        self._config = config
        self._reserved = frozenset(reserved)
        self._files: dict[str, str] = {}
        self._metrics: dict[EvaluatorIdentity, RecordedMetric] = {}

    def add_file(self, results: SourcedResults, missing: Sequence[ResultRow]) -> None:
        """Add the checks of one file, and those of cases that are missing in its entry."""
        found, source = results.found, results.source
        rows = (*found.rows, *missing)
        prefix = fill_file_name(source.name, results.path) if source.name else ""
        judges_cases = any(
            row.metric == CASE_METRIC and row.status in SCORED_STATUSES for row in found.rows
        )
        groups: dict[tuple[str, str], list[ResultRow]] = {}
        for row in rows:
            groups.setdefault((row.case, row.metric), []).append(row)
        cases = _summarize_cases(rows, found)
        for (case, metric), own in groups.items():
            identity = _make_identity(results, prefix, metric, own, judges_cases=judges_cases)
            bound = source.metrics.get(metric)
            check = Check(
                config=self._config,
                evaluator=self._share(identity),
                case=cases[case],
                load=_refuse_load,
                fingerprint=_make_fingerprint(found.tool, metric, own[0].definition),
                read_result=partial(make_recorded_result, rows=tuple(own), bound=bound),
            )
            if self._is_new(check, found.file, source.place):
                self.checks.append(check)

    def _share(self, identity: EvaluatorIdentity) -> RecordedMetric:
        return self._metrics.setdefault(identity, RecordedMetric(identity=identity))

    def _is_new(self, check: Check, file: str, place: Place) -> bool:
        name = _name(check)
        if name in self._reserved:
            message = f"metric `{name}` of {file} has the name of an evaluator"
        elif check.id in self._files:
            shown = truncate.short(check.case.id, 80)
            other = self._files[check.id]
            message = f"case `{shown}`, metric `{name}` of {file} is also in {other}"
        else:
            self._files[check.id] = file
            return True
        hint = 'set `name` in the entries of `results`, such as `name: "{stem}"`'
        if not any(problem.place == place for problem in self.problems):
            self.problems.append(Problem(message=message, place=place, hint=hint))
        return False


@lru_cache(maxsize=1024)
def _make_fingerprint(tool: str, metric: str, definition: str) -> str:
    return digest_facts(tool, metric, definition)


def _make_identity(
    results: SourcedResults,
    prefix: str,
    metric: str,
    rows: Sequence[ResultRow],
    *,
    judges_cases: bool,
) -> EvaluatorIdentity:
    source, tool = results.source, results.found.tool
    bound = source.metrics.get(metric)
    measures = bound is None and all(row.status is None for row in rows)
    criterion = NO_THRESHOLD if measures else f"pass in {tool}"
    threshold = rows[0].threshold
    if bound is not None:
        criterion, threshold = bound.criterion, bound.threshold
    lower = bound is not None and bound.maximum is not None
    return EvaluatorIdentity(
        name=f"{prefix}/{metric}" if prefix else metric,
        type=tool,
        criterion=criterion,
        threshold=threshold,
        required=not measures and _is_required(source, metric, rows, judges_cases=judges_cases),
        place=source.place,
        better="unknown" if measures else "lower" if lower else "higher",
    )


def _is_required(
    source: ResultsSource, metric: str, rows: Sequence[ResultRow], *, judges_cases: bool
) -> bool:
    """Whether a check can fail the gate."""
    if metric in source.metrics:
        return True
    if metric == CASE_METRIC:
        # A case that was not evaluated has no metrics that could fail.
        return source.gate_on == "case" or any(row.status == "errored" for row in rows)
    if all(row.advisory for row in rows):
        return False
    return source.gate_on == "metrics" or not judges_cases


def _summarize_cases(rows: Iterable[ResultRow], found: ResultFile) -> dict[str, CaseSummary]:
    """The cases of a file, with the duration and the cost of the first row that states them."""
    measured: dict[str, dict[str, float]] = {}
    runs: dict[str, list[tuple[object, ...]]] = {}
    for row in rows:
        known = measured.setdefault(row.case, {})
        runs.setdefault(row.case, []).append((row.key, row.status, row.score, row.reason))
        if row.seconds is not None:
            known.setdefault("duration_seconds", row.seconds)
        if row.cost_usd is not None:
            known.setdefault("cost_usd", row.cost_usd)
    place = Place(file=found.file)
    return {
        case: CaseSummary(
            id=case,
            trace_id="",
            group=case,
            recording=place,
            performance=json.dumps(values, sort_keys=True) if values else None,
            run=f"{NAMED_RUN}{found.run}" if found.run else digest_facts(runs[case]),
        )
        for case, values in measured.items()
    }


def _group_by_source(results: Sequence[SourcedResults]) -> Iterable[Sequence[SourcedResults]]:
    by_source: dict[Place, list[SourcedResults]] = {}
    for each in results:
        by_source.setdefault(each.source.place, []).append(each)
    return by_source.values()


def _make_expected_rows(results: Sequence[SourcedResults]) -> Iterator[ResultRow]:
    """An errored row for each case that ``expect`` lists and no file of the entry has."""
    expected = results[0].source.expected_cases
    known = {row.case for each in results for row in each.found.rows} if expected else set()
    for case in expected:
        if case not in known:
            yield ResultRow(case=case, metric=CASE_METRIC, status="errored", reason=_NOT_IN_RESULTS)


def _find_missing(results: Sequence[SourcedResults]) -> Iterator[Problem]:
    """Report too few cases in the files of an entry, and thresholds of metrics that no file has."""
    source = results[0].source
    rows = [row for each in results for row in each.found.rows]
    cases = len({row.case for row in rows})
    if source.expected_count is not None and cases < source.expected_count:
        found = format_count(cases, "case")
        yield Problem(
            message=f"the results have {found}; `expect` requires {source.expected_count:,}",
            place=source.place,
            hint="check that the evaluation ran completely, or change `expect`",
        )
    names = list(dict.fromkeys(row.metric for row in rows))
    for metric in source.metrics:
        if metric not in names:
            shown = ", ".join(truncate.truncate_list(names, MAX_SHOWN))
            yield Problem(
                message=f"no result has metric `{metric}`, for which `metrics` sets a threshold",
                place=source.place,
                hint=suggest_name(metric, names) or f"metrics: {shown}",
            )


def _refuse_load() -> NoReturn:
    raise TypeError("the case of a recorded result has no recorded run")


def make_recorded_result(
    check: Check, *, rows: Sequence[ResultRow], bound: MetricThreshold | None
) -> CheckResult:
    """Make the result of a check that another tool has evaluated.

    Args:
        rows: one per repeat.
        bound: what a score needs to pass; None leaves the verdict to the tool.
    """
    results = [_make_result(check, row, bound) for row in rows]
    if len(results) == 1 and rows[0].repeat is None:
        return results[0]
    if all(each.is_measurement for each in results):
        return _average(results)
    return aggregate_repeats(results, Repetition(times=len(results)))


def _make_result(check: Check, row: ResultRow, bound: MetricThreshold | None) -> CheckResult:
    status, reason = _decide(row, bound)
    judgement = None
    if status != "errored" or row.score is not None:
        judgement = Judgement(
            score=row.score,
            passed={"passed": True, "failed": False}.get(status),
            misses=(row.reason,) if status == "failed" and row.reason else (),
            reasoning=row.reason if status == "passed" else None,
        )
    return CheckResult(
        id=check.id,
        config=check.config,
        case=check.case,
        evaluator=check.evaluator.identity,
        status=status,
        judgement=judgement,
        reason=reason,
        seconds=row.seconds or 0.0,
        fingerprint=check.fingerprint,
    )


def _decide(row: ResultRow, bound: MetricThreshold | None) -> tuple[Status, str | None]:
    """The status of a row, and its reason."""
    if row.status in ("errored", "skipped"):
        return row.status, row.reason or _NO_REASON[row.status]
    if row.score is not None and abs(row.score) > MAX_SCORE:
        return "errored", f"score {row.score:g} is out of range"
    if bound is not None:
        return _apply_bound(row.score, bound)
    if row.status is None:
        return "skipped", f"{NO_THRESHOLD}: set one under `metrics` to evaluate it"
    return row.status, None


def _apply_bound(score: float | None, bound: MetricThreshold) -> tuple[Status, str | None]:
    if score is None:
        return "errored", _NO_SCORE
    return ("passed" if bound.is_reached(score) else "failed"), None


def _average(results: Sequence[CheckResult]) -> CheckResult:
    """Combine the scores of repeats that state no verdict."""
    scores = [each.score for each in results if each.score is not None]
    mean = Judgement(score=fsum(scores) / len(scores), passed=None)
    outcomes = (
        RepeatOutcome(status=each.status, score=each.score, reason=each.reason) for each in results
    )
    record = RepeatRecord(
        aggregation="mean",
        flip_rate=compute_flip_rate([each.status for each in results]),
        repeats=tuple(outcomes),
    )
    seconds = fsum(each.seconds for each in results)
    return replace(results[0], judgement=mean, repeats=record, seconds=seconds)


# Every report of agentci has this key before any other; no result file that is read has it there.
_REPORT_START: Final = b'{"schema_version"'
_START_BYTES: Final = 64


def is_agentci_report(path: ResolvedPath) -> bool:
    """Whether a file starts as ``results.json`` does; whatever else it holds."""
    return b"".join(read_start(path, _START_BYTES).split()).startswith(_REPORT_START)


def make_results_report(
    path: ResolvedPath, workspace: Workspace, *, config: str = "", fail_on: FailOn = "failed"
) -> Report:
    """Evaluate a result file by the verdicts of its tool.

    Args:
        config: the name of the config in the report; default: that of a run without a config.

    Raises:
        InputError: the file is not a result file, or it is invalid.
    """
    found = read_results(path, workspace)
    config = config or COMMAND_LINE.file
    source = ResultsSource(path=found.file, place=COMMAND_LINE)
    results = SourcedResults(source=source, path=path.path, found=found)
    planned = plan_recorded_checks([results], config=config, reserved=(), only=())
    if planned.problems:
        raise InputError(planned.problems)
    gate = Gate(config=config, policy=GatePolicy(), evaluators=planned.metrics)
    checked = tuple(each.read_result(each) for each in planned.checks if each.read_result)
    return Report(
        complete=True,
        decision=decide(
            group_results_by_policy([gate], checked),
            problems=found.warnings,
            complete=True,
            fail_on=fail_on,
        ),
        totals=compute_totals(checked),
        results=checked,
        problems=found.warnings,
        gates=(gate,),
    )
