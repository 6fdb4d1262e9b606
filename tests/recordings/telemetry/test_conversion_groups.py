"""Grouping of traces into conversations, and duplicate spans."""

from typing import Any

import pytest

from agentci.recordings.telemetry.grouping import GroupBy
from agentci.recordings.telemetry.spans import Span, TelemetryRecord
from tests.recordings.telemetry.recorder import (
    agent,
    answers,
    assistant,
    calls,
    chat,
    log,
    read,
    span,
    tool,
    traces,
    user,
)

CONVERSATION, SESSION, NAME = "gen_ai.conversation.id", "session.id", "agentevals.session_name"


def lone(trace: str, start: int = 0, attributes: Any = None, **more: Any) -> Span:
    inputs, outputs = [user(f"ask {trace}")], [assistant(f"answer {trace}")]
    return chat(
        f"c-{trace}", inputs, outputs, attributes, trace=trace, at=(start, start + 10), **more
    )


def keys(*spans: Span, group_by: GroupBy = "conversation") -> list[str]:
    return [trace.key for trace in traces(read(*spans), group_by=group_by)]


class TestGroupKeys:
    @pytest.mark.parametrize(
        ("attributes", "resource", "key"),
        [
            pytest.param({CONVERSATION: "c", SESSION: "s"}, {NAME: "n"}, "n", id="session name"),
            pytest.param(
                {CONVERSATION: "c", SESSION: "s"}, {CONVERSATION: "r"}, "c", id="conversation"
            ),
            pytest.param({SESSION: "s"}, {CONVERSATION: "r"}, "r", id="conversation of resource"),
            pytest.param({SESSION: "s"}, {SESSION: "r"}, "s", id="session"),
            pytest.param({}, {SESSION: "r"}, "r", id="session of resource"),
            pytest.param({NAME: "n"}, {}, "t", id="session name on a span is ignored"),
            pytest.param({CONVERSATION: 7}, {}, "7", id="number"),
            pytest.param({CONVERSATION: " c\n"}, {}, "c", id="trimmed"),
            pytest.param({CONVERSATION: True, SESSION: "s"}, {}, "s", id="boolean is ignored"),
            pytest.param({CONVERSATION: "a\nb", SESSION: "s"}, {}, "s", id="not printable"),
            pytest.param({CONVERSATION: "x" * 257, SESSION: "s"}, {}, "s", id="too long"),
            pytest.param({CONVERSATION: "x" * 256}, {}, "x" * 256, id="maximum length"),
            pytest.param({CONVERSATION: " "}, {}, "t", id="blank"),
            pytest.param({"langsmith.metadata.thread_id": "x"}, {}, "x", id="langsmith"),
            pytest.param({"langfuse.trace.metadata.thread_id": '"x"'}, {}, "x", id="json text"),
            pytest.param({"ai.telemetry.metadata.sessionId": "x"}, {}, "x", id="vercel"),
        ],
    )
    def test_group_key_follows_precedence(self, attributes: Any, resource: Any, key: str) -> None:
        assert keys(lone("t", attributes=attributes, resource=resource)) == [key]

    def test_group_key_comes_from_first_span_with_one(self) -> None:
        later = span("x", {CONVERSATION: "later"}, trace="t", at=(50, 60))
        assert keys(later, lone("t", attributes={CONVERSATION: "first"})) == ["first"]


class TestGrouping:
    TWO = (
        lone("t2", 100, {CONVERSATION: "c"}),
        lone("t1", 0, {CONVERSATION: "c"}),
    )

    def test_conversation_has_id_of_earliest_trace(self) -> None:
        (found,) = traces(read(*self.TWO), group_by="conversation")
        assert (found.id, found.key) == ("t1", "c")
        assert [turn.trace_id for turn in found.turns] == ["t1", "t2"]

    def test_grouping_by_trace_keeps_traces_apart(self) -> None:
        assert keys(*self.TWO, group_by="trace") == ["t2", "t1"]

    @pytest.mark.parametrize(
        ("multi_turn_eval_cases", "groups"),
        [pytest.param(False, 2, id="single turns"), pytest.param(True, 1, id="several turns")],
    )
    def test_multi_turn_eval_cases_group_conversations(
        self, multi_turn_eval_cases: bool, groups: int
    ) -> None:
        found = traces(read(*self.TWO), multi_turn_eval_cases=multi_turn_eval_cases)
        assert len(found) == groups

    def test_session_name_groups_traces(self) -> None:
        named = [lone(f"t{n}", n, resource={NAME: "s"}) for n in range(3)]
        assert len(traces(read(*named))) == 1

    def test_session_name_of_duplicate_span_is_ignored(self) -> None:
        again = lone("t1", 0, {CONVERSATION: "c"}, resource={NAME: "s"})
        assert len(traces(read(*self.TWO, again))) == 2

    def test_groups_are_in_order_of_first_appearance(self) -> None:
        spans = [lone(f"t{n}", 9 - n, {CONVERSATION: key}) for n, key in enumerate("bab")]
        assert keys(*spans) == ["b", "a"]

    def test_turn_continues_across_traces(self) -> None:
        first = chat("c", [user("hi")], [calls("f", {}, "x")], resource={NAME: "s"})
        shown = [user("hi"), answers(1, "x")]
        later = chat(
            "d", shown, [assistant("done")], trace="t2", at=(500, 600), resource={NAME: "s"}
        )
        (found,) = traces(read(first, later))
        assert [turn.final_text for turn in found.turns] == ["done"]


class TestEvalCaseId:
    CASE = "agentevals.eval.case.id"

    @pytest.mark.parametrize(
        ("attributes", "resource", "eval_case"),
        [
            pytest.param({CASE: "a"}, {CASE: "b"}, "a", id="span"),
            pytest.param({}, {CASE: "b"}, "b", id="resource"),
            pytest.param({CASE: 7}, {}, "7", id="number"),
            pytest.param({CASE: ""}, {}, None, id="empty"),
            pytest.param({CASE: " a "}, {}, "a", id="surrounding space"),
            pytest.param({CASE: True}, {CASE: "b"}, "b", id="boolean is ignored"),
            pytest.param({}, {}, None, id="none"),
        ],
    )
    def test_eval_case_id_is_read_from_attributes(
        self, attributes: Any, resource: Any, eval_case: str
    ) -> None:
        (found,) = traces(read(lone("t", attributes=attributes, resource=resource)))
        assert found.eval_case_id == eval_case

    def test_eval_case_id_comes_from_first_span_in_file(self) -> None:
        first = lone("t", 50, {self.CASE: "first"})
        earlier = span("x", {self.CASE: "earlier"}, trace="t", at=(0, 1))
        (found,) = traces(read(first, earlier))
        assert found.eval_case_id == "first"


class TestDuplicateSpans:
    ALL = (
        agent("a"),
        chat("c", [user("hi")], [assistant("hello")], under="a"),
        tool("t", under="a"),
    )

    def test_spans_in_two_files_count_once(self) -> None:
        (found,) = traces(read(*self.ALL, file="one.json"), read(*self.ALL, file="two.json"))
        assert len(found.turns) == 1
        assert found.place.file == "one.json"
        assert found.warnings == ("3 spans of two.json ignored: also in one.json",)

    def test_spans_with_other_content_in_another_file_cannot_be_evaluated(self) -> None:
        other = (self.ALL[0], chat("c", [user("bye")], [assistant("hello")], under="a"))
        (found,) = traces(
            read(*self.ALL, file="one.json"),
            read(*other, file="two.json"),
            read(*self.ALL, file="three.json"),
        )
        assert found.not_captured == (
            "1 span of two.json has the same id as in one.json, but other content; "
            "remove one of the files, or record again"
        )

    def test_file_read_twice_counts_once(self) -> None:
        (found,) = traces(read(*self.ALL), read(*self.ALL))
        assert len(found.turns) == 1
        assert found.warnings == ("run.json was read twice: 3 spans ignored",)

    def test_duplicate_logs_count_once(self) -> None:
        outputs = log("c", "gen_ai.choice", {"content": "hello"})
        records: list[TelemetryRecord] = [agent("a"), chat("c", under="a"), outputs]
        (found,) = traces(read(*records), read(*records))
        assert found.turns[0].final_text == "hello"

    def test_span_only_in_second_file_is_merged(self) -> None:
        (found,) = traces(read(*self.ALL[:2], file="one.json"), read(*self.ALL, file="two.json"))
        assert [call.name for call in found.turns[0].tool_calls] == ["f"]
        assert found.performance is not None
        assert found.performance["latency"]["tool_executions"]["count"] == 1  # type: ignore[index,call-overload]

    def test_third_file_connects_parts_of_a_trace(self) -> None:
        parts = [
            read(self.ALL[0]),
            read(*self.ALL[1:]),
            read(*self.ALL, file="all.json"),
        ]
        (found,) = traces(*parts)
        assert [(turn.id, turn.final_text) for turn in found.turns] == [("a", "hello")]

    def test_disjoint_parts_in_two_files_are_not_merged(self) -> None:
        (found,) = traces(read(self.ALL[0], self.ALL[2]), read(self.ALL[1], file="two.json"))
        assert [turn.id for turn in found.turns] == ["a", "c"]
        assert found.warnings == ()
