"""Reads Traceloop's OpenLLMetry: what it adds to GenAI, and its former indexed attributes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.messages import (
    SpanMessages,
    make_response_part,
    normalize_tool_calls,
    parse_messages,
    parse_parts,
)
from agentci.recordings.telemetry.spans import OperationKind, Span, SpanEvent, SpanReading

_KINDS: Final[Mapping[str, OperationKind]] = {
    "workflow": "workflow",
    "agent": "agent",
    "tool": "tool",
}


def read_traceloop(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read a workflow, an agent or a tool; its input and output are records of a callback."""
    attributes = span.attributes
    kind = _KINDS.get(str(attributes.get("traceloop.span.kind")))
    given = _unwrap(attributes.get("traceloop.entity.input"), "inputs")
    returned = _unwrap(attributes.get("traceloop.entity.output"), "outputs")
    if kind == "tool" or attributes.get(semconv.OPERATION_NAME) == "execute_tool":
        recorded = attributes.get(semconv.TOOL_ARGUMENTS) or attributes.get(
            "traceloop.entity.input"
        )
        result = attributes.get(semconv.TOOL_RESULT)
        yield SpanReading(
            kind="tool",
            values={
                semconv.TOOL_NAME: attributes.get("traceloop.entity.name")
                or attributes.get(semconv.TOOL_NAME)
                or span.name.removesuffix(".tool"),
                semconv.TOOL_ARGUMENTS: api_messages.decode_tool_arguments(recorded),
                semconv.TOOL_RESULT: api_messages.decode_tool_output(
                    returned if result is None else _unwrap(result, "output")
                ),
            },
        )
    elif kind is not None:
        yield SpanReading(
            kind=kind,
            input=api_messages.parse_input_messages(given),
            output=api_messages.parse_output_messages(returned),
        )


def _unwrap(raw: Json, key: str) -> Json:
    record = api_messages.parse_object(raw)
    return record.get(key) if key in record else raw


IndexedFields: TypeAlias = dict[str, Json]


def read_indexed(span: Span, _: Sequence[SpanEvent]) -> Iterator[SpanReading]:
    """Read indexed attributes, such as ``gen_ai.prompt.0.content``."""
    attributes = span.attributes
    yield SpanReading(
        input=_parse_indexed_messages(group_by_index(attributes, semconv.PROMPT_PREFIX)),
        output=_parse_indexed_messages(group_by_index(attributes, semconv.COMPLETION_PREFIX)),
    )


def _parse_indexed_messages(numbered: list[IndexedFields]) -> SpanMessages:
    return parse_messages([_make_indexed_message(fields) for fields in numbered])


def _make_indexed_message(fields: IndexedFields) -> JsonObject:
    role = fields.get("role") or "user"
    content = fields.get("content")
    if role == "tool":
        answer = make_response_part(fields.get("tool_call_id"), fields.get("name"), content)
        return {"role": role, "parts": [answer]}
    calls: list[Json] = list(group_by_index(fields, "tool_calls."))
    return {"role": role, "parts": [*parse_parts(content), *normalize_tool_calls(calls)]}


def group_by_index(
    attributes: Mapping[str, Json], prefix: str, inner: str = ""
) -> list[IndexedFields]:
    """Collect the fields below ``<prefix><number>.<inner>``, sorted by number."""
    found: dict[int, IndexedFields] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            number, _, field = name[len(prefix) :].partition(".")
            if number.isdecimal() and field and field.startswith(inner):
                found.setdefault(int(number[:9]), {})[field[len(inner) :]] = value
    return [found[number] for number in sorted(found)]
