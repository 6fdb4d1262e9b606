"""Turns in the making: who asked what, which calls and tools followed, and the answer."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentci.model.values import replace
from agentci.recordings.telemetry import message, model_calls, tool_runs
from agentci.recordings.telemetry.message import is_captured
from agentci.recordings.telemetry.model_calls import Call
from agentci.recordings.telemetry.normalize import View
from agentci.recordings.telemetry.tool_runs import Run
from agentci.recordings.telemetry.turn_roots import Family


class Answer(Struct, frozen=True, kw_only=True):
    """A final output, and the model call that gave it where one is known to have.

    Attributes:
        text: None where the output has none: it asks for tools, say.
    """

    text: str | None
    call: Call | None


class Draft(Struct, frozen=True, kw_only=True):
    """One turn before its tools are joined.

    Attributes:
        id: the anchor span's.
        is_agentic: an agent or a workflow anchors it.
        start, end: nanoseconds, over all its spans.
        asked: what the user said; None where no messages tell.
        answer: None where none was recorded.
    """

    trace_id: str
    id: str
    is_agentic: bool
    start: int
    end: int
    asked: str | None
    answer: Answer | None
    calls: tuple[Call, ...]
    runs: tuple[Run, ...]

    @property
    def intermediate_texts(self) -> tuple[str, ...]:
        """What its model calls said beside the answer."""
        final = self.answer.call if self.answer is not None else None
        return tuple(
            text
            for call in self.calls
            if not call.delegated and call is not final and (text := message.text(call.output))
        )


def draft(family: Family) -> Draft:
    """The turn that a family of spans makes."""
    anchor, found = family.anchor, model_calls.calls_of(family.members)
    spans = [node.view.span for node in family.members]
    return Draft(
        trace_id=anchor.span.trace_id,
        id=anchor.span.id,
        is_agentic=family.is_agentic,
        start=min(span.start for span in spans),
        end=max(span.end for span in spans),
        asked=_asked(anchor, found),
        answer=_answer(anchor, found),
        calls=found,
        runs=tool_runs.runs_of(family.members),
    )


def merged(first: Draft, later: Draft) -> Draft:
    """A turn and its continuation as one: asked by the first, answered by the later."""
    return replace(
        first,
        start=min(first.start, later.start),
        end=max(first.end, later.end),
        asked=later.asked if first.asked is None else first.asked,
        answer=later.answer or first.answer,
        calls=model_calls.in_order([*first.calls, *later.calls]),
        runs=(*first.runs, *later.runs),
    )


def _asked(anchor: View, found: Sequence[Call]) -> str | None:
    if is_captured(anchor.input):
        asked = message.user_turn(anchor.input) or anchor.input
    else:
        asked = message.user_turn(next(filter(is_captured, (call.input for call in found)), ()))
    overlooked = map(message.overlooked_question, (anchor.input, *(call.input for call in found)))
    return message.text(asked) or next(filter(None, overlooked), "" if asked else None)


def _answer(anchor: View, found: Sequence[Call]) -> Answer | None:
    """What the anchor itself says, else the model call that spoke last."""
    if is_captured(anchor.output):
        text = message.text(anchor.output) or message.overlooked_text(anchor.output)
        return Answer(text=text, call=_speaker(anchor, text, found))
    return next(_answers(anchor, found), None)


def _answers(anchor: View, found: Sequence[Call]) -> Iterator[Answer]:
    spoken = [call for call in found if not call.delegated] or found
    heard = [(call, text) for call in spoken if (text := message.text(call.output))]
    if heard:
        yield _last(heard)
    # Nothing by the rules of agentevals 0.11.0: an answer that it overlooks is better than none.
    if text := message.overlooked_text(anchor.output):
        yield Answer(text=text, call=None)
    missed = [(call, text) for call in spoken if (text := message.overlooked_text(call.output))]
    if missed:
        yield _last(missed)


def _last(heard: Sequence[tuple[Call, str]]) -> Answer:
    call, text = max(heard, key=lambda pair: (pair[0].end, pair[0].start))
    return Answer(text=text, call=call)


def _speaker(anchor: View, text: str | None, found: Sequence[Call]) -> Call | None:
    """The model call whose words the anchor repeats, or which it is itself."""
    return next(
        (
            call
            for call in reversed(found)
            if call.id == anchor.span.id or message.text(call.output) == text
        ),
        None,
    )
