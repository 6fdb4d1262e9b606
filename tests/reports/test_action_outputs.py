"""The outputs of the action, read back by the runner's own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.escape import replace_surrogates
from agentci.model.gate import GateThresholds
from agentci.model.problem import Problem
from agentci.model.result import Report
from agentci.reports.action_outputs import make_outputs, make_outputs_without_report, render_outputs
from tests.helpers.reports import make_report, make_result, mixed_report, shard_report
from tests.helpers.runner import read_output_file

FILES = {
    "results": "out/results.json",
    "junit": "out/junit.xml",
    "summary": "out/summary.md",
    "report": "out/report.html",
    "comment": "out/comment.md",
}


def test_they_are_those_of_the_contract() -> None:
    assert make_outputs(mixed_report(), FILES) == {
        "passed": "false",
        "verdict": "failed",
        "score": "0.762475",
        "checks": "6",
        "passed-count": "1",
        "failed-count": "3",
        "errored-count": "1",
        "skipped-count": "1",
        **FILES,
    }


@pytest.mark.parametrize(
    ("report", "passed", "verdict"),
    [
        pytest.param(make_report([make_result("passed")]), "true", "passed", id="all passed"),
        pytest.param(make_report([make_result("failed")]), "false", "failed", id="failed"),
        pytest.param(make_report([make_result("errored")]), "false", "error", id="errored"),
        pytest.param(make_report([]), "false", "failed", id="nothing judged"),
        pytest.param(
            make_report([make_result("passed")], complete=False), "false", "failed", id="broken off"
        ),
        pytest.param(
            make_report([make_result("passed")], problems=[Problem(message="x")]),
            "false",
            "invalid",
            id="broken input",
        ),
        pytest.param(shard_report([make_result("passed")]), "false", "partial", id="a shard"),
        pytest.param(shard_report([]), "false", "partial", id="a shard of nothing"),
        pytest.param(
            shard_report([make_result("failed")]), "false", "failed", id="a failing shard"
        ),
        pytest.param(
            make_report([make_result("failed")], bar=GateThresholds(min_pass_rate=0.0)),
            "true",
            "passed",
            id="enough passed",
        ),
    ],
)
def test_the_verdict_is_one_word(report: Report, passed: str, verdict: str) -> None:
    values = make_outputs(report, FILES)
    assert (values["passed"], values["verdict"]) == (passed, verdict)


def test_without_scores_the_score_is_empty() -> None:
    assert make_outputs(make_report([make_result("passed")]), FILES)["score"] == ""


def test_a_file_that_was_not_written_has_no_path() -> None:
    assert make_outputs(mixed_report(), {})["junit"] == ""


def test_without_a_report_all_outputs_are_set_too() -> None:
    values = make_outputs_without_report("invalid")
    assert list(values) == list(make_outputs(mixed_report(), FILES))
    assert (values["passed"], values["verdict"], values["checks"]) == ("false", "invalid", "0")


@given(
    st.dictionaries(
        st.text(st.sampled_from("abc-"), min_size=1),
        st.text(st.characters(codec=None)) | st.text(st.sampled_from("ab=<\r\n\u2028")),
    )
)
def test_the_runner_reads_exactly_these(values: dict[str, str]) -> None:
    text = render_outputs(values, "delimiter-4f2a")
    assert read_output_file(text) == {
        name: replace_surrogates(value) for name, value in values.items()
    }


def test_a_value_cannot_make_another_output() -> None:
    path = "out\npassed=true\nverdict<<x\nopen\nx/junit.xml"
    text = render_outputs(make_outputs(mixed_report(), {**FILES, "junit": path}), "delimiter-4f2a")
    read = read_output_file(text)
    assert (read["junit"], read["passed"], read["verdict"]) == (path, "false", "failed")


@pytest.mark.parametrize("values", [{"a": "x delimiter y"}, {"delimiter": ""}])
def test_a_delimiter_that_was_guessed_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="delimiter"):
        render_outputs(values, "delimiter")
