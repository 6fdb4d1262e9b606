"""Plain tables: CSV with a header, and JSON Lines, of ``id, metric, score`` and more."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agentci._util.text import truncate
from agentci.model.result import Status
from agentci.result_files.content import ResultContent
from agentci.result_files.row import (
    MAX_REASON_CHARACTERS,
    ResultFile,
    ResultRow,
    as_number,
    as_score,
    as_text,
    check_unique,
    make_result_error,
    make_warning,
    pass_or_fail,
)

CSV_NAME: Final = "csv"
LINES_NAME: Final = "jsonl"
COLUMNS: Final = ("id", "metric", "score", "passed", "threshold", "reason", "repeat")
_REQUIRED: Final = ("id", "metric")
_VERDICTS: Final = ("score", "passed")
_STATUSES: Final[dict[str, Status]] = {
    **dict.fromkeys(("true", "yes", "1", "pass", "passed"), "passed"),
    **dict.fromkeys(("false", "no", "0", "fail", "failed"), "failed"),
    "skipped": "skipped",
    "errored": "errored",
}
_MAX_CELL_CHARACTERS: Final = 1024**2
_TWICE_HINT: Final = "keep one of the two"


def recognises_csv(content: ResultContent) -> bool:
    """Whether the first line names the columns."""
    if content.kind != "text":
        return False
    head = content.data.lstrip()[:4096].decode("utf-8", "ignore")
    return _is_header(next(csv.reader(head.splitlines()[:1]), []))


def recognises_lines(content: ResultContent) -> bool:
    """Whether the first line has the keys."""
    return bool(content.members) and _is_header(list(content.members))


def read_csv(content: ResultContent) -> ResultFile:
    """Read a CSV file.

    Raises:
        InputError: it has invalid cells.
    """
    csv.field_size_limit(_MAX_CELL_CHARACTERS)
    reader = csv.reader(_split_lines(content.data.decode()), strict=True)
    rows: list[ResultRow] = []
    header: list[str] = []
    start = 1
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            if not header:
                header = [cell.strip() for cell in cells]
                _check_names(header, content.file)
            elif cells and len(cells) != len(header):
                message = f"the row has {len(cells)} cells; the header has {len(header)}"
                raise make_result_error(content.file, message, line=line)
            elif cells:
                values = {key: cell for key, cell in zip(header, cells, strict=True) if cell}
                rows.append(_make_row(values, content.file, line))
    except csv.Error as error:
        raise make_result_error(content.file, f"invalid CSV: {error}", line=start) from None
    return _make_file(content, CSV_NAME, rows, header)


def read_lines(content: ResultContent) -> ResultFile:
    """Read a JSON Lines file.

    Raises:
        InputError: a line has invalid values.
    """
    rows: list[ResultRow] = []
    names: dict[str, None] = {}
    for line, values in content.decode_lines(dict[str, Any]):
        names.update(dict.fromkeys(values))
        known = {key: value for key, value in values.items() if value is not None}
        rows.append(_make_row(known, content.file, line))
    return _make_file(content, LINES_NAME, rows, names)


def _is_header(names: list[str]) -> bool:
    found = {name.strip() for name in names}
    return found.issuperset(_REQUIRED) and not found.isdisjoint(_VERDICTS)


def _check_names(header: Sequence[str], file: str) -> None:
    for name in COLUMNS:
        if header.count(name) > 1:
            raise make_result_error(file, f"the column `{name}` appears twice", hint=_TWICE_HINT)


def _split_lines(text: str) -> Iterator[str]:
    """Split at line feeds only; cells keep their line breaks."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _make_file(
    content: ResultContent, tool: str, rows: Iterable[ResultRow], names: Iterable[str]
) -> ResultFile:
    warnings = tuple(
        make_warning(content.file, f"unknown column `{truncate.short(name, 80)}` is not read")
        for name in names
        if name not in COLUMNS
    )
    found = check_unique(rows, file=content.file)
    return ResultFile(file=content.file, tool=tool, rows=found, warnings=warnings)


def _make_row(values: Mapping[str, Any], file: str, line: int) -> ResultRow:
    for name in _REQUIRED:
        if name not in values:
            raise make_result_error(file, f"`{name}` is missing", line=line)
    score, threshold = (_read_number(values, name, file, line) for name in ("score", "threshold"))
    repeat = _read_number(values, "repeat", file, line)
    if repeat is not None and (repeat < 1 or repeat != int(repeat)):
        raise make_result_error(file, "`repeat` must be a whole number from 1", line=line)
    reason = values.get("reason")
    return ResultRow(
        case=as_text(values["id"]),
        metric=as_text(values["metric"]),
        status=_find_status(values, score, threshold, file, line),
        score=score,
        threshold=threshold,
        reason=None if reason is None else truncate.short(as_text(reason), MAX_REASON_CHARACTERS),
        repeat=None if repeat is None else int(repeat),
        definition="" if threshold is None else f"threshold {threshold:g}",
    )


def _read_number(values: Mapping[str, Any], name: str, file: str, line: int) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    number = as_score(value)
    if isinstance(value, str):
        try:
            number = as_number(float(value))
        except ValueError:
            number = None
    if number is None:
        shown = truncate.short(as_text(value), 80)
        message = f"`{name}` must be a finite number, not `{shown}`"
        raise make_result_error(file, message, line=line)
    return number


def _find_status(
    values: Mapping[str, Any], score: float | None, threshold: float | None, file: str, line: int
) -> Status | None:
    passed = values.get("passed")
    if passed is not None:
        word = as_text(passed).strip().lower()
        if word not in _STATUSES:
            message = f"`passed` must be true or false, not `{truncate.short(word, 80)}`"
            raise make_result_error(file, message, line=line)
        return _STATUSES[word]
    if score is None:
        return "errored"
    return None if threshold is None else pass_or_fail(passed=score >= threshold)
