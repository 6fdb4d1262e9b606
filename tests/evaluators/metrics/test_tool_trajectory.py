"""Tool calls are compared with the golden ones as agentevals 0.11.0 compares them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.metrics.tool_trajectory import measure
from agentci.model.json import Json, JsonObject
from agentci.model.trace import ToolCall, Turn

A, B, C = (ToolCall(name=name, args={}) for name in "abc")
CALLS = st.lists(st.sampled_from([A, B, C]), max_size=4)


def turn(*calls: ToolCall, turn_id: str = "t") -> Turn:
    return Turn(id=turn_id, user_text="q", tool_calls=calls)


def score(made: Sequence[ToolCall], wanted: Sequence[ToolCall], match_type: str) -> float:
    return measure([turn(*made)], [turn(*wanted)], {"match_type": match_type}).score


@pytest.mark.parametrize(
    ("made", "wanted", "exact", "in_order", "any_order"),
    [
        pytest.param([], [], 1, 1, 1, id="nothing wanted, nothing made"),
        pytest.param([A], [], 0, 1, 1, id="nothing wanted"),
        pytest.param([], [A], 0, 0, 0, id="nothing made"),
        pytest.param([A, B], [A, B], 1, 1, 1, id="the same"),
        pytest.param([B, A], [A, B], 0, 0, 1, id="another order"),
        pytest.param([A, C, B], [A, B], 0, 1, 1, id="one more between"),
        pytest.param([A], [A, A], 0, 0, 0, id="one call does not serve twice"),
        pytest.param([A, B, A], [A, A], 0, 1, 1, id="wanted twice, made twice"),
    ],
)
def test_match_types(
    made: Sequence[ToolCall],
    wanted: Sequence[ToolCall],
    exact: float,
    in_order: float,
    any_order: float,
) -> None:
    scores = [score(made, wanted, name) for name in ("EXACT", "IN_ORDER", "ANY_ORDER")]
    assert scores == [exact, in_order, any_order]


@given(CALLS, CALLS)
def test_each_match_type_forgives_more_than_the_one_before(
    made: Sequence[ToolCall], wanted: Sequence[ToolCall]
) -> None:
    exact, in_order, any_order = (
        score(made, wanted, name) for name in ("EXACT", "IN_ORDER", "ANY_ORDER")
    )
    assert exact <= in_order <= any_order


def test_exact_is_the_default_and_names_are_read_in_any_case() -> None:
    assert measure([turn(A, B)], [turn(A)], {}).score == 0
    assert measure([turn(A, B)], [turn(A)], {"match_type": None}).score == 0
    assert measure([turn(A, B)], [turn(A)], {"match_type": "in_order"}).score == 1


def test_an_unknown_match_type_is_refused() -> None:
    with pytest.raises(
        EvaluatorError, match="unknown match type `SORTED`; it must be one of EXACT, IN_ORDER"
    ):
        measure([turn()], [turn()], {"match_type": "sorted"})


@pytest.mark.parametrize(
    ("made", "wanted", "are_equal"),
    [
        pytest.param({"x": 1, "y": 2}, {"y": 2, "x": 1}, True, id="the order of keys is free"),
        pytest.param({"x": [1, 2]}, {"x": [2, 1]}, False, id="that of a list is not"),
        pytest.param({"x": 1}, {"x": 1.0}, True, id="1 is 1.0"),
        pytest.param({"x": 1}, {"x": True}, True, id="1 is true, as in Python"),
        pytest.param({"x": 1}, {"x": "1"}, False, id="1 is not a string"),
        pytest.param({"x": {"y": [1]}}, {"x": {"y": [1]}}, True, id="nested"),
        pytest.param(None, {}, True, id="recorded without arguments"),
        pytest.param("Paris", {"value": "Paris"}, True, id="a bare recorded argument is wrapped"),
        pytest.param({}, None, False, id="golden arguments left out equal nothing"),
        pytest.param(None, None, False, id="nor do they equal a call without arguments"),
    ],
)
def test_arguments(made: Json, wanted: Json, are_equal: bool) -> None:
    calls = [ToolCall(name="f", args=made, id="1")], [ToolCall(name="f", args=wanted, id="2")]
    assert score(*calls, "EXACT") == are_equal


def test_the_details_are_those_of_agentevals() -> None:
    made = [turn(ToolCall(name="f"), turn_id="aa01"), turn(A)]
    wanted = [turn(ToolCall(name="f", id="x1"), turn_id="e1")]
    assert measure(made, wanted, {}).details == {
        "comparisons": [
            {
                "invocation_id": "aa01",
                "expected": [{"name": "f", "args": None}],
                "actual": [{"name": "f", "args": {}}],
                "matched": False,
            }
        ],
        "missing_turns": 0,
        "unexpected_turns": 1,
    }


@pytest.mark.parametrize(
    ("made", "wanted", "options", "miss"),
    [
        pytest.param(
            [ToolCall(name="get_news", args={"topic": "local"})],
            [ToolCall(name="get_weather", args={"city": "Paris"})],
            {},
            "turn 2: expected get_weather(city='Paris'), got get_news(topic='local')",
            id="another call",
        ),
        pytest.param([], [A, B], {}, "turn 2: expected a(), b(), got no tool call", id="none"),
        pytest.param([A], [], {}, "turn 2: expected no tool call, got a()", id="not wanted"),
        pytest.param(
            [B, A],
            [A, B],
            {"match_type": "IN_ORDER"},
            "turn 2: expected a(), b() in this order, got b(), a()",
            id="in order",
        ),
        pytest.param(
            [A],
            [A, B],
            {"match_type": "ANY_ORDER"},
            "turn 2: expected a(), b() in any order, got a()",
            id="any order",
        ),
        pytest.param(
            [A],
            [ToolCall(name="a")],
            {},
            "turn 2: expected a(without `args`, which matches no call), got a()",
            id="arguments left out",
        ),
    ],
)
def test_a_miss_says_what_was_expected_and_what_came(
    made: Sequence[ToolCall], wanted: Sequence[ToolCall], options: JsonObject, miss: str
) -> None:
    found = measure([turn(A), turn(*made)], [turn(A), turn(*wanted)], options)
    assert (found.score, found.turn_scores, found.misses) == (0.5, (1, 0), (miss,))


def test_a_miss_is_short_whatever_the_arguments() -> None:
    deep: Json = "x" * 100_000
    for _ in range(900):
        deep = {"deeper": [deep]}
    made = [ToolCall(name="f", args={"a": deep, "b": "y" * 100_000, "c": [0] * 100_000})] * 50
    [miss] = measure([turn(*made)], [turn(A)], {}).misses
    assert len(miss) < 300
