"""Grouping of traces into conversations, and spans that are recorded twice."""

from typing import Any

import pytest

from agentci.recordings.telemetry.conversion import GroupBy
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
    asked, said = [user(f"ask {trace}")], [assistant(f"answer {trace}")]
    return chat(f"c-{trace}", asked, said, attributes, trace=trace, at=(start, start + 10), **more)


def keys(*spans: Span, group_by: GroupBy = "conversation") -> list[str]:
    return [trace.key for trace in traces(read(*spans), group_by=group_by)]


class TestKeys:
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
            pytest.param({NAME: "n"}, {}, "t", id="session name of a span is none"),
            pytest.param({CONVERSATION: 7}, {}, "7", id="number"),
            pytest.param({CONVERSATION: " c\n"}, {}, "c", id="trimmed"),
            pytest.param({CONVERSATION: True, SESSION: "s"}, {}, "s", id="neither text nor number"),
            pytest.param({CONVERSATION: "a\nb", SESSION: "s"}, {}, "s", id="not printable"),
            pytest.param({CONVERSATION: "x" * 257, SESSION: "s"}, {}, "s", id="too long"),
            pytest.param({CONVERSATION: "x" * 256}, {}, "x" * 256, id="as long as it may be"),
            pytest.param({CONVERSATION: " "}, {}, "t", id="blank"),
        ],
    )
    def test_what_a_trace_goes_by(self, attributes: Any, resource: Any, key: str) -> None:
        assert keys(lone("t", attributes=attributes, resource=resource)) == [key]

    def test_the_first_span_to_have_one_counts(self) -> None:
        later = span("x", {CONVERSATION: "later"}, trace="t", at=(50, 60))
        assert keys(later, lone("t", attributes={CONVERSATION: "first"})) == ["first"]


class TestGrouping:
    TWO = (
        lone("t2", 100, {CONVERSATION: "c"}),
        lone("t1", 0, {CONVERSATION: "c"}),
    )

    def test_a_conversation_is_named_after_its_earliest_trace(self) -> None:
        (found,) = traces(read(*self.TWO), group_by="conversation")
        assert (found.id, found.key) == ("t1", "c")
        assert [turn.trace_id for turn in found.turns] == ["t1", "t2"]

    def test_each_trace_by_itself(self) -> None:
        assert keys(*self.TWO, group_by="trace") == ["t2", "t1"]

    @pytest.mark.parametrize(
        ("multi_turn_eval_cases", "groups"),
        [pytest.param(False, 2, id="single turns"), pytest.param(True, 1, id="several turns")],
    )
    def test_goldens_tell_what_is_one(self, multi_turn_eval_cases: bool, groups: int) -> None:
        found = traces(read(*self.TWO), multi_turn_eval_cases=multi_turn_eval_cases)
        assert len(found) == groups

    def test_a_session_name_tells_too(self) -> None:
        named = [lone(f"t{n}", n, resource={NAME: "s"}) for n in range(3)]
        assert len(traces(read(*named))) == 1

    def test_a_session_name_of_a_span_that_is_ignored_does_not_tell(self) -> None:
        again = lone("t1", 0, {CONVERSATION: "c"}, resource={NAME: "s"})
        assert len(traces(read(*self.TWO, again))) == 2

    def test_groups_stand_in_the_order_in_which_they_are_first_seen(self) -> None:
        spans = [lone(f"t{n}", 9 - n, {CONVERSATION: key}) for n, key in enumerate("bab")]
        assert keys(*spans) == ["b", "a"]

    def test_turns_go_on_across_traces(self) -> None:
        first = chat("c", [user("hi")], [calls("f", {}, "x")], resource={NAME: "s"})
        shown = [user("hi"), answers(1, "x")]
        later = chat(
            "d", shown, [assistant("done")], trace="t2", at=(500, 600), resource={NAME: "s"}
        )
        (found,) = traces(read(first, later))
        assert [turn.final_text for turn in found.turns] == ["done"]


class TestGoldens:
    CASE = "agentevals.eval.case.id"

    @pytest.mark.parametrize(
        ("attributes", "resource", "golden"),
        [
            pytest.param({CASE: "a"}, {CASE: "b"}, "a", id="span"),
            pytest.param({}, {CASE: "b"}, "b", id="resource"),
            pytest.param({CASE: 7}, {}, "7", id="number"),
            pytest.param({CASE: ""}, {}, None, id="empty"),
            pytest.param({CASE: " a "}, {}, "a", id="space around"),
            pytest.param({CASE: True}, {CASE: "b"}, "b", id="neither text nor number"),
            pytest.param({}, {}, None, id="none"),
        ],
    )
    def test_a_recording_may_name_its_case(
        self, attributes: Any, resource: Any, golden: str
    ) -> None:
        (found,) = traces(read(lone("t", attributes=attributes, resource=resource)))
        assert found.eval_case_id == golden

    def test_the_first_span_of_the_file_has_the_word(self) -> None:
        first = lone("t", 50, {self.CASE: "first"})
        earlier = span("x", {self.CASE: "earlier"}, trace="t", at=(0, 1))
        (found,) = traces(read(first, earlier))
        assert found.eval_case_id == "first"


class TestRecordedTwice:
    ALL = (
        agent("a"),
        chat("c", [user("hi")], [assistant("hello")], under="a"),
        tool("t", under="a"),
    )

    def test_in_two_files_counts_once(self) -> None:
        (found,) = traces(read(*self.ALL, file="one.json"), read(*self.ALL, file="two.json"))
        assert len(found.turns) == 1
        assert found.place.file == "one.json"
        assert found.warnings == ("3 spans of two.json ignored: also in one.json",)

    def test_in_a_file_that_is_read_twice_counts_once(self) -> None:
        (found,) = traces(read(*self.ALL), read(*self.ALL))
        assert len(found.turns) == 1
        assert found.warnings == ("run.json was read twice: 3 spans ignored",)

    def test_logs_count_once(self) -> None:
        said = log("c", "gen_ai.choice", {"content": "hello"})
        records: list[TelemetryRecord] = [agent("a"), chat("c", under="a"), said]
        (found,) = traces(read(*records), read(*records))
        assert found.turns[0].final_text == "hello"

    def test_what_only_the_second_file_has_finds_its_place(self) -> None:
        (found,) = traces(read(*self.ALL[:2], file="one.json"), read(*self.ALL, file="two.json"))
        assert [call.name for call in found.turns[0].tool_calls] == ["f"]
        assert found.performance is not None
        assert found.performance["latency"]["tool_executions"]["count"] == 1  # type: ignore[index,call-overload]

    def test_a_third_file_brings_two_parts_together(self) -> None:
        parts = [
            read(self.ALL[0]),
            read(*self.ALL[1:]),
            read(*self.ALL, file="all.json"),
        ]
        (found,) = traces(*parts)
        assert [(turn.id, turn.final_text) for turn in found.turns] == [("a", "hello")]

    def test_parts_in_two_files_that_share_nothing_stay_apart(self) -> None:
        (found,) = traces(read(self.ALL[0], self.ALL[2]), read(self.ALL[1], file="two.json"))
        assert [turn.id for turn in found.turns] == ["a", "c"]
        assert found.warnings == ()
