"""Fields of JSON objects in both spellings; problems are collected, not raised."""

from collections.abc import Callable

import pytest

from agentci._util.text.json_document import JsonFieldProblem, JsonFields
from agentci.model.values import Json, JsonObject


def fields(value: JsonObject) -> JsonFields:
    return JsonFields(value, noun="a thing", path=("root",), complaints=[])


def test_both_key_spellings_are_read() -> None:
    assert fields({"first_name": "x"}).text("first_name") == "x"
    assert fields({"firstName": "x"}).text("first_name") == "x"


def test_key_in_both_spellings_is_reported_once() -> None:
    it = fields({"first_name": "x", "firstName": "y"})
    it.text("first_name")
    it.check_unknown_keys("first_name")
    assert it.problems == [
        JsonFieldProblem(
            path=("root", "firstName"), message="'first_name' and 'firstName' are the same key"
        )
    ]


@pytest.mark.parametrize(
    ("take", "value"),
    [
        pytest.param(lambda it: it.text("x"), "a", id="string"),
        pytest.param(lambda it: it.number("x"), 1.5, id="number"),
        pytest.param(lambda it: it.mapping("x"), {"any_key": [1]}, id="mapping"),
    ],
)
def test_value_of_right_type_is_returned(take: Callable[[JsonFields], Json], value: Json) -> None:
    it = fields({"x": value})
    assert take(it) == value
    assert it.problems == []


@pytest.mark.parametrize(
    ("take", "value", "message"),
    [
        pytest.param(lambda it: it.text("x"), 1, "'x' is a number, not a string", id="string"),
        pytest.param(lambda it: it.number("x"), "1", "'x' is a string, not a number", id="number"),
        pytest.param(lambda it: it.mapping("x"), [], "'x' is a list, not an object", id="mapping"),
        pytest.param(
            lambda it: it.object("x", noun="y"),
            True,
            "'x' is a boolean, not an object",
            id="object",
        ),
        pytest.param(
            lambda it: [*it.objects("x", noun="y")] or None,
            {},
            "'x' is an object, not a list",
            id="list",
        ),
    ],
)
def test_value_of_wrong_type_is_reported(
    take: Callable[[JsonFields], object], value: Json, message: str
) -> None:
    it = fields({"x": value})
    assert take(it) is None
    assert it.problems == [JsonFieldProblem(path=("root", "x"), message=message)]


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda it: it.text("x"), id="string"),
        pytest.param(lambda it: it.number("x"), id="number"),
        pytest.param(lambda it: it.mapping("x"), id="mapping"),
        pytest.param(lambda it: it.object("x", noun="y"), id="object"),
        pytest.param(lambda it: [*it.objects("x", noun="y")] or None, id="list"),
    ],
)
@pytest.mark.parametrize(
    "value", [pytest.param({}, id="absent"), pytest.param({"x": None}, id="null")]
)
def test_null_counts_as_absent(take: Callable[[JsonFields], object], value: JsonObject) -> None:
    it = fields(value)
    assert take(it) is None
    assert it.problems == []


def test_objects_in_lists_have_their_path() -> None:
    it = fields({"myItems": [{"a": 1}, None, {"b": 2}]})
    for inner in it.objects("my_items", noun="an item"):
        inner.check_unknown_keys("a")
    assert it.problems == [
        JsonFieldProblem(path=("root", "myItems", 1), message="an item is null, not an object"),
        JsonFieldProblem(path=("root", "myItems", 2, "b"), message="an item has no key 'b'"),
    ]


def test_nested_object_shares_problem_list() -> None:
    it = fields({"inner": {"a": 1}})
    inner = it.object("inner", noun="an inner thing")
    assert inner is not None
    inner.text("a")
    assert [problem.path for problem in it.problems] == [("root", "inner", "a")]


def test_required_key_must_not_be_null() -> None:
    it = fields({"a": 1, "b": None, "nam": "x"})
    it.require("a", "b", "name")
    assert it.problems == [
        JsonFieldProblem(path=("root",), message="a thing needs 'b'"),
        JsonFieldProblem(path=("root",), message="a thing needs 'name'", hint="it has 'nam'"),
    ]


def test_unknown_key_hint_uses_the_same_spelling() -> None:
    it = fields({"final_respons": 1, "finalRespons": 2, "zzz": 3, "final_response": 4})
    it.check_unknown_keys("final_response")
    assert it.problems == [
        JsonFieldProblem(
            path=("root", "final_respons"),
            message="a thing has no key 'final_respons'",
            hint="did you mean 'final_response'?",
        ),
        JsonFieldProblem(
            path=("root", "finalRespons"),
            message="a thing has no key 'finalRespons'",
            hint="did you mean 'finalResponse'?",
        ),
        JsonFieldProblem(path=("root", "zzz"), message="a thing has no key 'zzz'"),
    ]


def test_deeply_nested_value_is_rejected() -> None:
    deep: Json = 1
    for _ in range(65):
        deep = [deep]
    it = fields({"args": {"x": deep}, "fine": {"x": [[1]]}})
    assert it.mapping("args") is None
    assert it.mapping("fine") == {"x": [[1]]}
    assert [problem.message for problem in it.problems] == [
        "'args' is nested deeper than 64 levels"
    ]
