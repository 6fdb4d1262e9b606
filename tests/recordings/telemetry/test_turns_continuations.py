"""Model calls that continue a turn, and those that may continue one."""

from typing import Any

import pytest

from tests.recordings.telemetry.recorder import (
    agent,
    answers,
    assistant,
    calls,
    chat,
    tool,
    trace,
    turn,
    user,
)

HI, HELLO = [user("hi")], [assistant("hello")]


class TestContinuations:
    ASKING = chat("c", HI, [calls("f", {"a": 1}, "t1")], at=(0, 100))

    def test_call_with_tool_response_continues_turn(self) -> None:
        shown = [user("hi"), calls("f", {"a": 1}, "t1"), answers({"r": 1}, "t1")]
        found = trace(self.ASKING, chat("d", shown, [assistant("done")], at=(500, 600)))
        (only,) = found.turns
        assert (only.id, only.user_text, only.final_text) == ("c", "hi", "done")
        assert [response.output for response in only.tool_responses] == [{"r": 1}]
        assert found.performance is not None
        assert found.performance["latency"]["overall"]["max"] == 600.0  # type: ignore[index,call-overload]

    def test_response_of_another_call_starts_new_turn(self) -> None:
        shown = [user("hi"), answers({"r": 1}, "other")]
        assert len(trace(self.ASKING, chat("d", shown, HELLO, at=(500, 600))).turns) == 2

    def test_response_without_id_continues_turn(self) -> None:
        shown = [user("hi"), answers({"r": 1})]
        assert len(trace(self.ASKING, chat("d", shown, HELLO, at=(500, 600))).turns) == 1

    def test_tool_response_anywhere_in_input_continues_turn(self) -> None:
        shown = [answers(1, "t1"), user("hi"), answers(2, "other")]
        assert len(trace(self.ASKING, chat("d", shown, HELLO, at=(500, 600))).turns) == 1

    def test_tool_calls_of_continuation_come_last(self) -> None:
        shown = [user("hi"), answers(1, "t1")]
        only = turn(
            self.ASKING,
            tool("late", "first", under="c", at=(700, 800)),
            chat("d", shown, HELLO, at=(500, 600)),
            tool("early", "second", under="d", at=(510, 520)),
        )
        assert [call.name for call in only.tool_calls][-2:] == ["first", "second"]

    def test_text_beside_tool_call_is_not_final_answer(self) -> None:
        first = chat(
            "c",
            HI,
            [
                {
                    "role": "assistant",
                    "parts": [
                        {"type": "text", "content": "one moment"},
                        {"type": "tool_call", "name": "f", "id": "t1"},
                    ],
                }
            ],
        )
        later = chat("d", [answers(1, "t1")], [calls("g")], at=(500, 600))
        assert turn(first, later).final_text is None

    def test_question_of_continuation_fills_missing_question(self) -> None:
        first = chat("c", outputs=[calls("f", {}, "t1")])
        later = chat("d", [user("hi"), answers(1, "t1")], HELLO, at=(500, 600))
        assert turn(first, later).user_text == "hi"

    def test_new_question_starts_new_turn(self) -> None:
        shown = [answers({"r": 1}, "t1"), user("next")]
        assert len(trace(self.ASKING, chat("d", shown, HELLO, at=(500, 600))).turns) == 2

    def test_agent_never_continues_turn(self) -> None:
        shown = [user("hi"), answers({"r": 1}, "t1")]
        later = [agent("a", at=(500, 600)), chat("d", shown, HELLO, under="a", at=(500, 600))]
        assert len(trace(self.ASKING, *later).turns) == 2

    @pytest.mark.parametrize("reasons", ["stop", ["stop"], '["stop"]', [], [1]])
    def test_other_finish_reason_is_no_warning(self, reasons: Any) -> None:
        stopped = {"gen_ai.response.finish_reasons": reasons}
        assert trace(chat("c", attributes=stopped), chat("d", at=(500, 600))).warnings == ()

    @pytest.mark.parametrize(
        "reason",
        [
            *("length", "content_filter", "max_tokens", "refusal", "MAX_TOKENS", "SAFETY"),
            *("max_output_tokens", "content-filter", "model_context_window_exceeded"),
        ],
    )
    def test_early_end_of_the_last_call_is_that_of_the_turn(self, reason: str) -> None:
        ended = {"gen_ai.response.finish_reasons": [reason]}
        assert turn(chat("a", [user("hi")], HELLO, attributes=ended)).early_end == reason
        assert turn(chat("a", [user("hi")], attributes=ended)).early_end == reason
        stopped = {"gen_ai.response.finish_reasons": ["stop"]}
        assert turn(chat("a", [user("hi")], HELLO, attributes=stopped)).early_end == ""

    @pytest.mark.parametrize("reason", ["tool_use", ["tool_use"]])
    def test_legacy_finish_reason_is_a_warning(self, reason: Any) -> None:
        stopped = {"gen_ai.response.finish_reason": reason}
        assert len(trace(chat("c", attributes=stopped), chat("d", at=(500, 600))).warnings) == 1

    @pytest.mark.parametrize(
        "reasons", [["tool_calls"], "tool-calls", ["TOOL_CALLS"], '["tool_use"]']
    )
    def test_continuation_without_content_is_a_warning(self, reasons: Any) -> None:
        stopped = {"gen_ai.response.finish_reasons": reasons}
        found = trace(chat("c", attributes=stopped), chat("d", at=(500, 600)))
        assert len(found.turns) == 2
        (warning,) = found.warnings
        assert warning.startswith("turn d may continue turn c after a tool call, but its messages")
        assert warning.endswith("its messages were not captured; it is kept as its own turn")
