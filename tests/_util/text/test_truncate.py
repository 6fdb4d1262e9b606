"""Text truncated to a length, with a note on the rest."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text import truncate


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


CUTS = [
    pytest.param(truncate.characters, len, id="characters"),
    pytest.param(truncate.utf16, _units, id="UTF-16"),
]


@pytest.mark.parametrize(
    ("cut", "length"), [*CUTS, pytest.param(truncate.middle, len, id="middle")]
)
class TestEveryCut:
    @given(text=st.text(st.characters(codec=None)), limit=st.integers(0, 80))
    def test_result_is_within_limit(
        self, cut: Callable[[str, int], str], length: Callable[[str], int], text: str, limit: int
    ) -> None:
        assert length(cut(text, limit)) <= limit

    @given(text=st.text(st.characters(codec=None)))
    def test_text_within_limit_is_unchanged(
        self, cut: Callable[[str, int], str], length: Callable[[str], int], text: str
    ) -> None:
        assert cut(text, length(text)) == text


@pytest.mark.parametrize(("cut", "length"), CUTS)
class TestCutAtEnd:
    @given(text=st.text(min_size=100), limit=st.integers(40, 60))
    def test_note_counts_omitted_characters(
        self, cut: Callable[[str, int], str], length: Callable[[str], int], text: str, limit: int
    ) -> None:
        start, _, note = cut(text, limit).rpartition("… (")
        left = int(note.split()[0].replace(",", ""))
        assert text.startswith(start)
        assert left == length(text) - length(start)


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        pytest.param(truncate.characters, "🙂" * 4 + "… (26 characters more)", id="characters"),
        pytest.param(
            truncate.utf16,
            "🙂" * 2 + "… (56 characters more)",
            id="UTF-16 without split characters",
        ),
    ],
)
def test_note_gives_length_of_rest(cut: Callable[[str, int], str], expected: str) -> None:
    assert cut("🙂" * 30, 26) == expected


def test_text_that_just_fits_utf16_is_unchanged() -> None:
    assert truncate.utf16("abc", 4) == "abc"


def test_end_starts_with_ellipsis_if_cut() -> None:
    assert truncate.end("abcdef", 6) == "abcdef"
    assert truncate.end("abcdefg", 6) == "\N{HORIZONTAL ELLIPSIS}cdefg"


def test_short_text_ends_with_ellipsis_if_cut() -> None:
    assert truncate.short("abcd", 4) == "abcd"
    assert truncate.short("abcde", 4) == "abc…"


class TestMiddle:
    @given(text=st.text(st.characters(exclude_characters="…"), min_size=100))
    def test_note_counts_characters_left_out(self, text: str) -> None:
        head, note, tail = truncate.middle(text, 60).split("…")
        left = int(note.split()[0].removeprefix("(").replace(",", ""))
        assert text.startswith(head[:-1])
        assert text.endswith(tail[1:])
        assert len(head[:-1]) + left + len(tail[1:]) == len(text)

    def test_more_of_the_end_is_kept(self) -> None:
        text = f"exit code 1: Traceback{'.' * 500}KeyError: 'x'"
        assert truncate.middle(text, 80) == (
            "exit code 1: Tra … (486 characters left out) … " + "." * 20 + "KeyError: 'x'"
        )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["abcdefg", "xyz"], ["abcd…", "xyz"], id="start differs"),
        pytest.param(["abcdefg", "abcdefh"], ["ab…fg", "ab…fh"], id="end differs"),
        pytest.param(["abcdefg", "abcdxfg"], ["abcdefg", "abcdxfg"], id="middle differs"),
        pytest.param(["abcdefg", "abcdefg"], ["abcd…", "abcd…"], id="equal"),
    ],
)
def test_different_names_stay_different(names: list[str], expected: list[str]) -> None:
    assert truncate.distinct(names, 5) == tuple(expected)


@pytest.mark.parametrize(
    ("lines", "limit", "expected"),
    [
        pytest.param("abc", 3, ("a", "b", "c"), id="all fit"),
        pytest.param("abcdef", 3, ("a", "… (3 lines left out) …", "e", "f"), id="first and last"),
        pytest.param("abc", 2, ("a", "… (1 line left out) …", "c"), id="one is left out"),
        pytest.param("abc", 1, ("a", "… (2 lines left out) …"), id="only the first"),
        pytest.param("", 3, (), id="none"),
    ],
)
def test_middle_lines_are_left_out(lines: str, limit: int, expected: tuple[str, ...]) -> None:
    assert truncate.truncate_lines(lines, limit) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "a b", id="two"),
        pytest.param(["a", "b", "c"], "a … c", id="more"),
        pytest.param(
            ["failed: Traceback (most recent call last):", "  File", "ValueError: x"],
            "failed: … ValueError: x",
            id="traceback",
        ),
    ],
)
def test_outline_has_first_and_last_line(lines: list[str], expected: str) -> None:
    assert truncate.join_first_and_last(lines) == expected


def test_list_counts_omitted_items() -> None:
    assert truncate.truncate_list(["a", "b", "c"], 3) == ("a", "b", "c")
    assert truncate.truncate_list(["a", "b", "c"], 1) == ("a", "… and 2 more")


class TestTakeBlocks:
    def test_blocks_after_first_oversized_one_are_dropped(self) -> None:
        assert truncate.take_blocks(["aaa", "éé", "bbbb", "c"], 8) == truncate.TruncatedBlocks(
            text="aaaéé", blocks=2
        )

    def test_blocks_are_taken_up_to_exact_limit(self) -> None:
        assert truncate.take_blocks(["aaa", "éé"], 7) == truncate.TruncatedBlocks(
            text="aaaéé", blocks=2
        )
        assert truncate.take_blocks(["aaa", "éé"], 6) == truncate.TruncatedBlocks(
            text="aaa", blocks=1
        )

    def test_no_unneeded_blocks_are_generated(self) -> None:
        made = iter(["x" * 10] * 100)
        assert truncate.take_blocks(made, 25).blocks == 2
        assert len(list(made)) == 97
