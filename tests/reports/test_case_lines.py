"""Failures are annotated on the lines of cases that a pull request changes."""

import pytest

from agentci.model.result import RunContent, TurnContent
from agentci.model.values import Place, replace
from agentci.reports.annotations import find_case_places, make_annotations
from agentci.reports.contents import StoredContents
from agentci.reports.run_content import encode_content
from agentci.reports.workflow_commands import Annotation, DiffLines
from tests.helpers.reports import CONFIG, Chunks, make_report, make_result

EVAL_SET, RUN = "evals/eval_set.json", "evals/recordings/books_a_flight.json"


def _annotate(diff: DiffLines, *, cases: int = 1, evaluators: int = 2) -> list[Annotation]:
    results = [
        make_result("failed", 0.1, case=f"case{case}", evaluator=f"e{number}")
        for case in range(cases)
        for number in range(evaluators)
    ]
    return list(make_annotations(make_report(results), diff))


def _places(annotations: list[Annotation]) -> list[tuple[str, int]]:
    return [(each.place.file, each.place.line) for each in annotations if each.place]


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        pytest.param({EVAL_SET: (range(3, 7),)}, (EVAL_SET, 5), id="line of the eval case"),
        pytest.param({EVAL_SET: (range(8, 9),)}, (EVAL_SET, 8), id="line inside the eval case"),
        pytest.param({EVAL_SET: (range(1, 5), range(9, 12))}, (EVAL_SET, 9), id="second hunk"),
        pytest.param({RUN: (range(1, 4),)}, (RUN, 3), id="trace"),
        pytest.param({RUN: (range(1, 9),), EVAL_SET: (range(5, 6),)}, (EVAL_SET, 5), id="both"),
        pytest.param({EVAL_SET: (range(1, 5),)}, None, id="lines before the eval case"),
        pytest.param({EVAL_SET: ()}, None, id="no patch"),
        pytest.param({EVAL_SET: (range(6, 6),)}, None, id="only removed lines"),
        pytest.param({CONFIG: (range(1, 9),)}, None, id="config"),
    ],
)
def test_case_is_at_its_first_line_in_the_diff(
    diff: DiffLines, expected: tuple[str, int] | None
) -> None:
    found = find_case_places([make_result("failed")], diff)
    place = next(iter(found.values()), None)
    assert (place and (place.file, place.line)) == expected


def test_case_ends_where_the_next_one_starts() -> None:
    first, second = make_result("failed", case="a"), make_result("failed", case="b")
    moved = replace(second.case, eval_case_place=Place(file=EVAL_SET, line=9))
    results = [first, replace(second, case=moved)]
    found = find_case_places(results, {EVAL_SET: (range(10, 11),)})
    assert [(key[0], place.line) for key, place in found.items()] == [("b", 10)]


def test_failures_of_case_outside_of_diff_stay_on_config_line() -> None:
    diff = {"evals/recordings/case1.json": (range(1, 9),)}
    annotations = _annotate(diff, cases=2)
    assert _places(annotations) == [("evals/recordings/case1.json", 3), (CONFIG, 1), (CONFIG, 1)]
    assert [each.title for each in annotations] == [
        "case1: e0, e1 did not pass",
        "e0: 2 of 2 checks failed (case0)",
        "e1: 2 of 2 checks failed (case0)",
    ]
    assert all("case1" not in each.message for each in annotations[1:])


def test_cases_on_one_line_share_an_annotation() -> None:
    [annotation] = _annotate({EVAL_SET: (range(5, 6),)}, cases=7, evaluators=1)
    assert annotation.title == "7 cases: 7 checks did not pass (e0)"
    assert annotation.message.splitlines()[:2] == ["case0:", "e0: score 0.1, threshold 0.7"]
    assert annotation.message.splitlines()[-1] == "… and 2 more"


def test_many_failed_checks_of_a_case_are_counted() -> None:
    [annotation] = _annotate({EVAL_SET: (range(5, 6),)}, evaluators=8)
    assert annotation.message.splitlines()[-1] == "… and 3 more"


def test_passed_case_in_diff_has_no_annotation() -> None:
    report = make_report([make_result("passed", 1.0)])
    assert make_annotations(report, {EVAL_SET: (range(1, 99),)}) == ()


def test_advisory_failure_in_diff_is_warning() -> None:
    results = [make_result("failed", 0.1, required=False), make_result("passed", evaluator="b")]
    [annotation] = make_annotations(make_report(results), {EVAL_SET: (range(1, 99),)})
    assert (annotation.level, annotation.place) == ("warning", Place(file=EVAL_SET, line=5))


def test_annotation_shows_first_difference_of_case() -> None:
    chunks, turn = Chunks(), TurnContent(user="x", answer="Yes.", expected_answer="No.")
    number = chunks.append(encode_content(RunContent(turns=(turn,))))
    result = make_result("failed", 0.1)
    report = make_report([replace(result, case=replace(result.case, content=number))])
    contents = StoredContents(chunks=chunks, redact=lambda content: content)
    [annotation] = make_annotations(replace(report, contents=contents), {EVAL_SET: (range(1, 99),)})
    assert annotation.message.splitlines()[1:] == [
        "Difference, answer of turn 1 (- expected, + actual):",
        "  - No.",
        "  + Yes.",
    ]
