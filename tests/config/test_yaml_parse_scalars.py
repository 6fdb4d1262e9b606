"""Unquoted values are read as in YAML 1.1; every difference is reported."""

import re
from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentci.config.yaml_parse import MAX_NUMBER_CHARACTERS, resolve_plain_scalar


class TestAccepted:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            pytest.param("", None, id="empty"),
            pytest.param("~", None, id="tilde"),
            pytest.param("Null", None, id="null"),
            pytest.param("yes", True, id="yes"),
            pytest.param("OFF", False, id="off"),
            pytest.param("y", "y", id="y is text"),
            pytest.param("oN", "oN", id="mixed case is text"),
            pytest.param("-12", -12, id="a whole number"),
            pytest.param("1_000", 1000, id="grouped digits"),
            pytest.param("0x1F", 31, id="hexadecimal"),
            pytest.param("-0b101", -5, id="binary"),
            pytest.param("0.70", 0.7, id="a fraction"),
            pytest.param("1.", 1.0, id="a trailing dot"),
            pytest.param("1.5e+3", 1500.0, id="an exponent with its sign"),
            pytest.param("2024-01-31", "2024-01-31", id="date"),
            pytest.param("2024-01-31T10:00:00", "2024-01-31T10:00:00", id="timestamp"),
            pytest.param("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z", id="timestamp in UTC"),
            pytest.param("2024-02-31", "2024-02-31", id="invalid date is text"),
            pytest.param("12:75", "12:75", id="invalid base 60 is text"),
            pytest.param("0:30", "0:30", id="half past midnight is text"),
            pytest.param("1.2.3", "1.2.3", id="a version is text"),
            pytest.param("=", "=", id="the default value of YAML 1.1 is text"),
            pytest.param("-", "-", id="a dash is text"),
        ],
    )
    def test_scalar_is_read_without_note(self, text: str, value: object) -> None:
        reading = resolve_plain_scalar(text)
        assert (reading.value, reading.error, reading.note) == (value, None, None)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            pytest.param("1e3", 1000.0, id="an exponent without a dot"),
            pytest.param("1.5e3", 1500.0, id="an exponent without a sign"),
            pytest.param("-.5", -0.5, id="a sign before the dot"),
            pytest.param("0o17", 15, id="YAML 1.2 octal"),
            pytest.param("2024-1-5 10:00:00", "2024-01-05T10:00:00", id="YAML 1.1 date"),
            pytest.param(
                "2024-01-05t10:00:00.25 -03:30", "2024-01-05T10:00:00.250000-03:30", id="time zone"
            ),
        ],
    )
    def test_scalar_is_read_with_note(self, text: str, value: object) -> None:
        reading = resolve_plain_scalar(text)
        assert (reading.value, reading.error) == (value, None)
        assert text in str(reading.note)


class TestRejected:
    @pytest.mark.parametrize(
        ("text", "part"),
        [
            pytest.param("010", "leading zero", id="octal or decimal"),
            pytest.param("-08", "leading zero", id="text or decimal"),
            pytest.param("1:30", "the number 90", id="base 60"),
            pytest.param("-1:00:00.5", "base 60", id="base 60 with a fraction"),
            pytest.param(".nan", "JSON", id="not a number"),
            pytest.param("-.INF", "JSON", id="infinity"),
            pytest.param("1e999", "too large", id="beyond a float"),
            pytest.param(
                "9" * (MAX_NUMBER_CHARACTERS + 1), "1001 characters", id="too many digits"
            ),
            pytest.param("0o" + "7" * 6000, "6002 characters", id="very long octal"),
            pytest.param("1" + ":59" * 300_000, "900001 characters", id="very long base 60"),
            pytest.param("1" + ":59" * 300, "base 60", id="base 60 beyond a float"),
            pytest.param("0." + "1" * 100_000, "100002 characters", id="very many decimals"),
        ],
    )
    def test_ambiguous_or_invalid_scalar_is_rejected(self, text: str, part: str) -> None:
        reading = resolve_plain_scalar(text)
        assert reading.value is None
        assert part in str(reading.error)
        assert reading.hint is not None

    def test_text_length_is_not_limited(self) -> None:
        text = "2024-01-31 " + "x" * 2000
        assert resolve_plain_scalar(text).value == text

    def test_longest_allowed_number_is_read(self) -> None:
        assert resolve_plain_scalar("9" * 308).value == 10**308 - 1
        assert resolve_plain_scalar("-" + "9" * 308).value == 1 - 10**308

    @pytest.mark.parametrize(
        "text", ["9" * 309, "0x" + "f" * 400, "0b" + "1" * 998, "0o" + "7" * 400]
    )
    def test_integer_beyond_floats_is_rejected(self, text: str) -> None:
        found = resolve_plain_scalar(text)
        assert found.value is not None if text.startswith("0b") else found.value is None
        assert text.startswith("0b") or "is too large for a number" in str(found.error)


PIECES = st.sampled_from(
    [*"0123456789+-._:eEoxbTtZz ", "00", "12", "59", "2024", "-01-31", ":30", "nan", "inf", "no"]
)
# Excludes texts that YAML reads as lists, mappings or nothing.
PLAIN = (
    st.lists(PIECES, min_size=1, max_size=7)
    .map("".join)
    .map(str.strip)
    .filter(lambda text: text and not re.search(r"\A[-?:](?:\s|\Z)|:(?:\s|\Z)", text))
)


@given(PLAIN)
def test_difference_from_yaml_1_1_is_reported(text: str) -> None:
    """PyYAML is the parser of agentevals."""
    reading = resolve_plain_scalar(text)
    if reading.error is None and reading.note is None:
        assert repr(_from_pyyaml(text)) == repr(reading.value)


def _from_pyyaml(text: str) -> object:
    """The value that PyYAML reads; the text itself if PyYAML fails."""
    try:
        value = yaml.safe_load(f"[{text}]")[0]
    except (ValueError, yaml.YAMLError):
        return text
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return value
