"""Names in messages, and suggestions for misspelled ones."""

from collections.abc import Sequence

import pytest

from agentci._util.text.suggest import find_nearest, join_with_or, quote_name, suggest_name


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        pytest.param("treshold", ["timeout", "threshold"], "threshold", id="a letter is missing"),
        pytest.param("in-order", ["EXACT", "IN_ORDER"], "IN_ORDER", id="case and hyphens"),
        pytest.param("Name", ["name", "NAME"], "name", id="first of equals"),
        pytest.param("zap", ["threshold"], None, id="nothing similar"),
        pytest.param("zap", [], None, id="no names"),
    ],
)
def test_nearest_name_is_found(name: str, known: Sequence[str], expected: str | None) -> None:
    assert find_nearest(name, known) == expected


def test_hint_suggests_nearest_name() -> None:
    assert suggest_name("treshold", ["threshold"]) == "did you mean 'threshold'?"
    assert suggest_name("zap", ["threshold"]) is None


@pytest.mark.parametrize(
    ("names", "expected"), [("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")]
)
def test_choice_is_joined_with_or(names: str, expected: str) -> None:
    assert join_with_or(list(names)) == expected


def test_quoted_name_is_one_short_line() -> None:
    assert quote_name("it's\na") == '"it\'s\\na"'
    assert quote_name("x" * 99) == f"'{'x' * 39}…'"
