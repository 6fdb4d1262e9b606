"""Matchers of argument values."""

import pytest

from agentci.evaluators.trajectory.matchers import (
    ABSENT,
    MAKERS,
    ExpectationProblems,
    Found,
    MatcherReader,
    format_value,
)
from agentci.model.values import Json


def accepts(written: Json, found: Found) -> bool:
    problems = ExpectationProblems()
    matcher = MatcherReader(problems, is_open=False).read(written, ())
    assert problems.found == []
    return matcher.accepts(found)


@pytest.mark.parametrize(
    ("written", "good", "bad"),
    [
        pytest.param(1, [1, 1.0], [True, "1", 2, None, ABSENT], id="number"),
        pytest.param(True, [True], [1, "true", False], id="true"),
        pytest.param(None, [None], [ABSENT, 0, ""], id="null"),
        pytest.param("5", ["5"], [5, "5 "], id="text"),
        pytest.param([1, "a"], [[1, "a"], [1.0, "a"]], [["a", 1], [1], "1a", {}], id="list"),
        pytest.param({"a": 1}, [{"a": 1}], [{"a": 1, "b": 2}, {}, [], "a"], id="object"),
        pytest.param({"$any": True}, [None, 0, "x", []], [ABSENT], id="any"),
        pytest.param({"$one_of": [1, {"$type": "null"}]}, [1, None], [2, ABSENT], id="one_of"),
        pytest.param({"$regex": "^a+$"}, ["a", "aa"], ["ba", 1, ABSENT], id="regex"),
        pytest.param({"$regex": "(?i)REFUND"}, ["my refund"], ["return"], id="flags"),
        pytest.param({"$iequals": "Straße"}, ["STRASSE"], ["strasse ", 1], id="iequals"),
        pytest.param(
            {"$contains": "b"}, ["abc", ["a", "b"]], ["ac", [1], 1, ABSENT], id="contains"
        ),
        pytest.param({"$contains": 1}, [[2, 1.0]], ["1", [True]], id="contains number"),
        pytest.param({"$approx": 1, "abs": 0.01}, [1.01, 0.99], [1.0101, "1", True], id="approx"),
        pytest.param({"$approx": 100, "rel": 0.1, "abs": 1}, [110, 90], [110.1], id="wider"),
        pytest.param({"$approx": 1e6}, [1e6 + 1], [1e6 + 1.1], id="approx default"),
        pytest.param({"$gt": 1, "$lte": 3}, [1.5, 3], [1, 4, "2", True, ABSENT], id="range"),
        pytest.param({"$gte": 1, "$lt": 3}, [1, 2.9], [0.9, 3], id="other range"),
        pytest.param({"$gte": "2026-01-01"}, ["2026-02-01"], ["2025-12-31", 2026], id="dates"),
        pytest.param({"$type": "integer"}, [1, 1.0], [1.5, True, "1"], id="integer"),
        pytest.param({"$type": ["string", "null"]}, ["", None], [0, ABSENT], id="types"),
        pytest.param({"$type": "object"}, [{}], [[]], id="type object"),
        pytest.param({"$type": "array"}, [[]], ["a"], id="type array"),
        pytest.param({"$type": "boolean"}, [False], [0], id="type boolean"),
        pytest.param({"$type": "number"}, [1.5], [False], id="type number"),
        pytest.param({"$schema": {"minLength": 2}}, ["ab", 1], ["a", ABSENT], id="schema"),
        pytest.param(
            {"$unordered": [{"$gt": 0}, 1]}, [[1, 2], [2, 1]], [[1], [1, 0], "12"], id="unordered"
        ),
        pytest.param({"$not": {"$regex": "a"}}, ["b", 1], ["a", ABSENT], id="not"),
        pytest.param({"$optional": 1}, [1, ABSENT], [2, None], id="optional"),
        pytest.param({"$absent": True}, [ABSENT], [None, 1], id="absent"),
        pytest.param(
            {"$partial": {"a": {"b": 1}}}, [{"a": {"b": 1, "c": 2}, "d": 1}], [{}], id="partial"
        ),
        pytest.param(
            {"$partial": {"a": {"$exact": {"b": 1}}}},
            [{"a": {"b": 1}, "d": 1}],
            [{"a": {"b": 1, "c": 1}}],
            id="exact",
        ),
        pytest.param(
            {"$literal": {"$gt": 1}},
            [{"$gt": 1}],
            [2, {"$gt": 2}, {"$gt": 1, "a": 1}],
            id="literal",
        ),
        pytest.param(
            {"$literal": [1, {"a": None}]}, [[1, {"a": None}]], [[1, {}], [1]], id="literal list"
        ),
        pytest.param({"a": [{"$any": True}]}, [{"a": [1]}], [{"a": []}], id="at any depth"),
    ],
)
def test_matcher_accepts(written: Json, good: list[Found], bad: list[Found]) -> None:
    assert [each for each in good if not accepts(written, each)] == []
    assert [each for each in bad if accepts(written, each)] == []


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"$any": False}, "`$any` needs true"),
        ({"$absent": 1}, "`$absent` needs true"),
        ({"$one_of": []}, "`$one_of` needs a list"),
        ({"$one_of": 1}, "`$one_of` needs a list"),
        ({"$regex": 1}, "`$regex` needs a pattern"),
        ({"$regex": r"a\Z"}, "invalid pattern"),
        ({"$iequals": 1}, "`$iequals` needs a string"),
        ({"$approx": "1"}, "`$approx` needs a number"),
        ({"$approx": 1, "abs": -1}, "`abs` must be a number of at least 0"),
        ({"$gt": []}, "`$gt` needs a number or a string"),
        ({"$type": "text"}, "`$type` needs string, number"),
        ({"$schema": {"type": "text"}}, "invalid `$schema`"),
        ({"$unordered": 1}, "`$unordered` needs a list"),
        ({"$near": 1}, "unknown matcher key '$near'"),
        ({"$gt": 1, "x": 1}, "unknown matcher key 'x'"),
    ],
)
def test_invalid_matcher_is_reported_and_fits_nothing(written: Json, message: str) -> None:
    problems = ExpectationProblems()
    matcher = MatcherReader(problems, is_open=False).read(written, ())
    assert [message in each.message for each in problems.found] == [True]
    assert "$near" in str(written) or not matcher.accepts(1) or "x" in str(written)


def test_every_matcher_has_a_test() -> None:
    marks = test_matcher_accepts.pytestmark  # type: ignore[attr-defined]
    written = str([each.values[0] for each in marks[0].args[1]])
    assert [name for name in MAKERS if name not in written] == []


def test_values_in_messages_are_short() -> None:
    assert format_value(ABSENT) == "absent"
    assert len(format_value("x" * 1000)) == 80
