"""Logs of Inspect AI: ``.json``, and the members of an ``.eval`` archive."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from agentci.errors import InputError
from agentci.model.result import CASE_METRIC, Status
from agentci.model.values import Problem, replace
from agentci.result_files.content import ResultContent, check_unique_keys, check_utf8
from agentci.result_files.row import (
    ResultFile,
    ResultRow,
    as_number,
    as_score,
    as_text,
    check_format_version,
    check_unique,
    digest_facts,
    first_line,
    make_result_error,
    make_warning,
)

NAME: Final = "inspect"
_HEADER_MEMBER: Final = "header.json"
_SAMPLES_FOLDER: Final = "samples/"
_KEYS: Final = ("version", "status", "eval", "plan")
_VERSION: Final = 2
_LETTERS: Final[dict[str, tuple[Status, float]]] = {
    "C": ("passed", 1.0),
    "P": ("failed", 0.5),
    "I": ("failed", 0.0),
    "N": ("failed", 0.0),
}
_CUT_OFF: Final = "not in the log: the run was cut off"
_NOT_SCORED: Final = "the sample was not scored"
_NO_SAMPLES: Final = "the log was written without samples"
_NO_SAMPLES_HINT: Final = "do not set `log_samples: false` (--no-log-samples)"


class _InspectScorer(Struct):
    name: str


class _InspectDataset(Struct):
    sample_ids: list[Any] | None = None


class _InspectSettings(Struct):
    epochs: int | None = None


class _InspectEval(Struct):
    task: str
    dataset: _InspectDataset | None = None
    config: _InspectSettings | None = None
    scorers: list[_InspectScorer] | None = None

    @property
    def has_epochs(self) -> bool:
        """Whether samples are run several times."""
        return self.config is not None and (self.config.epochs or 1) > 1


class _InspectScore(Struct):
    value: Any = None
    explanation: Any = None


class _InspectError(Struct):
    message: Any = None


class _InspectSample(Struct):
    id: Any
    epoch: int = 1
    input: Any = None
    target: Any = None
    scores: dict[str, _InspectScore] | None = None
    error: _InspectError | None = None
    total_time: Any = None


class _InspectHeader(Struct):
    version: Any
    status: str
    eval: _InspectEval
    invalidated: bool = False


class _InspectLog(_InspectHeader):
    samples: list[_InspectSample] | None = None


def recognises(content: ResultContent) -> bool:
    """Whether the file is a log in JSON."""
    return content.has(*_KEYS) and isinstance(content.member("eval", "task"), str)


def read(content: ResultContent) -> ResultFile:
    """Read a log in JSON.

    Raises:
        InputError: it has another shape, a newer format, no samples, or is invalidated.
    """
    log = content.decode(_InspectLog)
    return _make_file(log, log.samples or (), content.file)


def is_needed_member(name: str) -> bool:
    """Whether a member of an ``.eval`` archive holds what ``read_archive`` reads."""
    return name == _HEADER_MEMBER or (name.startswith(_SAMPLES_FOLDER) and name.endswith(".json"))


def read_archive(members: Iterable[tuple[str, bytes]], *, file: str) -> ResultFile:
    """Read the members of an ``.eval`` archive.

    Args:
        members: names and contents; each content is dropped before the next is read.

    Raises:
        InputError: as ``read``; or the archive has no header.
    """
    header: _InspectHeader | None = None
    samples: list[_InspectSample] = []
    for name, data in members:
        if name == _HEADER_MEMBER:
            header = _decode_member(data, _InspectHeader, name, file)
        else:
            samples.append(_decode_member(data, _InspectSample, name, file))
    if header is None:
        hint = "the run may not have ended; use `inspect log dump` to see what it has"
        raise make_result_error(file, f"the archive has no {_HEADER_MEMBER}", hint=hint)
    return _make_file(header, samples, file)


def _decode_member(data: bytes, kind: Any, name: str, file: str) -> Any:
    """Decode one member; only what rows need stays in memory."""
    check_utf8(data, file)
    try:
        found = msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise make_result_error(file, f"{name} in the archive: {error}") from None
    except RecursionError:
        raise make_result_error(file, f"{name} in the archive: JSON nested too deeply") from None
    check_unique_keys(data, file, 1)
    return found


def _make_file(header: _InspectHeader, samples: Iterable[_InspectSample], file: str) -> ResultFile:
    warnings = [*_check_header(header, file)]
    unread: dict[str, None] = {}
    by_run: dict[tuple[str, int], None] = {}
    rows: list[ResultRow] = []
    for sample in samples:
        by_run[as_text(sample.id), sample.epoch] = None
        rows += _make_sample_rows(sample, header.eval, unread)
    if not by_run and header.status == "success":
        raise make_result_error(file, _NO_SAMPLES, hint=_NO_SAMPLES_HINT)
    rows += _make_missing_rows(header.eval, by_run)
    if not header.eval.scorers and not any(row.status is None or row.score for row in rows):
        raise make_result_error(file, "the log has no scores", hint="run `inspect score`")
    warnings += [
        make_warning(file, f"scorer {name} is not read: its values are texts") for name in unread
    ]
    return ResultFile(
        file=file, tool=NAME, rows=check_unique(rows, file=file), warnings=tuple(warnings)
    )


def _check_header(header: _InspectHeader, file: str) -> tuple[Problem, ...]:
    if header.invalidated:
        hint = "run the evaluation again"
        raise make_result_error(file, "the log is marked as invalidated", hint=hint)
    return check_format_version(header.version, [_VERSION], named="Inspect log", file=file)


def _make_sample_rows(
    sample: _InspectSample, log: _InspectEval, unread: dict[str, None]
) -> Iterator[ResultRow]:
    whole = ResultRow(
        case=f"{log.task}/{as_text(sample.id)}",
        metric=CASE_METRIC,
        status="errored",
        reason=_NOT_SCORED if sample.error is None else first_line(sample.error.message),
        repeat=sample.epoch if log.has_epochs else None,
        definition=digest_facts(as_text(sample.input), as_text(sample.target)),
        seconds=as_number(sample.total_time),
    )
    scores = sample.scores or {}
    if not scores:
        yield replace(whole, definition="")
        return
    for scorer, score in scores.items():
        reason = first_line(score.explanation)
        named = score.value if isinstance(score.value, dict) else None
        values = {scorer: score.value} if named is None else _join_names(scorer, named)
        for name, value in values.items():
            if (verdict := _read_value(value)) is None:
                unread[name] = None
            else:
                status, number = verdict
                yield replace(whole, metric=name, status=status, score=number, reason=reason)
    if sample.error is not None:
        for missing in log.scorers or ():
            if missing.name not in scores:
                yield replace(whole, metric=missing.name)


def _join_names(scorer: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{scorer}/{key}": value for key, value in values.items()}


def _read_value(value: Any) -> tuple[Status | None, float | None] | None:
    """The status and the score; None for texts that are no grade."""
    if isinstance(value, bool):
        return ("passed" if value else "failed"), as_score(value)
    if value is None:
        return "skipped", None
    if isinstance(value, str) and value in _LETTERS:
        return _LETTERS[value]
    number = as_number(value)
    return None if number is None else (None, number)


def _make_missing_rows(
    log: _InspectEval, present: Mapping[tuple[str, int], None]
) -> Iterator[ResultRow]:
    """Yield the samples of the dataset that the log does not have."""
    ids = (log.dataset and log.dataset.sample_ids) or ()
    epochs = (log.config and log.config.epochs) or 1
    if len(ids) * epochs > MAX_MISSING + len(present):
        raise InputError.from_message(f"the log lacks more than {MAX_MISSING:,} samples")
    for sample_id in map(as_text, ids):
        for epoch in range(1, epochs + 1):
            if (sample_id, epoch) not in present:
                yield ResultRow(
                    case=f"{log.task}/{sample_id}",
                    metric=CASE_METRIC,
                    status="errored",
                    reason=_CUT_OFF,
                    repeat=epoch if log.has_epochs else None,
                )


MAX_MISSING: Final = 100_000
