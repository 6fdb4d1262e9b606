"""What the messages of agent libraries mean beyond the recorded files: each trap on its own."""

from typing import Any, ClassVar

import pytest

from agentci.errors import RecordingError
from tests.recordings.transcripts.test_formats import (
    calls_of,
    failed_of,
    lines,
    only_turn,
    problem_of,
    read_one,
    results_of,
    tool_call,
)
from tests.recordings.transcripts.transcript_files import read_text


def autogen(kind: str, content: Any, source: str = "agent", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "content": content, "source": source, "models_usage": None, **fields}


def calling(name: str = "f", call_id: str = "c", source: str = "agent") -> dict[str, Any]:
    call = {"id": call_id, "name": name, "arguments": '{"a": 1}'}
    return autogen("ToolCallRequestEvent", [call], source)


def result(content: str = "r", call_id: str = "c", source: str = "agent") -> dict[str, Any]:
    one = {"content": content, "name": "f", "call_id": call_id, "is_error": False}
    return autogen("ToolCallExecutionEvent", [one], source)


ASKED = autogen("TextMessage", "Hi", "user")


class TestAutoGen:
    def test_task_from_another_source_is_a_question(self) -> None:
        asked = autogen("TextMessage", "Hi", "customer")
        turns = read_one([asked, calling(), result(), asked, autogen("TextMessage", "Bye")]).turns
        assert [turn.user_text for turn in turns] == ["Hi", "Hi"]

    def test_text_that_was_asked_for_is_a_question(self) -> None:
        request = autogen("UserInputRequestedEvent", "", "human", request_id="1")
        messages = [ASKED, calling(), result(), request, autogen("TextMessage", "Yes", "human")]
        assert [turn.user_text for turn in read_one(messages).turns] == ["Hi", "Yes"]

    def test_text_of_another_agent_is_no_question(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 2}
        texts = [
            autogen("TextMessage", text, agent, models_usage=usage)
            for text, agent in (("a", "writer"), ("b", "critic"))
        ]
        turn = only_turn([ASKED, *texts])
        assert (turn.intermediate_texts, turn.final_text) == (("a",), "b")

    def test_question_after_an_aborted_call_is_not_of_a_subagent(self) -> None:
        trace = read_one([ASKED, calling(), ASKED, autogen("TextMessage", "Bye")])
        assert [calls_of(turn) for turn in trace.turns] == [[("f", {"a": 1})], []]
        assert trace.subagents == ()

    def test_ids_of_calls_may_repeat(self) -> None:
        trace = read_one([ASKED, calling(), result("1"), ASKED, calling(), result("2")])
        assert [results_of(turn) for turn in trace.turns] == [["1"], ["2"]]
        assert trace.subagents == ()

    def test_subagents_of_parallel_calls_are_kept_from_the_agent(self) -> None:
        request = autogen(
            "ToolCallRequestEvent",
            [{"id": one, "name": "expert", "arguments": "{}"} for one in ("1", "2")],
        )
        inner = [calling("g", "3", "expert"), result("x", "3", "expert")]
        trace = read_one([ASKED, request, *inner, result("a", "1"), result("b", "2")])
        [turn] = trace.turns
        assert calls_of(turn) == [("expert", {}), ("expert", {})]
        assert [calls_of(one) for run in trace.subagents for one in run.turns] == [
            [("g", {"a": 1})]
        ]

    def test_code_that_an_agent_runs_is_a_call(self) -> None:
        code = [{"code": "print(1)", "packages": [], "language": "python"}]
        messages = [
            ASKED,
            autogen("CodeGenerationEvent", "```...", code_blocks=code, retry_attempt=0),
            autogen("CodeExecutionEvent", None, result={"exit_code": 1, "output": "e"}),
            autogen("TextMessage", "Bye"),
        ]
        turn = only_turn(messages)
        assert calls_of(turn) == [("code_execution", {"code_blocks": code})]
        assert (results_of(turn), failed_of(turn)) == (["e"], [True])

    def test_arguments_of_code_in_a_text_are_unknown(self) -> None:
        ran = autogen("CodeExecutionEvent", None, result={"exit_code": 0, "output": "o"})
        turn = only_turn([ASKED, autogen("TextMessage", "```python ..."), ran])
        assert calls_of(turn) == [("code_execution", None)]
        assert (results_of(turn), failed_of(turn)) == (["o"], [False])

    def test_pieces_of_a_stream_are_not_texts(self) -> None:
        pieces = [autogen("ModelClientStreamingChunkEvent", piece) for piece in ("B", "ye")]
        assert only_turn(ASKED, *pieces, autogen("TextMessage", "Bye")).final_text == "Bye"

    def test_message_of_another_type_is_refused(self) -> None:
        message = "message 3: a message of type `ToolBatch` is not read"
        messages = [ASKED, calling(), autogen("ToolBatch", [])]
        assert problem_of(messages).message == message

    def test_result_without_an_id_is_of_the_call_without_one(self) -> None:
        call = autogen("ToolCallRequestEvent", [{"name": "f", "arguments": "{}"}])
        ran = autogen("ToolCallExecutionEvent", [{"content": "r", "name": "f", "is_error": False}])
        trace = read_one([ASKED, call, ran, autogen("TextMessage", "Bye")])
        [turn] = trace.turns
        assert (results_of(turn), turn.final_text) == (["r"], "Bye")
        assert trace.subagents == ()

    def test_calls_that_are_no_list_are_refused(self) -> None:
        message = "message 2: the tool calls of a message are not a list of objects"
        assert problem_of([ASKED, autogen("ToolCallRequestEvent", "f()")]).message == message

    def test_text_of_another_agent_in_a_state_is_no_question(self) -> None:
        messages = [
            {"type": "UserMessage", "content": "Hi", "source": "user"},
            {"type": "AssistantMessage", "content": "a", "source": "front", "thought": None},
            {"type": "UserMessage", "content": "b", "source": "front"},
        ]
        turn = only_turn({"type": "AssistantAgentState", "llm_context": {"messages": messages}})
        assert (turn.user_text, turn.intermediate_texts) == ("Hi", ("a",))


class TestAutoGenChatHistory:
    ASK: ClassVar[Any] = {"content": "Hi", "role": "assistant", "name": "user_proxy"}
    ANSWER: ClassVar[Any] = {"content": "Bye", "role": "user", "name": "assistant"}

    @pytest.mark.parametrize(
        "messages", [[ASK, ANSWER], [{**ASK, "role": "user"}, {**ANSWER, "role": "user"}]]
    )
    def test_roles_that_do_not_tell_the_person_are_refused(self, messages: Any) -> None:
        assert "as in a `chat_history` of AutoGen 0.2" in problem_of(messages).message

    def test_result_of_a_chat_is_read_without_tools(self) -> None:
        trace = read_one({"chat_id": 1, "chat_history": [self.ASK, self.ANSWER], "human_input": []})
        [turn] = trace.turns
        assert (turn.user_text, turn.final_text) == ("Hi", "Bye")

    def test_automatic_reply_is_no_question(self) -> None:
        history = [self.ASK, self.ANSWER, {**self.ASK, "content": ""}, self.ANSWER]
        [turn] = read_one({"chat_history": history, "human_input": []}).turns
        assert turn.final_text == "Bye"

    def test_code_that_the_proxy_ran_is_a_call(self) -> None:
        output = "exitcode: 1 (execution failed)\nCode output: e"
        history = [self.ASK, self.ANSWER, {**self.ASK, "content": output}, self.ANSWER]
        turn = only_turn({"chat_history": history, "human_input": []})
        assert calls_of(turn) == [("code_execution", None)]
        assert (results_of(turn), failed_of(turn)) == ([output], [True])

    def test_names_of_people_in_a_list_of_openai_are_ignored(self) -> None:
        ask = {**self.ASK, "role": "user"}
        assert only_turn([ask, {**self.ANSWER, "role": "assistant"}]).final_text == "Bye"


def llama(role: str, text: str = "", **extra: Any) -> dict[str, Any]:
    blocks = [{"block_type": "text", "text": text}]
    return {"role": role, "additional_kwargs": extra, "blocks": blocks}


class TestLlamaIndex:
    def test_calls_of_earlier_versions_are_those_of_the_provider(self) -> None:
        old = [
            {"role": "user", "content": "Hi", "additional_kwargs": {}},
            {
                "role": "assistant",
                "content": "",
                "additional_kwargs": {"tool_calls": [tool_call("f", '{"a": 1}')]},
            },
            {"role": "tool", "content": "r", "additional_kwargs": {"tool_call_id": "c"}},
        ]
        turn = only_turn(old)
        assert (calls_of(turn), results_of(turn)) == ([("f", {"a": 1})], ["r"])

    def test_unknown_form_of_a_call_is_refused(self) -> None:
        message = "message 2: a tool call without a name is not read"
        assert problem_of([llama("user"), llama("assistant", tool_calls=[{}])]).message == message

    def test_unknown_block_of_an_agent_is_refused(self) -> None:
        other = {**llama("assistant"), "blocks": [{"block_type": "tool_batch"}]}
        message = "message 2: a block of type `tool_batch` is not read"
        assert problem_of([llama("user"), other]).message == message

    def test_react_steps_are_refused(self) -> None:
        text = "Thought: I need a tool.\nAction: f\nAction Input: {'a': 1}\nObservation: r\n"
        message = problem_of([llama("user", "Hi"), llama("assistant", text)]).message
        assert "ReAct agent are text" in message

    def test_each_conversation_of_a_store_is_a_case(self) -> None:
        store = {name: [llama("user", name), llama("assistant", "Bye")] for name in ("a", "b")}
        traces = read_text(lines({"store": store, "class_name": "SimpleChatStore"}))
        assert [trace.turns[0].user_text for trace in traces] == ["a", "b"]

    def test_what_a_store_holds_beside_conversations_is_left_out(self) -> None:
        store = {"a": [llama("user", "Hi"), llama("assistant", "Bye")], "b": None}
        turn = only_turn({"store": store, "class_name": "SimpleChatStore"})
        assert (turn.user_text, turn.final_text) == ("Hi", "Bye")

    def test_system_message_is_no_turn(self) -> None:
        messages = [llama("system", "Be short"), llama("user", "Hi"), llama("assistant", "Bye")]
        turn = only_turn(messages)
        assert (turn.user_text, turn.final_text) == ("Hi", "Bye")

    def test_context_without_a_history_is_refused(self) -> None:
        context = {"version": 2, "state": {"state_data": {"_data": {}}}, "is_running": False}
        message = problem_of({**context, "workers": {}}).message
        assert "a LlamaIndex workflow without its chat history" in message

    def test_output_of_an_agent_is_refused(self) -> None:
        output = {"response": llama("assistant", "Bye"), "current_agent_name": "A"}
        assert "an output of a LlamaIndex agent" in problem_of(output).message


class TestHaystack:
    USER: ClassVar[Any] = {"role": "user", "meta": {}, "name": None, "content": [{"text": "Hi"}]}

    def test_calls_without_a_key_around_them_are_read(self) -> None:
        call = {"tool_name": "f", "arguments": {"a": 1}, "id": "c"}
        messages = [
            {"_role": "user", "_content": [{"text": "Hi"}], "_name": None, "_meta": {}},
            {"_role": "assistant", "_content": [call], "_name": None, "_meta": {}},
            {"_role": "tool", "_content": [{"result": "r", "origin": call, "error": True}]},
        ]
        turn = only_turn(messages)
        assert (calls_of(turn), results_of(turn)) == ([("f", {"a": 1})], ["r"])
        assert failed_of(turn) == [True]

    def test_calls_tell_the_format_without_meta_and_name(self) -> None:
        call = {"tool_name": "f", "arguments": {"a": 1}, "id": "c"}
        messages = [
            {"role": "user", "content": [{"text": "Hi"}]},
            {"role": "assistant", "content": [{"tool_call": call}]},
            {"role": "tool", "content": [{"tool_call_result": {"result": "r", "origin": call}}]},
        ]
        turn = only_turn(messages)
        assert (turn.user_text, calls_of(turn)) == ("Hi", [("f", {"a": 1})])
        assert results_of(turn) == ["r"]

    def test_unknown_part_is_refused(self) -> None:
        message = "message 2: a part with `skill` is not read"
        other = {**self.USER, "role": "assistant", "content": [{"skill": {}}]}
        assert problem_of([self.USER, other]).message == message

    def test_finish_reason_without_a_call_is_refused(self) -> None:
        meta = {"finish_reason": "tool_calls"}
        message = "message 2: the message ended with `tool_calls` and holds no tool call"
        other = {**self.USER, "role": "assistant", "meta": meta}
        assert problem_of([self.USER, other]).message == message

    def test_tool_message_without_a_result_is_refused(self) -> None:
        message = "message 2: a message with the role `tool` holds no `tool_call_result`"
        assert problem_of([self.USER, {**self.USER, "role": "tool"}]).message == message


class TestSemanticKernel:
    def test_history_of_the_net_library_is_read(self) -> None:
        function = {"PluginName": "Shop", "FunctionName": "find"}
        messages = [
            {"Role": {"Label": "system"}, "Items": [{"$type": "TextContent", "Text": "Be short"}]},
            {"Role": {"Label": "user"}, "Items": [{"$type": "TextContent", "Text": "Hi"}]},
            {
                "Role": {"Label": "Assistant"},
                "Items": [
                    {
                        "$type": "FunctionCallContent",
                        "Id": "1",
                        **function,
                        "Arguments": {"order": 9},
                    }
                ],
                "ModelId": "gpt-5",
            },
            {
                "Role": {"Label": "tool"},
                "Items": [
                    {"$type": "FunctionResultContent", "CallId": "1", **function, "Result": "r"}
                ],
            },
            {"Role": {"Label": "assistant"}, "Items": [{"$type": "TextContent", "Text": "Bye"}]},
        ]
        turn = only_turn(messages)
        assert calls_of(turn) == [("Shop-find", {"order": 9})]
        assert (results_of(turn), turn.final_text) == (["r"], "Bye")

    def test_result_in_a_message_of_the_user_is_no_question(self) -> None:
        def message(role: str, **item: Any) -> dict[str, Any]:
            return {"content_type": "message", "role": role, "items": [item]}

        named = {"id": "1", "function_name": "f"}
        turn = only_turn(
            [
                message("user", content_type="text", text="Hi"),
                message("assistant", content_type="function_call", arguments="{}", **named),
                message("user", content_type="function_result", result="r", **named),
                message("assistant", content_type="text", text="Bye"),
            ]
        )
        assert (turn.user_text, results_of(turn), turn.final_text) == ("Hi", ["r"], "Bye")

    def test_unknown_item_is_refused(self) -> None:
        item = {"content_type": "function_batch"}
        user: Any = {"content_type": "message", "role": "user", "items": []}
        message = "message 2: an item of type `function_batch` is not read"
        assert problem_of([user, {**user, "role": "assistant", "items": [item]}]).message == message


class TestSmolagents:
    TASK: ClassVar[Any] = {"task": "Hi", "task_images": None}

    def step(self, **fields: Any) -> dict[str, Any]:
        return {"step_number": 1, "observations": None, "model_output_message": {}, **fields}

    def test_results_without_clear_borders_are_unknown(self) -> None:
        calls = [tool_call("f", "{}", one) for one in ("1", "2")]
        turn = only_turn([self.TASK, self.step(tool_calls=calls, observations="a\nb\nc")])
        assert (len(turn.tool_calls), results_of(turn)) == (2, [None, None])

    def test_call_of_a_step_that_failed_is_in_its_message(self) -> None:
        error = {"type": "AgentToolExecutionError", "message": "e"}
        written = {"tool_calls": [tool_call("f", '{"a": 1}')]}
        turn = only_turn([self.TASK, self.step(error=error, model_output_message=written)])
        assert (calls_of(turn), results_of(turn)) == ([("f", {"a": 1})], ["e"])
        assert failed_of(turn) == [True]

    def test_failed_step_without_its_call_is_incomplete(self) -> None:
        error = {"type": "AgentToolExecutionError", "message": "e"}
        trace = read_one([self.TASK, self.step(error=error)])
        assert trace.not_captured.startswith("A tool call of the run is missing: a step failed")

    def test_steps_of_code_are_refused(self) -> None:
        message = problem_of([self.TASK, self.step(code_action="f()")]).message
        assert message.startswith("the tools that the code of a `CodeAgent` calls are not in its")


class TestQwenCode:
    def record(self, kind: str, uuid: str = "1", **fields: Any) -> dict[str, Any]:
        parts = fields.pop("parts", [])
        message = {"role": "user", "parts": parts}
        return {"type": kind, "uuid": uuid, "sessionId": "s", "message": message, **fields}

    def test_thoughts_are_not_the_answer(self) -> None:
        parts = [{"text": "Hm.", "thought": True}, {"text": "Bye"}]
        asked = self.record("user", parts=[{"text": "Hi"}])
        assert only_turn(asked, self.record("assistant", "2", parts=parts)).final_text == "Bye"

    def test_calls_of_a_subagent_are_unknown_if_only_counted(self) -> None:
        call = {"functionCall": {"id": "c", "name": "agent", "args": {}}}
        response = {"functionResponse": {"id": "c", "name": "agent", "response": {"output": "r"}}}
        ran = {"type": "task_execution", "executionSummary": {"totalToolCalls": 2}}
        trace = read_one(
            self.record("user", parts=[{"text": "Hi"}]),
            self.record("assistant", "2", parts=[call]),
            self.record(
                "tool_result", "3", parts=[response], toolCallResult={"resultDisplay": ran}
            ),
        )
        assert [turn.tool_calls_recorded for run in trace.subagents for turn in run.turns] == [
            False
        ]

    def test_part_beside_a_result_is_left_out(self) -> None:
        call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
        response = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "r"}}}
        picture = {"inlineData": {"mimeType": "image/png", "data": "x"}}
        turn = only_turn(
            self.record("user", parts=[{"text": "Hi"}]),
            self.record("assistant", "2", parts=[call]),
            self.record("tool_result", "3", parts=[picture, response]),
        )
        assert (calls_of(turn), results_of(turn)) == ([("f", {})], ["r"])

    def test_record_of_another_type_is_refused(self) -> None:
        asked = self.record("user", parts=[{"text": "Hi"}])
        message = "a record of type `tool_batch` is not read"
        assert problem_of(asked, self.record("tool_batch", "2")).message == message

    def test_parts_in_a_session_of_claude_are_refused(self) -> None:
        asked = {**self.record("user", parts=[{"text": "Hi"}]), "parentUuid": None}
        with pytest.raises(RecordingError, match="as Qwen Code writes it, is not read"):
            read_one(asked, trace_format="claude-code-session")

    def test_repeated_record_counts_once(self) -> None:
        asked = self.record("user", parts=[{"text": "Hi"}])
        call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
        replied = self.record("assistant", "2", parts=[call])
        assert calls_of(only_turn(asked, replied, replied)) == [("f", {})]

    def test_records_without_ids_are_read(self) -> None:
        asked = {**self.record("user", parts=[{"text": "Hi"}]), "uuid": None}
        replied = {**self.record("assistant", parts=[{"text": "Bye"}]), "uuid": None}
        assert only_turn(asked, replied).final_text == "Bye"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        pytest.param(
            [llama("user", "Hi"), {**llama("x"), "role": "narrator"}],
            "message 2: a message has the unknown role `narrator`",
            id="LlamaIndex",
        ),
        pytest.param(
            [TestHaystack.USER, {**TestHaystack.USER, "role": "narrator"}],
            "message 2: a message has the unknown role `narrator`",
            id="Haystack",
        ),
        pytest.param(
            [
                {"content_type": "message", "role": "user", "items": []},
                {"content_type": "message", "role": "narrator", "items": []},
            ],
            "message 2: a message has the unknown role `narrator`",
            id="Semantic Kernel",
        ),
        pytest.param(
            [
                {"role": "user", "parts": [{"type": "text", "text": "Hi"}]},
                {"role": "narrator", "parts": [{"type": "text", "text": "Hi"}]},
            ],
            "message 2: a message has the unknown role `narrator`",
            id="AI SDK for a page",
        ),
        pytest.param(
            [
                {"role": "assistant", "content": [{"type": "tool-call", "toolName": "f"}]},
                {"role": "narrator", "content": "Hi"},
            ],
            "message 2: a message has the unknown role `narrator`",
            id="AI SDK for a model",
        ),
        pytest.param(
            [
                {"role": "user", "content": "Hi"},
                {"type": "message", "role": "narrator", "content": [{"type": "output_text"}]},
            ],
            "message 2: a message has the unknown role `narrator`",
            id="OpenAI Responses",
        ),
        pytest.param(
            [{"type": "human", "content": "Hi"}, {"type": "narrator", "content": "Hi"}],
            "message 2: a message has the unknown role `narrator`",
            id="LangChain",
        ),
        pytest.param(
            [{"kind": "request", "parts": []}, {"kind": "note", "parts": []}],
            "message 2: a message is neither a `request` nor a `response`",
            id="Pydantic AI",
        ),
        pytest.param(
            [TestSmolagents.TASK, {"note": "x"}], "not a step of smolagents", id="smolagents"
        ),
        pytest.param(
            [TestSmolagents.TASK, TestSmolagents().step(tool_calls=[{"function": {}}])],
            "a tool call has no name",
            id="call of smolagents without a name",
        ),
    ],
)
def test_what_a_library_does_not_write_is_refused(messages: Any, message: str) -> None:
    assert problem_of(messages).message == message


def test_plans_and_prompts_of_smolagents_are_no_texts() -> None:
    plan = {"plan": "1. Look.", "token_usage": {"input_tokens": 1, "output_tokens": 2}}
    answered = TestSmolagents().step(is_final_answer=True, action_output={"a": 1})
    turn = only_turn([{"system_prompt": "s"}, TestSmolagents.TASK, plan, answered])
    assert (turn.intermediate_texts, turn.final_text) == ((), '{"a": 1}')


def test_steps_of_smolagents_may_be_lines() -> None:
    answered = TestSmolagents().step(is_final_answer=True, action_output="Bye")
    assert only_turn(TestSmolagents.TASK, answered).final_text == "Bye"
