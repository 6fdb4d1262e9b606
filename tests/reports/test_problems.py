"""Problems for people, programs and pull requests."""

import json

from agentci.model.problem import COMMAND_LINE, Place, Problem
from agentci.reports.problems import render_problems
from tests.helpers.runner import commands_in

PROBLEMS = [
    Problem(
        message="'treshold' is no key of an evaluator",
        place=Place(file="evals/eval_config.yaml", line=4, column=3),
        hint="did you mean 'threshold'?",
    ),
    Problem(message="is empty", place=Place(file="b.yaml"), severity="warning"),
    Problem(message="--jobs must be a number", severity="error"),
]


class TestText:
    def test_has_a_line_a_problem_and_counts_them(self) -> None:
        assert render_problems(PROBLEMS, "text") == (
            "evals/eval_config.yaml:4:3: error: 'treshold' is no key of an evaluator; "
            "did you mean 'threshold'?\n"
            "b.yaml:1: warning: is empty\n"
            "error: --jobs must be a number\n"
            "2 errors, 1 warning\n"
        )

    def test_says_how_many_files_were_looked_at(self) -> None:
        assert render_problems([], "text", files=3) == "no problems in 3 files\n"
        assert render_problems(PROBLEMS[1:2], "text", files=1).endswith("\n1 warning in 1 file\n")

    def test_says_command_line_for_what_lies_in_no_file(self) -> None:
        text = render_problems([Problem(message="is odd", place=COMMAND_LINE)], "text")
        assert text == "command line: error: is odd\n"

    def test_commands_nothing(self) -> None:
        problem = Problem(message="x\r::error::y ##[group]z", place=Place(file=" ::notice::f"))
        text = render_problems([problem], "text")
        assert commands_in(text) == []
        assert len(text.splitlines()) == 1


class TestJson:
    def test_has_every_part(self) -> None:
        assert json.loads(render_problems(PROBLEMS, "json")) == {
            "problems": [
                {
                    "severity": "error",
                    "message": "'treshold' is no key of an evaluator",
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

    def test_is_json_without_problems_too(self) -> None:
        assert json.loads(render_problems([], "json")) == {"problems": []}


class TestGithub:
    def test_annotates_lines(self) -> None:
        first, second, third = commands_in(render_problems(PROBLEMS, "github"))
        assert first.name == "error"
        assert first.properties == {
            "file": "evals/eval_config.yaml",
            "line": "4",
            "col": "3",
            "title": "Invalid input",
        }
        assert first.data == "'treshold' is no key of an evaluator; did you mean 'threshold'?"
        assert (second.name, second.data) == ("error", "--jobs must be a number")
        assert "file" not in second.properties
        assert third.name == "warning"

    def test_keeps_to_ten_and_counts_the_others(self) -> None:
        commands = commands_in(render_problems(PROBLEMS[:1] * 13, "github"))
        assert len(commands) == 10
        assert commands[-1].data.endswith("(3 more not shown here)")

    def test_says_nothing_where_there_is_nothing(self) -> None:
        assert render_problems([], "github") == ""
