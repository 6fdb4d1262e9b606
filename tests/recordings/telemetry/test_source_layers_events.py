"""Messages recorded as events of a span or as log records."""

from typing import Any

from tests.recordings.telemetry.recorder import (
    agent,
    assistant,
    chat,
    event,
    log,
    span,
    turn,
)

IN, OUT = "gen_ai.input.messages", "gen_ai.output.messages"
CHAT = {"gen_ai.operation.name": "chat"}
DETAILS = "gen_ai.client.inference.operation.details"


def texts(*spans: Any) -> tuple[str, str | None]:
    found = turn(*spans)
    return found.user_text, found.final_text


class TestMessageEvents:
    def test_span_events_are_read(self) -> None:
        events = (
            event("gen_ai.system.message", {"content": "be brief"}),
            event("gen_ai.user.message", {"content": "hi"}),
            event("gen_ai.choice", {"content": "hello", "finish_reason": "STOP"}),
        )
        assert texts(span("c", CHAT, events=events)) == ("hi", "hello")

    def test_log_events_are_sorted_by_time(self) -> None:
        found = texts(
            span("c", CHAT),
            log("c", "gen_ai.choice", {"message": {"content": "hello"}}, at=3),
            log("c", "gen_ai.user.message", {"content": "two"}, at=2),
            log("c", "gen_ai.user.message", {"content": "one, "}, at=1),
        )
        assert found == ("one, two", "hello")

    def test_span_events_hide_log_events(self) -> None:
        found = texts(
            span("c", CHAT, events=(event("gen_ai.choice", {"content": "span"}),)),
            log("c", "gen_ai.user.message", {"content": "log"}),
        )
        assert found == ("", "span")

    def test_system_span_event_hides_log_events(self) -> None:
        instruction = event("gen_ai.system.message", {"content": "be brief"})
        found = texts(
            span("c", CHAT, events=(instruction,)), log("c", "gen_ai.choice", {"content": "log"})
        )
        assert found == ("", None)

    def test_first_details_log_in_file_is_used(self) -> None:
        found = texts(
            span("c", CHAT),
            log("c", DETAILS, {OUT: [assistant("first")]}, at=9),
            log("c", DETAILS, {OUT: [assistant("second")]}, at=1),
        )
        assert found == ("", "first")

    def test_log_without_span_belongs_to_only_model_call(self) -> None:
        stray = log(None, "gen_ai.choice", {"content": "hello"})
        assert turn(agent("a"), chat("c", under="a"), stray).final_text == "hello"

    def test_log_of_unknown_span_is_ignored(self) -> None:
        stray = log("gone", "gen_ai.choice", {"content": "hello"})
        assert turn(agent("a"), chat("c", under="a"), stray).final_text is None

    def test_log_without_span_is_ignored_with_several_calls(self) -> None:
        stray = log(None, "gen_ai.choice", {"content": "hello"})
        only = turn(agent("a"), chat("c", under="a"), chat("d", under="a"), stray)
        assert only.final_text is None

    def test_log_events_with_tool_calls_are_read(self) -> None:
        inputs = {"id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}}
        found = turn(
            agent("a"),
            chat("c", under="a", at=(0, 10)),
            chat("d", under="a", at=(20, 30)),
            log("c", "gen_ai.choice", {"message": {"tool_calls": [inputs]}}),
            log("d", "gen_ai.assistant.message", {"tool_calls": [inputs]}, at=1),
            log("d", "gen_ai.tool.message", {"id": "x", "content": "[1]"}, at=2),
        )
        assert (found.tool_calls[0].name, found.tool_calls[0].args) == ("f", {"a": 1})
        assert found.tool_responses[0].output == [1]
