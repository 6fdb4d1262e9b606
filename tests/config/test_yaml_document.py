"""Values of YAML files and their places, and limits on nesting and size."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.config.yaml_document import YamlDocument, read_yaml
from agentci.config.yaml_parse import MAX_DEPTH, MAX_NODES
from agentci.errors import InputError
from agentci.model.values import Json, Place, Problem

CONFIG = """\
# judged every night
evaluators:
  - name: first
    type: code
    config: {limits: [1, 20]}
  - name: second
gate:
    min_score: 0.5
"""


def _read(text: str | bytes) -> YamlDocument:
    return read_yaml(text.encode() if isinstance(text, str) else text, file="a.yaml")


def _problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        _read(text)
    return caught.value.problems


def _try_read(text: str | bytes) -> tuple[tuple[Problem, ...], YamlDocument | None]:
    try:
        document = _read(text)
    except InputError as caught:
        return caught.problems, None
    return document.problems, document


class TestPlaces:
    @pytest.mark.parametrize(
        ("path", "line", "column"),
        [
            pytest.param((), 2, 1, id="top level, below a comment"),
            pytest.param(("evaluators",), 3, 3, id="a list"),
            pytest.param(("evaluators", 0), 3, 5, id="an item"),
            pytest.param(("evaluators", 1, "name"), 6, 11, id="a value of an item"),
            pytest.param(("evaluators", 0, "config", "limits", 1), 5, 26, id="within brackets"),
            pytest.param(("gate", "min_score"), 8, 16, id="a value of a mapping"),
            pytest.param(("gate", "min_rate"), 8, 5, id="missing key: its mapping"),
            pytest.param(("evaluators", 9, "name"), 3, 3, id="missing item: its list"),
            pytest.param(("evaluators", "name"), 3, 3, id="a key of a list"),
            pytest.param(("gate", "min_score", "x", 0), 8, 16, id="below a value: the value"),
        ],
    )
    def test_value_has_its_place(self, path: tuple[str | int, ...], line: int, column: int) -> None:
        assert _read(CONFIG).place_of(path) == Place(file="a.yaml", line=line, column=column)

    @pytest.mark.parametrize(
        ("path", "line", "column"),
        [
            pytest.param(("gate",), 7, 1, id="top level"),
            pytest.param(("gate", "min_score"), 8, 5, id="key of a mapping"),
            pytest.param(("evaluators", 1), 6, 5, id="an item has no key"),
            pytest.param(("gate", "min_rate"), 8, 5, id="missing key: its mapping"),
        ],
    )
    def test_key_has_its_place(self, path: tuple[str | int, ...], line: int, column: int) -> None:
        place = _read(CONFIG).place_of(path, key=True)
        assert place == Place(file="a.yaml", line=line, column=column)

    def test_aliased_value_has_place_of_anchor(self) -> None:
        document = _read("a: &a {x: 1}\nb: *a\nc: {<<: *a}\n")
        assert document.place_of(("b", "x")).line == 1
        assert document.place_of(("c", "x"), key=True).line == 1


class TestData:
    def test_plain_text_is_the_unparsed_value(self) -> None:
        document = _read("a: no\nb: 'no'\nc: [1e3]\n")
        assert document.plain_text(("a",)) == "no"
        assert document.plain_text(("b",)) is None
        assert document.plain_text(("c", 0)) == "1e3"
        assert document.plain_text(("c",)) is None
        assert document.plain_text(("d", 0)) is None

    def test_value_is_found_by_path(self) -> None:
        document = _read(CONFIG)
        assert document.value(("evaluators", 0, "config")) == {"limits": [1, 20]}
        assert document.value(("evaluators", 2)) is None

    def test_keys_are_strings_as_written(self) -> None:
        data = _read("2024: a\n1e3: b\n2024-01-01: c\n0644: d\ntrue: e\n").data
        assert list(data) == ["2024", "1e3", "2024-01-01", "0644", "true"]

    def test_own_keys_override_merged_keys(self) -> None:
        document = _read("a: &a {x: 1, y: 1}\nb: &b {x: 2, y: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\n")
        assert document.data["c"] == {"x": 1, "y": 3, "z": 2}

    def test_quoted_merge_key_is_an_ordinary_key(self) -> None:
        assert _read('a: {"<<": 1}').data == {"a": {"<<": 1}}

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            pytest.param("!!str 010", "010", id="string"),
            pytest.param('!!int "3"', 3, id="a number in quotes"),
            pytest.param("!!float 1", 1, id="a whole number"),
            pytest.param("! 1", "1", id="non-specific tag"),
            pytest.param("!!seq [1]", [1], id="a list"),
            pytest.param("!!map {a: 1}", {"a": 1}, id="a mapping"),
        ],
    )
    def test_standard_tag_is_applied(self, text: str, value: Json) -> None:
        document = _read(f"a: {text}")
        assert (document.data["a"], document.problems) == (value, ())

    def test_mismatched_tag_is_reported(self) -> None:
        (problem,) = _read("a: !!int many").problems
        assert problem.message == "'many' does not match its YAML tag"


class TestLimits:
    def test_nesting_is_counted_through_aliases(self) -> None:
        half = MAX_DEPTH // 2
        nested = f"x: &x {'[' * half}{']' * half}\n"
        assert _read(f"{nested}y: {'[' * (half - 1)}*x{']' * (half - 1)}").problems == ()
        (problem,) = _problems(f"{nested}y: {'[' * half}*x{']' * half}")
        assert problem.message == f"nested more than {MAX_DEPTH} levels deep"
        assert problem.place == Place(file="a.yaml", line=2, column=4 + half)

    @pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
    def test_excessive_nesting_is_rejected(self, opening: str) -> None:
        (problem,) = _problems(opening * 100_000)
        assert problem.message == f"nested more than {MAX_DEPTH} levels deep"

    def test_values_are_counted_through_aliases(self) -> None:
        many = f"a: &a [{'1,' * 999}]\n"
        repeats = MAX_NODES // 1000
        assert _read(f"{many}b: [{'*a,' * (repeats - 2)}]").problems == ()
        (problem,) = _problems(f"{many}b: [{'*a,' * repeats}]")
        assert problem.message.startswith("the file has more than 100,000 values")


class TestMalformedFiles:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("traces: [\n", "a.yaml:1:9: invalid YAML: `[` is not closed (add `]`)"),
            ("é: [x\nchecks: 1\n", "a.yaml:1:4: invalid YAML: `[` is not closed (add `]`)"),
            ("a: [b, {c: d]\n\n", "a.yaml:1:4: invalid YAML: `[` is not closed (add `]`)"),
            ("a: [b, {c: [d]\n", "a.yaml:1:8: invalid YAML: `{` is not closed (add `}`)"),
        ],
    )
    def test_bracket_that_is_not_closed_is_the_place(self, text: str, expected: str) -> None:
        assert [str(each) for each in _problems(text)] == [expected]

    def test_rest_of_a_file_is_not_read_to_find_the_bracket(self) -> None:
        rest = "e, " * 2000
        (problem,) = _problems(f"a: [b\nc: d, {rest}]")
        assert problem.message == "invalid YAML: `[` is not closed"

    @given(st.binary(max_size=60))
    def test_any_bytes_are_read_or_rejected_with_place(self, data: bytes) -> None:
        problems, document = _try_read(data)
        assert all(problem.place for problem in problems)
        assert document is None or isinstance(document.data, dict)

    @given(st.text(alphabet="ab:-?[]{}&*!|>'\"#%@`,<~1.\n\t \\", max_size=60))
    def test_any_yaml_is_read_or_rejected_with_place(self, text: str) -> None:
        problems, document = _try_read(f"a:\n {text}")
        assert all(problem.place for problem in problems)
        assert document is None or json.dumps(document.data, allow_nan=False)


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=10
)
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
STEPS = st.lists(st.integers(-1, 4) | st.sampled_from(string.ascii_lowercase), max_size=4)


class TestAnyConfig:
    @given(st.dictionaries(WORDS, VALUES, max_size=4))
    def test_json_is_read_unchanged(self, data: dict[str, Json]) -> None:
        document = _read(json.dumps(data, ensure_ascii=False))
        assert document.data == data
        assert [problem for problem in document.problems if problem.severity == "error"] == []

    @given(st.dictionaries(WORDS, VALUES, max_size=4), STEPS)
    def test_every_path_has_a_place(self, data: dict[str, Json], path: list[str | int]) -> None:
        document = _read(json.dumps(data, ensure_ascii=False, indent=1))
        for key in (False, True):
            place = document.place_of(path, key=key)
            assert place.line >= 1
            assert place.column is not None
