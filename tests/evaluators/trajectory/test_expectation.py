"""What may be written as a trajectory, and what is reported of the rest."""

from typing import Any

import pytest

from agentci.evaluators.trajectory.expectation import (
    InvalidExpectationError,
    read_forbidden,
    read_trajectory,
)
from agentci.evaluators.trajectory.match import RecordedCall, match_calls
from agentci.model.values import Json


def problems_of(written: Any) -> list[tuple[tuple[str | int, ...], str, str | None]]:
    with pytest.raises(InvalidExpectationError) as raised:
        read_trajectory(written)
    return [(each.path, each.message, each.hint) for each in raised.value.problems]


@pytest.mark.parametrize(
    ("written", "path", "message"),
    [
        pytest.param("find", (), "calls must be a list", id="text"),
        pytest.param({}, (), "has no `calls`", id="empty"),
        pytest.param({"call": []}, ("call",), "a trajectory has no key 'call'", id="option"),
        pytest.param({"calls": [], "order": "x"}, ("order",), "in_order or any_order", id="order"),
        pytest.param({"calls": [], "scope": 1}, ("scope",), "turn or run", id="scope"),
        pytest.param(
            {"calls": [], "extra": "x"}, ("extra",), "forbid, allow or a list", id="extra"
        ),
        pytest.param({"calls": [], "extra": [1]}, ("extra", 0), "must be a string", id="names"),
        pytest.param({"calls": [], "threshold": 2}, ("threshold",), "from 0 to 1", id="threshold"),
        pytest.param({"calls": [], "tools": []}, ("tools",), "mapping of tools", id="tools"),
        pytest.param({"calls": [], "tools": {"a": 1}}, ("tools", "a"), "be a mapping", id="tool"),
        pytest.param(
            {"calls": [], "tools": {"a": {"x": 1}}},
            ("tools", "a", "x"),
            "no key 'x'",
            id="tool key",
        ),
        pytest.param(
            {"calls": [], "forbidden": "a"}, ("forbidden",), "must be a list", id="forbidden"
        ),
        pytest.param(
            {"calls": [], "forbidden": [{"tool": "a", "times": 2}]},
            ("forbidden", 0, "times"),
            "no key 'times'",
            id="forbidden key",
        ),
        pytest.param(
            {"calls": [], "forbidden": [{"tool": "a", "before": {"too": "a", "b": 1}}]},
            ("forbidden", 0, "before", "too"),
            "no key 'too'",
            id="before",
        ),
        pytest.param([1], (0,), "name or a mapping", id="call"),
        pytest.param([""], (0,), "name or a mapping", id="empty name"),
        pytest.param([{"args": {}, "times": 1}], (0,), "the call has no `tool`", id="no tool"),
        pytest.param([{"tool": []}], (0, "tool"), "must not be empty", id="no tools"),
        pytest.param([{"tool": 1}], (0, "tool"), "a name or a list", id="number as tool"),
        pytest.param([{"tool": "a", "name": "b"}], (0,), "keep one of the two", id="alias"),
        pytest.param([{"a": [1]}], (0, "a"), "must be a mapping", id="list of arguments"),
        pytest.param([{"tool": "a", "args": 1}], (0, "args"), "must be a mapping", id="args"),
        pytest.param([{"tool": "a", "times": "x"}], (0, "times"), "a count or a range", id="times"),
        pytest.param([{"tool": "a", "times": "3..1"}], (0, "times"), "range", id="bounds"),
        pytest.param([{"tool": "a", "times": 0}], (0, "times"), "range", id="never"),
        pytest.param([{"tool": "a", "times": {"min": "x"}}], (0, "times"), "range", id="min"),
        pytest.param([{"tool": "a", "times": True}], (0, "times"), "range", id="true times"),
        pytest.param(
            [{"tool": "a", "optional": 1}], (0, "optional"), "true or false", id="optional"
        ),
        pytest.param(
            [{"tool": "a", "status": "x"}], (0, "status"), "any, ok or error", id="status"
        ),
        pytest.param(
            [{"tool": "a", "args_match": "x"}], (0, "args_match"), "exact", id="args_match"
        ),
        pytest.param([{"tool": "a", "args_match": 1}], (0, "args_match"), "exact", id="a number"),
        pytest.param([{"tool": "a", "defaults": 1}], (0, "defaults"), "a mapping", id="defaults"),
        pytest.param([{"any_of": []}], (0, "any_of"), "a list of calls", id="no paths"),
        pytest.param([{"in_order": []}], (0, "in_order"), "must not be empty", id="empty group"),
        pytest.param(
            [{"any_of": ["a"], "optional": True}], (0, "optional"), "no key 'optional'", id="any_of"
        ),
        pytest.param(
            [{"in_order": ["a"], "optional": 1}], (0, "optional"), "true or false", id="group"
        ),
        pytest.param(
            [{"a": {"x": {"$regx": "a"}}}], (0, "a", "x", "$regx"), "unknown", id="matcher"
        ),
        pytest.param(
            [{"a": {"x": {"$gt": 1, "abs": 2}}}], (0, "a", "x", "abs"), "unknown", id="parameter"
        ),
        pytest.param(
            [{"a": {"x": {"$regex": "(?=a)"}}}],
            (0, "a", "x", "$regex"),
            "invalid pattern",
            id="regex",
        ),
    ],
)
def test_invalid_trajectory_names_place_and_reason(
    written: Json, path: tuple[str | int, ...], message: str
) -> None:
    found = problems_of(written)
    assert path in [each[0] for each in found]
    assert any(message in each[1] for each in found)


@pytest.mark.parametrize(
    ("call", "path", "message", "hint"),
    [
        ({"find": None, "id": 1}, (0, "find"), "`find` has no arguments", "indent `id` below it"),
        (
            {"find_order": None, "order_id": 1, "all": True},
            (0, "find_order"),
            "`find_order` has no arguments",
            "indent `order_id`, `all` below it",
        ),
        (
            {"tool": "a", "args": None, "id": 1, "times": 2},
            (0, "args"),
            "`args` has no value",
            "indent `id` below it",
        ),
        (
            {"name": "a", "arguments": None, "id": 1},
            (0, "arguments"),
            "`arguments` has no value",
            "indent `id` below it",
        ),
        (
            {"a": {}, "b": {}},
            (0,),
            "a call has several tools: `a`, `b`",
            "write a list item, with its own `-`, for each call",
        ),
        (
            1,
            (0,),
            "a call must be a name or a mapping, not 1",
            "for example `find_order` or `refund: {amount: 5}`",
        ),
    ],
)
def test_misplaced_lines_of_a_call_are_one_problem(
    call: Json, path: tuple[str | int, ...], message: str, hint: str | None
) -> None:
    assert problems_of([call]) == [(path, message, hint)]


def test_calls_that_are_no_list_are_one_problem() -> None:
    assert problems_of({"find": {"id": 1}, "refund": {}}) == [
        ((), "calls must be a list, not a mapping", "begin each call with `- `")
    ]


def test_misspelled_keys_have_a_suggestion() -> None:
    found = problems_of({"calls": [{"tool": "a", "arg": {}}, {"tol": "a", "args": {}}]})
    assert "did you mean 'args'?" in [each[2] for each in found]
    assert "did you mean 'tool'?" in [each[2] for each in found]


def test_a_problem_is_reported_once() -> None:
    written = {"calls": [{"a": {"x": {"$no": 1}}}], "tools": {"b": {"args_match": "superset"}}}
    assert len(problems_of(written)) == 1


def verdict(written: Json, *calls: RecordedCall) -> bool:
    return match_calls(read_trajectory(written), calls).is_satisfied


def call(tool: str, **args: Json) -> RecordedCall:
    return RecordedCall(name=tool, args=args)


@pytest.mark.parametrize(
    ("times", "passing"),
    [
        (2, [2]),
        ("2", [2]),
        ("1..2", [1, 2]),
        ("2..", [2, 3, 4]),
        ({"min": 1}, [1, 2, 3, 4]),
        ({"max": 2}, [0, 1, 2]),
    ],
)
def test_times(times: Json, passing: list[int]) -> None:
    written = [{"tool": "a", "times": times}]
    assert [n for n in range(5) if verdict(written, *[call("a")] * n)] == passing


def test_optional_call_may_come_as_often_as_it_is_expected() -> None:
    written: Json = [{"tool": "a", "times": "2..3", "optional": True}]
    assert [n for n in range(5) if verdict(written, *[call("a")] * n)] == [0, 1, 2, 3]


def test_optional_group_comes_whole_or_not_at_all() -> None:
    written: Json = ["a", {"in_order": ["b", "c"], "optional": True}]
    assert verdict(written, call("a"))
    assert verdict(written, call("a"), call("b"), call("c"))
    assert not verdict(written, call("a"), call("b"))


def test_tools_have_options_for_their_arguments() -> None:
    written: Json = {
        "calls": [{"find": {"id": 1}}, {"find": {"id": 2}}, {"read": {"id": 3}}],
        "tools": {"f*": {"ignore": ["trace_*"], "defaults": {"page": 1}}},
    }
    rest = call("read", id=3)
    assert verdict(written, call("find", id=1, trace_id="x"), call("find", id=2, page=1), rest)
    assert not verdict(written, call("find", id=1), call("find", id=2, page=2), rest)
    assert not verdict(written, call("find", id=1), call("find", id=2), call("read", id=3, page=1))


@pytest.mark.parametrize(
    ("mode", "args", "fits"),
    [
        ("exact", {"a": 1, "b": {"c": 1}}, True),
        ("exact", {"a": 1, "b": {"c": 1}, "d": 1}, False),
        ("exact", {"a": 1}, False),
        ("superset", {"a": 1, "b": {"c": 1, "d": 2}, "e": 1}, True),
        ("partial", {"a": 1, "b": {"c": 1, "d": 2}, "e": 1}, True),
        ("superset", {"a": 1}, False),
        ("subset", {"a": 1}, True),
        ("subset", {"a": 1, "e": 1}, False),
        ("subset", {"a": 2}, False),
        ("ignore", {"e": 1}, True),
        (["a"], {"a": 1, "e": 1}, True),
        (["a"], {"a": 2}, False),
        (["a"], {}, False),
    ],
)
def test_args_match(mode: Json, args: dict[str, Json], fits: bool) -> None:
    written: Json = {"calls": [{"f": {"a": 1, "b": {"c": 1}}}], "args_match": mode}
    assert verdict(written, call("f", **args)) is fits


def test_own_args_match_comes_before_that_of_the_tool_and_of_all() -> None:
    written: Json = {
        "calls": [{"tool": "f", "args": {"a": 1}, "args_match": "exact"}, {"f": {"a": 1}}],
        "tools": {"f": {"args_match": "superset"}},
        "args_match": "subset",
    }
    assert verdict(written, call("f", a=1), call("f", a=1, b=2))
    assert not verdict(written, call("f", a=1, b=2), call("f", a=1, b=2))


def test_defaults_stand_for_arguments_that_are_left_out() -> None:
    written: Json = [{"tool": "f", "args": {"page": 1}, "defaults": {"page": 1}}]
    assert verdict(written, call("f"))
    assert not verdict(written, call("f", page=2))


def test_one_matcher_may_be_for_all_arguments() -> None:
    written: Json = [{"tool": "f", "args": {"$one_of": [{"a": 1}, {"b": 2}]}, "ignore": ["id"]}]
    assert verdict(written, call("f", b=2, id=7))
    assert not verdict(written, call("f", b=1))


def test_arguments_that_are_no_object_have_the_name_value() -> None:
    assert verdict([{"f": {"value": "x"}}], RecordedCall(name="f", args="x"))


def test_forbidden_calls_alone() -> None:
    rules = read_forbidden(["a", {"b": {"x": 1}}, {"tool": "c", "after": "d"}])
    assert [rule.pattern.tools for rule in rules] == [("a",), ("b",), ("c",)]
    with pytest.raises(InvalidExpectationError, match="must be a list"):
        read_forbidden({"a": 1})
