"""Files for other tools, written on request.

For OpenTelemetry: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice, starmap
from typing import Final

from msgspec import Struct

from agentci._util.text import escape, json_text, truncate
from agentci.gate.rules import list_missing_cases
from agentci.model.result import CheckResult, Report, Status
from agentci.model.values import OPTIONAL_FORMATS, Json, JsonObject, Problem, replace
from agentci.reports.groups_and_totals import format_problem
from agentci.reports.junit import NO_RUN, sum_seconds
from agentci.result_files import otel
from agentci.result_files.ctrf import EXTRA_KEY, FORMAT
from agentci.version import __version__

MAX_REASON_CHARACTERS = 2_000


class ExportedCheck(Struct, frozen=True, kw_only=True):
    """One check, as other tools read it.

    Attributes:
        metric: the evaluator; with its config if the report has several.
        status: None for a score without a verdict.
        reason: on one line; empty if there is none.
    """

    result: CheckResult
    metric: str
    status: Status | None
    reason: str


def iterate_checks(report: Report) -> Iterator[ExportedCheck]:
    """Yield each check, in the order of the report."""
    several = len({each.config for each in report.results}) > 1
    for result in report.results:
        name = result.evaluator.name
        yield ExportedCheck(
            result=result,
            metric=f"{result.config}: {name}" if several else name,
            status=None if result.is_measurement else result.status,
            reason=_find_reason(result),
        )


def _find_reason(result: CheckResult) -> str:
    if result.is_measurement:
        return ""
    judgement = result.judgement
    texts: Iterable[str | None] = (result.reason,)
    if judgement is not None:
        texts = (result.reason, *judgement.misses[:1], judgement.reasoning)
    found = next((text for text in texts if text), "")
    return truncate.short(escape.flatten_line(found), MAX_REASON_CHARACTERS)


SPEC_VERSION: Final = "1.0.0"
# The format has no status for errors.
_STATUSES: Final[dict[Status, str]] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "errored": "other",
}


class CtrfReport(Struct, frozen=True, kw_only=True):
    """``ctrf.json``; ``extra`` holds what the Common Test Report Format has no fields for.

    Attributes:
        start, stop: of the run, in milliseconds since 1970.
    """

    start: int = 0
    stop: int = 0
    name: str = "ctrf"
    file_name: str = OPTIONAL_FORMATS["ctrf"]

    def render(self, report: Report) -> Iterator[str]:
        """Yield ASCII JSON."""
        totals = report.totals
        missing = [*list_missing_cases(report)]
        summary = {
            "tests": totals.checks + len(missing),
            "passed": totals.passed,
            "failed": totals.failed + len(missing),
            "pending": 0,
            "skipped": totals.skipped,
            "other": totals.errored,
            "start": self.start,
            "stop": self.stop,
        }
        tool = {"name": "agentci", "version": __version__}
        head = {"reportFormat": FORMAT, "specVersion": SPEC_VERSION, "generatedBy": "agentci"}
        yield json_text.dumps(head).rstrip("}")
        yield f',"results":{{"tool":{json_text.dumps(tool)},'
        yield f'"summary":{json_text.dumps(summary)},"tests":'
        tests = map(_render_test, iterate_checks(report))
        yield from json_text.format_array(chain(tests, starmap(_render_missing_case, missing)))
        yield "}}\n"


def _render_test(check: ExportedCheck) -> str:
    result = check.result
    test: JsonObject = {
        "name": f"{result.case.id} > {check.metric}",
        "status": _STATUSES[result.status],
        "duration": round(sum_seconds([result]) * 1000),
        "suite": [result.config],
        **({"message": check.reason} if check.reason else {}),
        "extra": {
            EXTRA_KEY: {
                "case": result.case.id,
                "metric": check.metric,
                "status": None if check.status is None else _STATUSES[check.status],
                "score": result.score,
                "threshold": result.evaluator.threshold,
            }
        },
    }
    return json_text.dumps(test)


def _render_missing_case(config: str, case: str, problem: Problem) -> str:
    """Render an eval case without a recorded run as a failed test."""
    status: Status = "failed"
    own = {"case": case, "metric": NO_RUN, "status": status, "score": None, "threshold": None}
    test: JsonObject = {
        "name": f"{case} > {NO_RUN}",
        "status": status,
        "duration": 0,
        "suite": [config],
        "message": format_problem(replace(problem, severity="error")),
        "extra": {EXTRA_KEY: own},
    }
    return json_text.dumps(test)


COLUMNS: Final = ("id", "metric", "score", "passed", "threshold", "reason", "repeat")
_WORDS: Final[dict[Status | None, str]] = {
    "passed": "true",
    "failed": "false",
    "skipped": "skipped",
    "errored": "errored",
    None: "",
}
# Spreadsheets take a cell that starts with one of these for a formula.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\n")


class CsvReport(Struct, frozen=True, kw_only=True):
    """``results.csv``, for spreadsheets and ``results:``: one row per check, or per repeat."""

    name: str = "csv"
    file_name: str = OPTIONAL_FORMATS["csv"]

    def render(self, report: Report) -> Iterator[str]:
        """Yield the lines; text that a spreadsheet would run as a formula starts with ``'``."""
        lines = csv.writer(_Line(), lineterminator="\n")
        yield lines.writerow(COLUMNS)
        for check in iterate_checks(report):
            for row in _make_rows(check):
                yield lines.writerow(row)


class _Line:
    """Hands each line of a CSV writer back to its caller."""

    def write(self, text: str) -> str:
        return text


def _make_rows(check: ExportedCheck) -> Iterator[tuple[str, ...]]:
    result = check.result
    texts = (_escape(result.case.id), _escape(check.metric))
    threshold = _format(result.evaluator.threshold)
    if result.repeats is None:
        cells = (_format(result.score), _WORDS[check.status], threshold)
        yield (*texts, *cells, _escape(check.reason), "")
        return
    for number, each in enumerate(result.repeats.repeats, start=1):
        status = None if check.status is None else each.status
        reason = escape.flatten_line(each.reason or "") if status is not None else ""
        cells = (_format(each.score), _WORDS[status], threshold)
        yield (*texts, *cells, _escape(reason), str(number))


def _format(number: float | None) -> str:
    return "" if number is None or not math.isfinite(number) else repr(number)


def _escape(text: str) -> str:
    text = escape.replace_surrogates(text).replace("\0", "")
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # the lines of a cell end as the table's
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


_INFO: Final = 9
# Reasons have up to 2,000 characters: below the 4 MiB that some receivers accept.
RECORDS_PER_REQUEST: Final = 500
_LABELS: Final[dict[Status | None, str | None]] = {
    **{status: label for label, status in otel.LABELS.items()},
    "errored": None,
    None: None,
}
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")


class OtelReport(Struct, frozen=True, kw_only=True):
    """``evaluations.otlp.json``: events for observability backends.

    There is a ``gen_ai.evaluation.result`` per check; a Collector reads them with
    its OTLP JSON receiver.
    """

    name: str = "otel"
    file_name: str = OPTIONAL_FORMATS["otel"]

    def render(self, report: Report) -> Iterator[str]:
        """Yield ASCII JSON. The times are 0, unknown: two reports of one run are equal."""
        return self._render(iterate_checks(report), time=0)

    def render_requests(self, report: Report, *, time: int) -> Iterator[tuple[str, int]]:
        """Yield the events as OTLP requests, each with its number of records.

        Args:
            time: of the events, in nanoseconds since 1970.
        """
        checks = iterate_checks(report)
        while batch := tuple(islice(checks, RECORDS_PER_REQUEST)):
            yield "".join(self._render(batch, time=time)), len(batch)

    def _render(self, checks: Iterable[ExportedCheck], *, time: int) -> Iterator[str]:
        resource = [
            _make_attribute("service.name", "agentci"),
            _make_attribute("service.version", __version__),
        ]
        scope = {"name": "agentci", "version": __version__}
        yield '{"resourceLogs":[{"resource":'
        yield json_text.dumps({"attributes": resource})
        yield f',"scopeLogs":[{{"scope":{json_text.dumps(scope)},"logRecords":'
        yield from json_text.format_array(_render_record(each, time) for each in checks)
        yield "}]}]}\n"


def _render_record(check: ExportedCheck, time: int) -> str:
    result = check.result
    found: dict[str, Json] = {
        otel.METRIC: check.metric,
        otel.CASE_ID: result.case.id,
        otel.SCORE: result.score,
        otel.LABEL: _LABELS[check.status],
        otel.EXPLANATION: check.reason or None,
        otel.ERROR_TYPE: "evaluation_error" if check.status == "errored" else None,
        otel.THRESHOLD: result.evaluator.threshold,
    }
    record: JsonObject = {
        "timeUnixNano": str(time),
        "severityNumber": _INFO,
        "severityText": "INFO",
        "eventName": otel.EVENT_NAME,
        "attributes": [
            _make_attribute(name, value) for name, value in found.items() if value is not None
        ],
    }
    if _TRACE_ID.fullmatch(result.case.trace_id):
        record = {**record, "traceId": result.case.trace_id}
    return json_text.dumps(record)


def _make_attribute(name: str, value: Json) -> JsonObject:
    kind = "stringValue" if isinstance(value, str) else "doubleValue"
    return {"key": name, "value": {kind: value}}
