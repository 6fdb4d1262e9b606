"""What the formats of transcripts mean beyond the recorded files: each trap on its own."""

import json
from typing import Any, ClassVar

import pytest

from agentci.errors import RecordingError
from agentci.model.trace import TokenUsage, Trace, Turn
from agentci.model.values import Place, Problem
from tests.recordings.transcripts.transcript_files import describe_turns, read_text

ASK: dict[str, Any] = {"role": "user", "content": "Hi"}


def lines(*records: Any) -> str:
    return "\n".join(map(json.dumps, records))


def read_one(*records: Any, **options: Any) -> Trace:
    [trace] = read_text(lines(*records), **options)
    return trace


def only_turn(*records: Any) -> Turn:
    [turn] = read_one(*records).turns
    return turn


def calls_of(turn: Turn) -> list[tuple[str, Any]]:
    return [(call.name, call.args) for call in turn.tool_calls]


def results_of(turn: Turn) -> list[Any]:
    [described] = describe_turns([turn])
    found: list[Any] = described["tool_results"]
    return found


def failed_of(turn: Turn) -> list[bool]:
    return [one.failed for one in turn.tool_responses]


def problem_of(*records: Any) -> Problem:
    with pytest.raises(RecordingError) as caught:
        read_one(*records)
    return caught.value.problem


def tool_call(name: str = "f", args: str = "{}", call_id: str = "c") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": args}}


class TestMessageLists:
    def test_deprecated_function_call_is_paired_by_name(self) -> None:
        call = {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "f", "arguments": '{"a": 1}'},
        }
        turn = only_turn([ASK, call, {"role": "function", "name": "f", "content": "7"}])
        assert (calls_of(turn), results_of(turn)) == ([("f", {"a": 1})], ["7"])

    def test_text_before_a_call_is_no_answer(self) -> None:
        turn = only_turn(
            [ASK, {"role": "assistant", "content": "I look.", "tool_calls": [tool_call()]}]
        )
        assert turn.final_text is None
        assert turn.intermediate_texts == ("I look.",)

    def test_refusal_is_the_answer(self) -> None:
        answer = {"role": "assistant", "content": None, "refusal": "No."}
        assert only_turn([ASK, answer]).final_text == "No."

    def test_question_of_only_a_picture_is_empty_and_recorded(self) -> None:
        picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
        turn = only_turn([picture, {"role": "assistant", "content": "A cat."}])
        assert (turn.user_text, turn.user_text_recorded) == ("", True)

    @pytest.mark.parametrize("args", ["", "null", "{}"])
    def test_call_without_arguments_has_none(self, args: str) -> None:
        turn = only_turn([ASK, {"role": "assistant", "tool_calls": [tool_call(args=args)]}])
        assert calls_of(turn) == [("f", {})]

    def test_arguments_that_are_no_json_stay_text(self) -> None:
        turn = only_turn([ASK, {"role": "assistant", "tool_calls": [tool_call(args='{"a":')]}])
        assert calls_of(turn) == [("f", '{"a":')]

    def test_repeated_call_ids_are_paired_in_order(self) -> None:
        call = {"role": "assistant", "tool_calls": [tool_call()]}
        results = [{"role": "tool", "tool_call_id": "c", "content": text} for text in "12"]
        turn = only_turn([ASK, call, results[0], call, results[1]])
        assert results_of(turn) == ["1", "2"]

    def test_result_of_no_call_is_an_error(self) -> None:
        trace = read_one([ASK, {"role": "tool", "tool_call_id": "x", "content": "7"}])
        assert trace.turns[0].tool_calls == ()
        assert trace.not_captured == (
            "A tool call of the run is missing: a tool result (`x`) belongs to no tool call; record"
            " the run from its beginning, in a form that agentci's docs/transcripts.md lists"
        )

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            (
                {"role": "robot", "content": "x", "tool_calls": [tool_call()]},
                "message 2: a message has the unknown role `robot`",
            ),
            (
                {"role": "assistant", "tool_calls": [tool_call(name="")]},
                "message 2: a tool call has no name",
            ),
            (
                {"role": "assistant", "content": None, "tool_calls": tool_call()},
                "message 2: `tool_calls` of a message is not a list",
            ),
        ],
    )
    def test_unreadable_message_is_refused(self, message: Any, expected: str) -> None:
        problem = problem_of([ASK, message])
        assert problem.message == expected
        assert "trace_format" in (problem.hint or "")

    @pytest.mark.parametrize(
        "answer",
        [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Ho"}],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolName": "f", "toolCallId": "c", "input": {}}],
            },
            {"role": "assistant", "parts": [{"type": "text", "text": "Ho"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
            },
            {
                "lc": 1,
                "type": "constructor",
                "id": ["AIMessage"],
                "kwargs": {"type": "ai", "content": "Ho"},
            },
        ],
        ids=["responses", "ai-sdk", "ai-sdk-ui", "anthropic", "langchain"],
    )
    def test_system_message_begins_no_turn(self, answer: dict[str, Any]) -> None:
        system: dict[str, Any] = {"role": "system", "content": "Be brief."}
        asked: dict[str, Any] = ASK
        if "parts" in answer:
            system, asked = (
                {**each, "parts": [{"type": "text", "text": "Hi"}]} for each in (system, ASK)
            )
        if "lc" in answer:
            system, asked = (
                {**answer, "kwargs": {"type": kind, "content": "Hi"}}
                for kind in ("system", "human")
            )
        assert only_turn([system, asked, answer]).user_text == "Hi"

    def test_result_in_the_form_of_openai_beside_anthropic_blocks_is_read(self) -> None:
        use = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
        result = {"role": "tool", "tool_call_id": "c", "content": "7"}
        turn = only_turn([ASK, {"role": "assistant", "content": [use]}, result])
        assert results_of(turn) == ["7"]

    def test_unknown_role_beside_anthropic_blocks_is_refused(self) -> None:
        use = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
        messages = [ASK, {"role": "assistant", "content": [use]}, {"role": "robot", "content": "x"}]
        assert "a message has the unknown role `robot`" in problem_of(messages).message

    @pytest.mark.parametrize(
        "answer",
        [
            {"type": "message", "role": "assistant", "content": "Ho"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_audio"}, {"type": "output_text", "text": "Ho"}],
            },
        ],
        ids=["text", "parts"],
    )
    def test_answer_of_the_responses_api_is_read(self, answer: dict[str, Any]) -> None:
        call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
        turn = only_turn([ASK, call, {"type": None, "id": "x"}, answer])
        assert (calls_of(turn), turn.final_text) == ([("f", {})], "Ho")

    def test_text_of_the_converse_api_may_be_a_string(self) -> None:
        use = {"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}
        turn = only_turn(
            [ASK, {"role": "assistant", "content": [use]}, {"role": "assistant", "content": "Ho"}]
        )
        assert (turn.user_text, calls_of(turn), turn.final_text) == ("Hi", [("f", {})], "Ho")

    def test_message_that_is_no_object_is_refused(self) -> None:
        with pytest.raises(RecordingError) as caught:
            read_text(lines([ASK], [ASK, "Ho"]))
        assert caught.value.problem.message == "message 2 is not an object"
        assert caught.value.problem.place == Place(file="run.json", line=2)

    def test_one_list_per_line_is_one_run_per_line(self) -> None:
        found = read_text(lines({"messages": [ASK], "tools": []}, {"messages": [ASK]}))
        assert [trace.id for trace in found] == ["run.json:1", "run.json:2"]

    def test_lists_of_one_file_may_be_of_different_kinds(self) -> None:
        block = {"type": "tool_use", "id": "b", "name": "g", "input": {}}
        found = read_text(
            lines(
                [ASK, {"role": "assistant", "tool_calls": [tool_call()]}],
                [ASK, {"role": "assistant", "content": [block]}],
            )
        )
        assert [calls_of(trace.turns[0]) for trace in found] == [[("f", {})], [("g", {})]]

    def test_one_message_per_line_is_one_run(self) -> None:
        assert only_turn(ASK, {"role": "assistant", "content": "Ho"}).final_text == "Ho"

    def test_line_of_another_kind_is_refused(self) -> None:
        problem = problem_of(ASK, {"foo": 1})
        assert problem.message == "neither a message nor a list of messages"
        assert problem.place is not None
        assert problem.place.line == 2

    def test_stored_response_has_no_question(self) -> None:
        response = {
            "id": "resp_1",
            "object": "response",
            "model": "m",
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "q"}},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "A"}],
                },
            ],
            "usage": {"input_tokens": 3, "output_tokens": 4},
        }
        trace = read_one(response)
        [turn] = trace.turns
        assert trace.id == "resp_1"
        assert not turn.user_text_recorded
        assert calls_of(turn) == [("web_search", {"type": "search", "query": "q"})]
        assert "the recording does not hold what the user wrote" in trace.warnings

    def test_mcp_call_holds_its_result(self) -> None:
        call = {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "7"}
        assert results_of(only_turn([ASK, call])) == ["7"]

    def test_text_beside_tool_results_starts_a_turn(self) -> None:
        use = {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
        }
        result = {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [{"type": "image"}],
            "is_error": True,
        }
        first, second = read_one(
            [ASK, use, {"role": "user", "content": [result, {"type": "text", "text": "And?"}]}]
        ).turns
        assert (results_of(first), failed_of(first)) == ([[{"type": "image"}]], [True])
        assert second.user_text == "And?"

    def test_thoughts_are_not_the_answer(self) -> None:
        blocks = [
            {"type": "thinking", "thinking": "Hm", "text": "Hm"},
            {"type": "text", "text": "A"},
        ]
        assert only_turn([ASK, {"role": "assistant", "content": blocks}]).final_text == "A"

    def test_google_contents_are_read(self) -> None:
        turn = only_turn(
            [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "f", "response": {"result": 2}}}],
                },
                {"role": "model", "parts": [{"text": "Hm", "thought": True}, {"text": "Ho"}]},
            ]
        )
        assert describe_turns([turn]) == [
            {
                "user": "Hi",
                "tool_calls": [{"name": "f", "args": {"a": 1}}],
                "tool_results": [{"result": 2}],
                "final": "Ho",
            }
        ]


def langchain(kind: str, message_id: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": message_id, "content": content, **more}


class TestLangChain:
    def test_updates_of_a_graph_have_no_question(self) -> None:
        call = {"name": "f", "args": {}, "id": "c"}
        turn = only_turn(
            {"agent": {"messages": [langchain("ai", "1", tool_calls=[call])]}},
            {"other": None},
            {"tools": {"messages": [langchain("tool", "2", "7", tool_call_id="c")]}},
            {"__interrupt__": []},
            {"agent": {"messages": [langchain("ai", "3", "Seven")]}},
        )
        assert not turn.user_text_recorded
        assert (results_of(turn), turn.final_text) == (["7"], "Seven")

    def test_states_of_a_graph_are_one_run(self) -> None:
        first, second = langchain("human", "1", "Hi"), langchain("ai", "2", "Ho")
        turn = only_turn({"messages": [first]}, {"messages": [first, second]})
        assert turn.final_text == "Ho"

    def test_invalid_call_is_a_call(self) -> None:
        call = {"name": "f", "args": '{"a":', "id": "c", "error": "no JSON"}
        answer = langchain("ai", "2", invalid_tool_calls=[call])
        assert calls_of(only_turn([langchain("human", "1", "Hi"), answer])) == [("f", '{"a":')]

    def test_tokens_of_a_repeated_message_count_once(self) -> None:
        usage = {"input_tokens": 3, "output_tokens": 4}
        answer = langchain("ai", "2", "Ho", usage_metadata=usage)
        trace = read_one([langchain("human", "1", "Hi"), answer, answer])
        assert trace.performance is not None
        assert trace.performance["tokens"] == {"total_prompt": 3, "total_output": 4, "total": 7}


class TestPydanticAi:
    ASK: ClassVar[dict[str, Any]] = {
        "kind": "request",
        "parts": [{"part_kind": "user-prompt", "content": "Hi"}],
    }

    def response(self, *parts: Any, **more: Any) -> dict[str, Any]:
        return {"kind": "response", "parts": list(parts), **more}

    def call(self, name: str = "f", args: Any = None) -> dict[str, Any]:
        return {"part_kind": "tool-call", "tool_name": name, "args": args, "tool_call_id": "c"}

    def test_thought_is_no_text_of_the_answer(self) -> None:
        thought = {"part_kind": "thinking", "content": "Hm"}
        answer = {"part_kind": "text", "content": "Ho"}
        turn = only_turn([self.ASK, self.response(thought, answer)])
        assert (turn.final_text, turn.intermediate_texts) == ("Ho", ())

    def test_retry_of_a_tool_is_its_failure(self) -> None:
        retry = {
            "part_kind": "retry-prompt",
            "tool_name": "f",
            "tool_call_id": "c",
            "content": "no",
        }
        refused = {"part_kind": "retry-prompt", "content": "Answer in JSON."}
        turn = only_turn(
            [self.ASK, self.response(self.call()), {"kind": "request", "parts": [retry, refused]}]
        )
        assert (results_of(turn), failed_of(turn)) == (["no"], [True])

    def test_output_tool_is_the_answer(self) -> None:
        returned = {"part_kind": "tool-return", "tool_name": "final_result", "tool_call_id": "c"}
        trace = read_one(
            [
                self.ASK,
                self.response(self.call("final_result", '{"city": "Rome"}')),
                {"kind": "request", "parts": [returned]},
            ]
        )
        [turn] = trace.turns
        assert (calls_of(turn), turn.final_text) == ([], '{"city": "Rome"}')
        assert trace.warnings == ()

    def test_cost_is_the_sum(self) -> None:
        answer = self.response({"part_kind": "text", "content": "Ho"}, usage={"cost": "0.25"})
        trace = read_one([self.ASK, answer, answer])
        assert trace.performance is not None
        assert trace.performance["cost_usd"] == 0.5


class TestAiSdk:
    @pytest.mark.parametrize(
        ("state", "result", "failed"),
        [
            ({"state": "output-available", "output": None}, [None], [False]),
            ({"state": "output-error", "errorText": "no"}, ["no"], [True]),
            ({"state": "input-available"}, [None], []),
        ],
    )
    def test_state_of_a_tool_part_says_whether_it_has_a_result(
        self, state: Any, result: Any, failed: Any
    ) -> None:
        part = {"type": "dynamic-tool", "toolName": "f", "toolCallId": "c", "input": {}, **state}
        turn = only_turn([{**ASK, "parts": []}, {"role": "assistant", "parts": [part]}])
        assert (results_of(turn), failed_of(turn)) == (result, failed)

    def test_unknown_part_is_refused(self) -> None:
        answer = {"role": "assistant", "parts": [{"type": "hologram"}]}
        problem = problem_of([{**ASK, "parts": []}, answer])
        assert "a part of type `hologram` is not read" in problem.message

    def test_version_4_is_read(self) -> None:
        invocation = {
            "state": "result",
            "toolCallId": "c",
            "toolName": "f",
            "args": {},
            "result": 7,
        }
        answer = {"role": "assistant", "content": "Seven", "toolInvocations": [invocation]}
        turn = only_turn([ASK, answer])
        assert (results_of(turn), turn.final_text) == ([7], "Seven")
        part = {
            "type": "tool-result",
            "toolCallId": "c",
            "toolName": "f",
            "result": 7,
            "isError": True,
        }
        call = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "args": {"a": 1}}
        turn = only_turn(
            [ASK, {"role": "assistant", "content": [call]}, {"role": "tool", "content": [part]}]
        )
        assert (calls_of(turn), results_of(turn), failed_of(turn)) == (
            [("f", {"a": 1})],
            [7],
            [True],
        )

    @pytest.mark.parametrize(
        ("output", "result", "failed"),
        [
            ({"type": "json", "value": [1]}, [1], False),
            ({"type": "content", "value": [{"type": "text", "text": "a"}]}, "a", False),
            ({"type": "error-text", "value": "no"}, "no", True),
            ({"type": "execution-denied", "reason": "no"}, "no", True),
            ({"sky": "blue"}, {"sky": "blue"}, False),
            ([1], [1], False),
        ],
    )
    def test_kinds_of_results(self, output: Any, result: Any, failed: bool) -> None:
        call = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}
        part = {"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": output}
        turn = only_turn(
            [ASK, {"role": "assistant", "content": [call]}, {"role": "tool", "content": [part]}]
        )
        assert (results_of(turn), failed_of(turn)) == ([result], [failed])

    def test_parts_that_are_not_evaluated_are_left_out(self) -> None:
        file = {"type": "file", "mediaType": "image/png", "url": "x"}
        shown = {"type": "data-weather", "data": {}}
        text = {"type": "text", "text": "Ho"}
        answer = {"role": "assistant", "parts": [file, shown, text]}
        assert only_turn([{**ASK, "parts": []}, answer]).final_text == "Ho"
        thought = {"type": "reasoning", "text": "Hm"}
        call = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}
        turn = only_turn(
            [
                ASK,
                {"role": "assistant", "content": [thought, call]},
                {"role": "assistant", "content": "Ho"},
            ]
        )
        assert (calls_of(turn), turn.final_text) == ([("f", {})], "Ho")
        assert turn.intermediate_texts == ()


class TestClaudeCode:
    number = 0

    def record(self, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        self.number += 1
        message = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": more.pop("reply", "m"), "model": more.pop("model", "claude")}
            message |= {"usage": {"input_tokens": 10, "output_tokens": 2}}
        uuid = f"u{self.number}"
        return {
            "type": kind,
            "uuid": uuid,
            "parentUuid": None,
            "sessionId": "s",
            "message": message,
            **more,
        }

    def use(self, call_id: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"n": call_id}}

    def test_blocks_of_one_reply_are_records_of_their_own(self) -> None:
        trace = read_one(
            {"type": "summary", "summary": "x"},
            self.record("user", "Hi"),
            self.record("assistant", [self.use("a")]),
            self.record("assistant", [self.use("b")]),
            self.record("user", [{"type": "tool_result", "tool_use_id": "b", "content": "B"}]),
            self.record("user", [{"type": "tool_result", "tool_use_id": "a", "content": "A"}]),
            self.record("assistant", [{"type": "text", "text": "One."}], reply="n"),
            self.record("assistant", [{"type": "text", "text": "Two."}], reply="n"),
        )
        [turn] = trace.turns
        assert results_of(turn) == ["A", "B"]
        assert turn.final_text == "One.\nTwo."
        assert trace.performance is not None
        assert trace.performance["tokens"] == {"total_prompt": 20, "total_output": 4, "total": 24}

    @pytest.mark.parametrize(
        "text",
        [
            "<local-command-stdout>x</local-command-stdout>",
            "<system-reminder>x</system-reminder>",
            "[Request interrupted by user]",
            "<task-notification>x</task-notification>",
        ],
    )
    def test_text_of_the_harness_is_no_turn(self, text: str) -> None:
        trace = read_one(
            self.record("user", "Hi"),
            self.record("user", text),
            self.record("user", "x", isMeta=True),
            self.record("user", "x", isCompactSummary=True),
            self.record("assistant", "Ho"),
        )
        assert [turn.user_text for turn in trace.turns] == ["Hi"]

    def test_slash_command_is_a_turn_if_the_model_ran(self) -> None:
        def command(name: str, args: str) -> str:
            return f"<command-name>/{name}</command-name>\n<command-args>{args}</command-args>"

        trace = read_one(
            self.record("user", command("clear", "")),
            self.record("user", command("review", "now")),
            self.record("assistant", "Ho"),
            self.record("user", command("model", "")),
        )
        assert [turn.user_text for turn in trace.turns] == ["/review now"]

    def test_repeated_record_counts_once(self) -> None:
        asked = self.record("user", "Hi")
        assert len(read_one(asked, asked, self.record("assistant", "Ho")).turns) == 1

    def test_error_of_the_api_is_no_answer(self) -> None:
        text = [{"type": "text", "text": "API Error: 500"}]
        trace = read_one(
            self.record("user", "Hi"),
            self.record("assistant", text, model="<synthetic>", isApiErrorMessage=True),
        )
        assert trace.turns[0].final_text is None
        assert trace.warnings == ("Claude Code reported an error: API Error: 500",)

    def test_synthetic_text_is_no_answer(self) -> None:
        text = [{"type": "text", "text": "No response requested."}]
        trace = read_one(
            self.record("user", "Hi"), self.record("assistant", text, model="<synthetic>")
        )
        assert (trace.turns[0].final_text, trace.warnings) == (None, ())

    def test_subagent_record_without_id_is_read(self) -> None:
        asked = {**self.record("user", "A", isSidechain=True), "uuid": None}
        trace = read_one(self.record("user", "Hi"), asked)
        assert [run.turns[0].user_text for run in trace.subagents] == ["A"]

    def test_parallel_subagents_are_kept_apart_by_their_chains(self) -> None:
        first = self.record("user", "A", isSidechain=True)
        second = self.record("user", "B", isSidechain=True)
        trace = read_one(
            self.record("user", "Hi"),
            first,
            second,
            self.record("assistant", "a", isSidechain=True, parentUuid=first["uuid"]),
            self.record("assistant", "b", isSidechain=True, parentUuid=second["uuid"], reply="n"),
            self.record("assistant", "Ho", reply="o"),
        )
        assert [turn.final_text for turn in trace.turns] == ["Ho"]
        assert [
            (turn.user_text, turn.final_text) for run in trace.subagents for turn in run.turns
        ] == [("A", "a"), ("B", "b")]


class TestClaudeCodeStream:
    INIT: ClassVar[dict[str, Any]] = {
        "type": "system",
        "subtype": "init",
        "session_id": "s",
        "model": "m",
    }

    def message(self, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content}
        return {
            "type": kind,
            "message": message,
            "parent_tool_use_id": None,
            "session_id": "s",
            **more,
        }

    def result(self, **more: Any) -> dict[str, Any]:
        usage = {"input_tokens": 3, "output_tokens": 4}
        return {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "session_id": "s",
            "usage": usage,
            "total_cost_usd": 0.5,
            **more,
        }

    def test_each_result_ends_a_turn(self) -> None:
        trace = read_one(
            self.INIT,
            self.message("assistant", "A"),
            self.result(),
            self.INIT,
            self.message("assistant", "B"),
            self.result(total_cost_usd=0.75),
        )
        assert [turn.final_text for turn in trace.turns] == ["A", "B"]
        assert trace.performance is not None
        assert trace.performance["cost_usd"] == 0.75
        assert trace.performance["tokens"]["total_prompt"] == 6  # type: ignore[index, call-overload]

    def test_prompt_is_read_if_the_action_records_it(self) -> None:
        text = [{"type": "text", "text": "Fix it"}]
        turn = only_turn(
            [self.INIT, self.message("user", text), self.message("assistant", "Ho"), self.result()]
        )
        assert (turn.user_text, turn.user_text_recorded) == ("Fix it", True)

    def test_synthetic_message_is_no_turn(self) -> None:
        synthetic = self.message("user", "Base directory for this skill", isSynthetic=True)
        turn = only_turn(self.INIT, synthetic, self.message("assistant", "Ho"), self.result())
        assert not turn.user_text_recorded

    @pytest.mark.parametrize(
        ("end", "warning"),
        [
            ({"subtype": "error_max_turns"}, "the run ended with an error (`error_max_turns`)"),
            ({"is_error": True}, "the run ended with an error (`success`)"),
            ({"permission_denials": [{}]}, "permission was denied for 1 of the tool calls"),
        ],
    )
    def test_error_at_the_end_is_a_warning(self, end: Any, warning: str) -> None:
        trace = read_one(self.INIT, self.message("assistant", "A"), self.result(**end))
        assert warning in trace.warnings

    def test_interrupted_stream_is_a_warning(self) -> None:
        trace = read_one(self.INIT, self.message("assistant", "A"))
        assert any("the run was interrupted" in warning for warning in trace.warnings)

    def test_result_alone_is_refused(self) -> None:
        problem = problem_of(self.result(result="A"))
        assert "--output-format stream-json --verbose" in problem.message


class TestCodex:
    META: ClassVar[dict[str, Any]] = {
        "type": "session_meta",
        "payload": {"id": "s", "cli_version": "1"},
    }

    def item(self, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "t", "type": "response_item", "payload": payload}

    def user(self, *texts: str) -> dict[str, Any]:
        parts = [{"type": "input_text", "text": text} for text in texts]
        return self.item(type="message", role="user", content=parts)

    @pytest.mark.parametrize(
        "text",
        [
            "<environment_context>\n</environment_context>",
            "<user_instructions>x</user_instructions>",
            "# AGENTS.md instructions for /x",
            "<turn_aborted>x</turn_aborted>",
        ],
    )
    def test_text_of_the_harness_is_no_turn(self, text: str) -> None:
        trace = read_one(self.META, self.user(text), self.user(text, "Hi"))
        assert [turn.user_text for turn in trace.turns] == ["Hi"]

    def test_patch_stays_text(self) -> None:
        patch = "*** Begin Patch\n*** End Patch"
        turn = only_turn(
            self.META,
            self.user("Hi"),
            self.item(type="custom_tool_call", name="apply_patch", input=patch, call_id="c"),
            self.item(type="custom_tool_call_output", call_id="c", output="Done"),
        )
        assert (calls_of(turn), results_of(turn)) == ([("apply_patch", patch)], ["Done"])

    @pytest.mark.parametrize(
        ("output", "failed"),
        [
            ('{"output": "x", "metadata": {"exit_code": 2}}', True),
            ('{"output": "x", "metadata": {"exit_code": 0}}', False),
            ("Chunk ID: 1\nProcess exited with code 1\nOutput:\n", True),
            ("Process exited with code 0\nOutput:\nProcess exited with code 1\n", False),
            ("Exit code: 3\nWall time: 0 seconds", True),
            ('{"output": broken', False),
        ],
    )
    def test_exit_code_says_whether_a_command_failed(self, output: str, failed: bool) -> None:
        turn = only_turn(
            self.META,
            self.user("Hi"),
            self.item(type="function_call", name="shell", arguments="{}", call_id="c"),
            self.item(type="function_call_output", call_id="c", output=output),
        )
        assert failed_of(turn) == [failed]

    def test_model_and_tokens_are_the_last_recorded(self) -> None:
        def tokens(info: Any) -> dict[str, Any]:
            return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

        usage = {"input_tokens": 5, "output_tokens": 6}
        trace = read_one(
            self.META, self.user("Hi"), tokens({"total_token_usage": usage}), tokens(None)
        )
        assert trace.performance is not None
        assert trace.performance["tokens"] == {"total_prompt": 5, "total_output": 6, "total": 11}

    def test_stream_has_calls_in_the_order_of_their_start(self) -> None:
        def item(event: str, **fields: Any) -> dict[str, Any]:
            return {"type": f"item.{event}", "item": fields}

        first = {"id": "1", "type": "command_execution", "command": "a"}
        second = {
            "id": "2",
            "type": "mcp_tool_call",
            "server": "x",
            "tool": "f",
            "arguments": {"a": 1},
        }
        result = {"content": [{"type": "text", "text": "B"}]}
        trace = read_one(
            {"type": "thread.started", "thread_id": "t"},
            {"type": "turn.started"},
            item("started", **first),
            item("started", **second),
            item("completed", **second, result=result, status="completed"),
            item("completed", **first, aggregated_output="A", exit_code=1, status="failed"),
            item("completed", id="3", type="agent_message", text="Ho"),
        )
        [turn] = trace.turns
        assert calls_of(turn) == [("command_execution", {"command": "a"}), ("f", {"a": 1})]
        assert (results_of(turn), failed_of(turn)) == (["A", "B"], [True, False])
        assert any("the run was interrupted" in warning for warning in trace.warnings)


class TestCopilot:
    def event(self, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": "i", "parentId": None, "timestamp": "t"}

    def test_failing_command_is_a_success_with_an_exit_code(self) -> None:
        request = {"toolCallId": "c", "name": "apply_patch", "arguments": "*** Begin Patch"}
        turn = only_turn(
            self.event("session.start", sessionId="s", producer="copilot-agent"),
            self.event("user.message", content="Hi", transformedContent="<x>Hi"),
            self.event("assistant.message", content="", toolRequests=[request]),
            self.event(
                "tool.execution_complete",
                toolCallId="c",
                success=True,
                result={"content": "no"},
                shellExecution={"exitCode": 1},
            ),
        )
        assert (turn.user_text, calls_of(turn)) == ("Hi", [("apply_patch", "*** Begin Patch")])
        assert (results_of(turn), failed_of(turn)) == (["no"], [True])

    def test_masked_type_is_understood(self) -> None:
        turn = only_turn(
            self.event("us******r.m******ssage", content="Hi"),
            self.event("assistant.m******ssag******", content="Ho", toolRequests=[]),
        )
        assert (turn.user_text, turn.final_text) == ("Hi", "Ho")

    def test_flat_form_is_read(self) -> None:
        use = {"type": "tool_use", "id": "c", "name": "bash", "input": {"command": "wc"}}
        text = [{"type": "text", "text": "Three."}]
        trace = read_one(
            {"type": "message", "role": "user", "content": "Count"},
            {"type": "message", "role": "assistant", "content": "I look.", "model": "m"},
            use,
            {"type": "usage", "input_tokens": 3, "output_tokens": 2},
            {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True},
            {"type": "message", "role": "assistant", "content": text, "model": "m"},
            {"type": "usage", "input_tokens": 4, "output_tokens": 1},
            {"type": "message", "role": "user", "content": "Thanks"},
            {"type": "message", "role": "assistant", "content": "Fine"},
        )
        turn, last = trace.turns
        assert (turn.user_text, calls_of(turn)) == ("Count", [("bash", {"command": "wc"})])
        assert (results_of(turn), failed_of(turn)) == (["no"], [True])
        assert (turn.final_text, turn.model_steps) == ("Three.", ())
        assert (last.user_text, last.final_text) == ("Thanks", "Fine")
        assert trace.usage == TokenUsage(input=7, output=3)

    def test_repeated_call_and_system_message_are_left_out(self) -> None:
        use = {"type": "tool_use", "id": "c", "name": "bash", "input": {}}
        turn = only_turn(
            {"type": "message", "role": "system", "content": "Be brief."},
            {"type": "message", "role": "user", "content": "Count"},
            *(use, use),
            {"type": "tool_result", "tool_use_id": "c", "content": "3"},
        )
        assert (turn.user_text, calls_of(turn)) == ("Count", [("bash", {})])
        assert results_of(turn) == ["3"]

    def test_content_of_one_message_is_refused(self) -> None:
        use = {"type": "tool_use", "id": "c", "name": "bash", "input": {}}
        with pytest.raises(RecordingError, match="a record of type `text` is not read"):
            read_one([{"type": "text", "text": "I look."}, use])

    def test_pieces_of_messages_are_ignored(self) -> None:
        piece = self.event("assistant.message", content="H", toolRequests=[])
        turn = only_turn(self.event("user.message", content="Hi"), {**piece, "ephemeral": True})
        assert turn.final_text is None

    def test_subagent_is_a_call_of_the_stream(self) -> None:
        spawn = {"id": "1", "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "Look"}
        trace = read_one(
            {"type": "thread.started", "thread_id": "t"},
            {"type": "item.completed", "item": spawn},
            {"type": "item.updated", "item": {"id": "2", "type": "agent_message", "text": "H"}},
            {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "Ho"}},
        )
        assert calls_of(trace.turns[0]) == [("spawn_agent", {"prompt": "Look"})]
        assert trace.turns[0].final_text == "Ho"


class TestGemini:
    HEADER: ClassVar[dict[str, Any]] = {"sessionId": "s", "projectHash": "h", "kind": "main"}

    def user(self, message_id: str, *parts: Any) -> dict[str, Any]:
        return {"id": message_id, "type": "user", "content": list(parts)}

    def reply(self, message_id: str, content: Any = "", **more: Any) -> dict[str, Any]:
        return {"id": message_id, "type": "gemini", "content": content, **more}

    def call(self) -> dict[str, Any]:
        response = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "7"}}}
        return {"id": "c", "name": "f", "args": {}, "status": "success", "result": [response]}

    def test_resumed_session_keeps_its_calls(self) -> None:
        part = {"functionCall": {"id": "c", "name": "f", "args": {}}}
        answer = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "7"}}}
        history = [
            self.user("1", {"text": "Hi"}),
            self.reply("2", [part]),
            self.user("3", answer),
            self.reply("4", [{"text": "Seven"}]),
        ]
        trace = read_one(
            self.HEADER,
            self.user("1", {"text": "Hi"}),
            self.reply("2"),
            self.reply("2", toolCalls=[self.call()]),
            self.user("3", answer),
            self.reply("4", "Seven"),
            self.HEADER,
            {"$set": {"messages": history}},
            self.user("5", {"text": "And?"}),
            self.reply("6", "Eight"),
        )
        assert [turn.user_text for turn in trace.turns] == ["Hi", "And?"]
        assert [results_of(turn) for turn in trace.turns] == [["7"], []]
        assert trace.warnings == ()

    def test_history_without_calls_is_read_from_its_parts(self) -> None:
        answer = {"functionResponse": {"id": "c", "name": "f", "response": {"error": "no"}}}
        turn = only_turn(
            self.HEADER,
            self.user("1", {"text": "Hi"}),
            self.reply("2", [{"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}]),
            self.user("3", answer),
        )
        assert (calls_of(turn), results_of(turn)) == ([("f", {"a": 1})], ["no"])
        assert failed_of(turn) == [True]

    def test_rewound_messages_did_not_happen(self) -> None:
        turn = only_turn(
            self.HEADER,
            self.user("1", {"text": "Hi"}),
            self.reply("2", "Ho"),
            {"$rewindTo": "1"},
            self.user("3", {"text": "Again"}),
        )
        assert turn.user_text == "Again"

    def test_rewind_to_an_unknown_message_changes_nothing(self) -> None:
        asked = self.user("1", {"text": "Hi"})
        assert only_turn(self.HEADER, asked, {"$rewindTo": "9"}).user_text == "Hi"

    def test_call_without_a_result_has_none(self) -> None:
        call = {**self.call(), "result": None}
        asked = self.user("1", {"text": "Hi"})
        turn = only_turn(self.HEADER, asked, self.reply("2", toolCalls=[call]))
        assert (calls_of(turn), results_of(turn)) == ([("f", {})], [None])

    @pytest.mark.parametrize(
        ("status", "failed"), [("error", True), ("success", False), ("cancelled", False)]
    )
    def test_result_without_a_response_is_read(self, status: str, failed: bool) -> None:
        call = {**self.call(), "status": status, "result": "7"}
        asked = self.user("1", {"text": "Hi"})
        turn = only_turn(self.HEADER, asked, self.reply("2", toolCalls=[call]))
        assert (results_of(turn), failed_of(turn)) == (["7"], [failed])

    def test_message_of_only_a_picture_is_a_turn(self) -> None:
        picture = {"inlineData": {"mimeType": "image/png", "data": "x"}}
        trace = read_one(
            *(self.HEADER, self.user("1", {"text": "Hi"}), self.reply("2", "Ho")),
            *(self.user("3", picture), self.reply("4", "A cat.")),
        )
        found = [(turn.user_text, turn.final_text) for turn in trace.turns]
        assert found == [("Hi", "Ho"), ("", "A cat.")]

    def test_messages_of_the_cli_are_left_out(self) -> None:
        note = {"id": "2", "type": "info", "content": "Update available"}
        asked = self.user("1", {"text": "Hi"})
        assert only_turn(self.HEADER, asked, note, self.reply("3", "Ho")).final_text == "Ho"
        turn = only_turn(
            {"type": "init", "session_id": "s"},
            {"type": "message", "role": "user", "content": "Hi"},
            {"type": "message", "role": "assistant", "content": "Ho"},
            {"type": "info", "message": "Update available"},
            {"type": "result", "status": "success"},
        )
        assert (turn.final_text, turn.intermediate_texts) == ("Ho", ())

    def test_call_of_a_session_without_a_name_is_refused(self) -> None:
        call = {**self.call(), "name": None}
        asked = self.user("1", {"text": "Hi"})
        problem = problem_of(self.HEADER, asked, self.reply("2", toolCalls=[call]))
        assert problem.message == "a tool call has no name"
        assert problem.place == Place(file="run.json", line=1)

    def test_error_of_a_streamed_tool_is_its_result(self) -> None:
        call = {"type": "tool_use", "tool_name": "f", "tool_id": "c", "parameters": {}}
        error = {"status": "error", "error": {"message": "no"}}
        turn = only_turn(
            {"type": "init", "session_id": "s"},
            {"type": "message", "role": "user", "content": "Hi"},
            call,
            {"type": "tool_result", "tool_id": "c", **error},
        )
        assert (results_of(turn), failed_of(turn)) == (["no"], [True])

    def test_updated_message_is_merged(self) -> None:
        turn = only_turn(
            self.HEADER,
            self.user("1", {"text": "Hi"}),
            self.reply("2", "Ho"),
            {"type": "message_update", "id": "2", "content": "Ho!"},
        )
        assert turn.final_text == "Ho!"

    def test_pieces_of_a_streamed_answer_are_joined(self) -> None:
        def piece(text: str) -> dict[str, Any]:
            return {"type": "message", "role": "assistant", "content": text, "delta": True}

        init = {"type": "init", "session_id": "s", "model": "m"}
        asked = {"type": "message", "role": "user", "content": "Hi"}
        assert only_turn(init, asked, piece("O"), piece("ne")).final_text == "One"


class TestOpenCode:
    def message(self, role: str, *parts: Any, **info: Any) -> dict[str, Any]:
        return {"info": {"role": role, "id": "m", **info}, "parts": list(parts)}

    def test_error_of_a_message_is_a_warning(self) -> None:
        text = {"type": "text", "text": "Hi"}
        failed = self.message(
            "assistant", {**text, "synthetic": True}, error={"name": "ProviderAuthError"}
        )
        trace = read_one(
            {"info": {"id": "ses_1"}, "messages": [self.message("user", text), failed]}
        )
        assert trace.turns[0].final_text is None
        assert trace.warnings == ("OpenCode reported an error: ProviderAuthError",)

    def test_message_of_another_role_is_left_out(self) -> None:
        texts = [{"type": "text", "text": text} for text in ("Hi", "Be brief.", "Ho")]
        roles = ("user", "system", "assistant")
        messages = [self.message(role, text) for role, text in zip(roles, texts, strict=True)]
        turn = only_turn({"info": {"id": "ses_1"}, "messages": messages})
        assert (turn.user_text, turn.final_text) == ("Hi", "Ho")
        assert turn.intermediate_texts == ()

    def test_synthetic_text_and_compaction_are_no_turns(self) -> None:
        text = {"type": "text", "text": "Hi"}
        tool = {
            "type": "tool",
            "tool": "bash",
            "callID": "c",
            "state": {"status": "completed", "input": {}, "output": "x", "metadata": {"exit": 1}},
        }
        pending = {"type": "tool", "tool": "read", "callID": "d", "state": {"status": "pending"}}
        unnumbered = {"type": "tool", "tool": "list", "state": {"status": "running"}}
        export = {
            "info": {"id": "ses_1"},
            "messages": [
                self.message("user", text, {**text, "synthetic": True}),
                self.message(
                    "assistant",
                    tool,
                    pending,
                    unnumbered,
                    cost=0.5,
                    tokens={"input": 1, "output": 2},
                ),
                self.message("user", {"type": "compaction"}),
                self.message("assistant", {**text, "text": "Summary"}, summary=True),
                self.message("assistant", {**text, "text": "Ho"}, cost=0.25),
            ],
        }
        trace = read_one(export)
        [turn] = trace.turns
        assert (turn.user_text, turn.final_text) == ("Hi", "Ho")
        assert (results_of(turn), failed_of(turn)) == (["x", None, None], [True])
        assert (trace.cost_usd, trace.usage) == (0.75, None)


class TestAdk:
    def event(
        self, author: str, *parts: Any, invocation: str = "e1", **more: Any
    ) -> dict[str, Any]:
        return {
            "author": author,
            "invocationId": invocation,
            "content": {"parts": list(parts)},
            **more,
        }

    def session(self, *events: Any) -> dict[str, Any]:
        return {"id": "s", "appName": "app", "userId": "u", "events": list(events)}

    def test_pieces_and_thoughts_are_ignored(self) -> None:
        turn = only_turn(
            self.session(
                self.event("user", {"text": "Hi"}),
                self.event("agent", {"text": "H"}, partial=True),
                self.event("agent", {"text": "Hm", "thought": True}, {"text": "Ho"}),
            )
        )
        assert (turn.final_text, turn.intermediate_texts) == ("Ho", ())

    def test_parts_without_text_are_left_out(self) -> None:
        picture = {"inlineData": {"mimeType": "image/png", "data": "x"}}
        turn = only_turn(
            self.session(
                self.event("user", picture, {"text": "Hi"}),
                self.event("agent", picture, {"text": "Ho"}),
            )
        )
        assert (turn.user_text, turn.final_text) == ("Hi", "Ho")

    def test_transfer_stays_in_its_turn(self) -> None:
        call = {
            "functionCall": {"id": "c", "name": "transfer_to_agent", "args": {"agent_name": "b"}}
        }
        response = {"functionResponse": {"id": "c", "name": "transfer_to_agent", "response": {}}}
        turn = only_turn(
            self.session(
                self.event("user", {"text": "Hi"}),
                self.event("a", call),
                self.event("a", response),
                self.event("b", {"text": "Ho"}),
            )
        )
        assert (calls_of(turn), turn.final_text) == (
            [("transfer_to_agent", {"agent_name": "b"})],
            "Ho",
        )

    def test_events_of_a_runner_have_a_turn_per_invocation(self) -> None:
        first = self.event("a", {"text": "A"})
        trace = read_one(first, self.event("a", {"text": "B"}, invocation="e2"))
        assert [turn.final_text for turn in trace.turns] == ["A", "B"]
        assert not any(turn.user_text_recorded for turn in trace.turns)

    def test_result_in_a_string_is_read(self) -> None:
        invocation = {
            "userContent": {"parts": [{"text": "Hi"}]},
            "finalResponse": {"parts": [{"text": "Ho"}]},
            "intermediateData": {
                "toolUses": [{"name": "f", "args": {}, "id": "c"}],
                "toolResponses": [{"name": "f", "id": "c", "response": {"r": 1}}],
            },
        }
        case = {"evalId": "a", "evalMetricResultPerInvocation": [{"actualInvocation": invocation}]}
        trace = read_one(json.dumps({"evalCaseResults": [case]}))
        assert (trace.id, trace.eval_case_id) == ("a", "a")
        assert results_of(trace.turns[0]) == [{"r": 1}]

    def test_content_of_an_unknown_role_is_refused(self) -> None:
        contents = [{"role": role, "parts": [{"text": "Hi"}]} for role in ("user", "narrator")]
        with pytest.raises(RecordingError, match="narrator"):
            read_one(contents, trace_format="google-genai-contents")

    def test_invalid_case_of_a_result_is_named_by_its_line(self) -> None:
        invocation = {"intermediateData": {"toolUses": [{"name": "", "args": {}}]}}
        case = {"evalId": "a", "evalMetricResultPerInvocation": [{"actualInvocation": invocation}]}
        problem = problem_of({"evalCaseResults": [case]})
        assert problem.place == Place(file="run.json", line=1)


class TestAtif:
    def trajectory(self, *steps: Any, **more: Any) -> dict[str, Any]:
        return {"schema_version": "ATIF-v1.9", "agent": {"name": "a"}, "steps": list(steps), **more}

    def agent(self, message: Any = "", results: Any = (), calls: str = "") -> dict[str, Any]:
        return {
            "source": "agent",
            "message": message,
            "tool_calls": [
                {"tool_call_id": call, "function_name": call, "arguments": {}} for call in calls
            ],
            "observation": {"results": list(results)},
        }

    def test_results_without_a_call_id_are_in_order(self) -> None:
        trace = read_one(
            self.trajectory(
                {"source": "user", "message": "Hi"},
                self.agent(calls="x"),
                self.agent(
                    calls="abc",
                    results=[
                        {"content": "A"},
                        {"source_call_id": "b", "content": "B"},
                        {"source_call_id": None, "content": "C"},
                        {"content": "note"},
                    ],
                ),
            )
        )
        assert results_of(trace.turns[0]) == [None, "A", "B", "C"]
        assert trace.warnings == ()

    def test_copied_steps_are_left_out(self) -> None:
        copied = {"is_copied_context": True}
        trace = read_one(
            self.trajectory(
                {"source": "user", "message": "Old", **copied},
                {**self.agent("Old answer", calls="x"), **copied},
                {"source": "user", "message": "Hi", **copied},
                self.agent("Ho"),
            )
        )
        assert [(turn.user_text, turn.final_text) for turn in trace.turns] == [("Hi", "Ho")]
        assert trace.warnings == ("3 steps copied from an earlier trajectory left out",)

    @pytest.mark.parametrize("message", [[], None, " "], ids=["no parts", "null", "blank"])
    def test_empty_message_of_the_user_is_no_turn(self, message: Any) -> None:
        asked = [{"source": "user", "message": one} for one in ("Hi", message)]
        trace = read_one(self.trajectory(*asked, self.agent("Ho")))
        assert [(turn.user_text, turn.final_text) for turn in trace.turns] == [("Hi", "Ho")]

    def test_subagent_is_found_by_reference(self) -> None:
        reference = {"source_call_id": "x", "subagent_trajectory_ref": [{"trajectory_id": "t"}]}
        embedded = {"trajectory_id": "t", **self.trajectory(self.agent("Sub"))}
        trace = read_one(
            self.trajectory(
                self.agent(calls="x", results=[reference]), subagent_trajectories=[embedded]
            )
        )
        [run] = trace.subagents
        assert (run.name, run.call_id, run.turns[0].final_text) == ("a", "x", "Sub")

    def test_reference_without_an_id_belongs_to_no_call(self) -> None:
        reference = {"source_call_id": "x", "subagent_trajectory_ref": [{}]}
        embedded: dict[str, Any] = {}
        for _ in range(12):
            embedded = {**self.trajectory(self.agent("Sub")), "subagent_trajectories": [embedded]}
        trace = read_one(
            self.trajectory(
                self.agent(calls="x", results=[reference]), subagent_trajectories=[embedded]
            )
        )
        assert {run.call_id for run in trace.subagents} == {None}

    def test_continued_run_is_a_warning(self) -> None:
        trace = read_one(self.trajectory(self.agent("Ho"), continued_trajectory_ref="next.json"))
        assert (
            "the run continues in another trajectory, which is a case of its own" in trace.warnings
        )


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"resourceMetrics": []}, "OpenTelemetry metrics"),
        ({"config": {}, "suites": [], "stats": {}}, "a Playwright report"),
        ({"numTotalTests": 1, "testResults": []}, "a Jest or Vitest report"),
        ({"$schema": "https://x/sarif-2.1.0.json", "runs": []}, "a SARIF report"),
        ({"schema_version": 1, "decision": {}, "totals": {}}, "results of agentci"),
        ({"log": {"entries": []}}, "an HTTP archive (HAR)"),
        (
            [{"object": "thread.message", "role": "user", "content": []}],
            "messages of an OpenAI Assistants thread, which have no tool calls",
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "<task>\nHi\n</task>"}]}],
            "a conversation of Cline or Roo Code, whose tool calls are text",
        ),
        ({"working_dir": "/w", "message_count": 1}, "a session of Goose"),
        ({"response": "A", "stats": {}}, "`--output-format json`, which has no tool calls"),
        ({"trace_id": "tr-1", "request_preview": "x"}, "a DataFrame of MLflow traces"),
        ([{"traceId": "a", "id": "b", "localEndpoint": {}}], "Zipkin JSON"),
        ({"custom_id": "a", "response": {}}, "a batch of OpenAI requests or responses"),
        ([{"name": "a", "data": [], "initial_session": {}}], "an ADK test file in its old form"),
        ({"traceEvents": []}, "a Chrome trace"),
        ({"eval": {}, "samples": [], "status": "success"}, "an Inspect log"),
    ],
)
def test_other_kind_is_named(document: Any, kind: str) -> None:
    problem = problem_of(document)
    assert kind in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"SQLite format 3\0\1", "an SQLite database"),
        (b"PAR1abc", "a Parquet file"),
        (b"PK\x03\x04abc", "a ZIP archive"),
        (b"\x28\xb5\x2f\xfdabc", "compressed with zstd"),
        (b"<!DOCTYPE html><p>", "an HTML page"),
        (b"<testsuites>", "an XML file"),
        (b"[{'role': 'user'}]", "Python values printed with `print` or `str`, not JSON"),
        (b"[HumanMessage(content='x')]", "Python values printed"),
    ],
)
def test_content_that_is_not_json_is_named(content: bytes, kind: str) -> None:
    with pytest.raises(RecordingError) as caught:
        read_text(content)
    assert kind in caught.value.problem.message
    assert caught.value.problem.hint


def test_file_without_turns_is_refused() -> None:
    assert problem_of([{"role": "system", "content": "x"}]).message == (
        "the file has no user message, answer or tool call"
    )


def test_streams_in_one_file_are_runs_of_their_own() -> None:
    def claude(session: str) -> list[Any]:
        stream = TestClaudeCodeStream()
        init = {**stream.INIT, "session_id": session}
        return [init, stream.message("assistant", session), stream.result()]

    found = read_text(lines(*claude("a"), *claude("b")))
    assert [(trace.id, trace.turns[0].final_text) for trace in found] == [("a", "a"), ("b", "b")]

    def codex(thread: str) -> list[Any]:
        answer = {"id": "1", "type": "agent_message", "text": thread}
        return [
            {"type": "thread.started", "thread_id": thread},
            {"type": "item.completed", "item": answer},
            {"type": "turn.failed", "error": {"message": "quota"}},
        ]

    found = read_text(lines(*codex("a"), *codex("b")))
    assert [(trace.id, trace.turns[0].final_text) for trace in found] == [("a", "a"), ("b", "b")]
    assert "Codex reported an error: quota" in found[0].warnings


def test_sessions_in_one_file_are_a_warning() -> None:
    session = TestClaudeCode()
    other = {**session.record("user", "Hi"), "sessionId": "t"}
    trace = read_one(session.record("user", "Hi"), other, session.record("assistant", "Ho"))
    assert "records of 2 sessions were read as one run" in trace.warnings


@pytest.mark.parametrize(
    ("records", "warning"),
    [
        (
            [
                TestCodex.META,
                {"type": "event_msg", "payload": {"type": "turn_aborted"}},
                {"type": "event_msg", "payload": {"type": "error", "message": "quota"}},
                TestCodex().user("Hi"),
            ],
            {"a turn was interrupted", "Codex reported an error: quota"},
        ),
        (
            [
                TestCopilot().event("user.message", content="Hi"),
                TestCopilot().event("session.error", message="quota"),
            ],
            {"Copilot reported an error: quota"},
        ),
        (
            [
                {"type": "init", "session_id": "s"},
                {"type": "message", "role": "user", "content": "Hi"},
                {"type": "error", "message": "loop"},
                {"type": "result", "status": "error"},
            ],
            {"Gemini CLI reported: loop", "the run ended with an error"},
        ),
        (
            [
                {"type": "text", "sessionID": "s", "part": {"type": "text", "text": "Ho"}},
                {"type": "error", "sessionID": "s", "error": {"name": "APIError"}},
            ],
            {"OpenCode reported an error: APIError"},
        ),
        (
            [TestAdk().event("user", {"text": "Hi"}), TestAdk().event("a", errorCode="SAFETY")],
            {"ADK reported an error: SAFETY"},
        ),
    ],
)
def test_error_of_the_agent_is_reported(records: list[Any], warning: set[str]) -> None:
    assert warning <= set(read_one(*records).warnings)


def test_failed_tools_are_marked() -> None:
    failed = {
        "type": "tool",
        "tool": "f",
        "callID": "c",
        "state": {"status": "error", "error": "no"},
    }
    trace = read_one({"type": "tool_use", "sessionID": "s", "part": failed})
    assert (results_of(trace.turns[0]), failed_of(trace.turns[0])) == (["no"], [True])
    copilot = TestCopilot()
    request = {"toolCallId": "c", "name": "f", "arguments": {}}
    turn = only_turn(
        copilot.event("assistant.message", content="", toolRequests=[request]),
        copilot.event(
            "tool.execution_complete", toolCallId="c", success=False, error={"message": "no"}
        ),
    )
    assert (results_of(turn), failed_of(turn)) == (["no"], [True])
    item = {"id": "1", "type": "mcp_tool_call", "tool": "f", "arguments": {}, "status": "failed"}
    turn = only_turn(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {**item, "error": {"message": "no"}}},
    )
    assert (results_of(turn), failed_of(turn)) == (["no"], [True])
    call = {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "error": "no"}
    turn = only_turn([ASK, call])
    assert (results_of(turn), failed_of(turn)) == (["no"], [True])


def test_rare_shapes_of_messages_are_read() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "*** Begin"}}
    assert calls_of(
        only_turn([ASK, {"role": "assistant", "tool_calls": [tool_call(call_id="d"), custom]}])
    ) == [
        ("f", {}),
        ("f", "*** Begin"),
    ]
    chat = {"type": "chat", "role": "assistant", "content": "Ho"}
    old = langchain("ai", "1", additional_kwargs={"tool_calls": [tool_call()]})
    function = langchain("function", "2", "7", name="f")
    turn = only_turn([langchain("human", "0", "Hi"), old, function, chat])
    assert (calls_of(turn), results_of(turn), turn.final_text) == ([("f", {})], ["7"], "Ho")
    part = {
        "type": "tool-invocation",
        "toolInvocation": {"toolName": "f", "toolCallId": "c", "args": {}, "state": "call"},
    }
    assert calls_of(only_turn([{"role": "assistant", "parts": [part]}])) == [("f", {})]
    interpreter = {
        "type": "code_interpreter_call",
        "id": "c",
        "code": "1",
        "outputs": [{"type": "logs", "logs": "1"}],
    }
    turn = only_turn([ASK, interpreter])
    assert calls_of(turn) == [("code_interpreter", {"code": "1"})]
    assert results_of(turn) == [[{"type": "logs", "logs": "1"}]]
    prompt = {
        "part_kind": "user-prompt",
        "content": ["Hi", {"kind": "text", "content": "you"}, {"kind": "image-url"}],
    }
    search = {
        "part_kind": "builtin-tool-call",
        "tool_name": "web_search",
        "args": {},
        "tool_call_id": "c",
    }
    found = {
        "part_kind": "builtin-tool-return",
        "tool_name": "web_search",
        "tool_call_id": "c",
        "content": [1],
    }
    turn = only_turn(
        [{"kind": "request", "parts": [prompt]}, {"kind": "response", "parts": [search, found]}]
    )
    assert (turn.user_text, results_of(turn)) == ("Hi\nyou", [[1]])
    use = {"type": "server_tool_use", "id": "c", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "c", "content": [{"url": "x"}]}
    turn = only_turn(
        [ASK, {"role": "assistant", "content": [use, result, {"type": "text", "text": "Ho"}]}]
    )
    assert (results_of(turn), turn.final_text) == ([[{"url": "x"}]], "Ho")
    event = {"author": "a", "content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}}
    invocation = {"user_content": {}, "intermediate_data": {"invocation_events": [event]}}
    judged = [{"actual_invocation": None}, {"actual_invocation": invocation}]
    case = {"eval_id": "a", "eval_metric_result_per_invocation": judged}
    assert calls_of(only_turn({"eval_case_results": [case]})) == [("f", {})]


def test_many_warnings_are_shortened() -> None:
    errors = [{"type": "error", "sessionID": "s", "error": {"name": f"E{n}"}} for n in range(9)]
    text = {"type": "text", "sessionID": "s", "part": {"type": "text", "text": "Ho"}}
    assert "and 4 other warnings about this run" in read_one(text, *errors).warnings


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"object": "response", "output": [{"type": "function_call"}]}, "a tool call has no name"),
        (
            {"type": "tool_use", "sessionID": "s", "part": {"type": "tool", "callID": "c"}},
            "a tool call has no name",
        ),
        (
            {
                "info": {"id": "s"},
                "messages": [{"info": {"role": "assistant"}, "parts": [{"type": "tool"}]}],
            },
            "a tool call has no name",
        ),
        (
            {"schema_version": "ATIF-v1.0", "agent": {}, "steps": [{"source": "robot"}]},
            "a step has a `source` other than system, user or agent",
        ),
        (
            TestAdk().event("a", {"functionCall": {"args": {}}}),
            "a tool call has no name",
        ),
    ],
)
def test_invalid_record_is_refused(record: Any, message: str) -> None:
    assert problem_of(record).message == message


def test_forced_format_of_other_documents_is_refused() -> None:
    for name in ("atif", "adk-session", "adk-eval-set-result", "opencode-export"):
        with pytest.raises(RecordingError) as caught:
            read_one({"a": 1}, trace_format=name)
        assert caught.value.problem.message.startswith("not ")
    for name in ("claude-code-session", "codex-exec", "copilot", "gemini-session", "openai-chat"):
        with pytest.raises(RecordingError):
            read_one({"a": 1}, trace_format=name)


CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        pytest.param([], "no `result` at its end", id="no result"),
        pytest.param(
            [{"type": "result", "subtype": "error_max_turns", "session_id": "s"}],
            "the run ended with an error (`error_max_turns`)",
            id="error",
        ),
    ],
)
def test_failed_run_without_an_answer_is_not_evaluated(ending: list[Any], reason: str) -> None:
    def assistant(block: Any) -> Any:
        message = {"id": block["type"], "role": "assistant", "content": [block]}
        return {
            "type": "assistant",
            "session_id": "s",
            "parent_tool_use_id": None,
            "message": message,
        }

    start = {"type": "system", "subtype": "init", "session_id": "s"}
    failed = read_one(start, assistant(CALL), *ending)
    assert failed.not_captured.startswith("The agent did not finish its last turn: ")
    assert reason in failed.not_captured
    answered = read_one(start, assistant({"type": "text", "text": "done"}), *ending)
    assert answered.not_captured == ""
    assert reason in " ".join(answered.warnings)
