"""Names in messages."""

from collections.abc import Sequence

import pytest

from agentci._util.text.suggest import find_nearest, join_with_or, quote_name, suggest_name


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        pytest.param("treshold", ["timeout", "threshold"], "threshold", id="a letter is missing"),
        pytest.param("in-order", ["EXACT", "IN_ORDER"], "IN_ORDER", id="case and hyphens"),
        pytest.param("Name", ["name", "NAME"], "name", id="of equals the first"),
        pytest.param("zap", ["threshold"], None, id="nothing like it"),
        pytest.param("zap", [], None, id="nothing at all"),
    ],
)
def test_the_name_that_was_meant(name: str, known: Sequence[str], expected: str | None) -> None:
    assert find_nearest(name, known) == expected


def test_a_hint_names_it() -> None:
    assert suggest_name("treshold", ["threshold"]) == "did you mean 'threshold'?"
    assert suggest_name("zap", ["threshold"]) is None


@pytest.mark.parametrize(
    ("names", "expected"), [("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")]
)
def test_a_choice_reads_as_a_sentence(names: str, expected: str) -> None:
    assert join_with_or(list(names)) == expected


def test_a_name_in_quotes_is_one_short_line() -> None:
    assert quote_name("it's\na") == '"it\'s\\na"'
    assert quote_name("x" * 99) == f"'{'x' * 39}…'"
