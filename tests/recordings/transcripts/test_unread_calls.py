"""No tool call and no answer of a transcript is left out: it is read, or the file is refused."""

from typing import Any

import pytest

from agentci.errors import RecordingError
from tests.recordings.transcripts.test_formats import ASK, only_turn, read_one, tool_call

ANSWER = {"role": "assistant", "content": "Done."}
CALLING = {"role": "assistant", "content": None, "tool_calls": [tool_call()]}


def problem(*records: Any) -> str:
    with pytest.raises(RecordingError) as caught:
        read_one(*records)
    return caught.value.problem.message


class TestLogsOfRequests:
    @pytest.mark.parametrize(
        "beside",
        [
            {"choices": [{"message": CALLING}]},
            {"response": {"choices": [{"message": CALLING}]}},
            {"response": CALLING},
        ],
    )
    def test_response_beside_the_messages_is_read(self, beside: Any) -> None:
        turn = only_turn({"messages": [ASK], **beside})
        assert [call.name for call in turn.tool_calls] == ["f"]

    def test_answer_that_messages_repeat_counts_once(self) -> None:
        turn = only_turn({"messages": [ASK, CALLING], "choices": [{"message": CALLING}]})
        assert [call.name for call in turn.tool_calls] == ["f"]

    def test_several_answers_are_refused(self) -> None:
        choices = [{"message": ANSWER}, {"message": CALLING}]
        assert (
            problem({"messages": [ASK], "choices": choices})
            == "`choices` holds 2 answers; keep one"
        )

    @pytest.mark.parametrize("key", ["response", "output", "completion"])
    def test_other_answer_is_refused(self, key: str) -> None:
        assert problem({"messages": [ASK], key: "Done."}) == (
            f"`{key}` next to `messages` may hold the answer; append it to `messages`"
        )

    def test_answer_beside_a_whole_list_is_ignored(self) -> None:
        assert only_turn({"messages": [ASK, ANSWER], "output": "Done."}).final_text == "Done."

    def test_states_of_graphs_have_other_values(self) -> None:
        messages = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "a"}]
        assert only_turn({"messages": messages, "output": {"x": 1}}).final_text == "a"


class TestMixedForms:
    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(
                {"type": "function_call", "call_id": "x", "name": "g", "arguments": "{}"},
                id="Responses",
            ),
            pytest.param(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool-call", "toolCallId": "x", "toolName": "g", "input": {}}
                    ],
                },
                id="AI SDK",
            ),
            pytest.param(
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "x", "name": "g", "input": {}}],
                },
                id="Anthropic",
            ),
        ],
    )
    def test_tool_calls_in_another_list_are_read(self, other: Any) -> None:
        turn = only_turn([ASK, other, {**CALLING, "type": "message"}])
        assert [call.name for call in turn.tool_calls] == ["g", "f"]

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "assistant", "content": "x", "toolCalls": [{"name": "g", "args": {}}]},
            {"role": "assistant", "content": [{"type": "mcp_call", "name": "g"}]},
            {"role": "assistant", "content": "x", "functionCall": {"name": "g"}},
        ],
    )
    def test_call_in_another_form_is_refused(self, message: Any) -> None:
        assert problem([ASK, CALLING, message]) == (
            "message 3: the tool call `g` is in a form that is not read"
        )


@pytest.mark.parametrize(
    ("records", "message"),
    [
        pytest.param(
            [[ASK, {"role": "assistant", "content": [{"type": "skill_run"}]}, CALLING]],
            "message 2: a part of type `skill_run`, which may be a tool call, is not read",
            id="chat",
        ),
        pytest.param(
            [[ASK, {"type": "function_call_v2", "call_id": "x"}, {"type": "computer_call"}]],
            "message 2: an item of type `function_call_v2` is not read",
            id="Responses",
        ),
        pytest.param(
            [[ASK, {"type": "function_call", "name": "f"}, {"type": "skill_call", "name": "g"}]],
            "message 3: an item of type `skill_call` with a `name` is not read",
            id="named item of Responses",
        ),
        pytest.param(
            [[ASK, {**ANSWER, "finish_reason": "tool_calls"}]],
            "message 2: the message ended with `tool_calls` and holds no tool call",
            id="finish reason",
        ),
        pytest.param(
            [{"messages": [ASK], "choices": [{"message": ANSWER, "finish_reason": "tool_calls"}]}],
            "message 2: the message ended with `tool_calls` and holds no tool call",
            id="finish reason of a choice",
        ),
        pytest.param(
            [
                [
                    ASK,
                    {
                        "role": "assistant",
                        "content": [{"type": "thinking"}, {"type": "tool_call_v2"}],
                    },
                ]
            ],
            "message 2: a block of type `tool_call_v2` is not read",
            id="Anthropic",
        ),
        pytest.param(
            [[{"id": "1", "role": "assistant", "parts": [{"type": "skill"}]}]],
            "message 1: a part of type `skill` is not read",
            id="AI SDK",
        ),
        pytest.param(
            [[{"kind": "response", "parts": [{"part_kind": "skill"}]}]],
            "message 1: a part of kind `skill` is not read",
            id="Pydantic AI",
        ),
        pytest.param(
            [[{"role": "model", "parts": [{"tool_invocation": {}}]}]],
            "message 1: a part with `tool_invocation` is not read",
            id="Google",
        ),
        pytest.param(
            [
                {"type": "thread.started", "thread_id": "t"},
                {"type": "item.completed", "item": {"type": "skill_call"}},
            ],
            "an item of type `skill_call` is not read",
            id="Codex",
        ),
        pytest.param(
            [{"type": "tool_use", "sessionID": "s", "part": {"type": "tool-invocation"}}],
            "a part of type `tool-invocation` is not read",
            id="OpenCode",
        ),
        pytest.param(
            [{"type": "init", "session_id": "s"}, {"type": "tool_call"}],
            "a record of type `tool_call` is not read",
            id="Gemini CLI",
        ),
        pytest.param(
            [
                {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
                {"type": "tool_call", "tool_call": {"readToolCall": {}}, "session_id": "s"},
            ],
            "a record of type `tool_call`, which Cursor writes, is not read",
            id="Cursor",
        ),
        pytest.param(
            [
                [
                    ASK,
                    {"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]},
                    {"role": "user", "content": [{"type": "tool_result", "toolUseID": "c"}]},
                ]
            ],
            "message 3: a block of type `tool_result` has no `tool_use_id`",
            id="thread of Amp",
        ),
        pytest.param(
            [[{"role": "user", "content": {"format": 2, "parts": []}}]],
            "message 1: a content that is an object with `format`, `parts` is not read",
            id="Mastra",
        ),
        pytest.param(
            [[{"role": "user", "content": [{"type": "text", "text": {"value": "Hi"}}]}]],
            "message 1: a part of type `text` whose `text` is not a string is not read",
            id="text in an object",
        ),
        pytest.param(
            [{"messages": [ASK], "outputs": [{"text": "", "tool_calls": [{}]}]}],
            "`outputs` next to `messages` may hold the answer; append it to `messages`",
            id="history of DSPy",
        ),
        pytest.param(
            [[ASK, {"role": "assistant", "content": "x", "tool_calls": ["f()"]}]],
            "message 2: a tool call that is not an object, which may be a tool call, is not read",
            id="calls as text",
        ),
    ],
)
def test_unknown_call_is_refused(records: list[Any], message: str) -> None:
    assert problem(*records) == message


def test_refusal_part_is_an_answer() -> None:
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert only_turn([ASK, refusal]).final_text == "No."


def test_code_that_a_model_runs_is_a_call() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"output": "1"}},
        {"functionCall": {"name": "f"}},
    ]
    turn = only_turn(
        [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": parts}]
    )
    code = {"language": "PYTHON", "code": "1"}
    assert [(call.name, call.args) for call in turn.tool_calls] == [
        ("code_execution", code),
        ("f", {}),
    ]
    assert turn.tool_responses[0].output == "1"
