"""Line and column of a path in a JSON text."""

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci._util.text.json_document import JsonPositions

TEXT = """{
  "name": "x",
  "cases": [
    {"id": "a"},
    { "id" : "b",
      "na\\u00efve": [[], {"deep": null}] }
  ]
}
"""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param([], (1, 1), id="the root"),
        pytest.param(["name"], (2, 3), id="a field, at its key"),
        pytest.param(["cases", 0], (4, 5), id="an item"),
        pytest.param(["cases", 1, "id"], (5, 7), id="blanks before the colon"),
        pytest.param(["cases", 1, "naïve", 1, "deep"], (6, 27), id="a key with an escape"),
        pytest.param(["cases", 2], (3, 3), id="no such item: its list"),
        pytest.param(["cases", 0, "name"], (4, 5), id="no such field: its object"),
        pytest.param(["name", "x"], (2, 3), id="into a string: the string"),
    ],
)
def test_path_has_line_and_column(path: Sequence[str | int], place: tuple[int, int]) -> None:
    assert JsonPositions(TEXT).find_path(path) == place


def test_last_duplicate_key_is_found() -> None:
    assert JsonPositions('{"a": 1,\n"a": 2}').find_path(["a"]) == (2, 1)


@pytest.mark.parametrize("text", ['{"a" oops', '{"a": 1, oops', '{"a": [1', "{" * 100_000])
def test_broken_text_gives_last_valid_position(text: str) -> None:
    assert JsonPositions(text).find_path(["b"]) == (1, 1)


@given(JSON, st.sampled_from([None, 1]))
def test_every_value_is_found_at_its_position(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    lines, places = text.splitlines(), JsonPositions(text)
    for path, inner in _walk(value):
        line, column = places.find_path(path)
        rest = lines[line - 1][column - 1 :]
        if path and isinstance(path[-1], str):
            assert rest.startswith(json.dumps(path[-1]) + ": ")
        else:
            assert rest.startswith(json.dumps(inner, indent=indent).splitlines()[0])


@example("{{}", ["a"])
@given(st.text(alphabet='{}[]",:a1 \n\\'), st.lists(st.sampled_from(["a", 0, 1]), max_size=3))
def test_any_text_gives_valid_position(text: str, path: Sequence[str | int]) -> None:
    line, column = JsonPositions(text).find_path(path)
    assert line <= text.count("\n") + 1
    assert column >= 1


def _walk(value: object) -> Sequence[tuple[tuple[str | int, ...], object]]:
    found: list[tuple[tuple[str | int, ...], object]] = [((), value)]
    members: list[tuple[str | int, object]] = []
    if isinstance(value, Mapping):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    for key, inner in members:
        found += [((key, *path), each) for path, each in _walk(inner)]
    return found
