"""Splitting of text into sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.evaluators.judged_metrics import split_sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("One.", ("One.",)),
        ("One. Two! Three? Four", ("One.", "Two!", "Three?", "Four")),
        ('He said "no." She left.', ('He said "no."', "She left.")),
        ("It costs 3.50 euros.", ("It costs 3.50 euros.",)),
        (
            "Fruits:\n1. Apples are red.\n2) Pears are green. Really.\n* Plums",
            ("Fruits:", "1. Apples are red.", "2) Pears are green.", "Really.", "* Plums"),
        ),
        ("| a | b |\n|---|---|\n| 1 | 2 |\nDone.", ("| a | b |\n|---|---|\n| 1 | 2 |", "Done.")),
        ("\u6771\u4eac\u3002\u4eac\u90fd\uff01", ("\u6771\u4eac\u3002", "\u4eac\u90fd\uff01")),
        ("---\n***\n:-)\n", ()),
    ],
)
def test_text_is_split_into_sentences(text: str, found: tuple[str, ...]) -> None:
    assert split_sentences(text) == found


@given(text=st.text())
def test_no_letter_is_lost(text: str) -> None:
    joined = "".join(split_sentences(text))
    assert [each for each in joined if each.isalpha()] == [each for each in text if each.isalpha()]
