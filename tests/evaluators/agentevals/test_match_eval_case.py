"""A recording is judged by the golden case that agentevals 0.11.0 would choose for it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.evaluators.agentevals.match_eval_case import EvalCaseMatcher, has_multi_turn_case
from agentci.model.case import Case, EvalCase, EvalSet
from agentci.model.problem import Place
from agentci.model.trace import Trace, Turn

PLACE = Place(file="f.json")


def a_trace(*asked: str, eval_case_id: str | None = None, key: str = "t") -> Trace:
    return Trace(id="t", key=key, turns=_turns(asked), place=PLACE, eval_case_id=eval_case_id)


def a_golden(case_id: str, *asked: str) -> EvalCase:
    return EvalCase(id=case_id, turns=_turns(asked), place=PLACE)


def a_set(*cases: EvalCase) -> EvalSet:
    return EvalSet(id="s", cases=cases, place=PLACE)


def _turns(asked: Sequence[str]) -> tuple[Turn, ...]:
    return tuple(Turn(id="", user_text=text) for text in asked)


def choose(traces: Sequence[Trace], goldens: EvalSet | None) -> tuple[list[Case], list[str]]:
    """The cases, and the ids of the golden cases that no recording was matched with."""
    matching = EvalCaseMatcher(goldens, has_one_trace=len(traces) == 1)
    cases = [matching.make_case(trace) for trace in traces]
    return cases, [golden.id for golden in matching.unmatched]


def chosen(trace: Trace, *goldens: EvalCase) -> str | None:
    """The id of the golden case, else the reason why there is none."""
    [case], _ = choose([trace], a_set(*goldens))
    return case.expected.id if case.expected else case.unmatched_reason


@pytest.mark.parametrize(
    ("trace", "goldens", "expected"),
    [
        pytest.param(
            a_trace("q", eval_case_id="b"),
            [a_golden("a", "q"), a_golden("b", "other")],
            "b",
            id="the case that the recording names, whatever was asked",
        ),
        pytest.param(
            a_trace("q", eval_case_id="b"),
            [a_golden("a", "q")],
            "eval case 'b' not found",
            id="no other case where that is unknown",
        ),
        pytest.param(
            a_trace("q", eval_case_id="b"),
            [a_golden("a", "q"), a_golden("b")],
            "eval case 'b' not found",
            id="nor where it has no turns",
        ),
        pytest.param(
            a_trace(eval_case_id="a"),
            [a_golden("a", "q")],
            "a",
            id="named by a recording without turns",
        ),
        pytest.param(a_trace(), [a_golden("a", "q")], "no turns to match", id="no turns"),
        pytest.param(
            a_trace("  \n"),
            [a_golden("a", "q"), a_golden("b", "")],
            "no user input to match",
            id="nothing asked, even if a golden case asks nothing",
        ),
        pytest.param(
            a_trace(" What\tis \n it? "),
            [a_golden("a", "q"), a_golden("b", "what is it?")],
            "b",
            id="blanks and case do not count",
        ),
        pytest.param(
            a_trace("STRASSE plan"),
            [a_golden("a", "q"), a_golden("b", "straße plan")],
            "b",
            id="case is folded as Unicode does",
        ),
        pytest.param(
            a_trace("q", "later"),
            [a_golden("a", "later"), a_golden("b", "q", "else")],
            "b",
            id="only what was asked first counts",
        ),
        pytest.param(
            a_trace("x"),
            [a_golden("a", "q"), a_golden("b", "r")],
            "no matching eval case",
            id="no such question",
        ),
        pytest.param(a_trace("x"), [], "no matching eval case", id="an empty set"),
        pytest.param(
            a_trace("q"),
            [a_golden("a", "q"), a_golden("b", "q", "more")],
            "a",
            id="of several the one with as many turns",
        ),
        pytest.param(
            a_trace("q"),
            [a_golden("a", "q"), a_golden("b", "q")],
            "ambiguous eval case",
            id="two with as many turns",
        ),
        pytest.param(
            a_trace("q"),
            [a_golden("a", "q", "m"), a_golden("b", "q", "m", "n")],
            "ambiguous eval case",
            id="none with as many turns",
        ),
        pytest.param(
            a_trace("q"), [a_golden("a", "q", "m")], "a", id="one alone may have other turns"
        ),
    ],
)
def test_choice(trace: Trace, goldens: Sequence[EvalCase], expected: str) -> None:
    assert chosen(trace, *goldens) == expected


@pytest.mark.parametrize("asked", ["something else", ""])
class TestTheOnlyCaseOfASet:
    def test_is_for_the_only_recording_whatever_was_asked(self, asked: str) -> None:
        assert chosen(a_trace(asked), a_golden("empty"), a_golden("a", "q")) == "a"

    def test_is_not_for_one_of_several_recordings(self, asked: str) -> None:
        cases, _ = choose([a_trace(asked), a_trace("q")], a_set(a_golden("a", "q")))
        assert [case.expected is not None for case in cases] == [False, True]


def test_without_an_eval_set_there_is_no_golden_case() -> None:
    cases, uncovered = choose([a_trace("q", eval_case_id="a")], None)
    assert [case.unmatched_reason for case in cases] == ["no eval set provided"]
    assert uncovered == []


def test_golden_cases_that_no_recording_matched_are_told() -> None:
    goldens = a_set(a_golden("a", "q"), a_golden("b", "r"), a_golden("empty"), a_golden("c", "s"))
    _, uncovered = choose([a_trace("r"), a_trace("r"), a_trace("x")], goldens)
    assert uncovered == ["a", "c"]


@pytest.mark.parametrize(
    ("traces", "ids"),
    [
        pytest.param([a_trace("q", key="session 7")], ["a"], id="the golden case's id"),
        pytest.param(
            [a_trace("x"), a_trace("y", key="session 7")], ["t", "session 7"], id="the key"
        ),
        pytest.param(
            [a_trace("x", key=""), a_trace("q")], ["t", "a"], id="the trace's without key"
        ),
        pytest.param([a_trace("q")] * 3, ["a", "a#2", "a#3"], id="numbered where it comes again"),
        pytest.param(
            [a_trace("x", key=key) for key in ("k", "k#2", "k", "k#2")],
            ["k", "k#2", "k#3", "k#2#2"],
            id="never the id of another",
        ),
    ],
)
def test_ids(traces: Sequence[Trace], ids: Sequence[str]) -> None:
    cases, _ = choose(traces, a_set(a_golden("a", "q"), a_golden("b", "r")))
    assert [case.id for case in cases] == ids


@given(st.lists(st.sampled_from(["k", "k#2", "k#3", "k#2#2"])))
def test_ids_are_unique_and_recordings_stay_in_order(keys: Sequence[str]) -> None:
    traces = [a_trace("x", key=key) for key in keys]
    cases, _ = choose(traces, None)
    assert len({case.id for case in cases}) == len(keys)
    assert [case.trace for case in cases] == traces


@pytest.mark.parametrize(
    ("goldens", "expected"),
    [
        pytest.param(None, False, id="no set"),
        pytest.param(a_set(a_golden("a", "q"), a_golden("empty")), False, id="single turns"),
        pytest.param(a_set(a_golden("a", "q"), a_golden("b", "q", "r")), True, id="a conversation"),
    ],
)
def test_multi_turn(goldens: EvalSet | None, expected: bool) -> None:
    assert has_multi_turn_case(goldens) is expected
