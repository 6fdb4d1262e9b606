"""Reads messages in indexed attributes, which OpenLLMetry and older instrumentations record."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.messages import (
    SpanMessages,
    make_response_part,
    normalize_tool_calls,
    parse_messages,
    parse_parts,
)
from agentci.recordings.telemetry.spans import Span, SpanEvent, SpanReading

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
