"""Record the inputs and outputs of evaluators, without secrets and within size limits."""

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, to_builtins

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_number
from agentci._util.text.json_text import dumps_compact, dumps_for_html
from agentci._util.text.secrets import Redactor
from agentci.model.judges import AskModel, ModelResponse, ModelSettings
from agentci.model.requests import (
    CompareEmbeddings,
    EmbeddingSimilarity,
    GradeWithService,
    ProgramOutput,
    Response,
    RunCommand,
    RunProgram,
    ServiceGrades,
)
from agentci.model.result import CallPayload, CheckResult, EvaluatorCall, EvaluatorCalls
from agentci.model.values import CallScope

# Characters of one text; typical ones have a tenth of it.
MAX_TEXT: Final = 64 * 1024
# Characters of all texts of a check; an evaluator that consists of several has many.
MAX_TEXTS: Final = 1024 * 1024
# Executors keep the last 64 KiB of stderr, whose start may cut a secret in two, so that it would
# not be found. Only the last half is shown.
MAX_STDERR: Final = 32 * 1024
MAX_OUTCOME: Final = 2_000
ESCAPED_NOTE: Final = "bytes that are not UTF-8 are shown as \\xNN"
REDACTED_NOTE: Final = "values of environment variables are shown as ***"
SHORTENED_NOTE: Final = "the middle is omitted"
TAIL_ONLY_NOTE: Final = "only the end is shown"

CallRequest: TypeAlias = RunProgram | RunCommand | AskModel | CompareEmbeddings | GradeWithService


class ExternalCall(Struct, frozen=True, kw_only=True):
    """One call of a program, a model or a service, and its response.

    Attributes:
        name: the evaluator, or the part of one, that made the call.
        response: None if it failed.
        error: why it failed.
        model_responses: all responses of a model, including those without a valid verdict.
        seconds: duration of the call.
        cached: the response is cached.
    """

    name: str
    request: CallRequest
    response: Response | None = None
    error: str = ""
    model_responses: tuple[ModelResponse, ...] = ()
    seconds: float = 0.0
    cached: bool = False


def format_calls(calls: Sequence[ExternalCall], redactor: Redactor) -> tuple[EvaluatorCall, ...]:
    """The calls of one check as they are shown: without secrets, and shortened."""
    texts_by_call = [(*_sent_texts(each.request), *_received_texts(each)) for each in calls]
    limit = min(MAX_TEXT, MAX_TEXTS // max(1, sum(map(len, texts_by_call))))
    return tuple(
        EvaluatorCall(
            name=each.name,
            outcome=truncate.middle(redactor.redact(_format_outcome(each)), MAX_OUTCOME),
            texts=tuple(_make_shown_text(raw_text, redactor, limit) for raw_text in own),
        )
        for each, own in zip(calls, texts_by_call, strict=True)
    )


class _RawText(Struct, frozen=True, kw_only=True):
    """A text before redaction and truncation; of a log, the end is shown."""

    name: str
    content: bytes
    notes: tuple[str, ...] = ()
    is_log: bool = False


def _format_outcome(call: ExternalCall) -> str:
    """What was called and how it ended, such as ``program: exit code 0 after 0.1 s``."""
    when = "(cached)" if call.cached else f"after {format_number(call.seconds)} s"
    if call.response is None:
        return f"{_format_recipient(call.request)}: {call.error}"
    match call.response:
        case ProgramOutput(exit_code=code):
            what = f"exit code {code}"
        case ServiceGrades(grades=grades):
            what = format_count(len(grades), "grade")
        case EmbeddingSimilarity():
            what = "vectors compared"
        case _:
            what = format_count(len(call.model_responses), "response")
    return f"{_format_recipient(call.request)}: {what} {when}"


def _format_recipient(request: CallRequest) -> str:
    match request:
        case RunProgram() | RunCommand():
            return "program"
        case AskModel() | CompareEmbeddings():
            return f"model {_format_model(request.judge.settings)}"
        case GradeWithService():
            return f"service {request.service.base_url}"
        case _:
            assert_never(request)


def _format_model(settings: ModelSettings) -> str:
    return settings.model or " ".join(settings.command)


def _sent_texts(request: CallRequest) -> Iterator[_RawText]:
    match request:
        case RunProgram() | RunCommand():
            yield _make_raw_text("stdin", request.stdin)
        case AskModel(prompt=question):
            if question.system:
                yield _make_raw_text("system", question.system)
            yield _make_raw_text("user", question.user)
        case CompareEmbeddings(texts=(one, other)):
            yield _make_raw_text("text 1", one)
            yield _make_raw_text("text 2", other)
        case GradeWithService():
            yield _make_raw_text("grader", dumps_compact(request.criterion))
            yield _make_raw_text("items", dumps_compact(request.items))
        case _:
            assert_never(request)


def _received_texts(call: ExternalCall) -> Iterator[_RawText]:
    for index, response in enumerate(call.model_responses, start=1):
        name = "response" if len(call.model_responses) == 1 else f"response {index}"
        notes = (
            ()
            if response.ending == "complete"
            else (f"the response ended early: {response.finish_reason}",)
        )
        yield _make_raw_text(name, response.text, *notes)
    match call.response:
        case ProgramOutput(stdout=stdout, stderr=stderr):
            yield _RawText(name="stdout", content=stdout)
            yield _RawText(name="stderr", content=stderr.encode(), is_log=True)
        case EmbeddingSimilarity(response=response):
            yield _make_raw_text("cosine", response.text)
        case ServiceGrades(grades=grades):
            yield _make_raw_text("grades", dumps_compact(to_builtins(grades)))
        case _:
            pass


def _make_raw_text(name: str, text: str, *notes: str) -> _RawText:
    return _RawText(name=name, content=text.encode("utf-8", "backslashreplace"), notes=notes)


def _make_shown_text(raw_text: _RawText, redactor: Redactor, limit: int) -> CallPayload:
    text = raw_text.content.decode("utf-8", "backslashreplace")
    is_escaped = text.encode("utf-8") != raw_text.content
    shown = redactor.redact(text)
    end = shown[-MAX_STDERR:] if raw_text.is_log else shown
    shortened = truncate.middle(end, limit)
    notes = {
        ESCAPED_NOTE: is_escaped,
        REDACTED_NOTE: shown != text,
        TAIL_ONLY_NOTE: end != shown,
        SHORTENED_NOTE: shortened != end,
    }
    return CallPayload(
        name=raw_text.name,
        content=shortened,
        size=len(raw_text.content),
        notes=(*raw_text.notes, *(note for note, holds in notes.items() if holds)),
    )


# Characters of JSON in report.html, for all checks of a run.
MAX_CHARACTERS: Final = 8 * 1024**2


class EvaluatorCallLog:
    """The calls of the worst checks; safe to share between threads.

    It never holds more than twice the limit, however many checks there are.

    Args:
        scope: the checks whose calls are recorded.
        max_characters: limit for all of them.
    """

    def __init__(self, scope: CallScope, *, max_characters: int = MAX_CHARACTERS) -> None:
        self._scope = scope
        self._max_characters = max_characters
        self._lock = Lock()
        self._logged: dict[str, _LoggedCheck] = {}
        self._left_out: set[str] = set()
        self._size = 0
        self._limit = _NO_LIMIT

    def add(self, result: CheckResult, calls: Sequence[ExternalCall], redactor: Redactor) -> None:
        """Record the calls of a check. Of several trials, the last one in scope is kept.

        Args:
            redactor: the secrets to leave out.
        """
        if self._scope == "none" or (self._scope == "failed" and result.status == "passed"):
            return
        rank = _rank_result(result)
        has_room = rank < self._limit
        packed = dumps_for_html(to_builtins(format_calls(calls, redactor))) if has_room else ""
        with self._lock:
            if before := self._logged.pop(result.id, None):
                self._size -= len(before.packed)
            if not has_room:
                self._left_out.add(result.id)
                return
            self._logged[result.id] = _LoggedCheck(packed=packed, rank=rank)
            self._size += len(packed)
            self._left_out.discard(result.id)
            if self._size > 2 * self._max_characters:
                self._make_room()

    def select_worst(self) -> EvaluatorCalls:
        """The calls of the worst checks that fit the limit, the worst first."""
        with self._lock:
            self._make_room()
            return EvaluatorCalls(
                json_by_check={id_: each.packed for id_, each in self._logged.items()},
                omitted_checks=frozenset(self._left_out),
            )

    def _make_room(self) -> None:
        """Keep the worst checks that fit, and reject checks that are better than those left out."""
        found = sorted(self._logged.items(), key=lambda item: item[1].rank)
        self._logged, self._size = {}, 0
        for index, (id_, each) in enumerate(found):
            if self._size + len(each.packed) > self._max_characters:
                self._left_out.update(left for left, _ in found[index:])
                self._limit = each.rank
                return
            self._logged[id_] = each
            self._size += len(each.packed)


_Rank: TypeAlias = tuple[int, bool, float, str]


class _LoggedCheck(Struct, frozen=True, kw_only=True):
    packed: str
    rank: _Rank


_STATUS_ORDER: Final = {"failed": 0, "errored": 0, "skipped": 1, "passed": 2}
_NO_LIMIT: Final[_Rank] = (len(_STATUS_ORDER), False, 0.0, "")


def _rank_result(result: CheckResult) -> _Rank:
    """A sort key with the worst result first; a result without a score is worse than one with.

    The id breaks ties, so that the selection does not depend on the order of the results and
    includes all evaluators.
    """
    score = None if result.judgement is None else result.judgement.score
    order = _STATUS_ORDER[result.status]
    return order, not result.evaluator.required, -1.0 if score is None else score, result.id
