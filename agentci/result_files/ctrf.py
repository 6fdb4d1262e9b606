"""CTRF reports of test runners, and of agentci."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from agentci.model.result import CASE_METRIC, Status
from agentci.model.values import Problem
from agentci.result_files.content import ResultContent
from agentci.result_files.row import (
    CaseRun,
    ResultFile,
    ResultRow,
    as_number,
    as_score,
    as_text,
    check_format_version,
    check_unique,
    first_line,
    number_runs,
)

NAME: Final = "ctrf"
FORMAT: Final = "CTRF"
# The member of `extra` in which agentci keeps what the format has no fields for.
EXTRA_KEY: Final = "agentci"
_OWN_KEYS: Final = ("case", "metric")
_VERSIONS: Final = (0, 1)
_STATUSES: Final[dict[str, Status]] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "pending": "skipped",
    "other": "errored",
}
# The first character of lines of pytest that state the error.
_PYTEST_ERROR: Final = "E "


class _CtrfTest(Struct, rename="camel"):
    name: str
    status: str
    message: Any = None
    trace: Any = None
    duration: Any = None
    file_path: Any = None
    extra: Any = None


class _CtrfResults(Struct):
    tests: list[_CtrfTest]


class _CtrfReport(Struct, rename="camel"):
    results: _CtrfResults
    spec_version: Any = None


def recognises(content: ResultContent) -> bool:
    """Whether the file is a CTRF report; older ones do not name the format."""
    if content.member("reportFormat") == FORMAT:
        return True
    results = content.member("results") if content.has("results") else None
    return isinstance(results, dict) and {"tool", "summary", "tests"} <= results.keys()


def read(content: ResultContent) -> ResultFile:
    """Read the file.

    Raises:
        InputError: it has another shape, or a newer format.
    """
    report = content.decode(_CtrfReport)
    warnings: tuple[Problem, ...] = ()
    if report.spec_version is not None:
        warnings = check_format_version(
            report.spec_version, _VERSIONS, named="CTRF report", file=content.file
        )
    rows = check_unique(_make_rows(report.results.tests), file=content.file)
    return ResultFile(file=content.file, tool=NAME, rows=rows, warnings=warnings)


def _make_rows(tests: Iterable[_CtrfTest]) -> Iterator[ResultRow]:
    runs: list[CaseRun] = []
    for test in sorted(tests, key=lambda each: as_text(each.file_path or "")):
        if own := _find_own_facts(test):
            yield _read_own(test, own)
            continue
        row = _make_row(test)
        runs.append(CaseRun(case=test.name, rows=(row,), facts=as_text(test.file_path or "")))
    yield from number_runs(runs)


def _make_row(test: _CtrfTest) -> ResultRow:
    milliseconds = as_number(test.duration)
    return ResultRow(
        case="",
        metric=CASE_METRIC,
        status=_STATUSES.get(test.status, "errored"),
        reason=first_line(test.message) or _find_error(test.trace),
        seconds=None if milliseconds is None else milliseconds / 1000,
    )


def _find_error(trace: Any) -> str | None:
    """The first line of a stack trace that states the error."""
    lines = trace.split("\n") if isinstance(trace, str) else []
    errors = (line[len(_PYTEST_ERROR) :] for line in lines if line.startswith(_PYTEST_ERROR))
    return first_line(next(errors, trace))


def _find_own_facts(test: _CtrfTest) -> dict[str, Any]:
    extra = test.extra if isinstance(test.extra, dict) else {}
    own = extra.get(EXTRA_KEY)
    if isinstance(own, dict) and all(isinstance(own.get(key), str) for key in _OWN_KEYS):
        return own
    return {}


def _read_own(test: _CtrfTest, own: dict[str, Any]) -> ResultRow:
    """Read a row that agentci wrote."""
    status = own.get("status", test.status)
    return ResultRow(
        case=own["case"],
        metric=own["metric"],
        status=None if status is None else _STATUSES.get(as_text(status), "errored"),
        score=as_score(own.get("score")),
        threshold=as_number(own.get("threshold")),
        reason=first_line(test.message),
    )
