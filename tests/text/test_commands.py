"""Annotations as workflow commands, read back by the runner's own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.model.place import Place
from agentci.text import escape
from agentci.text.commands import LEVELS, Annotation, Level, annotate
from tests.runner import Command, commands_in

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
HOSTILE_TEXT = ANY_TEXT | st.text(st.sampled_from(":%,=#[]\r\n ;0123456789ABDaed"), max_size=30)


def _annotate(*annotations: Annotation) -> str:
    return annotate(annotations, per_level=3, message_units=100, title_characters=40)


def _read(*annotations: Annotation) -> list[Command]:
    return commands_in(_annotate(*annotations))


def _made(number: int, level: Level = "error") -> Annotation:
    return Annotation(level=level, title=f"title {number}", message=f"message {number}")


def test_title_place_and_message_arrive() -> None:
    place = Place(file="evals/a,b:c.yaml", line=7, column=3)
    assert _read(
        Annotation(level="warning", title="tone: 1, 50%", message="one\n::two %0A", place=place)
    ) == [
        Command(
            "warning",
            "one\n: :two %0A",
            {"file": "evals/a,b:c.yaml", "line": "7", "col": "3", "title": "tone: 1, 50%"},
        )
    ]


def test_without_a_place_there_is_no_file() -> None:
    assert _read(_made(1)) == [Command("error", "message 1", {"title": "title 1"})]


@given(
    st.lists(
        st.builds(
            Annotation,
            level=st.sampled_from(LEVELS),
            title=HOSTILE_TEXT,
            message=HOSTILE_TEXT,
            place=st.none() | st.builds(Place, file=HOSTILE_TEXT, line=st.integers(1, 9)),
        ),
        max_size=5,
    )
)
def test_foreign_text_neither_adds_commands_nor_changes_ours(annotations: list[Annotation]) -> None:
    text = _annotate(*annotations)
    shown = [
        annotation
        for level in LEVELS
        for annotation in [each for each in annotations if each.level == level][:3]
    ]
    commands = commands_in(text)
    assert len(commands) == len(text.splitlines()) == len(shown)
    assert [command.name for command in commands] == [each.level for each in shown]
    assert all(set(command.properties) <= {"file", "line", "title"} for command in commands)
    assert "##[" not in text
    assert escape.encodable(text) == text


@given(ANY_TEXT)
def test_a_message_arrives_as_it_is_shown_in_a_log(text: str) -> None:
    [command] = _read(Annotation(level="notice", title="t", message=text))
    assert command.data == escape.log(text)


class TestTheLimits:
    @pytest.mark.parametrize("level", LEVELS)
    def test_each_level_has_its_own(self, level: Level) -> None:
        others = [_made(0, other) for other in LEVELS if other != level]
        commands = _read(*(_made(n, level) for n in range(1, 6)), *others)
        assert [c.data for c in commands if c.name == level] == [
            "message 1",
            "message 2",
            "message 3\n(2 more not shown here)",
        ]
        assert len(commands) == 5

    def test_what_just_fits_is_not_counted(self) -> None:
        assert [c.data for c in _read(_made(1), _made(2), _made(3))] == [
            f"message {n}" for n in (1, 2, 3)
        ]

    def test_errors_come_first_whatever_the_order(self) -> None:
        levels: list[Level] = ["notice", "warning", "error"]
        commands = _read(*(_made(1, level) for level in levels))
        assert [command.name for command in commands] == ["error", "warning", "notice"]

    @given(st.text(st.sampled_from("a%🙂\n")), st.integers(1, 5))
    def test_a_message_is_cut_by_the_units_that_the_runner_counts(
        self, text: str, number: int
    ) -> None:
        long = Annotation(level="error", title="t", message=text * 20)
        commands = _read(*[long] * number)
        for command in commands:
            assert len(command.data.encode("utf-16-le")) // 2 <= 100
        assert ("more not shown" in commands[-1].data) == (number > 3)

    def test_a_title_is_cut(self) -> None:
        [command] = _read(Annotation(level="error", title="x" * 50, message="m"))
        assert len(command.properties["title"]) == 40
