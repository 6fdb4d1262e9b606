"""Messages between user, model and tools, parsed from the shapes that instrumentations record.

The rules are those of agentevals 0.11.0. What it overlooks (``tool_calls`` in the style of OpenAI
and LangChain, for example) is kept in ``SpanMessage.overlooked`` and used only where the rules
find nothing, so that it never changes their result.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile, takewhile
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.json import Json, JsonObject
from agentci.model.values import replace
from agentci.recordings.telemetry.json_input import (
    iterate_objects,
    parse_json_or_text,
    parse_nested_json,
    parse_value,
)

USER_ROLE: Final = "user"
LANGCHAIN_USER_ROLE: Final = "human"


class ToolCallPart(Struct, frozen=True, kw_only=True):
    """A tool that the model asked for; ``overlooked`` by agentevals 0.11.0."""

    name: str
    id: str | None
    arguments: Json
    overlooked: bool = False


class ToolResponsePart(Struct, frozen=True, kw_only=True):
    """What a tool answered, as it was shown to the model."""

    name: str | None
    id: str | None
    value: Json


class MessageContent(Struct, frozen=True, kw_only=True):
    """What is in a message.

    Attributes:
        text: its text parts in one piece; None where there is none but placeholders.
        has_more: it has parts of other kinds (reasoning, images).
        only_responds: it is made of tool responses alone.
    """

    text: str | None = None
    calls: tuple[ToolCallPart, ...] = ()
    responses: tuple[ToolResponsePart, ...] = ()
    has_more: bool = False
    only_responds: bool = False

    @property
    def is_present(self) -> bool:
        """Whether anything is left of it once placeholders are gone."""
        return bool(self.text or self.calls or self.responses or self.has_more)


EMPTY_CONTENT: Final = MessageContent()


class SpanMessage(Struct, frozen=True, kw_only=True):
    """One message, and what agentevals 0.11.0 would overlook in it."""

    role: str
    content: MessageContent
    overlooked: MessageContent = EMPTY_CONTENT

    @property
    def is_tool_response(self) -> bool:
        """Whether a tool speaks."""
        return self.role == "tool" or self.content.only_responds


SpanMessages: TypeAlias = tuple[SpanMessage, ...]


def has_content(messages: SpanMessages) -> bool:
    """Whether any of the messages has content that agentevals 0.11.0 sees."""
    return any(message.content.is_present for message in messages)


def has_overlooked_content(messages: SpanMessages) -> bool:
    """Whether there is content in any of the messages that agentevals 0.11.0 does not see."""
    return any(message.overlooked.is_present for message in messages)


def extract_text(messages: SpanMessages) -> str | None:
    """All text of the messages in one piece, None where there is none."""
    return "".join(message.content.text or "" for message in messages) or None


def extract_overlooked_text(messages: SpanMessages) -> str | None:
    """All text that agentevals 0.11.0 would not see, None where there is none."""
    return "".join(message.overlooked.text or "" for message in messages) or None


def extract_tool_calls(messages: SpanMessages) -> Iterator[ToolCallPart]:
    """The tools that are asked for."""
    for message in messages:
        yield from message.content.calls or message.overlooked.calls


def extract_tool_responses(messages: SpanMessages) -> Iterator[ToolResponsePart]:
    """The answers of tools."""
    for message in messages:
        yield from message.content.responses or message.overlooked.responses


def find_last_user_messages(messages: SpanMessages) -> SpanMessages:
    """The last run of user messages with text: what was asked last; LangChain's role counts too."""
    return _find_last_consecutive(messages, _make_role_filter(USER_ROLE)) or _find_last_consecutive(
        messages, _make_role_filter(LANGCHAIN_USER_ROLE)
    )


def find_overlooked_question(messages: SpanMessages) -> str | None:
    """What was asked last, where agentevals 0.11.0 would not see it."""
    return extract_overlooked_text(_find_last_consecutive(messages, _is_overlooked_question))


def _make_role_filter(role: str) -> Callable[[SpanMessage], bool]:
    return lambda message: message.role == role and message.content.text is not None


def _is_overlooked_question(message: SpanMessage) -> bool:
    return message.role in (USER_ROLE, LANGCHAIN_USER_ROLE) and message.overlooked.text is not None


def _find_last_consecutive(
    messages: SpanMessages, wanted: Callable[[SpanMessage], bool]
) -> SpanMessages:
    rest = dropwhile(lambda message: not wanted(message), reversed(messages))
    return tuple(takewhile(wanted, rest))[::-1]


def convert_google_message(content: JsonObject, default_role: str) -> JsonObject:
    """A content as a message: ``model`` is the assistant, function responses come from a tool."""
    converted = convert_google_parts(content.get("parts"))
    role = content.get("role") or default_role
    if converted and all(part["type"] == "tool_call_response" for part in converted):
        role = "tool"
    return {"role": "assistant" if role == "model" else role, "parts": converted}


def convert_google_parts(raw: Json) -> list[JsonObject]:
    """The parts of a content."""
    return [_convert_google_part(item) for item in iterate_objects(raw)]


def _convert_google_part(raw: JsonObject) -> JsonObject:
    call, response = raw.get("function_call"), raw.get("function_response")
    if "text" in raw:
        return {"type": "reasoning" if raw.get("thought") else "text", "content": raw["text"]}
    if isinstance(call, dict):
        return {
            "type": "tool_call",
            "id": call.get("id"),
            "name": call.get("name"),
            "arguments": call.get("args"),
        }
    if isinstance(response, dict):
        return {
            "type": "tool_call_response",
            "id": response.get("id"),
            "name": response.get("name"),
            "response": response.get("response"),
        }
    return {"type": "other"}


PLACEHOLDERS: Final = frozenset({"", "<REDACTED>", "<elided>"})


def parse_content(parts: Sequence[JsonObject]) -> MessageContent:
    """The content of parts that have the form of the conventions."""
    texts: list[str] = []
    calls: list[ToolCallPart] = []
    responses: list[ToolResponsePart] = []
    has_more = False
    for part in parts:
        kind, name = part.get("type"), part.get("name")
        if kind == "text":
            texts.append(_clean_text(part.get("content")))
        elif kind == "tool_call" and isinstance(name, str) and name:
            calls.append(_parse_tool_call(name, part))
        elif kind == "tool_call_response":
            responses.append(_parse_tool_response(part))
        elif kind:
            has_more = True
    return MessageContent(
        text="".join(texts) or None,
        calls=tuple(calls),
        responses=tuple(responses),
        has_more=has_more,
        only_responds=0 < len(responses) == len(parts),
    )


def parse_parts(content: Json) -> list[JsonObject]:
    """The parts that a ``content`` stands for: text, a list of anything, or Google's."""
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        return convert_google_parts(content["parts"])
    if isinstance(content, list):
        return [part for item in content for part in _parse_part(item)]
    return [] if content is None else [make_text_part(content)]


def make_text_part(content: Json) -> JsonObject:
    """A part that says something."""
    return {"type": "text", "content": content}


def make_response_part(answered: Json, name: Json, answer: Json) -> JsonObject:
    """A part that answers the call of an id; text is taken for JSON where it is."""
    return {"type": "tool_call_response", "id": answered, "name": name, "response": answer}


def parse_tool_call_parts(tool_calls: Json) -> list[JsonObject]:
    """The parts that ``tool_calls`` stand for, in the style of OpenAI or of LangChain."""
    listed = parse_json_or_text(tool_calls) if isinstance(tool_calls, str) else tool_calls
    return [_make_tool_call_part(call) for call in iterate_objects(listed)]


def _make_tool_call_part(call: JsonObject) -> JsonObject:
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    return {
        "type": "tool_call",
        "id": call.get("id"),
        "name": said.get("name"),
        "arguments": said.get("arguments", said.get("args")),
    }


def _parse_part(item: Json) -> list[JsonObject]:
    if isinstance(item, str):
        return [make_text_part(item)]
    if not isinstance(item, dict):
        return []
    kind = item.get("type")
    if kind == "text" or (not kind and "text" in item):
        return [make_text_part(item.get("content", item.get("text")))]
    return [item] if kind else []


def _clean_text(content: Json) -> str:
    if content is None:
        return ""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return "" if text.strip() in PLACEHOLDERS else text


def _parse_tool_call(name: str, part: JsonObject) -> ToolCallPart:
    arguments = part.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = parse_nested_json(arguments)
        except ValueError:
            arguments = None
    return ToolCallPart(name=name, id=_parse_identifier(part.get("id")), arguments=arguments)


def _parse_tool_response(part: JsonObject) -> ToolResponsePart:
    value = part.get("response")
    return ToolResponsePart(
        name=_parse_identifier(part.get("name")),
        id=_parse_identifier(part.get("id")),
        value=parse_value(value),
    )


def _parse_identifier(raw: Json) -> str | None:
    return str(raw) if isinstance(raw, str | int) and raw else None


MAX_MESSAGES_CHARS: Final = 4 * 1024 * 1024

# Parts that say something in ``text`` where the conventions want it in ``content``.
_TEXT_PART_TYPES: Final = (None, "text", "input_text", "output_text")


def exceeds_messages_limit(raw: Json) -> bool:
    """Whether a text is longer than agentevals 0.11.0 reads."""
    return isinstance(raw, str) and len(raw) > MAX_MESSAGES_CHARS


def parse_messages(raw: Json) -> SpanMessages:
    """The messages of an attribute: JSON text, a list or a single object."""
    if raw is None or exceeds_messages_limit(raw):
        return ()
    if isinstance(raw, str):
        try:
            raw = parse_nested_json(raw)
        except ValueError:
            return ()
    return tuple(map(_parse_message, iterate_objects([raw] if isinstance(raw, dict) else raw)))


def _parse_message(raw: JsonObject) -> SpanMessage:
    parts, role = raw.get("parts"), raw.get("role")
    listed = (
        list(iterate_objects(parts)) if isinstance(parts, list) else parse_parts(raw.get("content"))
    )
    return SpanMessage(
        role=role if isinstance(role, str) and role else "user",
        content=parse_content(listed),
        overlooked=_parse_overlooked(raw, listed),
    )


def _parse_overlooked(raw: JsonObject, parts: Sequence[JsonObject]) -> MessageContent:
    """What agentevals 0.11.0 carries but never reads."""
    if "tool_calls" in raw:
        calls = parse_content(parse_tool_call_parts(raw["tool_calls"])).calls
        return MessageContent(calls=tuple(replace(call, overlooked=True) for call in calls))
    if raw.get("role") == "tool" and raw.get("tool_call_id"):
        answer = parse_content(parse_parts(raw.get("content"))).text
        return parse_content([make_response_part(raw["tool_call_id"], raw.get("name"), answer)])
    said = [
        part["text"] for part in parts if "text" in part and part.get("type") in _TEXT_PART_TYPES
    ]
    return parse_content([make_text_part(words) for words in said]) if said else EMPTY_CONTENT
