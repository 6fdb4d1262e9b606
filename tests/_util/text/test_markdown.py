"""Untrusted text inside Markdown and its HTML."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text import escape
from agentci._util.text.escape import (
    markdown_code,
    markdown_details,
    markdown_fence,
    markdown_html,
    markdown_prose,
    markdown_row,
)

PIECES = [
    *("`", "```", "~~~", "|", "\\", "<b>", "</details>", "<!--", "@user", "#12", "www.a.bc"),
    *("https://a.bc", "a@b.cd", "[x](y)", "![x](y)", "*a*", "_a_", "- ", "1. ", "> ", "# "),
    *("---", "\n", "\n\n", "&amp;", "$x$", "a", " ", "a_b", "\r", "\x1b[31m", "\ud800", "中"),
]
ANY_TEXT = st.text(st.characters(codec=None), max_size=40) | st.lists(
    st.sampled_from(PIECES), max_size=8
).map("".join)
ZERO_WIDTH_SPACE = "\u200b"


def _read_back(markdown: str) -> str:
    """The rendered text: entities and backslashes resolved, invisible marks removed."""
    text = markdown.replace(ZERO_WIDTH_SPACE, "")
    text = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
    return unescape(text)


def _render(markdown: str) -> str:
    """The text of a paragraph on GitHub, with backticks around code."""
    cmarkgfm = pytest.importorskip("cmarkgfm", reason="GitHub's Markdown is not installed")
    html = cmarkgfm.github_flavored_markdown_to_html(markdown)
    assert html.startswith("<p>")
    shown = html.removeprefix("<p>").removesuffix("</p>\n").replace(ZERO_WIDTH_SPACE, "")
    text = re.sub(r"</?code>", "`", shown)
    assert "<" not in text
    return unescape(text)


def _shown(text: str) -> str:
    return escape.escape_for_log_line(text).replace(ZERO_WIDTH_SPACE, "")


class TestProse:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("it's 5 of 12, naïve_name (ok)!", None, id="plain words"),
            pytest.param("*a* _b_ ~d~ $e$", r"\*a\* \_b\_ \~d\~ \$e\$", id="emphasis"),
            pytest.param("*a* `*b*` @c", "\\*a\\* `*b*` @\u200bc", id="code"),
            pytest.param("``a`` `b", r"\`\`a\`\` \`b", id="backticks"),
            pytest.param("a|b", r"a\|b", id="pipe"),
            pytest.param("<img src=x>&lt;", "&lt;img src=x&gt;&amp;lt;", id="HTML"),
            pytest.param("![x](y) [z](w)", r"!\[x\](y) \[z\](w)", id="images and links"),
            pytest.param("see https://x.y", r"see https\://x.y", id="URL"),
            pytest.param("WWW.x.y", r"WWW\.x.y", id="URL without a scheme"),
            pytest.param(
                "@org/team #12 GH-3", "@\u200borg/team #\u200b12 GH-\u200b3", id="mentions"
            ),
            pytest.param("# title", r"\# title", id="a heading"),
            pytest.param("- item", r"\- item", id="list item"),
            pytest.param("1. item", r"1\. item", id="numbered item"),
            pytest.param("=== ", r"\===", id="heading underline"),
            pytest.param("> quote", "&gt; quote", id="block quote"),
            pytest.param("a\n\n# b\tc", "a # b c", id="lines and tabs"),
            pytest.param("\\*", r"\\\*", id="a backslash"),
        ],
    )
    def test_markdown_syntax_is_escaped(self, text: str, expected: str | None) -> None:
        assert markdown_prose(text) == (text if expected is None else expected)

    @given(ANY_TEXT)
    def test_prose_is_one_line_with_original_text(self, text: str) -> None:
        assert "\n" not in markdown_prose(text)
        if "`" not in text:
            assert _read_back(markdown_prose(text)) == _shown(text)

    @given(ANY_TEXT)
    def test_github_shows_original_text_with_code(self, text: str) -> None:
        assert _render(f"x {markdown_prose(text)}") == f"x {_shown(text)}".strip()

    @given(ANY_TEXT)
    def test_pipe_is_always_escaped(self, text: str) -> None:
        assert not re.search(r"(?<!\\)(\\\\)*\|", markdown_prose(text))

    def test_long_prose_is_truncated(self) -> None:
        assert markdown_prose("x" * 50, limit=30) == "xxxxxxxx… (42 characters more)"


class TestCode:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("tool_call(a=[1, *b])", "`tool_call(a=[1, *b])`", id="plain code"),
            pytest.param("a`b", "<code>a&#96;b</code>", id="a backtick"),
            pytest.param("a|b", "<code>a&#124;b</code>", id="pipe"),
            pytest.param("`@a", "<code>&#96;&#64;\u200ba</code>", id="mention with a backtick"),
            pytest.param(" a\nb ", "`a b`", id="white space"),
            pytest.param("", "<code></code>", id="empty"),
        ],
    )
    def test_code_span_shows_text(self, text: str, expected: str) -> None:
        assert markdown_code(text) == expected

    @given(ANY_TEXT)
    def test_code_span_is_closed_correctly(self, text: str) -> None:
        found = re.fullmatch(r"`([^`|\n]+)`|<code>([^`|<>\n]*)</code>", markdown_code(text))
        assert found
        if found[1] is None:
            assert _read_back(found[2]) == _shown(text)
        else:
            assert found[1] == escape.escape_for_log_line(text)


class TestHtml:
    @given(ANY_TEXT)
    def test_html_has_no_tags_and_original_text(self, text: str) -> None:
        assert not set(markdown_html(text)) & {"<", ">", "\n"}
        assert markdown_html(text).count("&") == len(
            re.findall(r"&(?:lt|gt|amp);", markdown_html(text))
        )
        assert _read_back(markdown_html(text).replace("\\", "\\\\")) == _shown(text)


class TestFence:
    @given(ANY_TEXT)
    def test_only_last_line_closes_fence(self, text: str) -> None:
        ticks, *body, last, empty = markdown_fence(text).split("\n")
        assert (last, empty) == (ticks, "")
        assert re.fullmatch("`{3,}", ticks)
        assert not any(line.lstrip().startswith(ticks) for line in body)
        assert "\n".join(body) == escape.escape_for_log(text).strip("\n")

    def test_fence_is_longer_than_inner_fence(self) -> None:
        assert markdown_fence("````\nx") == "`````\n````\nx\n`````\n"


def test_row_has_cells_between_pipes() -> None:
    assert markdown_row(["a", "", "b"]) == "| a |  | b |\n"


def test_details_surround_markdown_with_blank_lines() -> None:
    expected = "<details>\n<summary>t</summary>\n\n- a\n\n</details>\n\n"
    assert markdown_details("t", "- a\n\n") == expected
