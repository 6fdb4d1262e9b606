"""Reading of ``results.json``: valid reports unchanged, invalid ones rejected."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given

from agentci._util.workspace import ResolvedPath
from agentci.errors import InputError
from agentci.gate.comparison import compare_runs
from agentci.model.result import BaselineCheck, CheckResult, Report, TrialRecord, TrialScore
from agentci.model.trace import Turn
from agentci.model.values import Place, replace
from agentci.reports.console import render_console
from agentci.reports.contents import MAX_FIELD_CHARACTERS, StoredContents
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.junit import JUnitReport
from agentci.reports.merge.read import (
    MAX_MESSAGE_CHARACTERS,
    OTHER_BUILD_HINT,
    read_report,
    read_report_file,
)
from agentci.reports.run_content import decode_content, make_case_summary
from tests.helpers.reports import (
    Chunks,
    annotated,
    make_case,
    make_report,
    make_result,
    mixed_report,
    text_of,
    with_contents,
)
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
    for writer in (JUnitReport(), SummaryReport()):
        assert text_of(writer, read) == text_of(writer, report)
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


def test_contents_are_read_back_unchanged() -> None:
    chunks = Chunks()
    report = with_contents(mixed_report(), chunks)
    written = text_of(JsonReport(), report)
    own = Chunks()
    read = read_report(written.encode(), file="results.json", contents=own)
    again = replace(read, contents=StoredContents(chunks=own, redact=lambda content: content))
    assert json.loads(text_of(JsonReport(), again))["cases"] == json.loads(written)["cases"]


def test_turns_of_the_baseline_are_not_read_back() -> None:
    chunks = Chunks()
    report = with_contents(make_report([make_result("passed", 0.9)]), chunks)
    [result] = report.results
    before = make_case()
    turns = (*before.trace.turns, Turn(id="t3", user_text="Thanks"))
    before = replace(before, trace=replace(before.trace, turns=turns))
    number = make_case_summary(before, chunks).content
    baseline = {result.id: BaselineCheck(status="passed", score=0.5, content=number)}
    written = text_of(JsonReport(), replace(report, baseline=baseline))
    assert len(json.loads(written)["cases"][0]["turns"]) == 3
    own = Chunks()
    [read] = read_report(written.encode(), file="results.json", contents=own).results
    assert read.case.content is not None
    turns_read = decode_content(own.read(read.case.content)).turns
    assert [(turn.user, turn.baseline) for turn in turns_read] == [
        ("Hello", None),
        ("Book it", None),
    ]


def test_shortened_fields_of_results_are_read_back() -> None:
    result = make_result("failed", 0.1, reasoning="x" * (MAX_FIELD_CHARACTERS + 3))
    read = _read(make_report([result]))
    assert read.results[0].cut == {"reasoning": 3}


def test_first_of_two_equal_cases_counts() -> None:
    document = json.loads(text_of(JsonReport(), make_report([make_result("passed", 0.9)])))
    [case] = document["cases"]
    document["cases"].append({**case, "group": "other"})
    [result] = read_report(json.dumps(document).encode(), file="results.json").results
    assert result.case.group == case["group"]


def test_wrong_number_of_turns_is_rejected() -> None:
    document = json.loads(text_of(JsonReport(), make_report([make_result("passed", 0.9)])))
    document["cases"][0]["turn_count"] = 7
    with pytest.raises(InputError, match="`turn_count` is not the number of recorded `turns`"):
        read_report(json.dumps(document).encode(), file="results.json")
