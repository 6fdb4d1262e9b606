"""Results of tools for Python.

- DeepEval: ``.latest_run_full.json`` and ``.latest_test_run.json``
- Inspect AI: logs in ``.json``, and the members of an ``.eval`` archive
- pydantic-evals: reports, dumped with a ``TypeAdapter``
- lm-evaluation-harness: ``samples_TASK_TIME.jsonl``
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from agentci.errors import InputError
from agentci.model.result import CASE_METRIC, Status
from agentci.model.values import Problem, replace
from agentci.result_files.content import ResultContent, check_unique_keys, check_utf8
from agentci.result_files.row import (
    CaseRun,
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
    number_metrics,
    number_runs,
    pass_or_fail,
)

DEEPEVAL: Final = "deepeval"
_DEEPEVAL_KEYS: Final = ("testCases", "conversationalTestCases", "metricsScores")
_DEEPEVAL_WRAPPER: Final = "testRunData"
# The name of a case without one, by its position.
_DEEPEVAL_POSITION: Final = re.compile(r"(conversational_)?test_case_\d+")


class _DeepevalMetric(Struct, rename="camel"):
    name: str
    success: bool | None = None
    score: Any = None
    threshold: Any = None
    reason: Any = None
    error: Any = None
    flaky: Any = None
    skipped: Any = None
    strict_mode: Any = None
    evaluation_cost: Any = None


class _DeepevalCase(Struct, rename="camel"):
    name: Any = None
    input: Any = None
    expected_output: Any = None
    expected_outcome: Any = None
    scenario: Any = None
    flaky: Any = None
    metrics_data: list[_DeepevalMetric] | None = None
    run_duration: Any = None
    evaluation_cost: Any = None

    @property
    def question(self) -> str:
        """What the agent was asked; the scenario of a conversation."""
        return as_text(self.input if self.input is not None else self.scenario or "")


class _DeepevalRun(Struct, rename="camel"):
    test_cases: list[_DeepevalCase]
    conversational_test_cases: list[_DeepevalCase]


class _DeepevalWrapper(Struct, rename="camel"):
    test_run_data: _DeepevalRun


def recognises_deepeval(content: ResultContent) -> bool:
    """Whether the file is a test run of DeepEval."""
    if content.has(*_DEEPEVAL_KEYS):
        return True
    inner = content.member(_DEEPEVAL_WRAPPER)
    return isinstance(inner, dict) and all(key in inner for key in _DEEPEVAL_KEYS)


def read_deepeval(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape.
    """
    run = (
        content.decode(_DeepevalWrapper).test_run_data
        if content.has(_DEEPEVAL_WRAPPER)
        else content.decode(_DeepevalRun)
    )
    cases = [*run.test_cases, *run.conversational_test_cases]
    runs = [
        CaseRun(
            case=name,
            rows=number_metrics(_make_deepeval_rows(case)),
            facts=digest_facts(case.question, case.expected_output, case.expected_outcome),
        )
        for name, case in zip(_name_deepeval_cases(cases), cases, strict=True)
    ]
    rows = check_unique(number_runs(runs), file=content.file)
    return ResultFile(file=content.file, tool=DEEPEVAL, rows=rows)


def _name_deepeval_cases(cases: Sequence[_DeepevalCase]) -> Iterator[str]:
    inputs: dict[str, set[str]] = {}
    given = [
        "" if _DEEPEVAL_POSITION.fullmatch(each) else each
        for each in map(_get_deepeval_name, cases)
    ]
    for name, case in zip(given, cases, strict=True):
        inputs.setdefault(name, set()).add(case.question)
    for name, case in zip(given, cases, strict=True):
        if not name:
            yield case.question or _get_deepeval_name(case)
        else:
            yield f"{name}: {case.question}" if len(inputs[name]) > 1 else name


def _get_deepeval_name(case: _DeepevalCase) -> str:
    return as_text(case.name or "")


def _make_deepeval_rows(case: _DeepevalCase) -> Iterator[ResultRow]:
    seconds = as_number(case.run_duration)
    if not case.metrics_data:
        yield ResultRow(case="", metric=CASE_METRIC, status="errored", seconds=seconds)
    for each in case.metrics_data or ():
        score, status = as_score(each.score), _find_deepeval_status(each)
        yield ResultRow(
            case="",
            metric=each.name,
            status=status,
            score=score,
            threshold=as_number(each.threshold),
            reason=first_line(each.error) or first_line(each.reason),
            definition=digest_facts(
                case.question,
                case.expected_output,
                case.expected_outcome,
                each.threshold,
                bool(each.strict_mode),
            ),
            advisory=bool(each.flaky or case.flaky),
            seconds=seconds,
            cost_usd=as_number(each.evaluation_cost),
        )


def _find_deepeval_status(metric: _DeepevalMetric) -> Status:
    """The verdict as stated: the direction of a threshold is not in the file."""
    if metric.skipped is True:
        return "skipped"
    if as_score(metric.score) is None or metric.success is None:
        return "errored"
    return pass_or_fail(passed=metric.success)


INSPECT_AI: Final = "inspect"
_HEADER_MEMBER: Final = "header.json"
_SAMPLES_FOLDER: Final = "samples/"
_INSPECT_AI_KEYS: Final = ("version", "status", "eval", "plan")
_INSPECT_VERSION: Final = 2
_INSPECT_LETTERS: Final[dict[str, tuple[Status, float]]] = {
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


def recognises_inspect(content: ResultContent) -> bool:
    """Whether the file is a log in JSON."""
    return content.has(*_INSPECT_AI_KEYS) and isinstance(content.member("eval", "task"), str)


def read_inspect(content: ResultContent) -> ResultFile:
    """Read a log in JSON.

    Raises:
        InputError: it has another shape, a newer format, no samples, or is invalidated.
    """
    log = content.decode(_InspectLog)
    return _make_inspect_file(log, log.samples or (), content.file)


def is_needed_member(name: str) -> bool:
    """Whether a member of an ``.eval`` archive holds what ``read_inspect_archive`` reads."""
    return name == _HEADER_MEMBER or (name.startswith(_SAMPLES_FOLDER) and name.endswith(".json"))


def read_inspect_archive(members: Iterable[tuple[str, bytes]], *, file: str) -> ResultFile:
    """Read the members of an ``.eval`` archive.

    Args:
        members: names and contents; each content is dropped before the next is read.

    Raises:
        InputError: as ``read_inspect``; or the archive has no header.
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
    return _make_inspect_file(header, samples, file)


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


def _make_inspect_file(
    header: _InspectHeader, samples: Iterable[_InspectSample], file: str
) -> ResultFile:
    warnings = [*_check_inspect_header(header, file)]
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
        make_warning(file, f"scorer {name} is not read: its values are text") for name in unread
    ]
    return ResultFile(
        file=file, tool=INSPECT_AI, rows=check_unique(rows, file=file), warnings=tuple(warnings)
    )


def _check_inspect_header(header: _InspectHeader, file: str) -> tuple[Problem, ...]:
    if header.invalidated:
        hint = "run the evaluation again"
        raise make_result_error(file, "the log is marked as invalidated", hint=hint)
    return check_format_version(header.version, [_INSPECT_VERSION], named="Inspect log", file=file)


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
    """The status and the score; None for texts that are not a grade."""
    if isinstance(value, bool):
        return ("passed" if value else "failed"), as_score(value)
    if value is None:
        return "skipped", None
    if isinstance(value, str) and value in _INSPECT_LETTERS:
        return _INSPECT_LETTERS[value]
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


PYDANTIC_EVALS: Final = "pydantic-evals"
_REPEAT: Final = re.compile(r" \[(\d{1,9})/\d+\]$")


class _PydanticResult(Struct):
    value: Any = None
    reason: Any = None
    source: Any = None


class _PydanticFailure(Struct):
    name: str
    error_message: Any = None


class _PydanticCase(Struct):
    name: str
    source_case_name: str | None = None
    inputs: Any = None
    expected_output: Any = None
    scores: dict[str, _PydanticResult] = {}
    assertions: dict[str, _PydanticResult] = {}
    evaluator_failures: list[_PydanticFailure] = []
    task_duration: Any = None
    error_message: Any = None


class _PydanticReport(Struct):
    cases: list[_PydanticCase]
    failures: list[_PydanticCase]
    report_evaluator_failures: list[_PydanticFailure] = []


def recognises_pydantic_evals(content: ResultContent) -> bool:
    """Whether the file is an ``EvaluationReport``."""
    return content.kind == "json" and content.has("name", "cases", "failures")


def read_pydantic_evals(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape, or no scores and assertions.
    """
    report = content.decode(_PydanticReport)
    rows = [row for case in report.cases for row in _make_pydantic_evals_rows(case)]
    rows += [_make_failure(case) for case in report.failures]
    warnings = tuple(
        make_warning(content.file, f"the report evaluator {each.name} failed")
        for each in report.report_evaluator_failures
    )
    return ResultFile(
        file=content.file,
        tool=PYDANTIC_EVALS,
        rows=check_unique(rows, file=content.file),
        warnings=warnings,
    )


def _make_pydantic_evals_rows(case: _PydanticCase) -> tuple[ResultRow, ...]:
    name, repeat = _split_name(case)
    seconds = as_number(case.task_duration)
    return tuple(
        replace(row, case=name, repeat=repeat, seconds=seconds)
        for row in number_metrics(_make_pydantic_evals_metrics(case))
    )


def _make_pydantic_evals_metrics(case: _PydanticCase) -> Iterator[ResultRow]:
    for name, each in case.assertions.items():
        is_verdict = isinstance(each.value, bool)
        yield ResultRow(
            case="",
            metric=name,
            status=pass_or_fail(passed=each.value) if is_verdict else "errored",
            score=as_score(each.value),
            reason=first_line(each.reason),
            definition=_digest(case, each),
        )
    for name, each in case.scores.items():
        score = as_score(each.value)
        yield ResultRow(
            case="",
            metric=name,
            status="errored" if score is None else None,
            score=score,
            reason=first_line(each.reason),
            definition=_digest(case, each),
        )
    for failure in case.evaluator_failures:
        reason = first_line(failure.error_message)
        yield ResultRow(case="", metric=failure.name, status="errored", reason=reason)


def _make_failure(case: _PydanticCase) -> ResultRow:
    name, repeat = _split_name(case)
    reason = first_line(case.error_message)
    return ResultRow(case=name, metric=CASE_METRIC, status="errored", reason=reason, repeat=repeat)


def _split_name(case: _PydanticCase) -> tuple[str, int | None]:
    """The name of the case, and the number of the repeat."""
    found = _REPEAT.search(case.name)
    if case.source_case_name is None or found is None:
        return case.name, None
    return case.source_case_name, int(found[1])


def _digest(case: _PydanticCase, result: _PydanticResult) -> str:
    return digest_facts(as_text(case.inputs), as_text(case.expected_output), result.source)


LM_EVAL: Final = "lm-eval"
_LM_EVAL_KEYS: Final = ("doc_id", "doc", "filter", "metrics", "doc_hash")
_LM_EVAL_FILE_NAME: Final = re.compile(r"samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[^/]*\.jsonl?")
_HASH_DIGITS: Final = 12
_NO_FILTER: Final = "none"


def recognises_lm_eval(content: ResultContent) -> bool:
    """Whether each line is a sample."""
    return content.has(*_LM_EVAL_KEYS)


def read_lm_eval(content: ResultContent) -> ResultFile:
    """Read the file, which states no version.

    Raises:
        InputError: it has another shape, or no metric is a number.
    """
    task, unread = _find_lm_eval_task(content.file), dict[str, None]()
    by_document: dict[tuple[str, str], list[ResultRow]] = {}
    for line, sample in content.decode_lines(dict[str, Any]):
        if not isinstance(sample.get("doc_hash"), str) or not isinstance(
            sample.get("metrics"), list
        ):
            message = "the line is not a sample: `doc_hash` and `metrics` are missing"
            raise make_result_error(content.file, message, line=line)
        document = (as_text(sample.get("doc_id")), sample["doc_hash"])
        by_document.setdefault(document, []).extend(_make_lm_eval_rows(sample, unread))
    runs = [
        CaseRun(case=f"{task}/{doc_hash[:_HASH_DIGITS]}", rows=tuple(rows), facts=doc_id)
        for (doc_id, doc_hash), rows in by_document.items()
    ]
    warnings = tuple(
        make_warning(content.file, f"metric {name} is not read: it has no value per document")
        for name in unread
    )
    rows = check_unique(number_runs(runs), file=content.file)
    return ResultFile(file=content.file, tool=LM_EVAL, rows=rows, warnings=warnings)


def _find_lm_eval_task(file: str) -> str:
    name = file.rpartition("/")[2]
    found = _LM_EVAL_FILE_NAME.fullmatch(name)
    return found["task"] if found else name.rpartition(".")[0] or name


def _make_lm_eval_rows(sample: dict[str, Any], unread: dict[str, None]) -> Iterator[ResultRow]:
    filter_name = as_text(sample.get("filter") or _NO_FILTER)
    suffix = "" if filter_name == _NO_FILTER else f",{filter_name}"
    for metric in map(as_text, sample["metrics"]):
        score = as_score(sample.get(metric))
        if score is None:
            unread[metric] = None
            continue
        yield ResultRow(
            case="",
            metric=f"{metric}{suffix}",
            status=None,
            score=score,
            definition=digest_facts(sample.get("target_hash")),
        )
