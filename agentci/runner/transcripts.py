"""Record what evaluators sent and received, without secrets and within size limits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, to_builtins

from agentci._util.text import truncate
from agentci._util.text.format import format_count, format_number
from agentci._util.text.json_text import dumps_compact, dumps_for_html
from agentci._util.text.secrets import redact, redact_members
from agentci.model.choices import CallScope
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
from agentci.model.values import replace

# Of one text; what protocols send is a tenth of it.
MAX_TEXT: Final = 64 * 1024
# Of all texts of a check, which are many where an evaluator has parts.
MAX_TEXTS: Final = 1024 * 1024
# Executors keep the last 64 KiB of stderr. Of these the first half is not shown where there was
# more, since it may begin in the middle of a secret.
MAX_STDERR: Final = 32 * 1024
MAX_OUTCOME: Final = 2_000
# Shorter values are no secrets, but words and numbers that stand everywhere.
MIN_SECRET_LENGTH: Final = 6

ESCAPED_NOTE: Final = "bytes that are not UTF-8 are written \\xNN"
REDACTED_NOTE: Final = "values of variables are written ***"
SHORTENED_NOTE: Final = "the middle is left out"
TAIL_ONLY_NOTE: Final = "only the end is kept"

CallRequest: TypeAlias = RunProgram | RunCommand | AskModel | CompareEmbeddings | GradeWithService


class ExternalCall(Struct, frozen=True, kw_only=True):
    """One request that left us, with all that came of it.

    Attributes:
        name: on whose behalf, an evaluator or a part of one.
        response: None where there is none.
        error: why.
        model_responses: all that a model replied, also what gave no verdict.
        seconds: from asking on.
        cached: it is the reply of an earlier run.
    """

    name: str
    request: CallRequest
    response: Response | None = None
    error: str = ""
    model_responses: tuple[ModelResponse, ...] = ()
    seconds: float = 0.0
    cached: bool = False


def find_call_secrets(
    dealings: Sequence[ExternalCall], variables: Mapping[str, str]
) -> tuple[str, ...]:
    """The values of all variables that requests of a check let somebody see.

    Args:
        variables: the environment.
    """
    return find_secret_values(
        (name for each in dealings for name in _visible_variables(each.request)), variables
    )


def find_secret_values(names: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are long enough to be secrets.

    Args:
        variables: the environment.
    """
    values = {variables.get(name, "").strip() for name in names}
    return tuple(sorted(value for value in values if len(value) >= MIN_SECRET_LENGTH))


def redact_result(result: CheckResult, secrets: tuple[str, ...]) -> CheckResult:
    """The result of a check with none of its secrets in what the evaluator said."""
    if not secrets:
        return result
    clean = partial(redact, secrets=secrets)
    said, repeats = result.judgement, result.repeats
    if said is not None:
        said = replace(
            said,
            reason=said.reason and clean(said.reason),
            hits=tuple(map(clean, said.hits)),
            misses=tuple(map(clean, said.misses)),
            reasoning=said.reasoning and clean(said.reasoning),
            details=redact_members(said.details, secrets),
        )
    if repeats is not None:
        each = (replace(one, reason=one.reason and clean(one.reason)) for one in repeats.repeats)
        repeats = replace(repeats, repeats=tuple(each))
    reason = result.reason and clean(result.reason)
    return replace(result, reason=reason, judgement=said, repeats=repeats)


def format_calls(
    dealings: Sequence[ExternalCall], secrets: tuple[str, ...]
) -> tuple[EvaluatorCall, ...]:
    """What can be shown of ``dealings``, which are of one check."""
    sheets = [(*_sent_texts(each.request), *_received_texts(each)) for each in dealings]
    limit = min(MAX_TEXT, MAX_TEXTS // max(1, sum(map(len, sheets))))
    return tuple(
        EvaluatorCall(
            name=each.name,
            outcome=truncate.middle(redact(_format_outcome(each), secrets), MAX_OUTCOME),
            texts=tuple(_make_shown_text(sheet, secrets, limit) for sheet in own),
        )
        for each, own in zip(dealings, sheets, strict=True)
    )


class _RawText(Struct, frozen=True, kw_only=True):
    """A text before anything is hidden or left out; of a log the end is what counts."""

    name: str
    content: bytes
    notes: tuple[str, ...] = ()
    is_log: bool = False


def _visible_variables(request: CallRequest) -> tuple[str, ...]:
    """The variables that a request lets a program see, or a service know the value of."""
    match request:
        case RunProgram():
            return request.variables
        case RunCommand():
            target = request.model_access
            keys = () if target is None else (target.judge.settings.key_variable,)
            return (*request.variables, *keys)
        case AskModel() | CompareEmbeddings():
            return (request.judge.settings.key_variable,)
        case GradeWithService():
            return (request.service.key_variable,)
        case _:
            assert_never(request)


def _format_outcome(dealing: ExternalCall) -> str:
    """A sentence without its full stop."""
    taken = "in an earlier run" if dealing.cached else f"after {format_number(dealing.seconds)} s"
    if dealing.response is None:
        return f"{_format_recipient(dealing.request)}: {dealing.error}"
    match dealing.response:
        case ProgramOutput(exit_code=code):
            what = f"exit code {code}"
        case ServiceGrades(grades=grades):
            what = format_count(len(grades), "grade")
        case EmbeddingSimilarity():
            what = "vectors compared"
        case _:
            replies = len(dealing.model_responses)
            what = "1 reply" if replies == 1 else f"{replies} replies"
    return f"{_format_recipient(dealing.request)}: {what} {taken}"


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
            yield _make_raw_text("one text", one)
            yield _make_raw_text("the other", other)
        case GradeWithService():
            yield _make_raw_text("grader", dumps_compact(request.criterion))
            yield _make_raw_text("items", dumps_compact(request.items))
        case _:
            assert_never(request)


def _received_texts(dealing: ExternalCall) -> Iterator[_RawText]:
    for index, said in enumerate(dealing.model_responses, start=1):
        name = "reply" if len(dealing.model_responses) == 1 else f"reply {index}"
        early = () if said.ending == "complete" else (f"it ended early: {said.finish_reason}",)
        yield _make_raw_text(name, said.text, *early)
    match dealing.response:
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


def _make_shown_text(sheet: _RawText, secrets: tuple[str, ...], limit: int) -> CallPayload:
    text = sheet.content.decode("utf-8", "backslashreplace")
    spelt = text.encode("utf-8") != sheet.content
    shown = redact(text, secrets)
    end = shown[-MAX_STDERR:] if sheet.is_log else shown
    kept = truncate.middle(end, limit)
    notes = {
        ESCAPED_NOTE: spelt,
        REDACTED_NOTE: shown != text,
        TAIL_ONLY_NOTE: end != shown,
        SHORTENED_NOTE: kept != end,
    }
    return CallPayload(
        name=sheet.name,
        content=kept,
        size=len(sheet.content),
        notes=(*sheet.notes, *(note for note, holds in notes.items() if holds)),
    )


# Of all checks of a run, as the page holds them.
MAX_CHARACTERS: Final = 8 * 1024**2


class TranscriptLog:
    """The exchanges of the worst checks, from any number of threads.

    Never more than twice the room is taken, however many checks there are.

    Args:
        of: which checks they are kept of.
        room: characters for all of them.
    """

    def __init__(self, of: CallScope, *, room: int = MAX_CHARACTERS) -> None:
        self._selection = of
        self._max_characters = room
        self._lock = Lock()
        self._logged: dict[str, _LoggedCheck] = {}
        self._left_out: set[str] = set()
        self._size = 0
        self._limit = _NO_LIMIT

    def add(
        self, result: CheckResult, dealings: Sequence[ExternalCall], secrets: tuple[str, ...]
    ) -> None:
        """Take what a check was about; of several runs of one, the last that is of interest.

        Args:
            secrets: what nobody is to read of it.
        """
        if self._selection == "none" or (self._selection == "failed" and result.status == "passed"):
            return
        badness = _rank_result(result)
        has_room = badness < self._limit
        packed = dumps_for_html(to_builtins(format_calls(dealings, secrets))) if has_room else ""
        with self._lock:
            if before := self._logged.pop(result.id, None):
                self._size -= len(before.packed)
            if not has_room:
                self._left_out.add(result.id)
                return
            self._logged[result.id] = _LoggedCheck(packed=packed, badness=badness)
            self._size += len(packed)
            self._left_out.discard(result.id)
            if self._size > 2 * self._max_characters:
                self._make_room()

    def select_worst(self) -> EvaluatorCalls:
        """What there is room for, the worst first."""
        with self._lock:
            self._make_room()
            return EvaluatorCalls(
                json_by_check={id_: each.packed for id_, each in self._logged.items()},
                omitted_checks=frozenset(self._left_out),
            )

    def _make_room(self) -> None:
        """Keep the worst; nothing that is less bad has room where something else had none."""
        found = sorted(self._logged.items(), key=lambda item: item[1].badness)
        self._logged, self._size = {}, 0
        for index, (id_, each) in enumerate(found):
            if self._size + len(each.packed) > self._max_characters:
                self._left_out.update(left for left, _ in found[index:])
                self._limit = each.badness
                return
            self._logged[id_] = each
            self._size += len(each.packed)


_Rank: TypeAlias = tuple[int, bool, float, str]


class _LoggedCheck(Struct, frozen=True, kw_only=True):
    packed: str
    badness: _Rank


_STATUS_ORDER: Final = {"failed": 0, "errored": 0, "skipped": 1, "passed": 2}
_NO_LIMIT: Final[_Rank] = (len(_STATUS_ORDER), False, 0.0, "")


def _rank_result(result: CheckResult) -> _Rank:
    """Less for what is worse; what has no score is worst.

    Of equals some have room, the same ones whenever they come, and of all evaluators.
    """
    score = None if result.judgement is None else result.judgement.score
    order = _STATUS_ORDER[result.status]
    return order, not result.evaluator.required, -1.0 if score is None else score, result.id
