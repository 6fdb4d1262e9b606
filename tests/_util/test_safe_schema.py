"""JSON Schemas from configs, for values from agents."""

import pytest

from agentci._util.text.safe_schema import SafeSchema
from agentci.model.values import Json


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "is a mapping, or true or false"),
        ({"type": "text"}, "type: 'text' is not valid"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "'\\(\\?=a\\)' is not accepted by RE2"),
        ({"patternProperties": {"(": {}}}, "not accepted by RE2"),
        ({"$ref": "https://localhost/other.json"}, "refers to another document"),
        ({"items": [{"$ref": "other.json#/a"}]}, "."),
        ({"$ref": "#/$defs/no"}, "does not exist in the schema"),
        (
            {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
            "`unevaluatedProperties` next to `patternProperties` is not supported",
        ),
    ],
)
def test_schema_that_is_refused(schema: Json, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SafeSchema(schema)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (True, 1, None),
        ({"pattern": "^a"}, "ab", "ba"),
        ({"patternProperties": {"^n_": {"type": "number"}}}, {"n_a": 1, "b": "x"}, {"n_a": "x"}),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^n": {}},
                "additionalProperties": False,
            },
            {"a": 1, "n1": 1},
            {"a": 1, "b": 1},
        ),
        ({"additionalProperties": {"type": "null"}}, {"a": None}, {"a": 1}),
        ({"additionalProperties": False}, [], {"a": 1}),
        ({"patternProperties": {"a": False}}, "a", {"a": 1}),
        ({"$defs": {"x": {"type": "string"}}, "items": {"$ref": "#/$defs/x"}}, ["a"], [1]),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]},
            [None],
            [1],
        ),
        ({"const": {"pattern": 5, "$ref": "x"}}, {"pattern": 5, "$ref": "x"}, {}),
        ({"properties": {"pattern": {"type": "string"}}}, {"pattern": "("}, {"pattern": 1}),
        ({"format": "email"}, "no address", None),
        ({"uniqueItems": True}, [1, True, "1", {"a": [1]}, {"a": [True]}], [{"a": 1}, {"a": 1.0}]),
        ({"uniqueItems": False}, [1, 1], None),
        (
            {"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]},
            {"a": 1},
            {"b": 1},
        ),
    ],
)
def test_validation(schema: Json, good: Json, bad: Json) -> None:
    checked = SafeSchema(schema)
    assert checked.written == schema
    assert checked.accepts(good)
    assert bad is None or not checked.accepts(bad)


def test_problems_name_their_place() -> None:
    schema = SafeSchema({"properties": {"a": {"items": {"pattern": "^x"}}}, "required": ["b"]})
    assert schema.find_problems({"a": ["x", "y"]}, 5) == (
        "a[1]: 'y' does not match '^x'",
        "the value: 'b' is a required property",
    )
    assert len(schema.find_problems({"a": ["y"] * 9}, 3)) == 3


def test_schema_that_refers_to_itself_without_end() -> None:
    with pytest.raises(ValueError, match="refers to itself more than 200 levels deep"):
        SafeSchema({"$ref": "#"}).accepts(1)


def test_pattern_cannot_hang_the_check() -> None:
    schema = SafeSchema({"patternProperties": {"^(a+)+$": False}, "additionalProperties": False})
    assert not schema.accepts({"a" * 5000 + "b": 1})


def test_schema_with_exponential_references_is_refused() -> None:
    steps: dict[str, Json] = {
        f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(40)
    }
    schema: Json = {
        "unevaluatedProperties": False,
        "$defs": {**steps, "s40": {"type": "object"}},
        "allOf": [{"$ref": "#/$defs/s0"}],
    }
    with pytest.raises(ValueError, match="more than 100,000 steps"):
        SafeSchema(schema).accepts({"a": 1})


def test_unique_items_of_a_long_list_take_linear_time() -> None:
    value: Json = [{"a": number} for number in range(100_000)]
    assert SafeSchema({"uniqueItems": True}).accepts(value)


@pytest.mark.parametrize(
    ("schema", "key"), [({"properties": {"a": {"$ref": "#"}}}, "a"), ({"items": {"$ref": "#"}}, "")]
)
def test_deep_value_is_an_error_without_reaching_the_limit_of_recursion(
    schema: Json, key: str
) -> None:
    def nest(levels: int) -> Json:
        value: Json = 1
        for _ in range(levels):
            value = {key: value} if key else [value]
        return value

    assert SafeSchema(schema).accepts(nest(99))
    with pytest.raises(ValueError, match="levels deep"):
        SafeSchema(schema).accepts(nest(300))


def test_deep_schema_is_refused() -> None:
    schema: Json = {}
    for _ in range(64):
        schema = {"not": schema}
    SafeSchema(schema)
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        SafeSchema({"not": schema})


def test_steps_are_counted_from_zero_after_an_early_end() -> None:
    schema = SafeSchema({"items": {"items": {"type": "string"}}})
    for _ in range(300):
        assert len(schema.find_problems([[1, 2], [3]], 1)) == 1
    assert len(schema.find_problems([[1, 2], [3]], 9)) == 3
