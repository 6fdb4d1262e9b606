"""Builds turns from spans, and joins a turn with its continuation after tool calls."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from agentci.model.values import replace
from agentci.recordings.telemetry import messages, span_views, tool_calls
from agentci.recordings.telemetry.messages import has_content, is_tool_call_reason
from agentci.recordings.telemetry.span_views import ModelCall, SpanView, TurnSpans
from agentci.recordings.telemetry.tool_calls import ToolRun


class TurnAnswer(Struct, frozen=True, kw_only=True):
    """A turn's final output, and the model call that produced it, if known.

    Attributes:
        text: None if the output has no text, for example only tool calls.
    """

    text: str | None
    call: ModelCall | None


class PartialTurn(Struct, frozen=True, kw_only=True):
    """One turn before its tool calls are matched.

    Attributes:
        id: id of the root span.
        is_agentic: whether the root is an agent or a workflow.
        start, end: nanoseconds since 1970, over all its spans.
        question: the user's text; None if not recorded.
        answer: None if none was recorded.
        failed: whether the root span or a model call failed.
    """

    trace_id: str
    id: str
    is_agentic: bool
    start: int
    end: int
    question: str | None
    answer: TurnAnswer | None
    calls: tuple[ModelCall, ...]
    runs: tuple[ToolRun, ...]
    failed: bool

    @property
    def intermediate_texts(self) -> tuple[str, ...]:
        """Texts of its model calls other than the final answer."""
        final = self.answer.call if self.answer is not None else None
        return tuple(
            text
            for call in self.calls
            if not call.delegated
            and call is not final
            and (text := messages.extract_text(call.output))
        )


def make_partial_turn(turn_spans: TurnSpans) -> PartialTurn:
    """Build a turn from the spans below one root."""
    anchor, found = turn_spans.root, span_views.find_model_calls(turn_spans.members)
    spans = [node.view.span for node in turn_spans.members]
    return PartialTurn(
        trace_id=anchor.span.trace_id,
        id=anchor.span.id,
        is_agentic=turn_spans.is_agentic,
        start=min(span.start for span in spans),
        end=max(span.end for span in spans),
        question=_find_question(anchor, found),
        answer=_find_answer(anchor, found),
        calls=found,
        runs=tool_calls.find_tool_runs(turn_spans.members),
        failed=any(
            node.view.span.failed
            for node in turn_spans.members
            if node.view is anchor or node.view.kind == "inference"
        ),
    )


def merge_partial_turns(first: PartialTurn, later: PartialTurn) -> PartialTurn:
    """Merge a turn with its continuation: the question of the first, the answer of the later."""
    return replace(
        first,
        start=min(first.start, later.start),
        end=max(first.end, later.end),
        question=later.question if first.question is None else first.question,
        answer=later.answer or first.answer,
        calls=span_views.sort_model_calls([*first.calls, *later.calls]),
        runs=(*first.runs, *later.runs),
        failed=first.failed or later.failed,
    )


def _find_question(anchor: SpanView, found: Sequence[ModelCall]) -> str | None:
    if has_content(anchor.input):
        question_messages = messages.find_last_user_messages(anchor.input) or anchor.input
    else:
        question_messages = messages.find_last_user_messages(
            next(filter(has_content, (call.input for call in found)), ())
        )
    fallback = map(messages.find_fallback_question, (anchor.input, *(call.input for call in found)))
    default = "" if question_messages else None
    return messages.extract_text(question_messages) or next(filter(None, fallback), default)


def _find_answer(anchor: SpanView, found: Sequence[ModelCall]) -> TurnAnswer | None:
    """Return the output of the root span, else that of the last model call with text."""
    if has_content(anchor.output):
        text = messages.extract_text(anchor.output) or messages.extract_fallback_text(anchor.output)
        # OpenLIT records the last messages of the conversation, also those of earlier turns.
        if len(anchor.output) > 1 and (last := messages.extract_text(anchor.output[-1:])):
            answers = _find_answers(anchor, found)
            text = last if any(one.call and one.text == last for one in answers) else text
        return TurnAnswer(text=text, call=_find_answering_call(anchor, text, found))
    return next(_find_answers(anchor, found), None)


def _find_answers(anchor: SpanView, found: Sequence[ModelCall]) -> Iterator[TurnAnswer]:
    own_calls = [call for call in found if not call.delegated] or found
    with_text = [(call, text) for call in own_calls if (text := messages.extract_text(call.output))]
    if with_text:
        yield _find_last_answer(with_text)
    # The rules of agentevals 0.11.0 find nothing: an answer that it ignores is better than none.
    if text := messages.extract_fallback_text(anchor.output):
        yield TurnAnswer(text=text, call=None)
    with_fallback = [
        (call, text) for call in own_calls if (text := messages.extract_fallback_text(call.output))
    ]
    if with_fallback:
        yield _find_last_answer(with_fallback)


def _find_last_answer(with_text: Sequence[tuple[ModelCall, str]]) -> TurnAnswer:
    call, text = max(with_text, key=lambda pair: (pair[0].end, pair[0].start))
    return TurnAnswer(text=text, call=call)


def _find_answering_call(
    anchor: SpanView, text: str | None, found: Sequence[ModelCall]
) -> ModelCall | None:
    """Return the model call whose text the root span repeats, or which is the root span itself."""
    return next(
        (
            call
            for call in reversed(found)
            if call.id == anchor.span.id or messages.extract_text(call.output) == text
        ),
        None,
    )


def add_stray_runs(
    turns: Sequence[PartialTurn], found: Iterable[TurnSpans]
) -> tuple[tuple[PartialTurn, ...], tuple[ToolRun, ...]]:
    """Add the tool runs that are below no turn, as the span between was not recorded.

    A run belongs to the turn that requested it, where the request counts it already, else to the
    only turn of its trace, or the only one at its time.

    Returns:
        The turns, and the runs whose turn is not known.
    """
    placed = list(turns)
    unplaced: list[ToolRun] = []
    for turn_spans in found:
        if turn_spans.is_turn:
            continue
        for run in tool_calls.find_tool_runs(turn_spans.members):
            if not run.failed and any(run.id in _list_requested_ids(turn) for turn in turns):
                continue
            index = _find_turn_of_run(placed, run, turn_spans.root.span.trace_id)
            if index is None:
                unplaced.append(run)
            else:
                runs = sorted((*placed[index].runs, run), key=tool_calls.get_run_order)
                placed[index] = replace(placed[index], runs=tuple(runs))
    return tuple(placed), tuple(unplaced)


def _find_turn_of_run(turns: Sequence[PartialTurn], run: ToolRun, trace_id: str) -> int | None:
    numbered = list(enumerate(turns))
    requested = [index for index, turn in numbered if run.id in _list_requested_ids(turn)]
    same_trace = [pair for pair in numbered if pair[1].trace_id == trace_id] or numbered
    at_its_time = [index for index, turn in same_trace if turn.start <= run.start <= turn.end]
    candidates = (requested, [index for index, _ in same_trace], at_its_time)
    return next((indices[0] for indices in candidates if len(indices) == 1), None)


def _list_requested_ids(turn: PartialTurn) -> set[str]:
    parts = (part for call in turn.calls for part in messages.extract_tool_calls(call.output))
    return {part.id for part in parts if part.id is not None}


JOIN_HINT: Final = (
    "record a span around the agent's loop, or set gen_ai.conversation.id (or session.id) on its "
    "model calls, to join them to one turn"
)


def join_continuations(
    partial_turns: Sequence[PartialTurn],
) -> tuple[tuple[PartialTurn, ...], tuple[str, ...]]:
    """Sort turns by time, and join continuations to the turns that they continue.

    Returns:
        The turns, and warnings about turns that may be continuations.
    """
    turns: list[PartialTurn] = []
    warnings: list[str] = []
    for partial_turn in sorted(partial_turns, key=lambda turn: (turn.start, turn.id)):
        if not turns or partial_turn.is_agentic:
            turns.append(partial_turn)
        elif _continues_turn(turns[-1], partial_turn):
            turns[-1] = merge_partial_turns(turns[-1], partial_turn)
        else:
            if _may_continue_turn(turns[-1], partial_turn):
                warnings.append(
                    f"turn {partial_turn.id} may continue turn {turns[-1].id} after a tool call, "
                    "but its messages were not captured; it is kept as its own turn",
                )
            turns.append(partial_turn)
    return tuple(turns), (*warnings, *_format_parts_of_turns(turns))


def _format_parts_of_turns(turns: Iterable[PartialTurn]) -> Iterator[str]:
    """Warn of model calls without a span around them whose neighbours are missing."""
    for turn in turns:
        if turn.is_agentic or not turn.calls or turn.calls[0].id != turn.id:
            continue
        first, last = turn.calls[0].input, _find_last_call(turn)
        if first and first[-1].is_tool_response:
            yield f"turn {turn.id} starts with the result of a tool; {JOIN_HINT}"
        elif not turn.runs and any(messages.extract_tool_calls(last.output)):
            yield f"turn {turn.id} ends with a tool call; {JOIN_HINT}"


def _continues_turn(previous: PartialTurn, partial_turn: PartialTurn) -> bool:
    if not previous.calls or not partial_turn.calls:
        return False
    requests = list(messages.extract_tool_calls(_find_last_call(previous).output))
    shown = partial_turn.calls[0].input
    if not requests or not shown or not shown[-1].is_tool_response:
        return False
    requested = {part.id for part in requests} - {None}
    answered = {part.id for part in messages.extract_tool_responses(shown)} - {None}
    return not requested or not answered or not requested.isdisjoint(answered)


def _may_continue_turn(previous: PartialTurn, partial_turn: PartialTurn) -> bool:
    return (
        bool(previous.calls and partial_turn.calls)
        and not has_content(partial_turn.calls[0].input)
        and any(map(is_tool_call_reason, _find_last_call(previous).finish_reasons))
    )


def _find_last_call(turn: PartialTurn) -> ModelCall:
    return max(turn.calls, key=lambda call: (call.end, call.start))
