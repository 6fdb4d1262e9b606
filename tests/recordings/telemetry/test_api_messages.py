"""Messages in the forms of model APIs and frameworks."""

import json
from typing import Any

import pytest

from agentci.recordings.telemetry.conventions import api_messages
from agentci.recordings.telemetry.messages import (
    MAX_MESSAGES_CHARS,
    SpanMessages,
    extract_fallback_text,
    extract_text,
    extract_tool_calls,
    extract_tool_responses,
    find_last_user_messages,
)

ARGUMENTS = {"city": "Paris"}
TEXT = json.dumps(ARGUMENTS)

LANGCHAIN_CALL = {"name": "f", "args": ARGUMENTS, "id": "1", "type": "tool_call"}
OPENAI_CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": TEXT}}


def constructor(kind: str, **fields: Any) -> dict[str, Any]:
    names = ["langchain", "schema", "messages", kind]
    return {"lc": 1, "type": "constructor", "id": names, "kwargs": fields}


CONVERSATIONS: dict[str, Any] = {
    "openai": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "sunny"},
    ],
    "openai request": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "tool_calls": [OPENAI_CALL]},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "sunny"}]},
        ],
    },
    "responses request": {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": TEXT},
            {"type": "function_call_output", "call_id": "1", "output": "sunny"},
        ],
    },
    "anthropic": {
        "system": "s",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": ARGUMENTS},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1", "content": "sunny"}],
            },
        ],
    },
    "google": {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": ARGUMENTS}}]},
            {
                "role": "user",
                "parts": [{"function_response": {"name": "f", "response": "sunny"}}],
            },
        ]
    },
    "bedrock": [
        {"role": "user", "content": [{"text": "hi"}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": ARGUMENTS}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "sunny"}]}}],
        },
    ],
    "langchain": {
        "messages": [
            {"type": "human", "content": "hi"},
            {"type": "ai", "content": "", "tool_calls": [LANGCHAIN_CALL]},
            {"type": "tool", "tool_call_id": "1", "content": "sunny"},
        ]
    },
    "langchain data": [
        {"type": "human", "data": {"content": "hi", "type": "human"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [LANGCHAIN_CALL]}},
        {"type": "tool", "data": {"tool_call_id": "1", "content": "sunny", "type": "tool"}},
    ],
    "langchain constructors": [
        [
            constructor("HumanMessage", content="hi"),
            constructor("AIMessage", content="", additional_kwargs={"tool_calls": [OPENAI_CALL]}),
            constructor("ToolMessage", content="sunny", tool_call_id="1"),
        ]
    ],
    "llamaindex": [
        {"role": "user", "blocks": [{"block_type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "blocks": [
                {
                    "block_type": "tool_call",
                    "tool_call_id": "1",
                    "tool_name": "f",
                    "tool_kwargs": ARGUMENTS,
                }
            ],
        },
        {"role": "tool", "tool_call_id": "1", "blocks": [{"block_type": "text", "text": "sunny"}]},
    ],
    "vercel": {
        "system": "s",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool-call", "toolCallId": "1", "toolName": "f", "args": ARGUMENTS}
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "1",
                        "toolName": "f",
                        "output": {"type": "text", "value": "sunny"},
                    }
                ],
            },
        ],
    },
    "events": [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "hi"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"tool_calls": [OPENAI_CALL]}},
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "1", "content": "sunny"},
    ],
}


CONVERSATIONS["functions"] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": TEXT}},
    {"role": "function", "name": "f", "content": "sunny"},
]


def read_conversation(found: SpanMessages) -> Any:
    return (
        extract_text(find_last_user_messages(found)),
        [(call.name, call.arguments) for call in extract_tool_calls(found)],
        [answer.value for answer in extract_tool_responses(found)],
    )


@pytest.mark.parametrize("as_text", [False, True], ids=["value", "text"])
@pytest.mark.parametrize("form", CONVERSATIONS)
def test_conversation_is_read_in_every_form(form: str, *, as_text: bool) -> None:
    raw = CONVERSATIONS[form]
    found = api_messages.parse_input_messages(json.dumps(raw) if as_text else raw)
    assert read_conversation(found) == ("hi", [("f", ARGUMENTS)], ["sunny"])


ANSWER = {"role": "assistant", "content": "done"}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("done", id="text"),
        pytest.param('"done"', id="json text"),
        pytest.param({"choices": [{"index": 0, "message": ANSWER}]}, id="chat completion"),
        pytest.param(
            {
                "model": "m",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "done"}],
                    },
                ],
            },
            id="response",
        ),
        pytest.param(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "done"}],
            },
            id="anthropic",
        ),
        pytest.param(
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}}]},
            id="google",
        ),
        pytest.param(
            {
                "generations": [
                    [{"text": "done", "message": constructor("AIMessage", content="done")}]
                ]
            },
            id="generations",
        ),
        pytest.param([{"update": {"messages": [ANSWER]}, "goto": []}], id="langgraph command"),
        pytest.param(
            {
                "messages": [
                    {"role": "user", "content": "hi"},
                    {**ANSWER, "content": "no"},
                    {"role": "user", "content": "again"},
                    ANSWER,
                ]
            },
            id="state with history",
        ),
        pytest.param({"answer": "done", "score": 1}, id="named"),
    ],
)
def test_last_answer_is_read_in_every_form(raw: Any) -> None:
    assert extract_text(api_messages.parse_output_messages(raw)) == "done"


@pytest.mark.parametrize(
    "raw",
    [
        "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT",
        "<workflows.context.Context object at 0x7f37d8269450>",
        '{"messages": [{"role": "user", "cont',
        None,
        7,
    ],
)
def test_printed_objects_and_cut_json_are_no_question(raw: Any) -> None:
    assert api_messages.parse_input_messages(raw) == ()


def test_text_input_of_a_request_is_the_question() -> None:
    found = api_messages.parse_input_messages({"model": "m", "messages": [], "input": "hi"})
    assert extract_text(found) == "hi"


@pytest.mark.parametrize(
    "raw",
    ["[" * 20 + "]" * 20, json.dumps([{"role": "user", "content": "x" * MAX_MESSAGES_CHARS}])],
)
def test_deep_and_long_values_have_no_text(raw: str) -> None:
    assert extract_text(api_messages.parse_input_messages(raw)) is None


def test_broken_object_is_empty() -> None:
    assert api_messages.parse_object("{") == {}


def test_autogen_messages_have_the_role_of_their_source() -> None:
    raw = [
        {"type": "TextMessage", "source": "user", "content": "hi"},
        {"type": "TextMessage", "source": "weather_agent", "content": "done"},
    ]
    found = api_messages.parse_input_messages(raw)
    assert [(one.role, one.content.text) for one in found] == [
        ("user", "hi"),
        ("assistant", "done"),
    ]


def test_unknown_object_is_only_a_fallback() -> None:
    found = api_messages.parse_input_messages({"user_id": "u-42"})
    assert (extract_text(found), extract_fallback_text(found)) == (None, '{"user_id": "u-42"}')


def test_tool_definitions_among_messages_are_dropped() -> None:
    definition: Any = {"role": "tool", "content": {"type": "function", "function": {"name": "f"}}}
    (only,) = api_messages.parse_input_messages([{"role": "user", "content": "hi"}, definition])
    assert only.role == "user"


@pytest.mark.parametrize(
    "raw",
    [
        ARGUMENTS,
        TEXT,
        {"inputs": ARGUMENTS, "input_str": "{'city': 'Paris'}", "tags": []},
        {"kwargs": ARGUMENTS},
        {"args": [], "kwargs": ARGUMENTS, "sanitize_inputs_outputs": True},
    ],
)
def test_arguments_are_read_out_of_their_record(raw: Any) -> None:
    assert api_messages.decode_tool_arguments(raw) == ARGUMENTS


@pytest.mark.parametrize("raw", [{"inputs": ARGUMENTS}, {"args": [1], "kwargs": {"a": 1}}])
def test_arguments_named_like_a_record_are_kept(raw: Any) -> None:
    assert api_messages.decode_tool_arguments(raw) == raw


def test_redacted_arguments_are_unknown() -> None:
    assert api_messages.decode_tool_arguments("__REDACTED__") is None


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        ("sunny", "sunny"),
        ({"type": "tool", "content": "sunny", "tool_call_id": "1"}, "sunny"),
        ({"output": {"type": "tool", "content": "sunny"}}, "sunny"),
        ({"type": "tool", "data": {"content": [{"type": "text", "text": "sunny"}]}}, "sunny"),
        ({"id": "1", "name": "f", "response": {"result": 1}}, {"result": 1}),
        ({"blocks": [], "raw_output": "sunny", "is_error": False}, "sunny"),
        ({"content": "sunny"}, {"content": "sunny"}),
        ([1, 2], [1, 2]),
    ],
)
def test_result_is_read_out_of_its_message(raw: Any, result: Any) -> None:
    assert api_messages.decode_tool_output(raw) == result


@pytest.mark.parametrize(
    ("message", "failed"),
    [(None, False), ({"status": "error"}, True), ({"is_error": True}, True), ({}, False)],
)
def test_failure_of_a_tool_is_read(message: Any, *, failed: bool) -> None:
    assert api_messages.has_failed(message) is failed


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ({**LANGCHAIN_CALL, "id": "1"}, ["f"]),
        ({**LANGCHAIN_CALL, "id": None}, ["f"]),
        ({**LANGCHAIN_CALL, "id": "2"}, ["f", "f"]),
        ({**LANGCHAIN_CALL, "id": None, "name": "g"}, ["f", "g"]),
    ],
)
def test_call_in_blocks_and_in_the_list_counts_once(
    listed: dict[str, Any], names: list[str]
) -> None:
    block = {"type": "tool_use", "id": "1", "name": "f", "input": ARGUMENTS}
    message = constructor("AIMessage", content=[block], tool_calls=[listed])
    found = extract_tool_calls(api_messages.parse_input_messages([message]))
    assert [call.name for call in found] == names
