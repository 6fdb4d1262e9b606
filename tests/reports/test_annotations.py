"""Annotations on the lines of a pull request."""

import pytest

from agentci.model.gate import GateThresholds
from agentci.model.result import CheckResult, Report
from agentci.model.values import COMMAND_LINE, FailOn, Place, Problem
from agentci.reports.annotations import MAX_CASES, MAX_LINE, MAX_LINES
from tests.conftest import Golden
from tests.helpers.reports import (
    CONFIG,
    annotated,
    make_report,
    make_result,
    mixed_report,
    shard_report,
)
from tests.helpers.runner import Command, commands_in

RECORDINGS = "evals/recordings"
TRACEBACK = "\n".join(
    (
        "exited with code 1: Traceback (most recent call last):",
        *(f'  File "/repo/evals/tone.py", line {line}, in judge' for line in range(30)),
        f"KeyError: {'long ' * 100}'x'",
    )
)


def _read(report: Report) -> list[Command]:
    return commands_in(annotated(report))


def _titles(report: Report) -> list[str]:
    return [f"{command.name} {command.properties['title']}" for command in _read(report)]


def test_annotations_match_snapshot(golden: Golden) -> None:
    golden("annotations.txt", annotated(mixed_report()))


def test_cached_check_is_marked() -> None:
    text = annotated(make_report([make_result("failed", 0.25, cached=True)]))
    assert "score 0.25, threshold 0.7 (cached)" in text


def test_passed_gate_without_failures_has_no_annotations() -> None:
    assert annotated(make_report([make_result("passed"), make_result("skipped")])) == ""


def test_shard_without_failures_has_no_annotations() -> None:
    assert annotated(shard_report([make_result("passed")])) == ""
    assert annotated(shard_report([])) == ""


def test_failed_shard_without_failing_evaluator_is_annotated() -> None:
    [command] = commands_in(annotated(shard_report([], complete=False)))
    assert (command.name, command.properties["title"]) == (
        "error",
        "Quality gate failed in shard 2 of 3",
    )


def test_evaluator_on_two_lines_has_two_annotations() -> None:
    results = [
        make_result("failed", 0.1, case=f"case{line}", place=Place(file=CONFIG, line=line))
        for line in (5, 9)
    ]
    assert [command.properties["line"] for command in _read(make_report(results))] == ["5", "9"]


def test_evaluator_annotation_lists_worst_cases_first() -> None:
    results = [make_result("passed", 1.0, case=f"ok{number}") for number in range(9)]
    results += [
        make_result("failed", score, case=f"case{score}", misses=[f"missed {score}"])
        for score in (0.6, 0.1, 0.3)
    ]
    [command] = _read(make_report(results))
    assert command == Command(
        "error",
        f"case0.1 ({RECORDINGS}/case0.1.json): score 0.1, threshold 0.7\n  - missed 0.1\n"
        f"case0.3 ({RECORDINGS}/case0.3.json): score 0.3, threshold 0.7\n  - missed 0.3\n"
        f"case0.6 ({RECORDINGS}/case0.6.json): score 0.6, threshold 0.7\n  - missed 0.6",
        {
            "file": CONFIG,
            "line": "2",
            "title": "response_quality: 3 of 12 checks failed (case0.6, case0.1, case0.3)",
        },
    )


@pytest.mark.parametrize(
    ("results", "title"),
    [
        pytest.param(
            [make_result("errored")] * 2 + [make_result("passed")] * 10,
            "error response_quality: 2 of 12 checks errored (books_a_flight)",
            id="errors",
        ),
        pytest.param(
            [make_result("errored"), make_result("failed", 0.1), make_result("passed")],
            "error response_quality: 1 of 3 checks failed, 1 errored (books_a_flight)",
            id="failures and errors",
        ),
        pytest.param(
            [make_result("failed", 0.1, criterion="label in good")],
            "error books_a_flight > response_quality failed",
            id="criterion without a threshold",
        ),
        pytest.param(
            [make_result("failed"), make_result("passed")],
            "error books_a_flight > response_quality failed",
            id="no score",
        ),
        pytest.param(
            [make_result("failed", 0.9, reason="1 turn is missing")] * 2,
            "error response_quality: 2 of 2 checks failed (books_a_flight)",
            id="failed despite their scores",
        ),
        pytest.param(
            [make_result("failed", 0.9, reason="1 turn is missing"), make_result("failed", 0.1)],
            "error response_quality: 2 of 2 checks failed (books_a_flight)",
            id="one of two by its score",
        ),
        pytest.param(
            [make_result("failed", 0.1, required=False), make_result("failed", evaluator="b")],
            "warning books_a_flight > response_quality failed",
            id="advisory",
        ),
    ],
)
def test_title_names_the_check_or_counts_checks(results: list[CheckResult], title: str) -> None:
    assert title in _titles(make_report(results))


@pytest.mark.parametrize(
    ("thresholds", "fail_on"),
    [
        pytest.param(GateThresholds(min_pass_rate=0.5), "failed", id="threshold reached"),
        pytest.param(GateThresholds(), "never", id="fail_on: never"),
    ],
)
def test_tolerated_failure_of_passed_gate_is_warning(
    thresholds: GateThresholds, fail_on: FailOn
) -> None:
    results = [make_result("failed", 0.1), make_result("passed", 1.0)]
    [command] = _read(make_report(results, thresholds=thresholds, fail_on=fail_on))
    assert command.name == "warning"


def test_lowest_scoring_evaluator_comes_first() -> None:
    results = [
        *(
            make_result("passed", 1.0, evaluator="half"),
            make_result("failed", 0.0, evaluator="half"),
        ),
        make_result("failed", 0.6, evaluator="all, but barely"),
        make_result("failed", 0.2, evaluator="all, by far"),
    ]
    assert _titles(make_report(results)) == [
        "error books_a_flight > all, by far failed",
        "error books_a_flight > all, but barely failed",
        "error books_a_flight > half failed",
    ]


def test_annotations_above_limit_of_ten_are_counted() -> None:
    results = [make_result("failed", number / 100, evaluator=f"e{number}") for number in range(13)]
    commands = _read(make_report(results))
    assert len(commands) == 10
    assert commands[-1].properties["title"].endswith(" > e9 failed")
    assert commands[-1].data.endswith("\n(3 more not shown here)")


def test_worst_cases_are_shown_and_others_counted() -> None:
    results = [make_result("failed", number / 10_000, case=f"c{number}") for number in range(1_000)]
    [command] = _read(make_report(results))
    lines = command.data.splitlines()
    assert lines[0].startswith("c0 ")
    assert lines[MAX_CASES:] == ["… and 995 more"]


def test_long_traceback_keeps_first_and_last_lines() -> None:
    [command] = _read(make_report([make_result("errored", reason=TRACEBACK)]))
    first, gap, *last = command.data.splitlines()
    assert first == (
        f"books_a_flight ({RECORDINGS}/books_a_flight.json): "
        "exited with code 1: Traceback (most recent call last):"
    )
    assert gap == "  … (24 lines left out) …"
    assert len(last) == MAX_LINES - 1
    assert last[-1].startswith("  KeyError: long ")
    assert last[-1].endswith("long 'x'")
    assert len(last[-1]) <= MAX_LINE + len("  ")


def test_cases_with_same_error_are_grouped() -> None:
    results = [make_result("errored", case=f"c{n}", reason="no key") for n in range(7)]
    results += [make_result("errored", case=f"d{n}", reason=f"reason {n}") for n in range(6)]
    [command] = _read(make_report(results))
    lines = command.data.splitlines()
    assert lines[0] == "7 cases: c0, c1, c2, c3, c4, … and 2 more: no key"
    assert lines[1] == f"d0 ({RECORDINGS}/d0.json): reason 0"
    assert lines[-1] == "… and 2 more"


def test_error_without_visible_text_keeps_its_case() -> None:
    [command] = _read(make_report([make_result("errored", reason="\x1b[0m\n")]))
    assert command.data == f"books_a_flight ({RECORDINGS}/books_a_flight.json): "


class TestFailedGateWithoutFailedEvaluator:
    @pytest.mark.parametrize(
        ("results", "thresholds", "why"),
        [
            pytest.param(
                [make_result("passed", 0.7)],
                GateThresholds(min_score=0.9),
                "mean score 0.7 is below the threshold 0.9",
                id="low mean score",
            ),
            pytest.param(
                [make_result("passed", 0.7), make_result("skipped")],
                GateThresholds(on_skip="fail"),
                "1 check skipped (response_quality)",
                id="on_skip: fail",
            ),
            pytest.param([], GateThresholds(), "no check was evaluated", id="no checks"),
            pytest.param(
                [make_result("failed", 0.1, required=False)],
                GateThresholds(),
                "no required check was evaluated",
                id="only advisory",
            ),
        ],
    )
    def test_reason_of_failed_gate_is_annotated(
        self, results: list[CheckResult], thresholds: GateThresholds, why: str
    ) -> None:
        command = _read(make_report(results, thresholds=thresholds))[0]
        assert command == Command("error", why, {"title": "Quality gate failed"})

    def test_failed_gate_is_annotated_besides_warnings(self) -> None:
        results = [make_result("failed", 0.1, required=False)]
        assert _titles(make_report(results)) == [
            "error Quality gate failed",
            "warning books_a_flight > response_quality failed",
        ]

    def test_failed_gate_is_not_annotated_besides_errors(self) -> None:
        assert len(_titles(make_report([make_result("failed", 0.1)]))) == 1


class TestSkippedEvaluator:
    RESULTS = (
        make_result("passed", 1.0, evaluator="tone"),
        make_result("skipped", case="a", reason="no matching eval case"),
        make_result("skipped", case="b", reason="no matching eval case"),
        make_result("skipped", case="c", reason="declined:\nno\nprice"),
    )

    def test_fully_skipped_evaluator_has_warning_with_reasons(self) -> None:
        failed, command = _read(make_report(self.RESULTS))
        assert failed.properties["title"] == "Quality gate failed"
        assert command == Command(
            "warning",
            "no matching eval case (2 cases: a, b)\ndeclined: … price (1 case: c)",
            {"file": CONFIG, "line": "2", "title": "response_quality: 3 checks skipped"},
        )

    def test_partly_skipped_evaluator_has_no_warning(self) -> None:
        results = [*self.RESULTS, make_result("passed", 1.0, case="d")]
        assert _read(make_report(results)) == []


def test_command_line_problem_is_annotated_without_file() -> None:
    results = [
        make_result("failed", 0.1, place=COMMAND_LINE, config=COMMAND_LINE.file),
        make_result("skipped", evaluator="b", place=COMMAND_LINE, config=COMMAND_LINE.file),
    ]
    problem = Problem(message="is odd", place=COMMAND_LINE, severity="note")
    commands = _read(make_report(results, problems=[problem]))
    assert [command.name for command in commands] == ["error", "warning", "notice"]
    assert [set(command.properties) for command in commands] == [{"title"}] * 3


def test_long_message_is_cut_to_runner_limit() -> None:
    misses = ["🙂" * 1_000] * 100
    results = [make_result("failed", 0.1, case="x" * 900, misses=misses) for _ in range(20)]
    [command] = _read(make_report(results))
    assert len(command.data.encode("utf-16-le")) // 2 <= 4096
    assert "more)" in command.data


def test_input_errors_come_before_evaluators_and_warnings() -> None:
    problems = [
        Problem(message="is odd", place=Place(file="b.yaml"), severity="note"),
        Problem(message="is strange", place=Place(file="b.yaml"), severity="warning"),
        Problem(message="is not JSON", place=Place(file="traces/a.json", line=4)),
    ]
    results = [make_result("failed", 0.1, warnings=["guessed"])]
    commands = _read(make_report(results, problems=problems))
    assert [(command.name, command.data.splitlines()[0]) for command in commands] == [
        ("error", "is not JSON"),
        (
            "error",
            f"books_a_flight ({RECORDINGS}/books_a_flight.json): score 0.1, threshold 0.7",
        ),
        ("warning", "is strange"),
        ("warning", "guessed"),
        ("notice", "is odd"),
    ]


def test_shared_warning_of_many_traces_is_one_annotation() -> None:
    results = [make_result("passed", case=f"c{n}", warnings=["guessed"]) for n in range(40)]
    [command] = _read(make_report(results))
    assert command.properties["title"] == "Warning about 40 traces"
    assert command.properties["file"] == "evals/recordings/c0.json"
    assert command.data == "guessed\nc0, c1, c2, c3, c4, … and 35 more"
