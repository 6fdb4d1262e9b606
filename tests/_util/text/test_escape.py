"""Foreign text, made harmless for terminals, logs and XML."""

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


class TestPlain:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("it's 5 > 3, naïve 中文 🙂\tok\n", None, id="what is readable stays"),
            pytest.param("\x1b[1;31mred\x1b[0m", "red", id="colours"),
            pytest.param("\x9b31mred", "red", id="colours by the one-character introducer"),
            pytest.param("a\x1b]0;title\x07b", "ab", id="a terminal's title"),
            pytest.param("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link", id="hyperlinks"),
            pytest.param("a\x1b]0;never closed\nb", "a\nb", id="a string ends with its line"),
            pytest.param("a\x1bcb", "ab", id="a reset of the terminal"),
            pytest.param("a\x1b\x1b[31m[31mb", "a[31mb", id="no sequence out of two halves"),
            pytest.param("pass\b\b\b\bfail", "passfail", id="nothing written over"),
            pytest.param(
                "a\rb\r\nc\x0bd\x0ce\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh", id="ends"
            ),
            pytest.param("user\u202etxt.exe\u2066x\u200f", "usertxt.exex", id="order of reading"),
            pytest.param("half \ud83d pair", "half � pair", id="half a surrogate pair"),
            pytest.param("a\x00b\x7fc\x82d", "abcd", id="control characters"),
        ],
    )
    def test_leaves_what_a_reader_can_see(self, text: str, expected: str | None) -> None:
        assert escape.remove_control(text) == (text if expected is None else expected)

    @given(HOSTILE_TEXT)
    def test_leaves_no_control_character_but_tabs_and_line_ends(self, text: str) -> None:
        left = {c for c in escape.remove_control(text) if unicodedata.category(c) in {"Cc", "Cs"}}
        assert left <= {"\t", "\n"}

    @given(HOSTILE_TEXT)
    def test_has_nothing_left_to_do_the_second_time(self, text: str) -> None:
        assert escape.remove_control(escape.remove_control(text)) == escape.remove_control(text)

    @given(HOSTILE_TEXT)
    def test_a_plain_line_is_one_line(self, text: str) -> None:
        line = escape.flatten_line(text)
        assert len(line.splitlines()) <= 1
        assert line == line.strip()


class TestLog:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("std::string a::b", None, id="colons inside a line stay"),
            pytest.param("::error::x", ": :error::x", id="at the start"),
            pytest.param("ok\n \t::error::x", "ok\n \t: :error::x", id="after white space"),
            pytest.param("\u3000\u2003::error::x", "\u3000\u2003: :error::x", id="of any width"),
            pytest.param("\ufeff\u200b::error::x", "\ufeff\u200b: :error::x", id="or of none"),
            pytest.param("ok\r::error::x", "ok\n: :error::x", id="after a lone carriage return"),
            pytest.param(":\x00:error::x", ": :error::x", id="put together by what is removed"),
            pytest.param("50% ##[error]x", "50% ## [error]x", id="the old form, anywhere"),
            pytest.param("####[[error]x", "#### [[error]x", id="the old form, disguised"),
        ],
    )
    def test_breaks_what_the_runner_would_obey(self, text: str, expected: str | None) -> None:
        assert escape.escape_for_log(text) == (text if expected is None else expected)

    @given(HOSTILE_TEXT)
    def test_commands_nothing(self, text: str) -> None:
        assert commands_in(escape.escape_for_log(text)) == []
        assert commands_in(escape.escape_for_log_line(text)) == []

    @given(HOSTILE_TEXT)
    def test_is_only_ever_added_spaces_to(self, text: str) -> None:
        assert escape.escape_for_log(text).replace(" ", "") == escape.remove_control(text).replace(
            " ", ""
        )

    def test_takes_time_in_proportion_to_a_text_of_blank_lines(self) -> None:
        text = " \n" * 200_000
        assert escape.escape_for_log(text) == text


class TestTheRunnersGrammar:
    """The port that these tests trust knows a command when it sees one."""

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
    def test_finds(self, log: str, name: str, properties: dict[str, str], data: str) -> None:
        [command] = commands_in(log)
        assert (command.name, command.properties, command.data) == (name, properties, data)

    @pytest.mark.parametrize("log", ["x ::error::y", "::unknown::x", "::error", "#[error]x"])
    def test_does_not_find(self, log: str) -> None:
        assert commands_in(log) == []


class TestXml:
    @given(HOSTILE_TEXT)
    def test_is_parsed_as_it_was_written(self, text: str) -> None:
        element = ET.Element("a", {"b": escape.escape_for_xml(text)})
        element.text = escape.escape_for_xml(text)
        parsed = ET.fromstring(ET.tostring(element, encoding="utf-8"))
        assert (parsed.text or "") == parsed.get("b") == escape.escape_for_xml(text)

    def test_replaces_what_xml_cannot_say(self) -> None:
        assert escape.escape_for_xml("a\ufffeb\uffffc\x1b[31m\x00\ud800") == "a�b�c�"


def test_what_is_encodable_is_left_alone_and_the_rest_replaced() -> None:
    assert escape.replace_surrogates("naïve\r\x1b 🙂") == "naïve\r\x1b 🙂"
    assert escape.replace_surrogates("a\udfffb").encode() == "a�b".encode()
