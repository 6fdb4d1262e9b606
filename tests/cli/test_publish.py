"""Outputs of the action, read back by the rules of the runner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.escape import replace_surrogates
from agentci.cli.publish import make_outputs, make_outputs_without_report, render_outputs
from agentci.model.gate import GateThresholds
from agentci.model.result import Report
from agentci.model.values import Problem
from tests.helpers.reports import make_report, make_result, mixed_report, shard_report
from tests.helpers.runner import read_output_file

FILES = {
    "results": "out/results.json",
    "junit": "out/junit.xml",
    "summary": "out/summary.md",
    "report": "out/report.html",
    "comment": "out/comment.md",
}


def test_outputs_have_documented_names_and_values() -> None:
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
        pytest.param(make_report([]), "false", "failed", id="no checks"),
        pytest.param(
            make_report([make_result("passed")], complete=False),
            "false",
            "failed",
            id="interrupted",
        ),
        pytest.param(
            make_report([make_result("passed")], problems=[Problem(message="x")]),
            "false",
            "invalid",
            id="invalid input",
        ),
        pytest.param(shard_report([make_result("passed")]), "false", "partial", id="a shard"),
        pytest.param(shard_report([]), "false", "partial", id="an empty shard"),
        pytest.param(
            shard_report([make_result("failed")]), "false", "failed", id="a failing shard"
        ),
        pytest.param(
            make_report([make_result("failed")], thresholds=GateThresholds(min_pass_rate=0.0)),
            "true",
            "passed",
            id="threshold reached",
        ),
    ],
)
def test_verdict_is_one_word(report: Report, passed: str, verdict: str) -> None:
    values = make_outputs(report, FILES)
    assert (values["passed"], values["verdict"]) == (passed, verdict)


def test_score_is_empty_without_scores() -> None:
    assert make_outputs(make_report([make_result("passed")]), FILES)["score"] == ""


def test_unwritten_file_has_empty_path() -> None:
    assert make_outputs(mixed_report(), {})["junit"] == ""


def test_all_outputs_are_set_without_report() -> None:
    values = make_outputs_without_report("invalid")
    assert list(values) == list(make_outputs(mixed_report(), FILES))
    assert (values["passed"], values["verdict"], values["checks"]) == ("false", "invalid", "0")


@given(
    st.dictionaries(
        st.text(st.sampled_from("abc-"), min_size=1),
        st.text(st.characters(codec=None)) | st.text(st.sampled_from("ab=<\r\n\u2028")),
    )
)
def test_runner_reads_outputs_unchanged(values: dict[str, str]) -> None:
    text = render_outputs(values, "delimiter-4f2a")
    assert read_output_file(text) == {
        name: replace_surrogates(value) for name, value in values.items()
    }


def test_value_cannot_inject_another_output() -> None:
    path = "out\npassed=true\nverdict<<x\nopen\nx/junit.xml"
    text = render_outputs(make_outputs(mixed_report(), {**FILES, "junit": path}), "delimiter-4f2a")
    read = read_output_file(text)
    assert (read["junit"], read["passed"], read["verdict"]) == (path, "false", "failed")


@pytest.mark.parametrize("values", [{"a": "x delimiter y"}, {"delimiter": ""}])
def test_guessed_delimiter_is_rejected(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="delimiter"):
        render_outputs(values, "delimiter")
