"""Values without quotes: as YAML 1.1 reads them, unless something is said about it."""

import re
from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentci.config.yaml_scalars import MAX_NUMBER_CHARACTERS, resolve_plain_scalar


class TestTaken:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            pytest.param("", None, id="nothing"),
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
            pytest.param("2024-01-31", "2024-01-31", id="a day"),
            pytest.param("2024-01-31T10:00:00", "2024-01-31T10:00:00", id="a moment"),
            pytest.param("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z", id="a moment in UTC"),
            pytest.param("2024-02-31", "2024-02-31", id="no day of the calendar is text"),
            pytest.param("12:75", "12:75", id="no number in base 60 is text"),
            pytest.param("0:30", "0:30", id="half past midnight is text"),
            pytest.param("1.2.3", "1.2.3", id="a version is text"),
            pytest.param("=", "=", id="the default value of YAML 1.1 is text"),
            pytest.param("-", "-", id="a dash is text"),
        ],
    )
    def test_without_a_word(self, text: str, value: object) -> None:
        reading = resolve_plain_scalar(text)
        assert (reading.value, reading.error, reading.note) == (value, None, None)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            pytest.param("1e3", 1000.0, id="an exponent without a dot"),
            pytest.param("1.5e3", 1500.0, id="an exponent without a sign"),
            pytest.param("-.5", -0.5, id="a sign before the dot"),
            pytest.param("0o17", 15, id="octal of YAML 1.2"),
            pytest.param("2024-1-5 10:00:00", "2024-01-05T10:00:00", id="a date of YAML 1.1"),
            pytest.param(
                "2024-01-05t10:00:00.25 -03:30", "2024-01-05T10:00:00.250000-03:30", id="a zone"
            ),
        ],
    )
    def test_with_a_notice(self, text: str, value: object) -> None:
        reading = resolve_plain_scalar(text)
        assert (reading.value, reading.error) == (value, None)
        assert text in str(reading.note)


class TestRefused:
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
                "9" * (MAX_NUMBER_CHARACTERS + 1), "1001 characters", id="a wall of digits"
            ),
            pytest.param("0o" + "7" * 6000, "6002 characters", id="octal without end"),
            pytest.param("1" + ":59" * 300_000, "900001 characters", id="base 60 without end"),
            pytest.param("1" + ":59" * 300, "base 60", id="base 60 beyond a float"),
            pytest.param("0." + "1" * 100_000, "100002 characters", id="decimals without end"),
        ],
    )
    def test_with_the_reason(self, text: str, part: str) -> None:
        reading = resolve_plain_scalar(text)
        assert reading.value is None
        assert part in str(reading.error)
        assert reading.hint is not None

    def test_text_may_be_of_any_length(self) -> None:
        text = "2024-01-31 " + "x" * 2000
        assert resolve_plain_scalar(text).value == text

    def test_the_longest_number_is_read(self) -> None:
        assert (
            resolve_plain_scalar("9" * MAX_NUMBER_CHARACTERS).value == 10**MAX_NUMBER_CHARACTERS - 1
        )


PIECES = st.sampled_from(
    [*"0123456789+-._:eEoxbTtZz ", "00", "12", "59", "2024", "-01-31", ":30", "nan", "inf", "no"]
)
# What makes a list, a mapping or nothing of a text is not about plain values.
PLAIN = (
    st.lists(PIECES, min_size=1, max_size=7)
    .map("".join)
    .map(str.strip)
    .filter(lambda text: text and not re.search(r"\A[-?:](?:\s|\Z)|:(?:\s|\Z)", text))
)


@given(PLAIN)
def test_what_differs_from_yaml_1_1_is_told(text: str) -> None:
    """PyYAML is what agentevals reads configs with."""
    reading = resolve_plain_scalar(text)
    if reading.error is None and reading.note is None:
        assert repr(_from_pyyaml(text)) == repr(reading.value)


def _from_pyyaml(text: str) -> object:
    """What PyYAML makes of a plain value; the text where it makes an error of it."""
    try:
        value = yaml.safe_load(f"[{text}]")[0]
    except (ValueError, yaml.YAMLError):
        return text
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return value
