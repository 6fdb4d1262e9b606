"""Expected and actual tool calls of a check."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.reports.tool_calls import (
    MAX_CALLS,
    ToolCallRow,
    describe_worst_call,
    find_unmatched_turns,
    format_diff,
)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["invocation_id", "expected", "actual", "matched", "name", "args"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)
CALLS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=6)


def _details(expected: list[Any], actual: list[Any], *, matched: object = False) -> dict[str, Any]:
    sides = {"expected": expected, "actual": actual}
    return {"comparisons": [{"invocation_id": "t1", "matched": matched, **sides}]}


def _call_json(name: str, args: Any = None) -> dict[str, Any]:
    return {"name": name, "args": args}


def _rows(expected: list[Any], actual: list[Any]) -> list[tuple[str, str, str]]:
    [turn] = find_unmatched_turns(_details(expected, actual))
    return [(row.mark, row.expected, row.actual) for row in turn.rows]


ROW = {"mark": "", "expected": "a", "actual": "a()", "note": ""}


def _aligned(*rows: Any) -> dict[str, Any]:
    return {"title": "the run", "satisfied": False, "rows": [*rows]}


@pytest.mark.parametrize(
    ("expected", "actual", "rows"),
    [
        pytest.param(
            [_call_json("a"), _call_json("b"), _call_json("c")],
            [_call_json("a"), _call_json("c")],
            [("", "a", "a"), ("missing", "b", ""), ("", "c", "c")],
            id="missing call",
        ),
        pytest.param(
            [_call_json("a")],
            [_call_json("x"), _call_json("a")],
            [("unexpected", "", "x"), ("", "a", "a")],
            id="unexpected call",
        ),
        pytest.param(
            [_call_json("a", {"n": 1, "s": "x"})],
            [_call_json("a", {"n": 2, "s": "x"})],
            [("differs", 'a(n=1, s="x")', 'a(n=2, s="x")')],
            id="arguments differ",
        ),
        pytest.param(
            [_call_json("a", {"n": 1}), _call_json("a", {"n": 2})],
            [_call_json("a", {"n": 2})],
            [("missing", "a(n=1)", ""), ("", "a(n=2)", "a(n=2)")],
            id="equal call is paired first",
        ),
        pytest.param(
            [_call_json("a"), _call_json("b")],
            [_call_json("b"), _call_json("a")],
            [("moved", "a", ""), ("", "b", "b"), ("moved", "", "a")],
            id="the order differs",
        ),
        pytest.param(
            [_call_json("a")],
            [_call_json("a", {})],
            [("differs", "a", "a()")],
            id="no arguments are not {}",
        ),
        pytest.param(
            [_call_json("a", [1])],
            [],
            [("missing", "a([1])", "")],
            id="arguments are not an object",
        ),
        pytest.param([], [], [], id="no calls"),
    ],
)
def test_matching_calls_are_aligned(
    expected: list[Any], actual: list[Any], rows: list[tuple[str, str, str]]
) -> None:
    assert _rows(expected, actual) == rows


@given(CALLS, CALLS)
def test_every_call_is_shown_once_in_order(expected: list[str], actual: list[str]) -> None:
    rows = _rows([_call_json(name) for name in expected], [_call_json(name) for name in actual])
    assert [row[1] for row in rows if row[1]] == expected
    assert [row[2] for row in rows if row[2]] == actual
    for mark, left, right in rows:
        assert (mark == "") == (left == right)


@pytest.mark.parametrize(
    "details",
    [
        pytest.param({}, id="no comparisons"),
        pytest.param({"comparisons": "many"}, id="text"),
        pytest.param({"comparisons": [1, None, {}]}, id="items are not objects"),
        pytest.param(_details([_call_json("a")], [], matched=True), id="a turn that matched"),
        pytest.param(
            _details([_call_json("a")], [], matched=0), id="turn with invalid matched value"
        ),
        pytest.param(_details(["a"], []), id="calls are not objects"),
        pytest.param(_details([{"args": {}}], []), id="calls without a name"),
        pytest.param({"comparisons": [{"matched": False, "actual": []}]}, id="only one side"),
        pytest.param({"trajectories": 5}, id="trajectories are a number"),
        pytest.param({"trajectories": [5, {}, _aligned({}), _aligned()]}, id="no rows"),
        pytest.param({"trajectories": [_aligned({**ROW, "mark": "no"})]}, id="unknown mark"),
        pytest.param({"trajectories": [_aligned(5, ROW)]}, id="row is a number"),
        pytest.param({"trajectories": [{**_aligned(ROW), "satisfied": True}]}, id="satisfied"),
        pytest.param({"trajectories": [{**_aligned(ROW), "title": 1}]}, id="title is a number"),
    ],
)
def test_comparison_of_unknown_shape_is_ignored(details: dict[str, Any]) -> None:
    assert find_unmatched_turns(details) == ()
    assert format_diff(details) == ()


@given(
    st.dictionaries(st.sampled_from(["comparisons", "trajectories"]), st.lists(ANY_JSON) | ANY_JSON)
)
def test_arbitrary_details_do_not_raise(details: dict[str, Any]) -> None:
    assert len(format_diff(details)) >= len(find_unmatched_turns(details))


def test_aligned_calls_keep_their_marks_and_notes() -> None:
    rows = [
        ROW,
        {"mark": "missing", "expected": "b", "actual": "", "note": "expected, not called"},
        {"mark": "forbidden", "expected": "", "actual": "d()", "note": "forbidden by rule 1"},
    ]
    details = {"trajectories": [_aligned(*rows)]}
    [found] = find_unmatched_turns(details)
    assert [row.label for row in found.rows] == [
        "",
        "missing: expected, not called",
        "forbidden: forbidden by rule 1",
    ]
    assert format_diff(details) == (
        "tool calls of the run (~ changed, - missing, + unexpected, > moved, ! forbidden):",
        "= a()",
        "- b   expected, not called",
        "! d()   forbidden by rule 1",
    )


def test_aligned_calls_above_limit_are_counted() -> None:
    [found] = find_unmatched_turns({"trajectories": [_aligned(*[ROW] * (MAX_CALLS + 2))]})
    assert (len(found.rows), found.hidden) == (MAX_CALLS, 2)


def test_calls_above_limit_are_counted() -> None:
    [turn] = find_unmatched_turns(_details([_call_json("a")] * (MAX_CALLS + 7), []))
    assert len(turn.rows) == MAX_CALLS
    assert turn.hidden == 7
    assert turn.rows[0] == ToolCallRow(mark="missing", expected="a", actual="")


def test_deeply_nested_arguments_are_compared() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert _rows([_call_json("a", deep)], [_call_json("a", deep)])[0][0] == ""


def test_diff_marks_expected_and_actual_calls() -> None:
    details = _details(
        [_call_json("a"), _call_json("b", {"n": 1}), _call_json("c")],
        [_call_json("b", {"n": 2}), _call_json("c"), _call_json("a")],
    )
    assert format_diff(details) == (
        "tool calls of turn 1 (- expected, + actual, = both, > moved):",
        "- b(n=1)",
        "+ b(n=2)",
        "= c",
        "> a",
    )


def test_diff_counts_omitted_calls() -> None:
    lines = format_diff(_details([_call_json("a")] * (MAX_CALLS + 7), []))
    assert lines[-1] == "… and 7 more"


def test_worst_call_of_a_check_is_described() -> None:
    details = _details([_call_json("a", {"n": 1}), _call_json("b")], [_call_json("a", {"n": 2})])
    assert describe_worst_call(details) == "turn 1: missing `b`"
