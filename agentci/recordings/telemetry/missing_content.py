"""Explains turns whose content was not captured, so that no evaluator takes them for empty."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.format import format_count
from agentci.model.values import Json
from agentci.recordings.telemetry import semconv
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
    is_tool_call_reason,
)
from agentci.recordings.telemetry.span_views import ModelCall, SpanView
from agentci.recordings.telemetry.tool_calls import EMPTY_VALUES, ToolInvocation, ToolRun
from agentci.recordings.telemetry.turns import PartialTurn

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
    """Name a span with two values of an attribute, of which only one is read."""
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
                    "read, so that an answer or a tool call may be missing; docs/traces.md lists "
                    "what is read"
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
            if not used and any(map(is_tool_call_reason, _list_finish_reasons(call))):
                yield (
                    f"Model call {call.id} ended with a tool call that was not recorded; record "
                    "the output of model calls, or spans of tools"
                )


def _list_finish_reasons(call: ModelCall) -> Iterator[str]:
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
