"""Builds turns from spans, and joins a turn with its continuation after tool calls.

Turns whose content was not captured are explained, so that no evaluator takes them for empty.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.model.values import Json, replace
from agentci.recordings.telemetry import messages, semconv, span_views, tool_calls
from agentci.recordings.telemetry.conventions.registry import (
    GENAI,
    MODEL_OUTPUT_ATTRIBUTES,
    Convention,
)
from agentci.recordings.telemetry.json_input import parse_json_or_text
from agentci.recordings.telemetry.messages import (
    PLACEHOLDERS,
    USER_ROLE,
    SpanMessages,
    ToolCallPart,
    exceeds_messages_limit,
    extract_tool_calls,
    find_unread_parts,
    has_content,
    is_early_end_reason,
    is_tool_call_reason,
)
from agentci.recordings.telemetry.span_views import ModelCall, SpanView, TurnSpans
from agentci.recordings.telemetry.tool_calls import EMPTY_VALUES, ToolInvocation, ToolRun


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

    @property
    def early_end(self) -> str:
        """Why the model ended the final answer before it was complete; else empty."""
        final = self.answer.call if self.answer is not None else None
        call = self.calls[-1] if final is None and self.calls else final
        reasons = () if call is None else list_finish_reasons(call)
        return next(filter(is_early_end_reason, reasons), "")


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
    """Warn about model calls without a span around them whose neighbours are missing."""
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


# How the JSON of an output ends.
JSON_ENDS: Final = {"[": "]", "{": "}"}
MAX_NAMES: Final = 5


def explain_missing_content(
    turns: Sequence[PartialTurn],
    uses: Sequence[Sequence[ToolInvocation]],
    views: Sequence[SpanView],
    unplaced: Sequence[ToolRun] = (),
) -> str:
    """Say what was recorded without content, or was not understood; empty if all was.

    Args:
        uses: the tool calls of each turn.
        views: all spans of the turns.
        unplaced: tool runs that belong to no turn.
    """
    found = chain(
        _find_repeated_attributes(views),
        _find_cut_output(views),
        _find_unread_output(views),
        _find_turns_without_content(turns, uses, views),
        _find_failed_turns(turns),
        _find_unread_parts(turns),
        _find_unplaced_runs(turns, unplaced),
        _find_unseen_calls(turns, uses),
    )
    return next(found, "")


def _find_turns_without_content(
    turns: Sequence[PartialTurn],
    uses: Sequence[Sequence[ToolInvocation]],
    views: Sequence[SpanView],
) -> Iterator[str]:
    missing = [
        number
        for number, (turn, used) in enumerate(zip(turns, uses, strict=True), start=1)
        if (turn.calls or used) and _lacks_content(turn, used, views)
    ]
    if not missing:
        return
    numbers = ", ".join(truncate.truncate_list([str(each) for each in missing], MAX_NAMES))
    place = f"turn {numbers} of {len(turns)}" if len(turns) > 1 else "the turn"
    calls = sum(len(turns[number - 1].calls) for number in missing)
    tools = sum(len(uses[number - 1]) for number in missing)
    found = [format_count(calls, "model call")] if calls else []
    found += [format_count(tools, "tool call")] if tools else []
    convention = _find_producer(views)
    yield (
        f"The content of {place} was not captured: {' and '.join(found)} without messages "
        f"({convention.title}: {_list_scopes(views)}; found: {_list_attributes(views)}); "
        f"{convention.capture}"
    )


def _lacks_content(
    turn: PartialTurn, used: Sequence[ToolInvocation], views: Sequence[SpanView]
) -> bool:
    """Whether neither an answer nor any other output was recorded."""
    answer = turn.answer.text if turn.answer is not None else None
    if answer or turn.intermediate_texts:
        return False
    if any(use.arguments not in EMPTY_VALUES or use.result not in EMPTY_VALUES for use in used):
        return False
    return not turn.question or not (turn.failed or _has_empty_output(views))


def _has_empty_output(views: Sequence[SpanView]) -> bool:
    """Whether an output was recorded, so that the model really returned nothing."""
    return any(semconv.OUTPUT_MESSAGES in view.span.attributes for view in views)


def _find_repeated_attributes(views: Sequence[SpanView]) -> Iterator[str]:
    """Name a span with two values of an attribute, only one of which is read."""
    for view in views:
        if name := view.span.attributes.get(semconv.REPEATED_ATTRIBUTE):
            yield f"{name} of span {view.span.id} is recorded twice, with different values"


def _find_cut_output(views: Sequence[SpanView]) -> Iterator[str]:
    """Name a span whose output is the beginning of JSON, which exporters with a limit record."""
    for view in views:
        for name in MODEL_OUTPUT_ATTRIBUTES:
            value = view.span.attributes.get(name)
            end = JSON_ENDS.get(value[:1]) if isinstance(value, str) else None
            if end is not None and not str(value).rstrip().endswith(end):
                yield (
                    f"{name} of span {view.span.id} was cut off and cannot be read; raise "
                    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
                )


def _find_unread_output(views: Sequence[SpanView]) -> Iterator[str]:
    """Name a model call whose recorded output gave no message."""
    for view in views:
        if view.kind != "inference" or view.output:
            continue
        for name in MODEL_OUTPUT_ATTRIBUTES:
            value = view.span.attributes.get(name)
            if exceeds_messages_limit(value):
                yield f"{name} of span {view.span.id} is too long to be read"
            elif value and not _is_empty_output(value):
                yield (
                    f"{name} of span {view.span.id} holds no messages that agentci reads; expected "
                    "a JSON list of messages with `role` and `parts` or `content`"
                )


def _is_empty_output(value: Json) -> bool:
    """Return whether an output says that the model returned nothing."""
    decoded = parse_json_or_text(value) if isinstance(value, str) else value
    if isinstance(decoded, str):
        return not decoded.strip() or decoded.strip() in PLACEHOLDERS
    listed = decoded if isinstance(decoded, list) else [decoded]
    return all(not one or (isinstance(one, dict) and "role" in one) for one in listed)


def _find_failed_turns(turns: Sequence[PartialTurn]) -> Iterator[str]:
    """Find turns in which the agent crashed: what it did not do, it may have been about to do."""
    for number, turn in enumerate(turns, start=1):
        if turn.failed and (turn.answer is None or not turn.answer.text):
            place = f"turn {number} of {len(turns)}" if len(turns) > 1 else "the turn"
            yield (
                f"The agent failed before it answered: {place} (span {turn.id}) ended with an error"
            )


def _find_unread_parts(turns: Sequence[PartialTurn]) -> Iterator[str]:
    for turn in turns:
        for call in turn.calls:
            for part in find_unread_parts(call.output):
                yield (
                    f"The output of model call {call.id} has a {part}, which agentci does not "
                    "read, so that an answer or a tool call may be missing; agentci's "
                    "docs/traces.md lists what is read"
                )


def _find_unplaced_runs(turns: Sequence[PartialTurn], unplaced: Sequence[ToolRun]) -> Iterator[str]:
    for run in unplaced if turns else ():
        yield (
            f"The tool call `{run.name}` (span {run.span_id}) belongs to none of "
            f"{format_count(len(turns), 'turn')}, as a span above it was not recorded; export all "
            "spans of the trace"
        )


def _find_unseen_calls(
    turns: Sequence[PartialTurn], uses: Sequence[Sequence[ToolInvocation]]
) -> Iterator[str]:
    """Find tool calls that later messages or finish reasons show, but that are not recorded."""
    for turn, used in zip(turns, uses, strict=True):
        ids = {use.id for use in used if use.id is not None}
        names = {use.name for use in used}
        for call in turn.calls:
            for part in _list_repeated_calls(call.input):
                if part.id not in ids and part.name not in names:
                    yield (
                        f"Model call {call.id} was given a call of `{part.name}` that no span and "
                        "no output records; record the output of all model calls"
                    )
            if not used and any(map(is_tool_call_reason, list_finish_reasons(call))):
                yield (
                    f"Model call {call.id} ended with a tool call that was not recorded; record "
                    "the output of model calls, or spans of tools"
                )


def list_finish_reasons(call: ModelCall) -> Iterator[str]:
    """Yield why the model ended the output of a call."""
    yield from call.finish_reasons
    yield from (message.finish_reason for message in call.output)


def _list_repeated_calls(given: SpanMessages) -> list[ToolCallPart]:
    """List the tool calls in the input of a model call, after the last text of the user."""
    numbered = enumerate(given)
    asked = [number for number, one in numbered if one.role == USER_ROLE and one.content.text]
    return list(extract_tool_calls(given[asked[-1] :])) if asked else []


def _find_producer(views: Sequence[SpanView]) -> Convention:
    """Return the most specific convention, which knows the switch."""
    found = [one for view in views for one in view.conventions]
    return next((one for one in found if one.name != GENAI), found[0])


def _list_scopes(views: Sequence[SpanView]) -> str:
    named = dict.fromkeys(
        " ".join(filter(None, (view.span.scope, view.span.scope_version)))
        for view in views
        if view.span.scope
    )
    return ", ".join(truncate.truncate_list(list(named), MAX_NAMES)) or "no scope"


def _list_attributes(views: Sequence[SpanView]) -> str:
    """List what was recorded instead of content."""
    names = {name for view in views for name in view.span.attributes}
    listed = sorted(names - {semconv.OPERATION_NAME})
    return ", ".join(truncate.truncate_list(listed, MAX_NAMES)) or "no attributes"
