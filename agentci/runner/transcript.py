"""What went to a program, a model or a service, and what came back, in words and texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, to_builtins

from agentci._util.text import truncate
from agentci._util.text.format import count, number
from agentci._util.text.secrets import without, without_in
from agentci._util.text.strict_json import compact
from agentci.model.call import Exchanged, Text
from agentci.model.embedding import CompareEmbeddings, Likeness
from agentci.model.grading import GradeRemotely, RemoteGrades
from agentci.model.judging import AskModel, ModelReply, ModelSettings
from agentci.model.requests import ProgramReply, Reply, RunCommand, RunProgram
from agentci.model.result import Result
from agentci.model.values import replace

# Of one text; what protocols send is a tenth of it.
MAX_TEXT: Final = 64 * 1024
# Of all texts of a check, which are many where an evaluator has parts.
MAX_TEXTS: Final = 1024 * 1024
# Executors keep the last 64 KiB of stderr. Of these the first half is not shown where there was
# more, since it may begin in the middle of a secret.
MAX_STDERR: Final = 32 * 1024
MAX_FAILURE: Final = 2_000
# Shorter values are no secrets, but words and numbers that stand everywhere.
MIN_SECRET: Final = 6

SPELT_OUT: Final = "bytes that are not UTF-8 are written \\xNN"
HIDING: Final = "values of variables are written ***"
CUT: Final = "the middle is left out"
ENDED: Final = "only the end is kept"

Dealt: TypeAlias = RunProgram | RunCommand | AskModel | CompareEmbeddings | GradeRemotely


class Dealing(Struct, frozen=True, kw_only=True):
    """One request that left us, with all that came of it.

    Attributes:
        name: on whose behalf, an evaluator or a part of one.
        reply: None where there is none.
        failure: why.
        said: all that a model replied, also what gave no verdict.
        seconds: from asking on.
        cached: it is the reply of an earlier run.
    """

    name: str
    request: Dealt
    reply: Reply | None = None
    failure: str = ""
    said: tuple[ModelReply, ...] = ()
    seconds: float = 0.0
    cached: bool = False


def secrets_of(dealings: Sequence[Dealing], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables that requests of a check let somebody see.

    Args:
        variables: the environment.
    """
    return values_of((name for each in dealings for name in _variables(each.request)), variables)


def values_of(names: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are long enough to be secrets.

    Args:
        variables: the environment.
    """
    values = {variables.get(name, "").strip() for name in names}
    return tuple(sorted(value for value in values if len(value) >= MIN_SECRET))


def discreet(result: Result, secrets: tuple[str, ...]) -> Result:
    """The result of a check with none of its secrets in what the evaluator said."""
    if not secrets:
        return result
    clean = partial(without, secrets=secrets)
    said, repeats = result.judgement, result.repeats
    if said is not None:
        said = replace(
            said,
            reason=said.reason and clean(said.reason),
            hits=tuple(map(clean, said.hits)),
            misses=tuple(map(clean, said.misses)),
            reasoning=said.reasoning and clean(said.reasoning),
            details=without_in(said.details, secrets),
        )
    if repeats is not None:
        each = (replace(one, reason=one.reason and clean(one.reason)) for one in repeats.repeats)
        repeats = replace(repeats, repeats=tuple(each))
    reason = result.reason and clean(result.reason)
    return replace(result, reason=reason, judgement=said, repeats=repeats)


def exchanged(dealings: Sequence[Dealing], secrets: tuple[str, ...]) -> tuple[Exchanged, ...]:
    """What can be shown of ``dealings``, which are of one check."""
    sheets = [(*_sent(each.request), *_received(each)) for each in dealings]
    limit = min(MAX_TEXT, MAX_TEXTS // max(1, sum(map(len, sheets))))
    return tuple(
        Exchanged(
            name=each.name,
            outcome=truncate.middle(without(_outcome(each), secrets), MAX_FAILURE),
            texts=tuple(_text(sheet, secrets, limit) for sheet in own),
        )
        for each, own in zip(dealings, sheets, strict=True)
    )


class _Sheet(Struct, frozen=True, kw_only=True):
    """A text before anything is hidden or left out; of a log the end is what counts."""

    name: str
    content: bytes
    notes: tuple[str, ...] = ()
    is_log: bool = False


def _variables(request: Dealt) -> tuple[str, ...]:
    """The variables that a request lets a program see, or a service know the value of."""
    match request:
        case RunProgram():
            return request.variables
        case RunCommand():
            target = request.target
            keys = () if target is None else (target.panel.settings.key_variable,)
            return (*request.variables, *keys)
        case AskModel() | CompareEmbeddings():
            return (request.panel.settings.key_variable,)
        case GradeRemotely():
            return (request.service.key_variable,)
        case _:
            assert_never(request)


def _outcome(dealing: Dealing) -> str:
    """A sentence without its full stop."""
    taken = "in an earlier run" if dealing.cached else f"after {number(dealing.seconds)} s"
    if dealing.reply is None:
        return f"{_whom(dealing.request)}: {dealing.failure}"
    match dealing.reply:
        case ProgramReply(exit_code=code):
            what = f"exit code {code}"
        case RemoteGrades(grades=grades):
            what = count(len(grades), "grade")
        case Likeness():
            what = "vectors compared"
        case _:
            replies = len(dealing.said)
            what = "1 reply" if replies == 1 else f"{replies} replies"
    return f"{_whom(dealing.request)}: {what} {taken}"


def _whom(request: Dealt) -> str:
    match request:
        case RunProgram() | RunCommand():
            return "program"
        case AskModel() | CompareEmbeddings():
            return f"model {_model(request.panel.settings)}"
        case GradeRemotely():
            return f"service {request.service.base_url}"
        case _:
            assert_never(request)


def _model(settings: ModelSettings) -> str:
    return settings.model or " ".join(settings.command)


def _sent(request: Dealt) -> Iterator[_Sheet]:
    match request:
        case RunProgram() | RunCommand():
            yield _sheet("stdin", request.stdin)
        case AskModel(question=question):
            if question.system:
                yield _sheet("system", question.system)
            yield _sheet("user", question.user)
        case CompareEmbeddings(texts=(one, other)):
            yield _sheet("one text", one)
            yield _sheet("the other", other)
        case GradeRemotely():
            yield _sheet("grader", compact(request.criterion))
            yield _sheet("items", compact(request.items))
        case _:
            assert_never(request)


def _received(dealing: Dealing) -> Iterator[_Sheet]:
    for index, said in enumerate(dealing.said, start=1):
        name = "reply" if len(dealing.said) == 1 else f"reply {index}"
        early = () if said.ending == "complete" else (f"it ended early: {said.finish_reason}",)
        yield _sheet(name, said.text, *early)
    match dealing.reply:
        case ProgramReply(stdout=stdout, stderr=stderr):
            yield _Sheet(name="stdout", content=stdout)
            yield _Sheet(name="stderr", content=stderr.encode(), is_log=True)
        case Likeness(reply=reply):
            yield _sheet("cosine", reply.text)
        case RemoteGrades(grades=grades):
            yield _sheet("grades", compact(to_builtins(grades)))
        case _:
            pass


def _sheet(name: str, text: str, *notes: str) -> _Sheet:
    return _Sheet(name=name, content=text.encode("utf-8", "backslashreplace"), notes=notes)


def _text(sheet: _Sheet, secrets: tuple[str, ...], limit: int) -> Text:
    text = sheet.content.decode("utf-8", "backslashreplace")
    spelt = text.encode("utf-8") != sheet.content
    shown = without(text, secrets)
    end = shown[-MAX_STDERR:] if sheet.is_log else shown
    kept = truncate.middle(end, limit)
    notes = {SPELT_OUT: spelt, HIDING: shown != text, ENDED: end != shown, CUT: kept != end}
    return Text(
        name=sheet.name,
        content=kept,
        size=len(sheet.content),
        notes=(*sheet.notes, *(note for note, holds in notes.items() if holds)),
    )
