import pytest

from agentci._util.text.secrets import redact, redact_members
from agentci.model.json import JsonObject


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("the key is s3cr/t!", "the key is ***", id="plain"),
        pytest.param("s3cr/t!s3cr/t!", "******", id="twice"),
        pytest.param("?key=s3cr%2Ft%21&q=1", "?key=***&q=1", id="URL-encoded"),
        pytest.param("s3cr", "s3cr", id="part of a secret"),
    ],
)
def test_secret_is_redacted(text: str, shown: str) -> None:
    assert redact(text, ("s3cr/t!",)) == shown


@pytest.mark.parametrize(
    "text",
    ['{"key": "***"}', "key: ***"],
)
def test_multiline_secret_is_redacted_in_json_and_lines(text: str) -> None:
    secret = '-- "BEGIN" --\n\u00e91234567\n--'
    written = text.replace("***", r"-- \"BEGIN\" --\n\u00e91234567\n--")
    assert redact(written, (secret,)) == text
    assert redact("  \u00e91234567\n  --", (secret,)) == "  ***\n  --"


def test_secret_inside_longer_secret_is_redacted() -> None:
    assert redact("abcdef abc", ("abc", "abcdef")) == "*** ***"


def test_secret_with_escaped_bytes_is_redacted() -> None:
    value = b"caf\xe9 1234".decode("utf-8", "surrogateescape")
    assert redact(b"caf\xe9 1234".decode("utf-8", "backslashreplace"), (value,)) == "***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "score is 'my t0ken-\u2026', no number",
            "score is 'my ***\u2026', no number",
            id="end missing",
        ),
        pytest.param(
            "exited: \u2026-f9a1c and on", "exited: \u2026*** and on", id="beginning missing"
        ),
        pytest.param("\u2026f9a1c\u2026t0ke\u2026", "\u2026***\u2026***\u2026", id="both missing"),
        pytest.param(
            "the tok\u2026 of 1\u2026a1c \u2026",
            "the tok\u2026 of 1\u2026a1c \u2026",
            id="too little left",
        ),
        pytest.param("t0ken- and f9a1c", "t0ken- and f9a1c", id="not truncated"),
    ],
)
def test_truncated_secret_is_redacted_at_ellipsis(text: str, shown: str) -> None:
    assert redact(text, ("t0ken-t0ken-f9a1c",)) == shown


@pytest.mark.parametrize("template", ["it is {}", "it's {}", 'it\'s "{}"'])
@pytest.mark.parametrize("secret", ["it's t0ken", 't0"ken\\1', "t0\t'ken\"", "t0ken\u00e9"])
def test_secret_is_redacted_in_python_repr(template: str, secret: str) -> None:
    found = redact(repr(template.format(secret)), (secret,))
    assert found[1:-1].replace("\\", "") == template.format("***")


def test_no_secrets_change_nothing() -> None:
    assert redact("***", ()) == "***"


def test_secret_is_redacted_in_keys_and_values() -> None:
    value: JsonObject = {"a key": ["the key", 1, None, {"b": ("a key", "c")}]}
    shown = {"a ***": ["the ***", 1, None, {"b": ["a ***", "c"]}]}
    assert redact_members(value, ("key",)) == shown


def test_only_number_equal_to_secret_is_redacted() -> None:
    value: JsonObject = {"pin": 83746512, "at": [837465120, 8.5, True]}
    assert redact_members(value, ("83746512",)) == {"pin": "***", "at": [837465120, 8.5, True]}
