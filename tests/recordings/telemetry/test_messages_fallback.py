"""Content that agentevals 0.11.0 ignores: used only if its rules find nothing."""

import json
from typing import Any

import pytest

from tests.recordings.telemetry.recorder import (
    agent,
    assistant,
    calls,
    chat,
    event,
    span,
    tool,
    trace,
    turn,
    user,
)

IN, OUT = "gen_ai.input.messages", "gen_ai.output.messages"
CHAT = {"gen_ai.operation.name": "chat"}
OPENAI = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}}],
}
LANGCHAIN = {
    "role": "ai",
    "content": "",
    "tool_calls": [{"id": "x", "name": "f", "args": {"a": 1}}],
}


def texts(*spans: Any) -> tuple[str, str | None]:
    found = turn(*spans)
    return found.user_text, found.final_text


@pytest.mark.parametrize("said", [OPENAI, LANGCHAIN], ids=["openai", "langchain"])
def test_tool_calls_beside_the_content(said: Any) -> None:
    answer = {"role": "tool", "tool_call_id": "x", "content": "42"}
    found = trace(
        agent("a"),
        chat("c", [user("hi")], [said], under="a", at=(0, 10)),
        chat("d", [user("hi"), answer], [assistant("done")], under="a", at=(20, 30)),
    )
    (only,) = found.turns
    assert (only.tool_calls[0].name, only.tool_calls[0].args) == ("f", {"a": 1})
    assert only.tool_responses[0].output == 42
    assert (only.final_text, found.warnings) == ("done", ())


def test_tool_calls_count_for_nothing_beside_tool_call_parts() -> None:
    said = {**calls("g", {}, "y"), "tool_calls": OPENAI["tool_calls"]}
    assert [call.name for call in turn(chat("c", said=[said])).tool_calls] == ["g"]


def test_tool_calls_count_for_nothing_beside_tool_call_parts_of_another_call() -> None:
    found = turn(
        agent("a"),
        chat("c", said=[calls("g")], under="a"),
        chat("d", said=[OPENAI], under="a", at=(200, 300)),
    )
    assert [call.name for call in found.tool_calls] == ["g"]


def test_tool_calls_add_no_call_where_tools_have_spans() -> None:
    found = trace(agent("a"), chat("c", said=[OPENAI], under="a"), tool("t", "other", under="a"))
    assert [call.name for call in found.turns[0].tool_calls] == ["other"]
    assert found.warnings == (
        "tool f appears only in tool_calls, without a tool span, and is not counted",
    )


def test_tool_calls_fill_the_gaps_of_their_spans() -> None:
    found = turn(
        agent("a"),
        chat("c", said=[OPENAI], under="a"),
        tool("t", "f", call="x", under="a"),
    )
    assert found.tool_calls[0].args == {"a": 1}


def test_a_turn_that_goes_on_after_such_calls() -> None:
    answer = {"role": "tool", "tool_call_id": "x", "content": "42"}
    found = turn(
        chat("c", [user("hi")], [OPENAI], at=(0, 10)),
        chat("d", [user("hi"), answer], [assistant("done")], at=(20, 30)),
    )
    assert (found.id, found.final_text) == ("c", "done")


def test_the_roles_of_langchain() -> None:
    asked = [{"role": "system", "content": "S."}, {"role": "human", "content": "hi"}]
    said = [{"role": "ai", "content": "hello"}]
    assert texts(agent("a"), chat("c", asked, said, under="a")) == ("hi", "hello")


def test_the_roles_of_langchain_give_way_to_a_user() -> None:
    asked = [user("asked"), assistant("?"), {"role": "human", "content": "other"}]
    assert turn(chat("c", asked)).user_text == "asked"


@pytest.mark.parametrize(
    "message",
    [
        pytest.param('{"role": "assistant", "content": "hello"}', id="json text"),
        pytest.param(json.dumps(assistant("hello")), id="json text with parts"),
        pytest.param("hello", id="plain text"),
    ],
)
def test_a_choice_whose_message_is_text(message: str) -> None:
    choice = event("gen_ai.choice", {"message": message})
    assert turn(span("c", CHAT, events=(choice,))).final_text == "hello"
    inner = span("c", CHAT, events=(choice,), under="a")
    assert turn(agent("a"), inner).final_text == "hello"


def test_a_choice_whose_message_is_text_with_tool_calls() -> None:
    choice = event("gen_ai.choice", {"message": json.dumps(OPENAI)})
    assert turn(span("c", CHAT, events=(choice,))).tool_calls[0].args == {"a": 1}


def test_a_choice_whose_message_is_text_beside_content() -> None:
    choice = event("gen_ai.choice", {"message": "second", "content": "first"})
    assert turn(span("c", CHAT, events=(choice,))).final_text == "first"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"content": [{"type": "output_text", "text": "hello"}]}, id="responses api"),
        pytest.param({"content": [{"type": "input_text", "text": "hello"}]}, id="its input"),
        pytest.param({"parts": [{"type": "text", "text": "hello"}]}, id="text in text"),
        pytest.param({"parts": [{"text": "hello"}]}, id="part without a type"),
    ],
)
def test_parts_whose_words_stand_in_text(said: Any) -> None:
    messages = [{"role": "user", **said}], [{"role": "assistant", **said}]
    assert texts(chat("c", *messages)) == ("hello", "hello")
    assert texts(agent("a"), chat("c", *messages, under="a")) == ("hello", "hello")


def test_parts_whose_words_stand_in_text_give_way_to_content() -> None:
    parts = [{"text": "overlooked"}, {"type": "text", "content": "seen"}]
    said = {"role": "user", "parts": parts}
    assert texts(chat("c", [said], [said])) == ("seen", "seen")


def test_reasoning_is_no_answer_either() -> None:
    said = {"role": "assistant", "parts": [{"type": "reasoning", "text": "hm"}]}
    assert turn(chat("c", said=[said])).final_text is None


def test_tool_calls_given_as_text() -> None:
    said = {"role": "assistant", "tool_calls": json.dumps(OPENAI["tool_calls"])}
    assert turn(chat("c", said=[said])).tool_calls[0].args == {"a": 1}


@pytest.mark.parametrize("rubbish", ["{", 7, None, [7], [{"function": 7}], [{"name": ""}]])
def test_tool_calls_that_are_none(rubbish: Any) -> None:
    said = {**assistant("hello"), "tool_calls": rubbish}
    found = turn(chat("c", said=[said]))
    assert (found.final_text, found.tool_calls) == ("hello", ())


def test_a_source_with_content_comes_before_one_without() -> None:
    choice = event("gen_ai.choice", {"content": "hello"})
    found = turn(span("c", {**CHAT, OUT: [OPENAI]}, events=(choice,)))
    assert (found.final_text, found.tool_calls) == ("hello", ())


def test_a_model_with_messages_but_no_operation_and_no_provider() -> None:
    attributes = {"gen_ai.request.model": "m", IN: [user("hi")], OUT: [assistant("hello")]}
    assert texts(span("c", attributes)) == ("hi", "hello")


def test_such_a_model_is_passed_over_where_others_say_what_they_are() -> None:
    attributes = {"gen_ai.request.model": "m", OUT: [assistant("other")]}
    found = trace(
        agent("a"),
        chat("c", [user("hi")], [assistant("hello")], under="a"),
        span("d", attributes, under="a", at=(500, 600)),
    )
    assert found.turns[0].final_text == "hello"
