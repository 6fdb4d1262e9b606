"""A trace is matched with the eval case that agentevals 0.11.0 would choose for it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.evaluators.agentevals.match_eval_case import (
    MATCHED_ALONE,
    MATCHED_BY_ORDER,
    EvalCaseMatcher,
    digest_input,
    has_multi_turn_case,
    name_eval_case,
    supply_questions,
)
from agentci.model.case import Case, EvalCase, EvalSet
from agentci.model.trace import Trace, Turn
from agentci.model.values import Place, replace

PLACE = Place(file="f.json")


def a_trace(*asked: str, eval_case_id: str | None = None, key: str = "t") -> Trace:
    return Trace(id="t", key=key, turns=_turns(asked), place=PLACE, eval_case_id=eval_case_id)


def an_eval_case(case_id: str, *asked: str) -> EvalCase:
    return EvalCase(id=case_id, turns=_turns(asked), place=PLACE)


def a_set(*cases: EvalCase) -> EvalSet:
    return EvalSet(id="s", cases=cases, place=PLACE)


def _turns(asked: Sequence[str]) -> tuple[Turn, ...]:
    return tuple(Turn(id="", user_text=text) for text in asked)


def choose(traces: Sequence[Trace], eval_set: EvalSet | None) -> tuple[list[Case], list[str]]:
    """The cases, and the IDs of the eval cases that no trace was matched with."""
    matching = EvalCaseMatcher(eval_set, has_one_trace=len(traces) == 1)
    cases = [matching.make_case(trace) for trace in traces]
    return cases, [eval_case.id for eval_case in matching.unmatched]


def test_turn_beyond_the_eval_case_gets_no_question() -> None:
    turn = Turn(id="", user_text="", user_text_recorded=False)
    trace = Trace(id="t", key="t", turns=(turn,), place=PLACE)
    assert supply_questions(trace, []) == trace
    assert [each.user_text for each in supply_questions(trace, ["Hi"]).turns] == ["Hi"]


def chosen(trace: Trace, *eval_cases: EvalCase) -> str | None:
    """The ID of the matched eval case, or the reason why none matched."""
    [case], _ = choose([trace], a_set(*eval_cases))
    return case.expected.id if case.expected else case.unmatched_reason


def test_later_turns_that_ask_something_else_have_a_warning() -> None:
    expected = an_eval_case("talk", "Hi", "And in Oslo?", "Thanks", "Bye")
    trace = a_trace("Hi", "Prompt: and in  oslo?", "No", "Never", eval_case_id="talk")
    [case] = choose([trace], a_set(expected))[0]
    [warning] = case.trace.warnings
    assert "asks something else than its eval case in turns 3, 4; record it again" in warning
    failed = replace(trace, turns=trace.turns[:3], not_captured="the agent crashed")
    [case] = choose([failed], a_set(expected))[0]
    assert case.expected
    assert not case.trace.warnings


@pytest.mark.parametrize("asked", [(), ("",)])
def test_run_without_content_matches_by_the_id_of_its_session(asked: tuple[str, ...]) -> None:
    """No message is left to match; the run is an error of its case."""
    trace = replace(a_trace(*asked, key="b"), not_captured="not captured")
    cases = [an_eval_case("a", "Hi"), an_eval_case("b", "And in Oslo?")]
    [case], left = choose([trace], a_set(*cases))
    assert (case.id, case.expected, left) == ("b", cases[1], ["a"])
    assert not case.trace.warnings
    for other in (
        replace(trace, key="c"),
        replace(trace, not_captured="", turns=_turns([""])),
        replace(trace, turns=_turns(["Bye"])),
    ):
        assert chosen(other, *cases) not in {"a", "b"}


@pytest.mark.parametrize(
    ("run", "asked", "warned"),
    [
        pytest.param("0a", "", True, id="by agentci record"),
        pytest.param("0a", digest_input("Hi"), False, id="with an input"),
        pytest.param("", "", False, id="by the user"),
    ],
)
def test_other_first_question_of_a_case_that_record_named_has_a_warning(
    run: str, asked: str, *, warned: bool
) -> None:
    trace = replace(a_trace("Hello", eval_case_id="talk"), recorded_run=run, asked=asked)
    expected = a_set(an_eval_case("talk", "Hi"), an_eval_case("b", "q"))
    [case] = choose([trace], expected)[0]
    found = [" in turn 1; record it again" in each for each in case.trace.warnings]
    assert found == [True] * warned
    mapped = name_eval_case(trace, {(trace.place.file, trace.id): "talk"})
    [case] = choose([mapped], expected)[0]
    assert case.trace.warnings == ()


@pytest.mark.parametrize(("asked", "warned"), [("another", True), ("  Q ", False)])
def test_only_run_that_asks_something_else_has_a_warning(asked: str, warned: bool) -> None:
    [case], _ = choose([a_trace(asked)], a_set(an_eval_case("a", "q")))
    assert case.expected is not None
    assert (MATCHED_ALONE in case.trace.warnings) == warned


@pytest.mark.parametrize(
    ("trace", "eval_cases", "expected"),
    [
        pytest.param(
            a_trace("q", eval_case_id="b"),
            [an_eval_case("a", "q"), an_eval_case("b", "other")],
            "b",
            id="case ID named by the trace overrides the question",
        ),
        pytest.param(
            a_trace("q", eval_case_id="b"),
            [an_eval_case("a", "q")],
            "eval case 'b' not found",
            id="unknown case ID matches no other case",
        ),
        pytest.param(
            a_trace("q", eval_case_id="b"),
            [an_eval_case("a", "q"), an_eval_case("b")],
            "eval case 'b' not found",
            id="case ID of a case without turns",
        ),
        pytest.param(
            a_trace(eval_case_id="a"),
            [an_eval_case("a", "q")],
            "a",
            id="case ID named by a trace without turns",
        ),
        pytest.param(a_trace(), [an_eval_case("a", "q")], "no turns to match", id="no turns"),
        pytest.param(
            a_trace("  \n"),
            [an_eval_case("a", "q"), an_eval_case("b", "")],
            "no user input to match",
            id="no user input, even if an eval case has none",
        ),
        pytest.param(
            a_trace(" What\tis \n it? "),
            [an_eval_case("a", "q"), an_eval_case("b", "what is it?")],
            "b",
            id="whitespace and case are ignored",
        ),
        pytest.param(
            a_trace("STRASSE plan"),
            [an_eval_case("a", "q"), an_eval_case("b", "straße plan")],
            "b",
            id="Unicode case folding",
        ),
        pytest.param(
            a_trace("q", "later"),
            [an_eval_case("a", "later"), an_eval_case("b", "q", "else")],
            "b",
            id="only the first question counts",
        ),
        pytest.param(
            a_trace("x"),
            [an_eval_case("a", "q"), an_eval_case("b", "r")],
            "no matching eval case",
            id="no matching question",
        ),
        pytest.param(a_trace("x"), [], "no matching eval case", id="empty eval set"),
        pytest.param(
            a_trace("q"),
            [an_eval_case("a", "q"), an_eval_case("b", "q", "more")],
            "a",
            id="equal turn count decides between several",
        ),
        pytest.param(
            a_trace("q"),
            [an_eval_case("a", "q"), an_eval_case("b", "q")],
            "ambiguous eval case",
            id="two cases with equal turn count",
        ),
        pytest.param(
            a_trace("q"),
            [an_eval_case("a", "q", "m"), an_eval_case("b", "q", "m", "n")],
            "ambiguous eval case",
            id="several cases without equal turn count",
        ),
        pytest.param(
            a_trace("q"),
            [an_eval_case("a", "q", "m")],
            "a",
            id="single match may have another turn count",
        ),
    ],
)
def test_trace_is_matched_with_eval_case(
    trace: Trace, eval_cases: Sequence[EvalCase], expected: str
) -> None:
    assert chosen(trace, *eval_cases) == expected


@pytest.mark.parametrize("asked", ["something else", ""])
class TestSingleEvalCase:
    def test_single_case_matches_single_trace_with_any_question(self, asked: str) -> None:
        assert chosen(a_trace(asked), an_eval_case("empty"), an_eval_case("a", "q")) == "a"

    def test_single_case_is_not_forced_on_several_traces(self, asked: str) -> None:
        cases, _ = choose([a_trace(asked), a_trace("q")], a_set(an_eval_case("a", "q")))
        assert [case.expected is not None for case in cases] == [False, True]


def test_missing_eval_set_matches_nothing() -> None:
    cases, uncovered = choose([a_trace("q", eval_case_id="a")], None)
    assert [case.unmatched_reason for case in cases] == ["no eval set provided"]
    assert uncovered == []


def test_eval_cases_without_trace_are_reported() -> None:
    eval_set = a_set(
        an_eval_case("a", "q"),
        an_eval_case("b", "r"),
        an_eval_case("empty"),
        an_eval_case("c", "s"),
    )
    _, uncovered = choose([a_trace("r"), a_trace("r"), a_trace("x")], eval_set)
    assert uncovered == ["a", "c"]


@pytest.mark.parametrize(
    ("traces", "ids"),
    [
        pytest.param([a_trace("q", key="session 7")], ["a"], id="eval case ID"),
        pytest.param(
            [a_trace("x"), a_trace("y", key="session 7")], ["t", "session 7"], id="trace key"
        ),
        pytest.param([a_trace("x", key=""), a_trace("q")], ["t", "a"], id="trace ID without a key"),
        pytest.param([a_trace("q")] * 3, ["a", "a#2", "a#3"], id="repeated ID is numbered"),
        pytest.param(
            [a_trace("x", key=key) for key in ("k", "k#2", "k", "k#2")],
            ["k", "k#2", "k#3", "k#2#2"],
            id="numbered ID never equals another ID",
        ),
    ],
)
def test_case_gets_expected_id(traces: Sequence[Trace], ids: Sequence[str]) -> None:
    cases, _ = choose(traces, a_set(an_eval_case("a", "q"), an_eval_case("b", "r")))
    assert [case.id for case in cases] == ids


def a_recorded_trace(*asked: str, file: str = "all.jsonl", key: str = "t") -> Trace:
    turns = tuple(Turn(id="1", user_text=text, trace_id="t") for text in asked)
    return Trace(id="t", key=key, turns=turns, place=Place(file=file))


def test_trace_without_eval_case_is_named_by_its_question() -> None:
    traces = [
        a_recorded_trace("Where is\n my parcel?"),
        a_recorded_trace("Where is my parcel?"),
        a_recorded_trace("x" * 100),
        a_recorded_trace("Where is my parcel?", key="session 7"),
        a_recorded_trace("\x1b[2J"),
        a_recorded_trace(),
    ]
    cases, _ = choose(traces, None)
    assert [case.id for case in cases] == [
        *("Where is my parcel?", "Where is my parcel?#2", "x" * 79 + "\N{HORIZONTAL ELLIPSIS}"),
        *("session 7", "t", "t#2"),
    ]


REPEATED = a_set(
    an_eval_case("first", "q"),
    an_eval_case("other", "r"),
    an_eval_case("second", " Q "),
    an_eval_case("long", "q", "and then?"),
    an_eval_case("longer", "q", "and now?"),
)


@pytest.mark.parametrize(
    ("traces", "expected"),
    [
        pytest.param([("q",), ("q",)], ["first", "second"], id="as many runs as eval cases"),
        pytest.param([("r",), ("q",), ("Q",)], ["other", "first", "second"], id="among others"),
        pytest.param([("q",), ("r",)], [None, "other"], id="fewer runs"),
        pytest.param([("q",)] * 3, [None] * 3, id="more runs"),
        pytest.param([("q", "and now?"), ("q", "and then?")], ["longer", "long"], id="later turns"),
        pytest.param([("q", "why?"), ("r",)], [None, "other"], id="other later turns"),
    ],
)
def test_repeated_question_is_matched_by_later_turns_or_order(
    traces: Sequence[tuple[str, ...]], expected: Sequence[str | None]
) -> None:
    cases = choose_counted([a_recorded_trace(*asked) for asked in traces])
    assert [case.expected and case.expected.id for case in cases] == expected
    reasons = {case.unmatched_reason for case in cases if case.expected is None}
    assert reasons <= {"ambiguous eval case"}
    by_order = {"first", "second"}
    assert all(
        (MATCHED_BY_ORDER in case.trace.warnings)
        == (case.expected is not None and case.expected.id in by_order)
        for case in cases
    )
    assert len({case.id for case in cases}) == len(cases)


def choose_counted(traces: Sequence[Trace]) -> list[Case]:
    matching = EvalCaseMatcher(REPEATED, has_one_trace=len(traces) == 1)
    matching.count_runs(lambda: traces)
    return [matching.make_case(trace) for trace in traces]


def test_repeated_question_is_matched_by_session_or_file() -> None:
    by_file = [
        a_recorded_trace("q", file="runs/second.jsonl.gz"),
        a_recorded_trace("q", file="runs/first.jsonl"),
        a_recorded_trace("q", file="runs/second.json"),
    ]
    by_session = [a_recorded_trace("q", key="second"), a_recorded_trace("q")]
    named = [replace(a_recorded_trace("q"), eval_case_id="first"), a_recorded_trace("q")]
    for traces, expected in (
        (by_file, ["second", "first", "second#2"]),
        (by_session, ["second", "first"]),
        (named, ["first", "second"]),
    ):
        assert [case.id for case in choose_counted(traces)] == expected


@given(st.lists(st.sampled_from(["k", "k#2", "k#3", "k#2#2"])))
def test_case_ids_are_unique_and_traces_stay_in_order(keys: Sequence[str]) -> None:
    traces = [a_trace("x", key=key) for key in keys]
    cases, _ = choose(traces, None)
    assert len({case.id for case in cases}) == len(keys)
    assert [case.trace for case in cases] == traces


@pytest.mark.parametrize(
    ("eval_set", "expected"),
    [
        pytest.param(None, False, id="no eval set"),
        pytest.param(
            a_set(an_eval_case("a", "q"), an_eval_case("empty")), False, id="only single-turn cases"
        ),
        pytest.param(
            a_set(an_eval_case("a", "q"), an_eval_case("b", "q", "r")), True, id="multi-turn case"
        ),
    ],
)
def test_multi_turn_case_is_detected(eval_set: EvalSet | None, expected: bool) -> None:
    assert has_multi_turn_case(eval_set) is expected
