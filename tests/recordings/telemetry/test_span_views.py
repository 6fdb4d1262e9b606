"""The sources of span data, and their precedence."""

import json
from typing import Any

import pytest

from tests.recordings.telemetry.recorder import (
    agent,
    assistant,
    chat,
    event,
    read,
    span,
    trace,
    traces,
    turn,
    user,
)

IN, OUT = "gen_ai.input.messages", "gen_ai.output.messages"
CHAT = {"gen_ai.operation.name": "chat"}
DETAILS = "gen_ai.client.inference.operation.details"
PLACEHOLDERS = ["<REDACTED>", " <elided> ", "", "  "]


def texts(*spans: Any) -> tuple[str, str | None]:
    found = turn(*spans)
    return found.user_text, found.final_text


class TestMessages:
    @pytest.mark.parametrize(
        "recorded",
        [
            pytest.param(json.dumps([user("hi")]), id="json text"),
            pytest.param([user("hi")], id="structure"),
            pytest.param(user("hi"), id="single object"),
            pytest.param([{"content": "hi"}], id="content without a role"),
            pytest.param([{"role": "user", "content": ["h", "i"]}], id="list of texts"),
            pytest.param(
                [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], id="typed text"
            ),
            pytest.param([{"role": "user", "content": [{"text": "hi"}]}], id="untyped text"),
            pytest.param(
                [{"role": "user", "content": {"parts": [{"text": "hi"}]}}], id="google content"
            ),
            pytest.param(["?", 1, None, user("hi")], id="invalid messages beside it"),
            pytest.param([{"content": ["hi", 7, {}, {"other": 1}]}], id="invalid items in content"),
        ],
    )
    def test_message_is_read_in_every_form(self, recorded: Any) -> None:
        assert turn(span("c", {**CHAT, IN: recorded})).user_text == "hi"

    @pytest.mark.parametrize(
        "unknown",
        [
            pytest.param({"parts": [{"type": "blob"}]}, id="part"),
            pytest.param({"content": {"parts": [{"executable_code": {}}]}}, id="google part"),
            pytest.param({"content": [{"type": "image_url"}]}, id="content"),
        ],
    )
    def test_unknown_content_type_hides_next_source(self, unknown: Any) -> None:
        choice = event("gen_ai.choice", {"content": "from the event"})
        own = {OUT: [{"role": "assistant", **unknown}]}
        assert turn(span("c", {**CHAT, **own}, events=(choice,))).final_text is None

    def test_part_without_type_is_ignored(self) -> None:
        choice = event("gen_ai.choice", {"content": "from the event"})
        own = {OUT: [{"role": "assistant", "parts": [{"other": 1}]}]}
        assert turn(span("c", {**CHAT, **own}, events=(choice,))).final_text == "from the event"

    def test_numeric_content_is_read_as_text(self) -> None:
        assert turn(span("c", {**CHAT, IN: [{"role": "user", "content": 7}]})).user_text == "7"

    def test_object_content_is_read_as_json_text(self) -> None:
        recorded = [{"role": "user", "content": {"b": 1, "a": "é"}}]
        assert turn(span("c", {**CHAT, IN: recorded})).user_text == r'{"a": "\u00e9", "b": 1}'

    def test_text_part_without_content_is_ignored(self) -> None:
        parts = [{"type": "text"}, {"type": "text", "content": "yes"}]
        assert turn(chat("c", outputs=[{"role": "assistant", "parts": parts}])).final_text == "yes"

    def test_reasoning_part_is_not_text(self) -> None:
        parts = [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "yes"}]
        assert turn(chat("c", outputs=[{"role": "assistant", "parts": parts}])).final_text == "yes"

    @pytest.mark.parametrize("placeholder", PLACEHOLDERS)
    def test_redaction_placeholder_is_ignored(self, placeholder: str) -> None:
        assert texts(chat("c", [user(placeholder)], [assistant(placeholder)])) == ("", None)

    @pytest.mark.parametrize(
        "unusable",
        [
            pytest.param("{broken", id="invalid json"),
            pytest.param("[" * 2000, id="nested too deeply"),
            pytest.param("[]", id="empty list"),
            pytest.param("7", id="number"),
            pytest.param(json.dumps([assistant("<REDACTED>")]), id="placeholders"),
        ],
    )
    def test_unusable_attribute_falls_back_to_next_source(self, unusable: str) -> None:
        details = event(DETAILS, {OUT: [assistant("from the event")]})
        found = turn(span("c", {**CHAT, OUT: unusable}, events=(details,)))
        assert found.final_text == "from the event"

    def test_oversized_attribute_is_a_warning(self) -> None:
        long = json.dumps([assistant("x" * (4 * 1024 * 1024))])
        found = trace(span("c", {**CHAT, OUT: long}))
        assert found.turns[0].final_text is None
        assert found.warnings == (
            "span c: gen_ai.output.messages is longer than 4 MiB and was not read",
        )


OWN = assistant("own")
EVENT = event(DETAILS, {OUT: json.dumps([assistant("details")])})
CHOICE = event("gen_ai.choice", {"content": "choice"})
INDEXED = {"gen_ai.completion.0.content": "indexed"}
ADK = {"gcp.vertex.agent.llm_response": '{"content": {"parts": [{"text": "adk"}]}}'}


class TestPrecedence:
    @pytest.mark.parametrize(
        ("attributes", "events", "answer"),
        [
            pytest.param({OUT: [OWN], **ADK, **INDEXED}, (CHOICE, EVENT), "own", id="attribute"),
            pytest.param({**ADK, **INDEXED}, (CHOICE, EVENT), "details", id="details event"),
            pytest.param({**ADK, **INDEXED}, (CHOICE,), "choice", id="message event"),
            pytest.param({**ADK, **INDEXED}, (), "adk", id="adk"),
            pytest.param(INDEXED, (), "indexed", id="indexed"),
        ],
    )
    def test_message_sources_follow_precedence(
        self, attributes: Any, events: Any, answer: str
    ) -> None:
        found = turn(span("c", {**CHAT, **attributes}, events=events))
        assert found.final_text == answer


class TestIndexedAttributes:
    def test_indexed_attributes_are_sorted_numerically(self) -> None:
        prompts = {f"gen_ai.prompt.{n}.content": f"{n} " for n in (10, 9, 0)}
        assert turn(span("c", {**CHAT, **prompts})).user_text == "0 9 10 "

    def test_indexed_tool_calls_are_read(self) -> None:
        attributes = {
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.tool_calls.0.id": "x",
            "gen_ai.completion.0.tool_calls.0.name": "f",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"a": 1}',
        }
        shown = {
            "gen_ai.prompt.0.role": "tool",
            "gen_ai.prompt.0.tool_call_id": "x",
            "gen_ai.prompt.0.content": '{"r": 1}',
        }
        found = turn(
            agent("a"),
            span("c", {**CHAT, **attributes}, under="a", at=(0, 10)),
            span("d", {**CHAT, **shown}, under="a", at=(20, 30)),
        )
        assert (found.tool_calls[0].args, found.tool_calls[0].id) == ({"a": 1}, "x")
        assert found.tool_responses[0].output == {"r": 1}

    @pytest.mark.parametrize(
        "name", ["gen_ai.prompt.x.content", "gen_ai.prompt.0", "gen_ai.prompt."]
    )
    def test_malformed_indexed_attribute_name_is_ignored(self, name: str) -> None:
        assert turn(span("c", {**CHAT, name: "hi"})).user_text == ""


MODEL = {"gen_ai.request.model": "m"}
MESSAGES = {OUT: [assistant("hello")]}


class TestOperations:
    @pytest.mark.parametrize(
        "attributes",
        [
            pytest.param({"gen_ai.system": "openai", **MODEL, **MESSAGES}, id="messages"),
            pytest.param(
                {"gen_ai.provider.name": "openai", **MODEL, "gen_ai.usage.x": 1}, id="usage"
            ),
            pytest.param(
                {"gen_ai.system": "openai", **MODEL, "gen_ai.prompt.0.content": "hi"}, id="prompt"
            ),
            pytest.param({"gen_ai.operation.name": "generate_content"}, id="generate_content"),
            pytest.param({"gen_ai.operation.name": "text_completion"}, id="text_completion"),
        ],
    )
    def test_model_call_span_is_recognized(self, attributes: Any) -> None:
        assert turn(span("c", attributes)).id == "c"

    @pytest.mark.parametrize(
        "attributes",
        [
            pytest.param({"gen_ai.system": "openai", **MODEL}, id="no messages, prompt or usage"),
            pytest.param({"gen_ai.system": "openai", **MESSAGES}, id="no model"),
            pytest.param({"gen_ai.operation.name": "embeddings", **MODEL, **MESSAGES}, id="other"),
        ],
    )
    def test_other_span_is_not_a_model_call(self, attributes: Any) -> None:
        assert trace(span("c", attributes)).turns == ()


@pytest.mark.parametrize("value", [None, 7, [], {}, "", "x", [[]], [{"parts": 7}], {"parts": [7]}])
@pytest.mark.parametrize("name", [IN, OUT, "gen_ai.tool.name", "gen_ai.usage.input_tokens"])
def test_arbitrary_attribute_value_is_accepted(name: str, value: Any) -> None:
    found = traces(read(agent("a", {name: value}), chat("c", attributes={name: value}, under="a")))
    assert [trace.id for trace in found] == ["t1"]
