"""Secrets are found in text however they are written there."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import quoteattr

import pytest

from agentci._util.text.escape import remove_control
from agentci._util.text.secrets import Redactor, redact
from agentci.model.values import JsonObject, replace
from agentci.reports.workflow_commands import escape_data, escape_property
from tests.helpers.reports import make_result


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
    written = repr(template.format(secret))
    found = redact(written, (secret,))
    assert found[1:-1].replace("\\", "") == template.format("***")
    assert "t0" not in redact(json.dumps({"issue": written}), (secret,))


@pytest.mark.parametrize("between", ["\x1b[0m", "\u202e", "\x01", "\x1b]0;title\x07"])
def test_secret_is_redacted_despite_characters_that_reports_remove(between: str) -> None:
    shown = redact(f"it is s3cr3t-{between}value\x1b[1m!", ("s3cr3t-value",))
    assert remove_control(shown) == "it is ***!"
    assert redact(f"it is no s3{between}cret", ("s3cr3t-value",)) == f"it is no s3{between}cret"


def test_no_secrets_change_nothing() -> None:
    assert redact("***", ()) == "***"


def test_secret_is_redacted_in_keys_and_values() -> None:
    value: JsonObject = {"a secret": ["the secret", 1, None, {"b": ("a secret", "c")}]}
    shown = {"a ***": ["the ***", 1, None, {"b": ("a ***", "c")}]}
    assert Redactor(["secret"]).redact_value(value) == shown


def test_only_number_equal_to_secret_is_redacted() -> None:
    value: JsonObject = {"pin": 83746512, "at": [837465120, 8.5, True]}
    shown = {"pin": "***", "at": [837465120, 8.5, True]}
    assert Redactor(["83746512"]).redact_value(value) == shown


VALUE = "s3cr3t VALUE/of+the&<job>\"'0123\u00e9?~"


@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(lambda text: json.dumps(json.dumps(text))[3:-3], id="JSON in JSON"),
        pytest.param(lambda text: json.dumps(text)[1:-1].replace("/", "\\/"), id="JSON of PHP"),
        pytest.param(
            lambda text: (
                json.dumps(text)[1:-1]
                .replace("<", "\\u003c")
                .replace(">", "\\u003e")
                .replace("&", "\\u0026")
            ),
            id="JSON of Go",
        ),
        pytest.param(html.escape, id="HTML"),
        pytest.param(lambda text: html.escape(text, quote=False), id="XML text"),
        pytest.param(quoteattr, id="XML attribute"),
        pytest.param(escape_data, id="workflow command"),
        pytest.param(escape_property, id="property of a workflow command"),
        pytest.param(quote, id="URL path"),
        pytest.param(quote_plus, id="URL query"),
        pytest.param(lambda text: re.sub("(..)", r"%\1", text.encode().hex()), id="URL, all"),
        pytest.param(
            lambda text: re.sub("(..)", r"%\1", text.encode().hex().upper()), id="URL, all, upper"
        ),
        pytest.param(lambda text: quote(text, safe="!'()*~"), id="encodeURIComponent"),
        pytest.param(
            lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text, safe="")),
            id="URL, lower case",
        ),
        pytest.param(lambda text: text.encode().hex(), id="hexadecimal"),
        pytest.param(lambda text: text.encode().hex().upper(), id="hexadecimal, upper case"),
    ],
)
def test_encoded_secret_is_redacted(encode: Callable[[str], str]) -> None:
    assert redact(encode(VALUE).strip('"'), (VALUE,)) == "***"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("padding", ["", "="])
@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_secret_in_base64_is_redacted_at_each_position(
    encode: Callable[[bytes], bytes], padding: str, before: int, after: int
) -> None:
    text = encode(before * b"\x8f" + VALUE.encode() + after * b"\xf8").decode()
    shown = redact(text if padding else text.rstrip("="), (VALUE,))
    start, _, end = shown.partition("***")
    # At most the characters that also hold bits of other bytes are left.
    assert (len(start), len(end)) <= ((before * 8 + 5) // 6, (after * 8 + 9) // 6 + 2)
    assert re.fullmatch(r"[^*]*\*\*\*[^*]*", shown)


def test_wrapped_base64_is_redacted() -> None:
    secret = "key " * 40
    shown = redact(base64.encodebytes(secret.strip().encode()).decode(), (secret.strip(),))
    assert set(shown.split()) == {"***"}


def test_short_lines_and_values_are_shown() -> None:
    secrets = Redactor(["short", "", " padded ", "one line\n{\n  another"])
    assert secrets.secrets == ("padded", "one line\n{\n  another")
    assert secrets.redact("short padded { one line; another") == "short *** { ***; ***"


def test_choices_and_digests_of_results_are_kept() -> None:
    result = make_result("failed", 0.25, misses=("failed 123456",), details={"n": 123456})
    result = replace(result, id="123456", fingerprint="123456")
    found = Redactor(["failed", "123456"]).redact_value((result,))[0]
    assert (found.status, found.id, found.fingerprint) == ("failed", "123456", "123456")
    assert found.judgement is not None
    assert (found.judgement.misses, found.judgement.details) == (("*** ***",), {"n": "***"})


def test_value_without_secrets_is_the_same_object() -> None:
    result = make_result("failed", 0.1)
    assert Redactor().redact_value(result) is result
    assert Redactor(["unrelated"]).redact_value(result) == result


def test_many_secrets_are_redacted() -> None:
    secrets = tuple(f"{number:06}-secret" for number in range(500))
    assert redact(" ".join(secrets), secrets) == " ".join(500 * ["***"])


@pytest.mark.parametrize("secret", ['p"a\\ss/w€ord', "line one\nline two", "plain-secret-1"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_secret_in_json_three_levels_deep_is_hidden(secret: str, *, is_ascii: bool) -> None:
    text = secret
    for level in range(1, 5):
        text = json.dumps({"key": text, "list": [text]}, ensure_ascii=is_ascii)
        assert redact(f"found {text}", (secret,)).count("***") == 2**level, level
