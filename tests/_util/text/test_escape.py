"""Untrusted text, escaped for terminals, logs and XML."""

import unicodedata
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text import escape
from tests.helpers.runner import COMMANDS, commands_in

ANY_TEXT = st.text(st.characters(codec=None))
COMMAND_PIECES = [
    *("::", ":", "##[", "##", "#[", "[", "]", " ", "\t", "\n", "\r", "\r\n", "=", ",", "x"),
    *("\x1b[31m", "\x1b", "\x00", "\x85", "\u2028", "\u3000", "\u200b", "\u202e", "\ufeff"),
    *COMMANDS,
]
HOSTILE_TEXT = ANY_TEXT | st.lists(st.sampled_from(COMMAND_PIECES), max_size=12).map("".join)


class TestRemoveControl:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("it's 5 > 3, naïve 中文 🙂\tok\n", None, id="readable text"),
            pytest.param("\x1b[1;31mred\x1b[0m", "red", id="colours"),
            pytest.param("\x9b31mred", "red", id="colours by 8-bit CSI"),
            pytest.param("a\x1b]0;title\x07b", "ab", id="a terminal's title"),
            pytest.param("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link", id="hyperlinks"),
            pytest.param("a\x1b]0;never closed\nb", "a\nb", id="unterminated string"),
            pytest.param("a\x1bcb", "ab", id="a reset of the terminal"),
            pytest.param("a\x1b\x1b[31m[31mb", "a[31mb", id="split sequence"),
            pytest.param("pass\b\b\b\bfail", "passfail", id="backspaces"),
            pytest.param(
                "a\rb\r\nc\x0bd\x0ce\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh", id="line ends"
            ),
            pytest.param("user\u202etxt.exe\u2066x\u200f", "usertxt.exex", id="text direction"),
            pytest.param("half \ud83d pair", "half � pair", id="unpaired surrogate"),
            pytest.param("a\x00b\x7fc\x82d", "abcd", id="control characters"),
        ],
    )
    def test_only_visible_text_is_kept(self, text: str, expected: str | None) -> None:
        assert escape.remove_control(text) == (text if expected is None else expected)

    @given(HOSTILE_TEXT)
    def test_only_tabs_and_line_ends_remain(self, text: str) -> None:
        left = {c for c in escape.remove_control(text) if unicodedata.category(c) in {"Cc", "Cs"}}
        assert left <= {"\t", "\n"}

    @given(HOSTILE_TEXT)
    def test_second_pass_changes_nothing(self, text: str) -> None:
        assert escape.remove_control(escape.remove_control(text)) == escape.remove_control(text)

    @given(HOSTILE_TEXT)
    def test_flattened_text_is_one_line(self, text: str) -> None:
        line = escape.flatten_line(text)
        assert len(line.splitlines()) <= 1
        assert line == line.strip()


class TestEscapeForLog:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("std::string a::b", None, id="colons inside a line"),
            pytest.param("::error::x", ": :error::x", id="start of text"),
            pytest.param("ok\n \t::error::x", "ok\n \t: :error::x", id="after white space"),
            pytest.param(
                "\u3000\u2003::error::x", "\u3000\u2003: :error::x", id="after wide white space"
            ),
            pytest.param(
                "\ufeff\u200b::error::x",
                "\ufeff\u200b: :error::x",
                id="after zero-width characters",
            ),
            pytest.param("ok\r::error::x", "ok\n: :error::x", id="after a lone carriage return"),
            pytest.param(":\x00:error::x", ": :error::x", id="joined by removed characters"),
            pytest.param("50% ##[error]x", "50% ## [error]x", id="old form inside a line"),
            pytest.param("####[[error]x", "#### [[error]x", id="old form with more brackets"),
        ],
    )
    def test_workflow_command_is_broken_up(self, text: str, expected: str | None) -> None:
        assert escape.escape_for_log(text) == (text if expected is None else expected)

    @given(HOSTILE_TEXT)
    def test_escaped_text_has_no_workflow_command(self, text: str) -> None:
        assert commands_in(escape.escape_for_log(text)) == []
        assert commands_in(escape.escape_for_log_line(text)) == []

    @given(HOSTILE_TEXT)
    def test_escaping_only_adds_spaces(self, text: str) -> None:
        assert escape.escape_for_log(text).replace(" ", "") == escape.remove_control(text).replace(
            " ", ""
        )

    def test_blank_lines_take_linear_time(self) -> None:
        text = " \n" * 200_000
        assert escape.escape_for_log(text) == text


class TestCommandParser:
    """The helper of these tests parses commands as the runner does."""

    @pytest.mark.parametrize(
        ("log", "name", "properties", "data"),
        [
            pytest.param("::error::x", "error", {}, "x", id="plain"),
            pytest.param(" \u3000::Error ::x", "error", {}, "x", id="after white space"),
            pytest.param("a\r::debug::x", "debug", {}, "x", id="after a carriage return"),
            pytest.param("::error file=a%3Ab,line=3::1%25%0A2", "error",
                         {"file": "a:b", "line": "3"}, "1%\n2", id="escaped"),
            pytest.param("so ##[set-output name=a]b", "set-output", {"name": "a"}, "b", id="old"),
        ],
    )  # fmt: skip
    def test_command_is_found(
        self, log: str, name: str, properties: dict[str, str], data: str
    ) -> None:
        [command] = commands_in(log)
        assert (command.name, command.properties, command.data) == (name, properties, data)

    @pytest.mark.parametrize("log", ["x ::error::y", "::unknown::x", "::error", "#[error]x"])
    def test_text_without_command_is_ignored(self, log: str) -> None:
        assert commands_in(log) == []


class TestEscapeForXml:
    @given(HOSTILE_TEXT)
    def test_escaped_text_survives_xml_round_trip(self, text: str) -> None:
        element = ET.Element("a", {"b": escape.escape_for_xml(text)})
        element.text = escape.escape_for_xml(text)
        parsed = ET.fromstring(ET.tostring(element, encoding="utf-8"))
        assert (parsed.text or "") == parsed.get("b") == escape.escape_for_xml(text)

    def test_characters_outside_xml_are_replaced(self) -> None:
        assert escape.escape_for_xml("a\ufffeb\uffffc\x1b[31m\x00\ud800") == "a�b�c�"


def test_only_unpaired_surrogates_are_replaced() -> None:
    assert escape.replace_surrogates("naïve\r\x1b 🙂") == "naïve\r\x1b 🙂"
    assert escape.replace_surrogates("a\udfffb").encode() == "a�b".encode()
