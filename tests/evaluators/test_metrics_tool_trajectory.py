"""Tool calls are compared with the expected ones as in agentevals 0.11.0."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.evaluators.metrics import measure_tool_trajectory
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject

A, B, C = (ToolCall(name=name, args={}) for name in "abc")
CALLS = st.lists(st.sampled_from([A, B, C]), max_size=4)


def turn(*calls: ToolCall, turn_id: str = "t") -> Turn:
    return Turn(id=turn_id, user_text="q", tool_calls=calls)


def score(actual: Sequence[ToolCall], expected: Sequence[ToolCall], match_type: str) -> float:
    return measure_tool_trajectory(
        [turn(*actual)], [turn(*expected)], {"match_type": match_type}
    ).score


@pytest.mark.parametrize(
    ("actual", "expected", "exact", "in_order", "any_order"),
    [
        pytest.param([], [], 1, 1, 1, id="no calls on either side"),
        pytest.param([A], [], 0, 1, 1, id="unexpected call"),
        pytest.param([], [A], 0, 0, 0, id="missing call"),
        pytest.param([A, B], [A, B], 1, 1, 1, id="same calls"),
        pytest.param([B, A], [A, B], 0, 0, 1, id="different order"),
        pytest.param([A, C, B], [A, B], 0, 1, 1, id="extra call in between"),
        pytest.param([A], [A, A], 0, 0, 0, id="one call matches only one expected call"),
        pytest.param([A, B, A], [A, A], 0, 1, 1, id="expected twice, made twice"),
    ],
)
def test_calls_have_expected_score_per_match_type(
    actual: Sequence[ToolCall],
    expected: Sequence[ToolCall],
    exact: float,
    in_order: float,
    any_order: float,
) -> None:
    scores = [score(actual, expected, name) for name in ("EXACT", "IN_ORDER", "ANY_ORDER")]
    assert scores == [exact, in_order, any_order]


def test_comparison_in_any_order_that_takes_hours_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="is limited to 1,000,000"):
        score([A] * 1_001, [B] * 1_000, "ANY_ORDER")


@given(CALLS, CALLS)
def test_looser_match_type_never_scores_lower(
    actual: Sequence[ToolCall], expected: Sequence[ToolCall]
) -> None:
    exact, in_order, any_order = (
        score(actual, expected, name) for name in ("EXACT", "IN_ORDER", "ANY_ORDER")
    )
    assert exact <= in_order <= any_order


def test_match_type_is_exact_by_default_and_case_insensitive() -> None:
    assert measure_tool_trajectory([turn(A, B)], [turn(A)], {}).score == 0
    assert measure_tool_trajectory([turn(A, B)], [turn(A)], {"match_type": None}).score == 0
    assert measure_tool_trajectory([turn(A, B)], [turn(A)], {"match_type": "in_order"}).score == 1


def test_unknown_match_type_is_rejected() -> None:
    with pytest.raises(
        EvaluatorError, match="unknown match type `SORTED`; it must be one of EXACT, IN_ORDER"
    ):
        measure_tool_trajectory([turn()], [turn()], {"match_type": "sorted"})


@pytest.mark.parametrize(
    ("actual", "expected", "are_equal"),
    [
        pytest.param({"x": 1, "y": 2}, {"y": 2, "x": 1}, True, id="key order is ignored"),
        pytest.param({"x": [1, 2]}, {"x": [2, 1]}, False, id="list order is significant"),
        pytest.param({"x": 1}, {"x": 1.0}, True, id="1 equals 1.0"),
        pytest.param({"x": 1}, {"x": True}, True, id="1 equals true, as in Python"),
        pytest.param({"x": 1}, {"x": "1"}, False, id="1 differs from a string"),
        pytest.param({"x": {"y": [1]}}, {"x": {"y": [1]}}, True, id="nested"),
        pytest.param("Paris", {"value": "Paris"}, True, id="bare actual argument is wrapped"),
        pytest.param({}, None, False, id="expected call without args matches no call"),
        pytest.param(
            None, None, False, id="expected call without args matches no call without args"
        ),
    ],
)
def test_arguments_are_compared_as_in_agentevals(
    actual: Json, expected: Json, are_equal: bool
) -> None:
    calls = [ToolCall(name="f", args=actual, id="1")], [ToolCall(name="f", args=expected, id="2")]
    assert score(*calls, "EXACT") == are_equal


def test_details_equal_those_of_agentevals() -> None:
    actual = [turn(ToolCall(name="f"), turn_id="aa01"), turn(A)]
    expected = [turn(ToolCall(name="f", id="x1"), turn_id="e1")]
    assert measure_tool_trajectory(actual, expected, {}).details == {
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
    ("actual", "expected", "options", "miss"),
    [
        pytest.param(
            [ToolCall(name="get_news", args={"topic": "local"})],
            [ToolCall(name="get_weather", args={"city": "Paris"})],
            {},
            "turn 2: expected get_weather(city='Paris'), got get_news(topic='local')",
            id="different call",
        ),
        pytest.param(
            [], [A, B], {}, "turn 2: expected a(), b(), got no tool call", id="missing calls"
        ),
        pytest.param([A], [], {}, "turn 2: expected no tool call, got a()", id="unwanted call"),
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
            id="expected call without args",
        ),
    ],
)
def test_miss_lists_expected_and_actual_calls(
    actual: Sequence[ToolCall], expected: Sequence[ToolCall], options: JsonObject, miss: str
) -> None:
    found = measure_tool_trajectory([turn(A), turn(*actual)], [turn(A), turn(*expected)], options)
    assert (found.score, found.turn_scores, found.misses) == (0.5, (1, 0), (miss,))


def test_long_calls_are_shown_from_their_first_difference() -> None:
    calls = [ToolCall(name=f"call_{n}", args={"text": "x" * 50}) for n in range(9)]
    last = ToolCall(name="last", args={})
    [miss] = measure_tool_trajectory([turn(*calls, last)], [turn(*calls)], {}).misses
    assert miss.endswith(", last()")


def test_miss_is_short_for_huge_arguments() -> None:
    deep: Json = "x" * 100_000
    for _ in range(900):
        deep = {"deeper": [deep]}
    actual = [ToolCall(name="f", args={"a": deep, "b": "y" * 100_000, "c": [0] * 100_000})] * 50
    [miss] = measure_tool_trajectory([turn(*actual)], [turn(A)], {}).misses
    assert len(miss) < 300


@pytest.mark.parametrize("match_type", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_unknown_arguments_are_not_empty_arguments(match_type: str) -> None:
    with pytest.raises(EvaluatorError, match="the arguments of f were not recorded"):
        score([ToolCall(name="f")], [ToolCall(name="f", args={})], match_type)
