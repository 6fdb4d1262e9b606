"""Places, paths and warnings of runs as reports show them."""

from agentci.model.result import BaselineCheck
from agentci.model.values import COMMAND_LINE, Place, replace
from agentci.reports import groups_and_totals
from tests.helpers.reports import make_report, make_result


def test_file_place_keeps_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert groups_and_totals.place_in_file(place) is place
    assert str(place) == "a.yaml:3:2"


def test_command_line_is_not_a_file() -> None:
    assert groups_and_totals.place_in_file(COMMAND_LINE) is None
    assert str(COMMAND_LINE) == groups_and_totals.format_path(COMMAND_LINE.file) == "command line"


def test_warnings_are_grouped_without_answers_that_ended_as_early_in_the_baseline() -> None:
    ended, guessed = "the model ended its answer early", "a span without a name"
    results = [
        make_result(case="a", warnings=[ended, guessed]),
        make_result(case="a", evaluator="tone", warnings=[ended, guessed]),
        make_result(case="b", warnings=[ended]),
    ]
    report = make_report(results)
    found = groups_and_totals.group_warnings(report)
    names = {text: [case.id for case in cases] for text, cases in found.items()}
    assert names == {ended: ["a", "b"], guessed: ["a"]}
    before = BaselineCheck(status="passed", score=1.0, early_ends=(ended,))
    report = replace(report, baseline={results[2].id: before})
    found = groups_and_totals.group_warnings(report)
    names = {text: [case.id for case in cases] for text, cases in found.items()}
    assert names == {ended: ["a"], guessed: ["a"]}
