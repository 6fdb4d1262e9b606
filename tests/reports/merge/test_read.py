"""Reading of ``results.json``: valid reports unchanged, invalid ones rejected."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given

from agentci._util.workspace import ResolvedPath
from agentci.errors import InputError
from agentci.gate.comparison import compare_runs
from agentci.model.problem import Place
from agentci.model.result import CheckResult, Report, TrialRecord, TrialScore
from agentci.model.values import replace
from agentci.reports.console import render_console
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.junit import JUnitReport
from agentci.reports.merge.read import (
    MAX_MESSAGE_CHARACTERS,
    OTHER_BUILD_HINT,
    read_report,
    read_report_file,
)
from tests.helpers.reports import annotated, make_report, make_result, mixed_report, text_of
from tests.reports.test_hostile_reports import REPORTS


def _read(report: Report) -> Report:
    return read_report(text_of(JsonReport(), report).encode(), file="results.json")


@given(report=REPORTS)
def test_written_report_is_read_back_unchanged(report: Report) -> None:
    written = text_of(JsonReport(), report)
    cases = [(c["id"], c["trace"], c["eval_case"], c["file"]) for c in json.loads(written)["cases"]]
    # All lone surrogates are written as the same replacement character.
    assume(len(set(cases)) == len(cases))
    again = text_of(JsonReport(), _read(report))
    untimed = [re.sub(r'"seconds": [^,]+,', "", text) for text in (written, again)]
    assert json.loads(untimed[0]) == json.loads(untimed[1])


def test_read_report_renders_like_original() -> None:
    report = mixed_report()
    report = replace(report, results=tuple(map(_without_line, report.results)))
    read = _read(report)
    for reporter in (JUnitReport(), SummaryReport()):
        assert text_of(reporter, read) == text_of(reporter, report)
    assert annotated(read) == annotated(report)
    shown = [
        render_console(each, quiet=False, verbose=True, colour=False) for each in (read, report)
    ]
    assert shown[0] == shown[1]


def test_trials_are_read_back() -> None:
    trials = (TrialScore(attempt=0, score=None, reason="it hung"), TrialScore(attempt=2, score=0.9))
    record = TrialRecord(strategy="mean", trials=trials, cost_limited=True)
    [result] = _read(make_report([make_result("passed", 0.9, trials=record)])).results
    assert result.trials == record


def test_commit_is_read_back() -> None:
    report = replace(mixed_report(), commit="c0de" * 10)
    assert _read(report).commit == report.commit
    assert _read(replace(report, commit="")).commit == ""


def _without_line(result: CheckResult) -> CheckResult:
    """Drop the line of the trace, because results.json stores only its file."""
    recording = Place(file=result.case.recording.file)
    return replace(result, case=replace(result.case, recording=recording))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            '"status": "errored"',
            '"status": "odd"',
            "13: `results[4].status`: invalid enum value 'odd'",
        ),
        (
            '"cached": false',
            '"cached": false, "again": null',
            "9: `results[0]`: object contains unknown field `again`",
        ),
        ('"passed": false', '"passed": 0', "6: `decision.passed`: expected `bool`, got `int`"),
        ('"checks": 6', '"checks": -6', "7: `totals.checks`: expected `int` >= 0"),
        ('"gates": []', '"gate": []', "1: object contains unknown field `gate`"),
    ],
)
def test_wrong_value_is_reported_with_its_path(before: str, after: str, message: str) -> None:
    written = text_of(JsonReport(), mixed_report())
    assert before in written
    with pytest.raises(InputError) as caught:
        read_report(written.replace(before, after, 1).encode(), file="a/results.json")
    [problem] = caught.value.problems
    line = problem.place and problem.place.line
    assert f"{line}: {problem.message}" == message
    assert problem.hint == OTHER_BUILD_HINT


def test_long_value_is_shortened_in_the_message() -> None:
    written = text_of(JsonReport(), mixed_report())
    written = written.replace('"status": "errored"', f'"status": "{"x" * 9999}"')
    with pytest.raises(InputError) as caught:
        read_report(written.encode(), file="a/results.json")
    assert len(caught.value.problems[0].message) <= MAX_MESSAGE_CHARACTERS


def test_outcomes_are_enough_for_a_comparison() -> None:
    report = mixed_report()
    data = text_of(JsonReport(), report).encode()
    found = read_report(data, file="results.json", outcomes_only=True)
    whole = read_report(data, file="results.json")
    for before in (found, whole):
        comparison = compare_runs(before.results, report.results, report.gates, baseline="base")
        assert comparison.classes.total == len(report.results)
        assert comparison == compare_runs(whole.results, report.results, (), baseline="base")
    for result in found.results:
        assert result.judgement is not None
        assert (result.judgement.details, result.case.dialogue, result.reason) == ({}, (), None)


def test_report_file_is_read_in_parts(tmp_path: Path) -> None:
    data = text_of(JsonReport(), mixed_report()).encode()
    path = tmp_path / "results.json"
    path.write_bytes(data)
    found = read_report_file(ResolvedPath(path), file="results.json", limit_bytes=len(data))
    assert found == read_report(data, file="results.json")
    with pytest.raises(InputError, match="is larger than"):
        read_report_file(ResolvedPath(path), file="results.json", limit_bytes=len(data) - 1)
