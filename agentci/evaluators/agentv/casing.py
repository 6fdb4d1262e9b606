"""Fields of our own values in the spellings of the wire; what users wrote is never rewritten."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from agentci.model.json import Json, JsonObject
from agentci.model.transcript import Message, ToolUse

Spell: TypeAlias = Callable[[str], str]


def snake(name: str) -> str:
    """The name as it is."""
    return name


def camel(name: str) -> str:
    """``tool_calls`` as ``toolCalls``."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def fields(known: JsonObject, spell: Spell, *, without: Collection[str] = ()) -> dict[str, Json]:
    """The fields that have a value; the others are left out, since the SDKs refuse null."""
    return {
        spell(name): value
        for name, value in known.items()
        if value is not None and name not in without
    }


def messages(
    recorded: Sequence[Message], spell: Spell, *, without: Collection[str] = ()
) -> list[Json]:
    """Recorded messages, without some of the fields that they and their tool calls may have."""
    return [
        fields(
            {
                "role": message.role,
                "name": message.name,
                "content": message.content,
                "tool_calls": [_use(use, spell, without) for use in message.tool_calls] or None,
                "timestamp": message.timestamp,
                "start_time": message.start_time,
                "end_time": message.end_time,
                "duration_ms": message.duration_ms,
                "metadata": message.metadata,
            },
            spell,
            without=without,
        )
        for message in recorded
    ]


def authored(written: Sequence[JsonObject], spell: Spell) -> list[Json]:
    """Messages of an eval file: as they are, save for what we put into parts that name files."""
    return [_message(message, spell) for message in written]


def _message(message: JsonObject, spell: Spell) -> JsonObject:
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    return {**message, "content": [_part(part, spell) for part in parts]}


def _part(part: Json, spell: Spell) -> Json:
    if not isinstance(part, dict) or "resolved_path" not in part or part.get("type") != "file":
        return part
    return {spell(name) if name == "resolved_path" else name: v for name, v in part.items()}


def _use(use: ToolUse, spell: Spell, without: Collection[str]) -> JsonObject:
    return fields(
        {
            "tool": use.tool,
            "input": use.input,
            "output": use.output,
            "id": use.id,
            "status": use.status,
            "timestamp": use.timestamp,
            "start_time": use.start_time,
            "end_time": use.end_time,
            "duration_ms": use.duration_ms,
        },
        spell,
        without=without,
    )
