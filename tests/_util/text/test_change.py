"""Changed values on one line: what differs is never cut off."""

import pytest

from agentci._util.text.change import (
    MAX_CHANGES,
    find_numbers,
    format_changes,
    list_changes,
    read_number,
    shorten_pair,
)
from agentci.model.values import Json

LONG = "We are sorry that your order arrived broken, and take it back. " * 8


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"amount": "8.50 EUR"}, {"amount": "85.00 EUR"}, "f: amount 8.50 EUR → 85.00 EUR"),
        ({"a": 1, "b": True}, {"a": 2, "b": None}, "f: a 1 → 2, b true → null"),
        ({"a": "1"}, {"a": 1}, 'f: a "1" → 1'),
        ({"a": ""}, {"a": " "}, 'f: a "" → " "'),
        ({"a": "x y"}, {"a": "x\ny"}, 'f: a "x y" → "x\\ny"'),
        ({"a": 1}, {"b": {}}, "f: a 1 → absent, b absent → {}"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}, 2]}, "f: a[1] absent → 2"),
        ("x", "y", "f: x → y"),
        ({"a": f"{LONG}1"}, {"a": f"{LONG}9000"}, "f: a …take it back. 1 → …take it back. 9000"),
    ],
)  # fmt: skip
def test_changes_are_short(before: Json, after: Json, text: str) -> None:
    assert format_changes("f", list(list_changes(before, after))) == text


def test_largest_change_is_shown_of_many() -> None:
    before: dict[str, Json] = {f"a{n}": LONG for n in range(9)} | {"n": 10, "m": 7}
    after: dict[str, Json] = {f"a{n}": LONG.upper() for n in range(9)} | {"n": 1000, "m": 0}
    text = format_changes("f", list(list_changes(before, after)))
    assert text.startswith("f: m 7 → 0, n 10 → 1000, a0 We are")
    assert text.endswith(" and 8 more arguments")
    assert len(text) < MAX_CHANGES + 50


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("short", "other", ("short", "other")),
        ("x" * 50, "y" * 50, ("x" * 19 + "…", "y" * 19 + "…")),
        ("x" * 50, "x" * 60, ("…xxxx", "…" + "x" * 14)),
        ("x" * 50 + "1", "x" * 50 + "2" + "z" * 30, ("…xxxx1", "…xxxx2" + "z" * 13 + "…")),
    ],
)
def test_pair_starts_shortly_before_it_differs(
    one: str, other: str, shown: tuple[str, str]
) -> None:
    assert shorten_pair(one, other, 20) == shown


def test_numbers_are_found_with_their_texts() -> None:
    pieces, numbers = find_numbers("1,234.50 of 7, 1,2 at 18:00")
    assert numbers == ["1,234.50", "7", "1", "2", "18", "00"]
    assert "".join(a + b for a, b in zip(pieces, [*numbers, ""], strict=True)) == (
        "1,234.50 of 7, 1,2 at 18:00"
    )
    assert [read_number(each) for each in numbers[:2]] == [1234.5, 7]
    assert read_number("9" * 400) == float("inf")
