"""Remarks beside the lines of a pull request."""

import pytest

from agentci.model.choices import FailOn
from agentci.model.place import Place
from agentci.model.policy import Bar
from agentci.model.problem import Problem
from agentci.model.result import Report, Result
from agentci.reporters.annotations import MAX_CASES, render_annotations
from tests.conftest import Golden
from tests.reports import CONFIG, make_report, make_result, mixed_report
from tests.runner import Command, commands_in


def _read(report: Report) -> list[Command]:
    return commands_in(render_annotations(report))


def _titles(report: Report) -> list[str]:
    return [f"{command.name} {command.properties['title']}" for command in _read(report)]


def test_they_look_like_this(golden: Golden) -> None:
    golden("annotations.txt", render_annotations(mixed_report()))


def test_an_open_gate_without_failures_has_none() -> None:
    assert render_annotations(make_report([make_result("passed"), make_result("skipped")])) == ""


def test_an_evaluator_has_one_on_its_line_with_its_worst_cases_first() -> None:
    results = [make_result("passed", 1.0, case=f"ok{number}") for number in range(9)]
    results += [
        make_result("failed", score, case=f"case{score}", misses=[f"missed {score}"])
        for score in (0.6, 0.1, 0.3)
    ]
    [command] = _read(make_report(results))
    assert command == Command(
        "error",
        "case0.1: score 0.1, wanted at least 0.7\n  - missed 0.1\n"
        "case0.3: score 0.3, wanted at least 0.7\n  - missed 0.3\n"
        "case0.6: score 0.6, wanted at least 0.7\n  - missed 0.6",
        {
            "file": CONFIG,
            "line": "2",
            "title": "response_quality: 3 of 12 below at least 0.7",
        },
    )


@pytest.mark.parametrize(
    ("results", "title"),
    [
        pytest.param(
            [make_result("errored")] * 2 + [make_result("passed")] * 10,
            "error response_quality: 2 of 12 could not be judged",
            id="errors",
        ),
        pytest.param(
            [make_result("errored"), make_result("failed", 0.1), make_result("passed")],
            "error response_quality: 1 of 3 below at least 0.7, 1 of 3 could not be judged",
            id="failures and errors",
        ),
        pytest.param(
            [make_result("failed", bar="label in good")],
            "error response_quality: 1 of 1 failed: label in good",
            id="a bar in other words",
        ),
        pytest.param(
            [make_result("failed", 0.9, reason="1 turn is missing")],
            "error response_quality: 1 of 1 failed: at least 0.7",
            id="failed beside its score",
        ),
        pytest.param(
            [make_result("failed", 0.1, required=False), make_result("failed", evaluator="b")],
            "warning response_quality: 1 of 1 below at least 0.7",
            id="advisory",
        ),
    ],
)
def test_the_title_says_what_befell_how_many(results: list[Result], title: str) -> None:
    assert title in _titles(make_report(results))


@pytest.mark.parametrize(
    ("bar", "fail_on"),
    [
        pytest.param(Bar(min_pass_rate=0.5), "failed", id="enough passed"),
        pytest.param(Bar(), "never", id="nothing shuts it"),
    ],
)
def test_what_an_open_gate_tolerates_is_a_warning(bar: Bar, fail_on: FailOn) -> None:
    results = [make_result("failed", 0.1), make_result("passed", 1.0)]
    [command] = _read(make_report(results, bar=bar, fail_on=fail_on))
    assert command.name == "warning"


def test_the_evaluator_that_fell_furthest_stands_first() -> None:
    results = [
        *(
            make_result("passed", 1.0, evaluator="half"),
            make_result("failed", 0.0, evaluator="half"),
        ),
        make_result("failed", 0.6, evaluator="all, but barely"),
        make_result("failed", 0.2, evaluator="all, by far"),
    ]
    assert [title.split(":")[0] for title in _titles(make_report(results))] == [
        "error all, by far",
        "error all, but barely",
        "error half",
    ]


def test_ten_of_a_kind_are_shown_and_the_last_counts_the_others() -> None:
    results = [make_result("failed", number / 100, evaluator=f"e{number}") for number in range(13)]
    commands = _read(make_report(results))
    assert len(commands) == 10
    assert commands[-1].properties["title"].startswith("e9:")
    assert commands[-1].data.endswith("\n(3 more not shown here)")


def test_of_many_cases_the_worst_are_told_and_the_others_counted() -> None:
    results = [make_result("failed", number / 10_000, case=f"c{number}") for number in range(1_000)]
    [command] = _read(make_report(results))
    lines = command.data.splitlines()
    assert lines[0].startswith("c0: ")
    assert lines[MAX_CASES:] == ["… and 995 more"]


def test_a_message_is_never_longer_than_the_runner_keeps() -> None:
    misses = ["🙂" * 1_000] * 100
    results = [make_result("failed", 0.1, case="x" * 900, misses=misses) for _ in range(20)]
    [command] = _read(make_report(results))
    assert len(command.data.encode("utf-16-le")) // 2 <= 4096
    assert "more)" in command.data


def test_broken_input_stands_before_the_evaluators_and_warnings_after_them() -> None:
    problems = [
        Problem(message="is odd", place=Place(file="b.yaml"), severity="notice"),
        Problem(message="is strange", place=Place(file="b.yaml"), severity="warning"),
        Problem(message="is no JSON", place=Place(file="traces/a.json", line=4)),
    ]
    results = [make_result("failed", 0.1, warnings=["guessed"])]
    commands = _read(make_report(results, problems=problems))
    assert [(command.name, command.data.splitlines()[0]) for command in commands] == [
        ("error", "is no JSON"),
        ("error", "books_a_flight: score 0.1, wanted at least 0.7"),
        ("warning", "is strange"),
        ("warning", "guessed"),
        ("notice", "is odd"),
    ]


def test_a_warning_about_many_recordings_is_one() -> None:
    results = [make_result("passed", case=f"c{n}", warnings=["guessed"]) for n in range(40)]
    [command] = _read(make_report(results))
    assert command.properties["title"] == "40 recordings read with a warning"
    assert command.properties["file"] == "evals/recordings/c0.json"
    assert command.data == "guessed\nc0, c1, c2, c3, c4, … and 35 more"
