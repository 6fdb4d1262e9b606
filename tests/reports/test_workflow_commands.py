"""Annotations as workflow commands, parsed by the rules of the runner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text import escape
from agentci.model.values import Place, Severity
from agentci.reports.workflow_commands import (
    ANNOTATION_MESSAGE_UNITS,
    ANNOTATION_TITLE_CHARACTERS,
    ANNOTATIONS_PER_TYPE,
    COMMANDS,
    LEVELS,
    Annotation,
    exceed_annotation_limit,
    render_annotations,
)
from tests.helpers.building import values
from tests.helpers.runner import Command, commands_in

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)
HOSTILE_TEXT = ANY_TEXT | st.text(st.sampled_from(":%,=#[]\r\n ;0123456789ABDaed"), max_size=30)


def _read(*annotations: Annotation) -> list[Command]:
    return commands_in(render_annotations(annotations))


def _made(number: int, level: Severity = "error") -> Annotation:
    return Annotation(level=level, title=f"title {number}", message=f"message {number}")


def test_title_place_and_message_are_preserved() -> None:
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


def test_annotation_without_place_has_no_file() -> None:
    assert _read(_made(1)) == [Command("error", "message 1", {"title": "title 1"})]


@given(
    st.lists(
        values(
            Annotation,
            level=st.sampled_from(LEVELS),
            title=HOSTILE_TEXT,
            message=HOSTILE_TEXT,
            place=st.none() | values(Place, file=HOSTILE_TEXT, line=st.integers(1, 9)),
        ),
        max_size=5,
    )
)
def test_foreign_text_cannot_add_or_change_commands(annotations: list[Annotation]) -> None:
    text = render_annotations(annotations)
    shown = [each for level in LEVELS for each in annotations if each.level == level]
    commands = commands_in(text)
    assert len(commands) == len(text.splitlines()) == len(shown)
    assert [command.name for command in commands] == [COMMANDS[each.level] for each in shown]
    assert all(set(command.properties) <= {"file", "line", "title"} for command in commands)
    assert "##[" not in text
    assert escape.replace_surrogates(text) == text


@given(ANY_TEXT)
def test_message_is_escaped_as_in_log(text: str) -> None:
    [command] = _read(Annotation(level="note", title="t", message=text))
    assert command.data == escape.escape_for_log(text)


class TestLimits:
    @pytest.mark.parametrize("level", LEVELS)
    def test_each_level_has_its_own_limit(self, level: Severity) -> None:
        others = [_made(0, other) for other in LEVELS if other != level]
        made = [_made(number, level) for number in range(ANNOTATIONS_PER_TYPE + 2)]
        commands = _read(*made, *others)
        *first, last = [command.data for command in commands if command.name == COMMANDS[level]]
        assert first == [annotation.message for annotation in made[: ANNOTATIONS_PER_TYPE - 1]]
        assert last == f"message {ANNOTATIONS_PER_TYPE - 1}\n(2 more not shown here)"
        assert len(commands) == ANNOTATIONS_PER_TYPE + len(others)

    def test_annotations_at_limit_are_not_counted(self) -> None:
        made = [_made(number) for number in range(ANNOTATIONS_PER_TYPE)]
        assert [command.data for command in _read(*made)] == [each.message for each in made]

    def test_errors_come_before_warnings_and_notes(self) -> None:
        levels: list[Severity] = ["note", "warning", "error"]
        commands = _read(*(_made(1, level) for level in levels))
        assert [command.name for command in commands] == ["error", "warning", "notice"]

    @given(st.text(st.sampled_from("a%🙂\n"), min_size=5), st.integers(8, 12))
    def test_message_is_cut_to_utf16_limit(self, text: str, number: int) -> None:
        long = Annotation(level="error", title="t", message=text * 1_000)
        commands = _read(*[long] * number)
        for command in commands:
            assert len(command.data.encode("utf-16-le")) // 2 <= ANNOTATION_MESSAGE_UNITS
        assert ("more not shown" in commands[-1].data) == (number > ANNOTATIONS_PER_TYPE)

    def test_long_title_is_cut(self) -> None:
        [command] = _read(Annotation(level="error", title="x" * 300, message="m"))
        title = command.properties["title"]
        assert ANNOTATION_TITLE_CHARACTERS - 10 < len(title) <= ANNOTATION_TITLE_CHARACTERS


class TestDiffOrder:
    def of(self, title: str, line: int, level: Severity = "warning") -> Annotation:
        return Annotation(level=level, title=title, message="m", place=Place(file=title, line=line))

    def test_annotations_nearest_to_diff_come_first(self) -> None:
        annotations = [
            self.of("elsewhere", 1),
            self.of("changed", 90),
            _made(1, "warning"),
            self.of("changed", 2),
            self.of("also elsewhere", 1, "error"),
            self.of("changed", 3),
        ]
        diff = {"changed": (range(1, 5),)}
        shown = commands_in(render_annotations(annotations, diff))
        assert [(each.properties["title"], each.properties.get("line")) for each in shown] == [
            ("also elsewhere", "1"),
            ("changed", "2"),
            ("changed", "3"),
            ("changed", "90"),
            ("elsewhere", "1"),
            ("title 1", None),
        ]

    def test_annotations_farthest_from_diff_are_omitted(self) -> None:
        annotations = [*(self.of(f"f{n}", 1) for n in range(ANNOTATIONS_PER_TYPE)), self.of("x", 7)]
        shown = commands_in(render_annotations(annotations, {"x": (range(7, 8),)}))
        assert [each.properties["title"] for each in shown] == ["x", *(f"f{n}" for n in range(9))]
        assert shown[-1].data.endswith("(1 more not shown here)")

    @pytest.mark.parametrize(
        ("errors", "warnings", "expected"),
        [(0, 0, False), (10, 10, False), (11, 0, True), (10, 11, True)],
    )
    def test_any_level_above_limit_exceeds_it(
        self, errors: int, warnings: int, *, expected: bool
    ) -> None:
        given = [
            *(_made(n) for n in range(errors)),
            *(_made(n, "warning") for n in range(warnings)),
        ]
        assert exceed_annotation_limit(given) is expected
