"""Read ``results.json`` back into a report."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import astuple

from agentci._util.text import truncate
from agentci._util.text.json_document import JsonDocument, read_json, read_large_object
from agentci._util.text.json_text import EncodedObject, dumps
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import CHUNK_BYTES, ResolvedPath, read_chunks
from agentci.errors import InputError
from agentci.model.case import CaseSummary
from agentci.model.gate import Comparison, Gate, PolicyComparison
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.result import (
    BaselineCheck,
    CheckResult,
    Decision,
    JudgeSpending,
    ModelCost,
    Provenance,
    RepeatRecord,
    Report,
    RunContent,
    RunInfo,
    Shard,
    ShardInfo,
    Totals,
    TrialRecord,
)
from agentci.model.values import Place, Problem, replace
from agentci.reports import results_schema
from agentci.reports.policy_effects import drop_effects
from agentci.reports.run_content import ChunkWriter, encode_content, excerpt_turn, restore_baseline
from agentci.version import __version__

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


MAX_MESSAGE_CHARACTERS: Final = 300
# Commits between two releases share a version, although their reports may differ.
OTHER_BUILD_HINT: Final = (
    "if another commit of agentci wrote the report, evaluate again with this one"
)

_ERROR: Final = re.compile(
    r"(?P<message>.*) - at `(?P<key>key` in `)?\$(?P<path>[^`]*)`", re.DOTALL
)
_STEP: Final = re.compile(r"\[([0-9]+)\]|([a-z_]+)")

T = TypeVar("T", bound=Hashable)


class MissingCaseError(ValueError):
    """The case of a result is not in the report."""

    def __init__(self, index: int, case: str) -> None:
        super().__init__(index, case)
        self.index = index
        self.case = case


class _CaseKey(NamedTuple):
    """What identifies a case in a report, and the warnings of one config about it."""

    id: str
    trace: str
    eval_case: str | None
    file: str
    warnings: tuple[str, ...]


_NO_EXPLANATION: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("turn_scores", "hits", "misses"), ()),
    **dict.fromkeys(("reason", "reasoning", "trials", "repeats")),
    "details": {},
    "seconds": None,
    "cut": {},
    "baseline": None,
}
_UNKNOWN_CASE: Final = CaseSummary(id="", trace_id="", group="", recording=Place(file=""))


class ReportParts:
    """Results and cases of one report; equal parts of results share memory.

    Args:
        outcomes_only: leave out what only explains the results.
        contents: where the contents of cases are stored; None if they are left out.
    """

    def __init__(self, *, outcomes_only: bool, contents: ChunkWriter | None = None) -> None:
        self._outcomes_only = outcomes_only
        self._contents = contents
        self._results: list[CheckResult] = []
        self._baseline: dict[str, BaselineCheck] = {}
        self._case_keys: list[_CaseKey] = []
        self._cases: dict[tuple[str, str, str | None, str], CaseSummary] = {}
        self._baseline_contents: dict[tuple[str, str, str | None, str], int] = {}
        self._cases_of_results: dict[_CaseKey, CaseSummary] = {}
        self._shared: dict[Hashable, Any] = {}

    def add_result(self, read: results_schema.ResultJson) -> None:
        """Add a result, whose case may follow later."""
        if self._outcomes_only:
            read = replace(read, **_NO_EXPLANATION)
        if read.baseline is not None:
            before = BaselineCheck(status=read.baseline.status, score=read.baseline.score)
            self._baseline[read.id] = self._share(before)
        key = _CaseKey(read.case, read.trace, read.eval_case, read.file, read.warnings)
        self._case_keys.append(self._share(key))
        self._results.append(
            CheckResult(
                id=read.id,
                config=self._share(read.config),
                case=_UNKNOWN_CASE,
                evaluator=self._share(_evaluator(read)),
                status=read.status,
                judgement=self._make_judgement(read),
                reason=read.reason,
                seconds=read.seconds or 0.0,
                cached=read.cached,
                unavailable=read.unavailable,
                trials=convert(read.trials, TrialRecord | None, from_attributes=True),
                repeats=convert(read.repeats, RepeatRecord | None, from_attributes=True),
                fingerprint=self._share(read.fingerprint),
                cut=read.cut or None,
            )
        )

    def add_case(self, read: results_schema.CaseJson) -> None:
        """Add a case; the first one with its key counts."""
        key = (read.id, read.trace, read.eval_case, read.file)
        if key in self._cases:
            return
        case = _case(read, outcomes_only=self._outcomes_only)
        if self._contents is not None:
            content = _content(read)
            if read.baseline is not None:
                before = replace(
                    restore_baseline(content),
                    latency_ms=read.baseline.latency_ms,
                    tokens=read.baseline.tokens,
                    cost_usd=read.baseline.cost_usd,
                    priced=read.baseline.priced,
                )
                self._baseline_contents[key] = self._contents.append(encode_content(before))
            number = self._contents.append(encode_content(_drop_baseline(content)))
            case = replace(case, content=number)
        self._cases[key] = case

    def make_report(self, read: results_schema.ResultsJson) -> Report:
        """Make the report; ``read`` has its other parts.

        Raises:
            MissingCaseError: the case of a result was not added.
        """
        for index, key in enumerate(self._case_keys):
            case = self._find_case(key, index)
            check, number = self._results[index].id, self._baseline_contents.get(key[:4])
            if number is not None and check in self._baseline:
                before = replace(self._baseline[check], content=number)
                self._baseline[check] = self._share(before)
            self._results[index] = replace(self._results[index], case=case)
        return Report(
            complete=read.complete,
            decision=convert(read.decision, Decision, from_attributes=True),
            totals=convert(read.totals, Totals, from_attributes=True),
            results=tuple(self._results),
            problems=convert(read.problems, tuple[Problem, ...], from_attributes=True),
            provenance=convert(read.provenance, tuple[Provenance, ...], from_attributes=True),
            gates=convert(read.gates, tuple[Gate, ...], from_attributes=True),
            shard_info=None if read.shard is None else _shard_info(read.shard),
            spending=tuple(map(_spending, read.judges)),
            comparison=convert(read.comparison, Comparison | None, from_attributes=True),
            policy=_policy(read.policy),
            commit=read.commit or "",
            run=RunInfo(url=read.run.url, branch=read.run.branch),
            baseline=self._baseline,
        )

    def _find_case(self, key: _CaseKey, index: int) -> CaseSummary:
        found = self._cases_of_results.get(key)
        if found is None:
            case = self._cases.get(key[:4])
            if case is None:
                raise MissingCaseError(index, key.id)
            # Two configs may read the same trace with different warnings.
            found = self._cases_of_results[key] = replace(case, warnings=key.warnings)
        return found

    def _make_judgement(self, read: results_schema.ResultJson) -> Judgement:
        judgement = Judgement(
            score=read.score,
            passed={"passed": True, "failed": False}.get(read.status),
            reason=read.reason,
            turn_scores=read.turn_scores,
            hits=read.hits,
            misses=read.misses,
            reasoning=read.reasoning,
            details=EncodedObject(read.details) if read.details else {},
        )
        if read.details:
            return judgement
        found: Judgement = self._shared.setdefault(astuple(judgement)[:-1], judgement)
        return found

    def _share(self, value: T) -> T:
        """Return an equal value that was added before, if any."""
        found: T = self._shared.setdefault(value, value)
        return found


def _evaluator(read: results_schema.ResultJson) -> EvaluatorIdentity:
    return EvaluatorIdentity(
        name=read.evaluator,
        type=read.type,
        criterion=read.criterion,
        threshold=read.threshold,
        required=read.required,
        place=_place(read.place),
        weight=read.weight,
        better=read.better,
    )


def _place(read: results_schema.PlaceJson) -> Place:
    return Place(file=read.file, line=read.line, column=read.column)


def _case(read: results_schema.CaseJson, *, outcomes_only: bool) -> CaseSummary:
    case = CaseSummary(
        id=read.id,
        trace_id=read.trace,
        group=read.group,
        eval_case_id=read.eval_case,
        unmatched_reason=read.unmatched_reason,
        recording=Place(file=read.file, line=read.line),
        eval_case_place=None if read.eval_case_place is None else _place(read.eval_case_place),
        run=read.run,
    )
    if outcomes_only:
        return case
    recorded = (turn for turn in read.turns if not turn.missing)
    return replace(
        case,
        dialogue=tuple(excerpt_turn(turn.user, turn.answer) for turn in recorded),
        warnings=read.warnings,
        changes=read.changes,
        performance=None if read.performance is None else dumps(read.performance),
    )


def _content(read: results_schema.CaseJson) -> RunContent:
    return RunContent(
        turns=read.turns,
        spans=read.spans,
        baseline_spans=read.baseline_spans,
        subagents=read.subagents,
        columns=read.columns,
        tags=read.tags,
        level=read.content,
        latency_ms=read.latency_ms,
        tokens=read.tokens,
        cost_usd=read.cost_usd,
        priced=read.priced,
        cut=read.cut,
        redacted=read.redacted,
        performance=None if read.performance is None else dumps(read.performance),
        printed=read.printed,
    )


def _drop_baseline(content: RunContent) -> RunContent:
    """Return the content without the turns of its baseline: the report may get another one."""
    turns = (
        replace(turn, baseline=None, baseline_results=(), baseline_latency_ms=None)
        for turn in content.turns
        if not (turn.missing and turn.expected_calls is None and turn.baseline is not None)
    )
    return replace(content, turns=tuple(turns))


def _spending(read: results_schema.SpendingJson) -> JudgeSpending:
    return JudgeSpending(
        config=read.config,
        spent=_cost(read.spent),
        saved=_cost(read.saved),
        priced=read.spent.usd is not None and read.saved.usd is not None,
    )


def _cost(read: results_schema.CostJson) -> ModelCost:
    return ModelCost(calls=read.calls, tokens=read.tokens, usd=read.usd or 0.0)


def _policy(read: results_schema.PolicyJson | None) -> PolicyComparison | None:
    """Convert without the effects that reports compute, as those of shards differ."""
    policy = convert(read, PolicyComparison | None, from_attributes=True)
    return None if policy is None else drop_effects(policy)


def _shard_info(read: results_schema.ShardJson) -> ShardInfo:
    return ShardInfo(
        shard=Shard(index=read.index, total=read.total),
        plan_digest=read.plan_digest,
        checks=read.checks,
        shard_keys=read.shard_keys,
    )


def read_report(
    data: bytes,
    *,
    file: str,
    outcomes_only: bool = False,
    contents: ChunkWriter | None = None,
) -> Report:
    """Read a report that the same version of agentci wrote.

    Its texts are untrusted. Of traces, it has only what reports show.

    Args:
        file: its name, for messages.
        outcomes_only: leave out what only explains the results, to compare with them.
        contents: where the contents of its cases are stored; None if they are not needed.

    Raises:
        InputError: the data is not such a report; names the first wrong value and its line.
    """
    view = memoryview(data)
    starts = range(0, len(data), CHUNK_BYTES)
    return _read(
        lambda: (bytes(view[start : start + CHUNK_BYTES]) for start in starts),
        file,
        partial(ReportParts, outcomes_only=outcomes_only, contents=contents),
    )


def read_report_file(
    path: ResolvedPath,
    *,
    file: str,
    limit_bytes: int,
    outcomes_only: bool = False,
    contents: ChunkWriter | None = None,
) -> Report:
    """Read a report like ``read_report``, one part of the file at a time.

    Raises:
        InputError: it is missing, too large or not such a report.
    """
    chunks = partial(read_chunks, path, name=file, limit_bytes=limit_bytes)
    make_parts = partial(ReportParts, outcomes_only=outcomes_only, contents=contents)
    return _read(chunks, file, make_parts)


def _read(
    read_bytes: Callable[[], Iterable[bytes]], file: str, make_parts: Callable[[], ReportParts]
) -> Report:
    with suppress(ValueError, RecursionError):  # also of msgspec; explained below
        parts = make_parts()
        members = read_large_object(
            read_bytes(),
            {
                "results": lambda item: parts.add_result(convert(item, results_schema.ResultJson)),
                "cases": lambda item: parts.add_case(convert(item, results_schema.CaseJson)),
            },
        )
        read = convert(members, results_schema.ResultsJson)
        if read.tool.version == __version__:
            return parts.make_report(read)
    return _read_whole(b"".join(read_bytes()), file, make_parts())


def _read_whole(data: bytes, file: str, parts: ReportParts) -> Report:
    """Read a report with the whole document in memory, for messages with places.

    Raises:
        InputError: as ``read_report``.
    """
    document = read_json(data, file=file)
    _check_author(document)
    try:
        read = convert(document.value, results_schema.ResultsJson)
    except ValidationError as error:
        raise InputError([_make_problem(str(error), document)]) from None
    for result in read.results:
        parts.add_result(result)
    for case in read.cases:
        parts.add_case(case)
    try:
        return parts.make_report(read)
    except MissingCaseError as error:
        raise InputError.from_message(
            f"the case {quote_name(error.case)} of a result is not in `cases`",
            place=document.find_place(("results", error.index, "case")),
        ) from None


def _check_author(document: JsonDocument) -> None:
    """Check the tool and its version before all fields, for a clear message in the likeliest case.

    Raises:
        InputError: another program or another version of agentci wrote the file.
    """
    value = document.value
    tool = value.get("tool") if isinstance(value, Mapping) else None
    if not isinstance(tool, Mapping) or tool.get("name") != "agentci":
        message = "the file is not a results.json of agentci"
        raise InputError.from_message(message, place=document.find_place(()))
    version = tool.get("version")
    if version != __version__:
        found = (
            f"agentci {quote_name(version)}"
            if isinstance(version, str)
            else "an unknown version of agentci"
        )
        raise InputError.from_message(
            f"{found} wrote the report, but this is agentci {__version__}",
            place=document.find_place(("tool", "version")),
            hint="use the same version for both",
        )


def _make_problem(error: str, document: JsonDocument) -> Problem:
    """Make a problem of msgspec's message, which ends with the path of the wrong value."""
    found = _ERROR.fullmatch(error)
    path, message = (found["path"].removeprefix("."), found["message"]) if found else ("", error)
    steps = [int(index) if index else name for index, name in _STEP.findall(path)]
    at = f"`{path}`: " if path else ""
    return Problem(
        message=truncate.short(f"{at}{message[:1].lower()}{message[1:]}", MAX_MESSAGE_CHARACTERS),
        place=document.find_place(steps),
        hint=OTHER_BUILD_HINT,
    )
