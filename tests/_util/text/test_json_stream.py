"""Reading of one large JSON object in chunks."""

import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.json_document import read_json, read_large_object
from agentci.errors import InputError
from agentci.model.values import Json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
BROKEN = [
    b"",
    b"[1]",
    b"{",
    b'{"a"}',
    b'{"a": }',
    b'{"a": 1,}',
    b'{"a": 1} x',
    b'{"a": 1, "a": 2}',
    b'{"items": [1, 2}',
    b'{"items": [{"a": 1, "a": 2}]}',
    b'{"items": [1 2]}',
    b'{"items": [NaN]}',
    b'{"items": [1e999]}',
    b'{"a": 1e999}',
    rb'{"items": ["\ud800"]}',
    rb'{"a": "x\uDfff"}',
    b'{"a": "\xff"}',
    b'{1: "a"}',
]


def _chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _read(data: bytes, size: int) -> tuple[dict[str, Json], list[Json]]:
    items: list[Json] = []
    return read_large_object(_chunks(data, size), {"items": items.append}), items


@given(
    members=st.dictionaries(st.text(), JSON).filter(lambda each: "items" not in each),
    items=st.lists(JSON),
    size=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_object_is_read_like_a_whole_document(
    members: dict[str, Json], items: list[Json], size: int, indent: int | None, *, ascii_only: bool
) -> None:
    whole = {"items": items, **members}
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
    found, found_items = _read(text.encode("utf-8", "surrogatepass"), size)
    assert {**found, "items": found_items} == whole


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("data", BROKEN)
def test_invalid_text_is_rejected(data: bytes, size: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (`read_json` explains it)
        _read(data, size)
    if not data.startswith(b"[1]"):  # a list is a document, too
        with pytest.raises(InputError):
            read_json(data, file="a.json")


@pytest.mark.parametrize("number", ["0", "-0", "1.5", "1e5", "-1.25E+10", "1e-5", "12345"])
def test_number_is_read_across_chunks(number: str) -> None:
    data = f'{{"items": [{number},{number} ], "a": {number}}}'.encode()
    for size in range(1, len(data)):
        assert _read(data, size) == (
            {"items": (), "a": float(number)},
            [float(number), float(number)],
        )


def test_byte_order_mark_is_skipped() -> None:
    assert _read(b'\xef\xbb\xbf{"a": 1}', 2) == ({"a": 1}, [])


def test_value_of_another_type_is_no_array() -> None:
    assert _read(b'{"items": {"a": 1}}', 5) == ({"items": {"a": 1}}, [])


def test_only_a_part_of_the_text_is_in_memory() -> None:
    item = json.dumps({"text": "x" * 1000}).encode()
    chunks = (each for _ in range(10_000) for each in (item, b", "))
    count = 0

    def add(_: Json) -> None:
        nonlocal count
        count += 1

    def text() -> Iterator[bytes]:
        yield b'{"items": ['
        yield from chunks
        yield b'{}], "a": 1}'

    tracemalloc.start()
    assert read_large_object(text(), {"items": add}) == {"items": (), "a": 1}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 10_001
    assert peak < 100_000
