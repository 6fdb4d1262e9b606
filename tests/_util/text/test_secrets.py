import pytest

from agentci._util.text.secrets import redact, redact_members
from agentci.model.json import JsonObject


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("the key is s3cr/t!", "the key is ***", id="as it is"),
        pytest.param("s3cr/t!s3cr/t!", "******", id="as often as it is there"),
        pytest.param("?key=s3cr%2Ft%21&q=1", "?key=***&q=1", id="in an address"),
        pytest.param("s3cr", "s3cr", id="no part of it"),
    ],
)
def test_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redact(text, ("s3cr/t!",)) == shown


@pytest.mark.parametrize(
    "text",
    ['{"key": "***"}', "key: ***"],
)
def test_of_many_lines_it_is_hidden_in_json_and_line_by_line(text: str) -> None:
    secret = '-- "BEGIN" --\n\u00e91234567\n--'
    written = text.replace("***", r"-- \"BEGIN\" --\n\u00e91234567\n--")
    assert redact(written, (secret,)) == text
    assert redact("  \u00e91234567\n  --", (secret,)) == "  ***\n  --"


def test_one_within_another_leaves_nothing_of_it() -> None:
    assert redact("abcdef abc", ("abc", "abcdef")) == "*** ***"


def test_bytes_that_are_no_text_are_found_where_they_are_spelt_out() -> None:
    value = b"caf\xe9 1234".decode("utf-8", "surrogateescape")
    assert redact(b"caf\xe9 1234".decode("utf-8", "backslashreplace"), (value,)) == "***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "score is 'my t0ken-\u2026', no number", "score is 'my ***\u2026', no number", id="end"
        ),
        pytest.param("exited: \u2026-f9a1c and on", "exited: \u2026*** and on", id="beginning"),
        pytest.param("\u2026f9a1c\u2026t0ke\u2026", "\u2026***\u2026***\u2026", id="both"),
        pytest.param(
            "the tok\u2026 of 1\u2026a1c \u2026", "the tok\u2026 of 1\u2026a1c \u2026", id="little"
        ),
        pytest.param("t0ken- and f9a1c", "t0ken- and f9a1c", id="nothing was cut"),
    ],
)
def test_half_of_one_is_hidden_where_an_ellipsis_stands_for_the_rest(text: str, shown: str) -> None:
    assert redact(text, ("t0ken-t0ken-f9a1c",)) == shown


@pytest.mark.parametrize("said", ["it is {}", "it's {}", 'it\'s "{}"'])
@pytest.mark.parametrize("secret", ["it's t0ken", 't0"ken\\1', "t0\t'ken\"", "t0ken\u00e9"])
def test_it_is_hidden_in_quotes_of_python(said: str, secret: str) -> None:
    found = redact(repr(said.format(secret)), (secret,))
    assert found[1:-1].replace("\\", "") == said.format("***")


def test_without_secrets_nothing_is_hidden() -> None:
    assert redact("***", ()) == "***"


def test_values_have_it_nowhere() -> None:
    value: JsonObject = {"a key": ["the key", 1, None, {"b": ("a key", "c")}]}
    shown = {"a ***": ["the ***", 1, None, {"b": ["a ***", "c"]}]}
    assert redact_members(value, ("key",)) == shown


def test_a_number_that_is_one_is_hidden_and_no_other_is() -> None:
    value: JsonObject = {"pin": 83746512, "at": [837465120, 8.5, True]}
    assert redact_members(value, ("83746512",)) == {"pin": "***", "at": [837465120, 8.5, True]}
