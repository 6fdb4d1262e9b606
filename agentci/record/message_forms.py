"""Brings messages of frameworks into the form of the model APIs.

Two forms differ: an answer that is the argument of a tool call (smolagents, Pydantic AI), and tool
calls and results that a history repeats as text (smolagents).
"""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agentci._util.text.json_text import decode_strict_json, dumps_readable
from agentci.model.values import Json, replace
from agentci.record.apis.model_api import ModelReply, ModelRequest
from agentci.recordings.telemetry.json_input import parse_json_or_text
from agentci.recordings.telemetry.messages import (
    MessageContent,
    SpanMessage,
    SpanMessages,
    ToolCallPart,
    ToolResponsePart,
)

_ANSWER_TOOL: Final = re.compile(r"final_answer|final_result(_.*)?")
_ANSWER: Final = "answer"
_ENDED: Final = ("stop",)
_ASSISTANT, _USER = "assistant", "user"
# As smolagents writes them.
_CALLS: Final = re.compile(r"(?:\A|\n)Calling tools:\n(?=\[)")
_RESULTS: Final = re.compile(r"Observation:\n|(?=Call id: |Error:\n)")
_TASK: Final = "New task:\n"
# Longer texts stay text: parsed, they take a hundred times as much memory.
MAX_LITERAL_CHARACTERS: Final = 1024**2


def convert_request(request: ModelRequest) -> ModelRequest:
    """Return a request whose messages have the form of the APIs."""
    messages = _convert_answers(tuple(_read_text_calls(request.messages)))
    return replace(request, messages=messages) if messages != request.messages else request


def convert_reply(reply: ModelReply) -> ModelReply:
    """Return a reply whose answer is text."""
    if not any(_is_answer(call) for call in reply.calls):
        return reply
    left = tuple(call for call in reply.calls if not _is_answer(call))
    return replace(
        reply,
        messages=_convert_answers(reply.messages),
        calls=left,
        finish_reasons=reply.finish_reasons if left else _ENDED,
    )


def _is_answer(call: ToolCallPart) -> bool:
    return _ANSWER_TOOL.fullmatch(call.name) is not None


def _convert_answers(messages: SpanMessages) -> SpanMessages:
    """Make text of the calls that are answers, and drop their results."""
    answers = [call for each in messages for call in each.content.calls if _is_answer(call)]
    if not answers:
        return messages
    converted = (_convert_message(each, answers) for each in messages)
    return tuple(one for one in converted if one.content.is_present or one.fallback.is_present)


def _convert_message(message: SpanMessage, answers: Sequence[ToolCallPart]) -> SpanMessage:
    content = message.content
    texts = [_get_answer(call) for call in content.calls if _is_answer(call)]
    return replace(
        message,
        content=replace(
            content,
            text="\n".join(filter(None, (content.text, *texts))) or None,
            calls=tuple(call for call in content.calls if not _is_answer(call)),
            responses=tuple(
                one for one in content.responses if not any(_answers(one, x) for x in answers)
            ),
        ),
    )


def _answers(result: ToolResponsePart, call: ToolCallPart) -> bool:
    return result.id == call.id if call.id else result.name == call.name


def _get_answer(call: ToolCallPart) -> str:
    arguments = call.arguments
    if isinstance(arguments, str):
        arguments = parse_json_or_text(arguments)
    if call.name == "final_answer" and isinstance(arguments, dict) and _ANSWER in arguments:
        arguments = arguments[_ANSWER]
    return arguments if isinstance(arguments, str) else dumps_readable(arguments)


def _read_text_calls(messages: SpanMessages) -> Iterator[SpanMessage]:
    """Yield messages with the calls and results that are text as such."""
    open_calls: tuple[ToolCallPart, ...] = ()
    for message in messages:
        text = message.content.text or ""
        if message.role == _ASSISTANT:
            before, open_calls = _split_calls(text)
            yield from _replace_text(message, text, before)
            if open_calls:
                yield _make_message(_ASSISTANT, calls=open_calls)
        elif message.role == _USER:
            results, task = _split_results(text, open_calls)
            open_calls = ()
            if results:
                yield _make_message("tool", responses=results)
            yield from _replace_text(message, text, task)
        else:
            yield message


def _replace_text(message: SpanMessage, old: str, new: str) -> Iterator[SpanMessage]:
    if new == old:
        yield message
    elif new:
        yield replace(message, content=replace(message.content, text=new))


def _make_message(
    role: str,
    *,
    calls: tuple[ToolCallPart, ...] = (),
    responses: tuple[ToolResponsePart, ...] = (),
) -> SpanMessage:
    return SpanMessage(role=role, content=MessageContent(calls=calls, responses=responses))


def _split_calls(text: str) -> tuple[str, tuple[ToolCallPart, ...]]:
    """Split the text of an assistant into what comes before and the calls that it lists."""
    found = list(_CALLS.finditer(text))
    if not found or len(text) - found[-1].end() > MAX_LITERAL_CHARACTERS:
        return text, ()
    try:
        listed: Any = _read_literal(text[found[-1].end() :])
        calls = tuple(
            ToolCallPart(
                name=str(each["function"]["name"]),
                id=str(each["id"]),
                arguments=each["function"]["arguments"],
            )
            for each in listed
        )
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError):
        return text, ()
    return text[: found[-1].start()], calls


def _read_literal(text: str) -> Json:
    """Read a Python literal that a model wrote, if its value is one of JSON.

    Raises:
        ValueError, TypeError, SyntaxError, MemoryError, RecursionError: it is not.
    """
    return decode_strict_json(json.dumps(ast.literal_eval(text)))


def _split_results(
    text: str, calls: Sequence[ToolCallPart]
) -> tuple[tuple[ToolResponsePart, ...], str]:
    """Split the text of a user into the results of calls and the question after them."""
    start = _RESULTS.match(text) if calls else None
    if start is None:
        return (), text.removeprefix(_TASK)
    given, _, task = text[start.end() :].partition(f"\n{_TASK}")
    lines: list[str] = given.splitlines()
    # One text holds the results of all calls: without a line for each, all have the whole of it.
    values: list[Json] = list(lines) if len(lines) == len(calls) else [given] * len(calls)
    pairs = zip(calls, values, strict=True)
    return tuple(ToolResponsePart(name=c.name, id=c.id, value=v) for c, v in pairs), task
