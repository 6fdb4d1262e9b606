"""Problems as text, JSON and workflow commands."""

import json

from agentci.model.values import COMMAND_LINE, Place, Problem, Severity, replace
from agentci.reports.problems import join_problems, render_problems
from tests.helpers.runner import commands_in

PROBLEMS = [
    Problem(
        message="unknown key 'treshold'",
        place=Place(file="evals/eval_config.yaml", line=4, column=3),
        hint="did you mean 'threshold'?",
    ),
    Problem(message="is empty", place=Place(file="b.yaml"), severity="warning"),
    Problem(message="--jobs must be a number", severity="error"),
]


class TestTextFormat:
    def test_text_has_one_line_per_problem_and_counts(self) -> None:
        assert render_problems(PROBLEMS, "text") == (
            "evals/eval_config.yaml:4:3: error: unknown key 'treshold'; "
            "did you mean 'threshold'?\n"
            "b.yaml:1: warning: is empty\n"
            "error: --jobs must be a number\n"
            "2 errors, 1 warning\n"
        )

    def test_text_counts_checked_files(self) -> None:
        assert render_problems([], "text", files=3) == "no problems in 3 files\n"
        assert render_problems(PROBLEMS[1:2], "text", files=1).endswith("\n1 warning in 1 file\n")

    def test_text_names_command_line_as_place(self) -> None:
        text = render_problems([Problem(message="is odd", place=COMMAND_LINE)], "text")
        assert text == "error: is odd\n"

    def test_text_contains_no_workflow_commands(self) -> None:
        problem = Problem(message="x\r::error::y ##[group]z", place=Place(file=" ::notice::f"))
        text = render_problems([problem], "text")
        assert commands_in(text) == []
        assert len(text.splitlines()) == 1


class TestJsonFormat:
    def test_json_has_every_field(self) -> None:
        assert json.loads(render_problems(PROBLEMS, "json")) == {
            "problems": [
                {
                    "severity": "error",
                    "message": "unknown key 'treshold'",
                    "hint": "did you mean 'threshold'?",
                    "place": {"file": "evals/eval_config.yaml", "line": 4, "column": 3},
                },
                {
                    "severity": "warning",
                    "message": "is empty",
                    "hint": None,
                    "place": {"file": "b.yaml", "line": 1, "column": None},
                },
                {
                    "severity": "error",
                    "message": "--jobs must be a number",
                    "hint": None,
                    "place": None,
                },
            ]
        }

    def test_json_without_problems_is_valid(self) -> None:
        assert json.loads(render_problems([], "json")) == {"problems": []}


class TestGithubFormat:
    def test_problems_are_annotated_on_their_lines(self) -> None:
        first, second, third = commands_in(render_problems(PROBLEMS, "github"))
        assert first.name == "error"
        assert first.properties == {
            "file": "evals/eval_config.yaml",
            "line": "4",
            "col": "3",
            "title": "Invalid input",
        }
        assert first.data == "unknown key 'treshold'; did you mean 'threshold'?"
        assert (second.name, second.data) == ("error", "--jobs must be a number")
        assert "file" not in second.properties
        assert third.name == "warning"

    def test_annotations_above_limit_of_ten_are_counted(self) -> None:
        commands = commands_in(render_problems(PROBLEMS[:1] * 13, "github"))
        assert len(commands) == 10
        assert commands[-1].data.endswith("(3 more not shown here)")

    def test_no_problems_print_nothing(self) -> None:
        assert render_problems([], "github") == ""


def test_warnings_that_differ_in_a_name_are_joined() -> None:
    def warn(name: str, line: int, severity: Severity = "warning") -> Problem:
        place = Place(file="cases.yaml", line=line)
        return Problem(message=f"no run matches `{name}`", severity=severity, place=place)

    many = [warn(f"c{n}", n) for n in range(1, 8)]
    joined = "no run matches `c1`, `c2`, `c3`, `c4`, `c5`, … and 2 more"
    assert [*join_problems(many)] == [replace(many[0], message=joined)]
    few = [*many[:2], *(warn(each, 9, "error") for each in "abc"), warn("c1", 8)]
    assert {str(each) for each in join_problems(few)} == {*map(str, few)}
