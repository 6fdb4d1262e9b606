"""Names in messages, and suggestions for misspelled ones."""

from collections.abc import Sequence

import pytest

from agentci._util.text.suggest import (
    find_misspelled,
    find_nearest,
    join_with_or,
    quote_name,
    suggest_name,
)


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


@pytest.mark.parametrize(
    ("name", "known", "is_misspelled"),
    [
        ("get_wether", "get_weather", True),
        ("get_waether", "get_weather", True),
        ("getWeather", "get_weather", True),
        ("get-weather", "get_weather", True),
        ("GET_WEATHER", "get_weather", True),
        ("delete_acount", "delete_account", True),
        ("search_the_flihgts_adn", "search_the_flights_and", True),
        ("Bash", "bash", True),
        ("refund_order", "find_order", False),
        ("set_user", "get_user", False),
        ("db_set_user", "db_get_user", False),
        ("dbSetUser", "dbGetUser", False),
        ("search_v1", "search_v2", False),
        ("cancel_order", "cancel_offer", False),
        ("sent", "send", False),
        ("get_weather", "get_weather", False),
        ("1", "?", False),
    ],
)
def test_similar_names_are_not_misspelled(name: str, known: str, is_misspelled: bool) -> None:
    assert find_misspelled(name, [known]) == (known if is_misspelled else None)
