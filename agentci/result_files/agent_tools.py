"""Results of tools for agents.

- ADK of Google: ``*.evalset_result.json``
- agentevals: ``--output json``
- AgentV: ``index.jsonl`` of a run
"""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.model.result import CASE_METRIC, Status
from agentci.model.values import replace
from agentci.result_files.content import ResultContent
from agentci.result_files.row import (
    CaseRun,
    ResultFile,
    ResultRow,
    as_number,
    as_score,
    as_text,
    check_unique,
    digest_facts,
    first_line,
    make_result_error,
    make_warning,
    number_metrics,
    number_runs,
    parse_version_number,
)

ADK: Final = "adk"
_SNAKE_KEYS: Final = ("eval_set_result_id", "eval_case_results")
_CAMEL_KEYS: Final = ("evalSetResultId", "evalCaseResults")
_ADK_STATUSES: Final[dict[Any, Status]] = {1: "passed", 2: "failed", 3: "skipped"}
_STATUSES_BY_NAME: Final[dict[Any, Status]] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "NOT_EVALUATED": "skipped",
}
# Measurements that ADK adds to every case.
_INFORMATIONAL: Final = (4, "INFORMATIONAL")


class _AdkMetric(Struct):
    metric_name: str
    eval_status: int | str
    score: Any = None
    threshold: Any = None
    criterion: Any = None


class _AdkCase(Struct):
    eval_id: str
    overall_eval_metric_results: list[_AdkMetric] | None = None


class _AdkResult(Struct):
    eval_case_results: list[_AdkCase]


class _AdkCamelMetric(Struct, rename="camel"):
    """As in snake case; the models of ADK accept both."""

    metric_name: str
    eval_status: int | str
    score: Any = None
    threshold: Any = None
    criterion: Any = None


class _AdkCamelCase(Struct, rename="camel"):
    eval_id: str
    overall_eval_metric_results: list[_AdkCamelMetric] | None = None


class _AdkCamelResult(Struct, rename="camel"):
    eval_case_results: list[_AdkCamelCase]


def recognises_adk(content: ResultContent) -> bool:
    """Whether the file is an eval set result."""
    return content.has(*_SNAKE_KEYS) or content.has(*_CAMEL_KEYS)


def read_adk(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape.
    """
    found = (
        content.decode(_AdkResult) if content.has(*_SNAKE_KEYS) else content.decode(_AdkCamelResult)
    )
    runs = [
        CaseRun(
            case=case.eval_id,
            rows=number_metrics(_make_adk_rows(case.overall_eval_metric_results or ())),
        )
        for case in found.eval_case_results
    ]
    rows = check_unique(number_runs(runs), file=content.file)
    return ResultFile(file=content.file, tool=ADK, rows=rows)


def _make_adk_rows(metrics: Any) -> Iterator[ResultRow]:
    evaluated = [each for each in metrics if each.eval_status not in _INFORMATIONAL]
    if not evaluated:
        # The agent raised: ADK states the case as failed, without metrics and without a reason.
        yield ResultRow(case="", metric=CASE_METRIC, status="errored")
    for each in evaluated:
        known = _ADK_STATUSES if isinstance(each.eval_status, int) else _STATUSES_BY_NAME
        yield ResultRow(
            case="",
            metric=each.metric_name,
            status=known.get(each.eval_status, "errored"),
            score=as_score(each.score),
            threshold=as_number(each.threshold),
            definition=digest_facts(each.criterion, each.threshold),
        )


AGENTEVALS: Final = "agentevals"
_AGENTEVALS_STATUSES: Final[dict[str, Status]] = {"PASSED": "passed", "FAILED": "failed"}


class _AgentevalsMetric(Struct):
    metric_name: str
    eval_status: str
    score: Any = None
    error: Any = None
    details: Any = None
    duration_ms: Any = None


class _AgentevalsTrace(Struct):
    trace_id: str
    metrics: list[_AgentevalsMetric]


class _AgentevalsRun(Struct):
    traces: list[_AgentevalsTrace]
    errors: list[Any] | None = None


def recognises_agentevals(content: ResultContent) -> bool:
    """Whether the file is the output of ``agentevals run``."""
    if not content.has("traces", "errors"):
        return False
    traces = content.member("traces")
    first = traces[0] if isinstance(traces, list) and traces else {}
    return isinstance(first, dict) and (not traces or "metrics" in first)


def read_agentevals(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape.
    """
    run = content.decode(_AgentevalsRun)
    rows = [
        replace(row, case=trace.trace_id)
        for trace in run.traces
        for row in _make_agentevals_rows(trace)
    ]
    warnings = [
        make_warning(
            content.file,
            "agentevals writes no ids of eval cases: only results of the same traces are compared",
            hint="evaluate the traces with `agentci run`, or use `agentevals run --emit-otel`",
        )
    ]
    errors = (first_line(as_text(each)) or "" for each in run.errors or ())
    warnings += [make_warning(content.file, f"agentevals reports: {each}") for each in errors]
    return ResultFile(
        file=content.file,
        tool=AGENTEVALS,
        rows=check_unique(rows, file=content.file),
        warnings=tuple(warnings),
    )


def _make_agentevals_rows(trace: _AgentevalsTrace) -> tuple[ResultRow, ...]:
    return number_metrics(_make_agentevals_metrics(trace))


def _make_agentevals_metrics(trace: _AgentevalsTrace) -> Iterator[ResultRow]:
    if not trace.metrics:
        yield ResultRow(case="", metric=CASE_METRIC, status="errored")
    for each in trace.metrics:
        milliseconds = as_number(each.duration_ms)
        details = each.details if isinstance(each.details, dict) else {}
        unevaluated: Status = "errored" if each.error else "skipped"
        yield ResultRow(
            case="",
            metric=each.metric_name,
            status=_AGENTEVALS_STATUSES.get(each.eval_status, unevaluated),
            score=as_score(each.score),
            reason=first_line(each.error) or first_line(details.get("reason")),
            seconds=None if milliseconds is None else milliseconds / 1000,
        )


AGENTV: Final = "agentv"
_AGENTV_KEYS: Final = ("test_id", "target", "execution_status")
_AGENTV_SCHEMA: Final = "agentv.projection_identity.v"
_AGENTV_SCHEMA_VERSION: Final = 1
_AGENTV_CASE_STATUSES: Final[dict[str, Status]] = {"ok": "passed", "quality_failure": "failed"}
_AGENTV_VERDICTS: Final[dict[Any, Status]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class _AgentvAssertion(Struct):
    text: Any = None
    passed: Any = None


class _AgentvScore(Struct):
    name: str
    verdict: str | None = None
    score: Any = None
    assertions: list[_AgentvAssertion] | None = None
    input: Any = None
    reasoning: Any = None


class _AgentvIdentity(Struct):
    schema_version: str = ""


class _AgentvResult(Struct):
    test_id: str
    execution_status: str
    target: str = ""
    suite: str | None = None
    score: Any = None
    scores: list[_AgentvScore] | None = None
    error: Any = None
    duration_ms: Any = None
    cost_usd: Any = None
    projection_identity: _AgentvIdentity | None = None


def recognises_agentv(content: ResultContent) -> bool:
    """Whether each line is the result of a test."""
    return content.has(*_AGENTV_KEYS)


def read_agentv(content: ResultContent) -> ResultFile:
    """Read the file; the last line of a test and target counts.

    Raises:
        InputError: it has another shape, or a newer format.
    """
    latest: dict[tuple[str, str, str], _AgentvResult] = {}
    for line, result in content.decode_lines(_AgentvResult):
        _check_agentv_version(result, content.file, line)
        latest[result.suite or "", result.test_id, result.target] = result
    several = len({target for _, _, target in latest}) > 1
    rows = [
        replace(row, case=_name_agentv_case(result, several=several))
        for result in latest.values()
        for row in _make_agentv_rows(result)
    ]
    return ResultFile(file=content.file, tool=AGENTV, rows=check_unique(rows, file=content.file))


def _check_agentv_version(result: _AgentvResult, file: str, line: int) -> None:
    schema = result.projection_identity.schema_version if result.projection_identity else ""
    version = parse_version_number(schema.removeprefix(_AGENTV_SCHEMA))
    if version is not None and version > _AGENTV_SCHEMA_VERSION:
        shown = truncate.short(schema, 60)
        known = f"{_AGENTV_SCHEMA}{_AGENTV_SCHEMA_VERSION}"
        message = f"AgentV results of schema {shown}; agentci reads {known}"
        raise make_result_error(file, message, hint="use a newer version of agentci", line=line)


def _name_agentv_case(result: _AgentvResult, *, several: bool) -> str:
    suite = f"{result.suite}/" if result.suite else ""
    return f"{suite}{result.test_id}{f' / {result.target}' if several else ''}"


def _make_agentv_rows(result: _AgentvResult) -> Iterator[ResultRow]:
    milliseconds = as_number(result.duration_ms)
    status = _AGENTV_CASE_STATUSES.get(result.execution_status, "errored")
    yield ResultRow(
        case="",
        metric=CASE_METRIC,
        status=status,
        # With an error, the score is a filler.
        score=None if status == "errored" else as_score(result.score),
        reason=first_line(result.error),
        seconds=None if milliseconds is None else milliseconds / 1000,
        cost_usd=as_number(result.cost_usd),
    )
    yield from number_metrics(map(_make_agentv_score, result.scores or ()))


def _make_agentv_score(each: _AgentvScore) -> ResultRow:
    error = each.input.get("error") if isinstance(each.input, dict) else None
    if error:
        return ResultRow(
            case="", metric=each.name, status="errored", reason=first_line(as_text(error))
        )
    return ResultRow(
        case="",
        metric=each.name,
        status=_AGENTV_VERDICTS.get(each.verdict, "errored"),
        score=as_score(each.score),
        reason=_find_agentv_reason(each),
    )


def _find_agentv_reason(each: _AgentvScore) -> str | None:
    """The first assertion that explains the verdict."""
    assertions = each.assertions or []
    missed = [one for one in assertions if one.passed is False]
    explaining = missed if each.verdict == "fail" and missed else assertions
    return first_line(explaining[0].text) if explaining else first_line(each.reasoning)
