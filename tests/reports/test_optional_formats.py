"""CTRF, CSV and OpenTelemetry events: what other tools read, and what agentci reads again."""

import csv
import io
import json
from pathlib import Path
from typing import Any, get_args

import pytest

from agentci.model.result import CheckResult, RepeatOutcome, RepeatRecord, Report, Status
from agentci.model.values import OPTIONAL_FORMATS, OptionalFormat, replace
from agentci.reports.optional_formats import CsvReport, CtrfReport, OtelReport
from agentci.reports.registry import make_optional_writer
from agentci.result_files.registry import read_result_file
from agentci.version import __version__
from tests.conftest import Golden
from tests.helpers.reports import make_report, make_result, mixed_report, text_of
from tests.helpers.support import run_agentci
from tests.result_files.result_samples import sample_file

READ_AGAIN: tuple[OptionalFormat, ...] = ("ctrf", "csv", "otel")


def write(name: OptionalFormat, report: Report) -> str:
    return text_of(make_optional_writer(name), report)


@pytest.mark.parametrize("name", OPTIONAL_FORMATS)
def test_report_matches_snapshot(golden: Golden, name: OptionalFormat) -> None:
    text = write(name, mixed_report()).replace(f'"{__version__}"', '"1.2.3"')
    golden(OPTIONAL_FORMATS[name], text)


def test_files_have_the_names_of_the_registry() -> None:
    named = {name: make_optional_writer(name).file_name for name in OPTIONAL_FORMATS}
    assert named == OPTIONAL_FORMATS
    assert {*OPTIONAL_FORMATS} == {*get_args(OptionalFormat)}


def measured(result: CheckResult) -> CheckResult:
    return replace(result, evaluator=replace(result.evaluator, better="unknown", threshold=None))


def read_again(name: OptionalFormat, report: Report) -> dict[tuple[str, str], tuple[Any, Any]]:
    found = read_result_file(write(name, report).encode(), file=OPTIONAL_FORMATS[name])
    assert found.warnings == ()
    return {(row.case, row.metric): (row.status, row.score) for row in found.rows}


@pytest.mark.parametrize("name", READ_AGAIN)
def test_every_status_is_read_as_it_was_written(name: OptionalFormat) -> None:
    statuses: tuple[Status, ...] = ("passed", "failed", "errored", "skipped", "skipped")
    results = [
        replace(
            make_result(status, None if status == "errored" else 0.25),
            case=replace(make_result("passed", 1.0).case, id=f"case {number}", trace_id=trace),
        )
        for number, (status, trace) in enumerate(
            zip(statuses, ("a" * 32, "", "x", "b" * 32, "c"), strict=True)
        )
    ]
    results[4] = measured(results[4])
    metric = results[0].evaluator.name
    assert read_again(name, make_report(results)) == {
        ("case 0", metric): ("passed", 0.25),
        ("case 1", metric): ("failed", 0.25),
        ("case 2", metric): ("errored", None),
        ("case 3", metric): ("skipped", None),
        ("case 4", metric): (None, 0.25),
    }


@pytest.mark.parametrize("name", READ_AGAIN)
def test_metrics_of_several_configs_have_different_names(name: OptionalFormat) -> None:
    result = make_result("passed", 1.0)
    other = replace(result, config="other.yaml")
    metrics = {metric for _, metric in read_again(name, make_report([result, other]))}
    evaluator = result.evaluator.name
    assert metrics == {f"{result.config}: {evaluator}", f"other.yaml: {evaluator}"}


def test_table_has_a_row_per_repeat() -> None:
    outcomes = (
        RepeatOutcome(status="passed", score=0.1),
        RepeatOutcome(status="failed", score=None, reason="no\nanswer"),
    )
    record = RepeatRecord(aggregation="majority", flip_rate=0.5, repeats=outcomes)
    result = replace(make_result("passed", 0.1), repeats=record)
    rows = [*csv.DictReader(io.StringIO(text_of(CsvReport(), make_report([result]))))]
    assert [(row["repeat"], row["score"], row["passed"]) for row in rows] == [
        ("1", "0.1", "true"),
        ("2", "", "false"),
    ]
    assert rows[1]["reason"] == "no answer"
    repeats = read_result_file(
        text_of(CsvReport(), make_report([measured(replace(result, status="skipped"))])).encode(),
        file="results.csv",
    ).rows
    assert [row.status for row in repeats] == [None, "errored"]


def test_table_has_no_formulas_and_no_invalid_text() -> None:
    result = make_result("failed", float("nan"))
    result = replace(result, case=replace(result.case, id='=HYPERLINK("x")\ud800\0'))
    [row] = csv.DictReader(io.StringIO(text_of(CsvReport(), make_report([result]))))
    assert row["id"].startswith("'=HYPERLINK")
    assert row["score"] == ""
    row["id"].encode()


def test_line_ends_inside_a_cell_are_those_of_the_table() -> None:
    result = make_result("failed", 0.5)
    result = replace(result, case=replace(result.case, id="\ra\r\nb"))
    text = text_of(CsvReport(), make_report([result]))
    assert "\r" not in text
    [row] = csv.DictReader(io.StringIO(text))
    assert row["id"] == "'\na\nb"


def test_ctrf_counts_errors_as_other() -> None:
    document = json.loads(text_of(CtrfReport(), mixed_report()))
    summary, tests = document["results"]["summary"], document["results"]["tests"]
    assert summary["tests"] == len(tests)
    for status in ("passed", "failed", "skipped", "other"):
        assert summary[status] == sum(test["status"] == status for test in tests)


def test_ctrf_has_the_times_of_the_run() -> None:
    writer = make_optional_writer("ctrf", start=1000, stop=1500)
    summary = json.loads(text_of(writer, mixed_report()))["results"]["summary"]
    assert (summary["start"], summary["stop"]) == (1000, 1500)


def test_empty_reports_are_valid() -> None:
    empty = make_report([])
    assert json.loads(text_of(CtrfReport(), empty))["results"]["tests"] == []
    [resource] = json.loads(text_of(OtelReport(), empty))["resourceLogs"]
    assert resource["scopeLogs"][0]["logRecords"] == []
    assert text_of(CsvReport(), empty).count("\n") == 1


def test_formats_are_written_on_request_and_read_again(tmp_path: Path) -> None:
    source = sample_file("promptfoo/base")
    (tmp_path / "out.json").write_bytes(source.read_bytes())
    options = [f"--formats={name}" for name in READ_AGAIN]
    ran = run_agentci(["run", "--quiet", "--results", "out.json", *options], cwd=tmp_path)
    written = {one["id"]: (one["status"], one["score"]) for one in ran.results["results"]}
    for name in READ_AGAIN:
        file = f"agentci-results/{OPTIONAL_FORMATS[name]}"
        again = run_agentci(
            ["run", "--quiet", "--results", file, "--output-dir", "again"], cwd=tmp_path
        )
        assert again.code == ran.code
        results = json.loads((tmp_path / "again" / "results.json").read_text())["results"]
        assert {one["id"]: (one["status"], one["score"]) for one in results} == written
    assert not (tmp_path / "again" / "ctrf.json").exists()


def test_unknown_format_is_an_error(tmp_path: Path) -> None:
    ran = run_agentci(["run", "--formats", "xml"], cwd=tmp_path)
    assert ran.code == 2
