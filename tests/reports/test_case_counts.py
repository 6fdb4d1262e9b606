"""Each case of both runs is in exactly one class, and all reports count them alike."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import pytest

from agentci.gate.comparison import compare_runs
from agentci.model.case import NOT_RECORDED
from agentci.model.gate import Gate, GatePolicy
from agentci.model.result import BaselineCheck, CheckResult, Report, Status
from agentci.model.values import replace
from agentci.reports.case_counts import count_cases, format_case_line
from agentci.reports.case_states import CASE_CLASSES
from agentci.reports.comment import CommentReport
from agentci.reports.console import render_console
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.read import read_report
from tests.helpers.reports import CONFIG, make_report, make_result, text_of
from tests.reports.html.pages import data_of

# By class: the status of each check before and now, by evaluator, of which style is advisory; None
# for a run without it.
CASES: Mapping[str, Sequence[Mapping[str, tuple[Status | None, Status | None]]]] = {
    "new_failure": [
        {"tone": ("passed", "failed")},
        {"tone": ("passed", "failed"), "price": ("passed", "errored")},
        {"tone": ("failed", "failed"), "price": ("passed", "failed")},
        {"tone": (None, "failed")},
        {"tone": ("errored", "failed")},
        {"style": ("passed", "failed")},
        {"tone": ("passed", "failed"), "style": ("passed", "failed")},
    ],
    "error": [{"tone": ("passed", "errored"), "price": ("failed", "failed")}],
    "unrecorded": [{"tone": ("passed", None)}, {"tone": (None, None)}],
    "lost": [
        {"tone": ("passed", "skipped"), "price": ("failed", "passed")},
        {"tone": ("passed", None), "price": ("passed", "passed")},
    ],
    "still_failing": [
        {"tone": ("failed", "failed"), "price": ("errored", "errored")},
        {"tone": ("failed", "failed"), "style": ("passed", "failed")},
        {"tone": ("passed", "passed"), "style": ("failed", "failed")},
    ],
    "still_errored": [{"tone": ("errored", "errored")}],
    "fixed": [
        {"tone": ("failed", "passed")},
        {"tone": ("errored", "passed"), "style": ("passed", "failed")},
    ],
    "new_case": [{"tone": (None, "passed")}, {"tone": (None, "skipped")}],
    "newly_evaluated": [{"tone": ("skipped", "passed")}],
    "removed": [{"tone": ("passed", None)}, {"tone": ("failed", None)}],
    "not_evaluated": [{"tone": ("skipped", "skipped")}, {"tone": ("failed", "skipped")}],
    "same": [
        {"tone": ("passed", "passed")},
        {"tone": ("passed", "passed")},
        {"tone": ("passed", "passed"), "style": ("passed", "failed")},
    ],
}


def _check(case: str, evaluator: str, status: Status, score: float = 1.0) -> CheckResult:
    required = evaluator != "style"
    result = make_result(status, score, case=case, evaluator=evaluator, required=required)
    case_summary = replace(result.case, eval_case_id=case)
    return replace(result, id=f"{crc32(f'{case} {evaluator}'.encode()):016x}", case=case_summary)


def _report(**changes: Any) -> Report:
    before: list[CheckResult] = []
    after: list[CheckResult] = []
    for name, cases in CASES.items():
        for number, checks in enumerate(cases):
            for evaluator, (old, new) in checks.items():
                case = f"{name}_{number}"
                before += [_check(case, evaluator, old)] if old else []
                # Of the cases that passed in both, one has a lower score.
                score = 0.8 if case == "same_1" else 1.0
                after += [_check(case, evaluator, new, score)] if new else []
    uncovered = ("unrecorded_0", "unrecorded_1")
    gate = Gate(
        config=CONFIG,
        policy=GatePolicy(),
        evaluators=("tone", "price"),
        uncovered=uncovered,
        missing=uncovered,
        eval_cases=dict.fromkeys(uncovered, "digest"),
    )
    known = {each.id: BaselineCheck(status=each.status, score=each.score) for each in before}
    return replace(
        make_report(after),
        gates=(gate,),
        baseline=known,
        comparison=compare_runs(before, after, [gate], baseline="base"),
        **changes,
    )


def test_each_case_of_both_runs_is_in_one_class() -> None:
    counts = {each.state: each.count for each in count_cases(_report())}
    assert counts == {name: len(cases) for name, cases in CASES.items()}
    assert list(counts) == list(CASE_CLASSES)


def test_all_reports_count_the_cases_alike() -> None:
    report = _report()
    line = format_case_line(report, "base")
    assert sum(map(int, re.findall(r"(?<=[ ,])\d+(?= )", re.sub(r"\(.*?\)", "", line)))) == sum(
        map(len, CASES.values())
    )
    advisory = "1 with a newly failing advisory check"
    assert f"3 still failing ({advisory}), " in line
    assert f"2 fixed ({advisory}), " in line
    assert line.endswith(f"3 passed in both ({advisory}, 1 with a lower score)")
    comment, summary = (text_of(each, report) for each in (CommentReport(), SummaryReport()))
    for text in (comment, summary):
        assert line.lower().replace("base", "`base`") in text.replace("**", "").lower()
    assert f"\n{line}\n" in render_console(report, quiet=False, verbose=False, colour=False)
    data = data_of(report)
    shown = ", ".join(f"{count} {words}{notes}" for _, count, words, notes in data["classes"])
    assert line == f"Cases against base: {shown}"
    states = [each["state"] for each in data["cases"]]
    for state, count, *_ in data["classes"]:
        missing = 2 if state == "removed" else 0
        lower = states.count("lower_score") if state == "same" else 0
        assert states.count(state) + lower + missing == count, state


def test_new_failures_of_advisory_checks_are_counted_apart() -> None:
    """After those of required ones, and not beside what still fails."""
    report = _report()
    failures = len(CASES["new_failure"])
    title = f"New failures: {failures} cases; 2 more newly fail only advisory checks"
    for each in (CommentReport(), SummaryReport()):
        assert f"### {title}\n" in text_of(each, report)
    results = [each for each in report.results if each.case.id == "same_2"]
    only = replace(report, results=tuple(results))
    for each in (CommentReport(), SummaryReport()):
        assert "### New failures of advisory checks: 1 case\n" in text_of(each, only)
    terminal = render_console(only, quiet=False, verbose=False, colour=False)
    assert "\n  same_2: new advisory failure, " in terminal
    assert "\n    style (advisory): " in terminal


def test_report_that_is_read_again_has_the_same_counts() -> None:
    report = _report()
    read = read_report(text_of(JsonReport(), report).encode(), file="results.json")
    assert format_case_line(read, "base") == format_case_line(report, "base")
    found = json.loads(text_of(JsonReport(), report))
    assert found["comparison"]["removed_cases"] == ["removed_0", "removed_1"]
    assert found["comparison"]["unrecorded_cases"] == ["unrecorded_0"]
    states = {each["id"]: each["state"] for each in found["cases"]}
    assert {id_.rpartition("_")[0] for id_ in states} == {*states.values()} - {"removed"}


def test_case_of_which_nothing_was_recorded_is_without_a_recorded_run() -> None:
    result = make_result("errored", None, case="a", reason=NOT_RECORDED)
    report = make_report([result, make_result("passed", 1.0, case="b")])
    assert format_case_line(report, "") == "2 cases: 1 without a recorded run, 1 passed"
    before = {result.id: BaselineCheck(status="passed", score=1.0)}
    report = replace(report, baseline=before)
    assert format_case_line(report, "base") == (
        "Cases against base: 1 without a recorded run, 1 new"
    )


@pytest.mark.parametrize(
    ("statuses", "line"),
    [
        (["passed"], "1 case: 1 passed"),
        (["skipped"], "1 case: 1 without a verdict"),
        (["failed", "errored", "passed"], "3 cases: 1 failed, 1 errored, 1 passed"),
    ],
)
def test_cases_without_a_baseline_are_counted_by_their_worst_check(
    statuses: list[Status], line: str
) -> None:
    results = [
        check
        for number, status in enumerate(statuses)
        for check in (
            make_result(status, None, case=f"c{number}"),
            make_result("skipped", None, case=f"c{number}", evaluator="tone"),
        )
    ]
    assert format_case_line(make_report(results), "") == line
