"""The comment on a pull request: shorter than the summary, and never too long for GitHub."""

import pytest

from agentci.model.gate import ChangedCheck, Comparison, EvaluatorComparison
from agentci.model.problem import Problem
from agentci.model.result import Report, Status
from agentci.model.values import replace
from agentci.reports.comment import MAX_BYTES, CommentReport
from agentci.reports.github_limits import COMMENT_CHARACTERS
from agentci.reports.job_summary import SummaryReport
from tests.conftest import Golden
from tests.helpers.reports import make_report, make_result, mixed_report, text_of

RUN = "https://github.example/octo/agent/actions/runs/3"
TREND = EvaluatorComparison(
    config="evals/eval_config.yaml",
    evaluator="response_quality",
    required=True,
    pairs=3,
    before=0.9,
    after=0.8,
    regressions=(ChangedCheck(case="cancels", before=0.9, after=0.6999),),
    improvements=(),
    p_value=0.25,
    outcome="inconclusive",
    reason="mean score 0.95 -> 0.7 (3 cases), not significant (p = 0.25)",
)
STATUSES: tuple[Status, ...] = ("failed", "errored", "skipped")


def _render(report: Report) -> str:
    return text_of(CommentReport(run_url=RUN, commit="8c1f" * 10), report)


def _compared(comparison: Comparison) -> Report:
    return replace(mixed_report(), comparison=comparison)


def test_it_looks_like_this(golden: Golden) -> None:
    compared = Comparison(baseline="base/results.json", evaluators=(TREND,), added=3)
    golden("comment.md", _render(_compared(compared)))


def test_an_open_gate_looks_like_this(golden: Golden) -> None:
    golden("comment-open.md", _render(make_report([make_result("passed", 0.9)])))


def test_it_is_shorter_than_the_summary() -> None:
    assert len(_render(mixed_report())) < len(text_of(SummaryReport(), mixed_report())) / 1.5


def test_without_a_workflow_it_leads_nowhere() -> None:
    assert text_of(CommentReport(), mixed_report()).endswith("; did you mean 'threshold'?\n")


def test_several_configs_are_named() -> None:
    results = [make_result(each, config=c) for c in ("a.yaml", "b.yaml") for each in STATUSES]
    text = _render(make_report(results))
    assert "\n| `b.yaml` | \N{CROSS MARK} `response_quality` | 0 of 3 |" in text
    assert "\n- `response_quality` of `b.yaml`: no reason given (1 case:" in text


def test_a_baseline_that_is_of_no_use_says_so() -> None:
    text = _render(
        _compared(Comparison(baseline="b", not_comparable="the baseline is of no use: gone"))
    )
    assert "### Baseline\n\n- the baseline is of no use: gone\n" in text
    assert "| Baseline |" not in text


def test_an_evaluator_that_the_baseline_does_not_have_is_compared_with_nothing() -> None:
    text = _render(_compared(Comparison(baseline="b", evaluators=(TREND,))))
    assert "| 0 of 1 | 0.95 | score &gt;= 0.7 |  |\n" in text


def test_nobody_is_called_and_nothing_is_referred_to() -> None:
    result = make_result("failed", 0.1, misses=["@octocat fixes #12, see GH-3 and o/r#4 <b>"])
    text = _render(make_report([result]))
    for name in ("@octocat", "#12", "GH-3", "#4", "<b>"):
        assert name not in text


@pytest.mark.parametrize("character", ["x", "\N{CROSS MARK}", "|", "&", "\x00"])
def test_it_is_never_too_long(character: str) -> None:
    long = character * 5_000
    results = [
        make_result(
            status,
            0.1 if status == "failed" else None,
            case=f"{number}{long}",
            evaluator=f"{number % 400}{long}",
            reason=None if status == "failed" else f"{number}{long}",
            criterion=long,
            misses=[long] * 9,
        )
        for number in range(600)
        for status in STATUSES
    ]
    problems = [Problem(message=long, hint=long)] * 200
    text = _render(make_report(results, problems=problems))
    assert len(text.encode()) <= MAX_BYTES < COMMENT_CHARACTERS
    assert text.startswith("## \N{CROSS MARK} Quality gate failed: ")
    assert "_Not shown: " in text
    assert text.endswith(f"\n[Workflow run]({RUN}), commit 8c1f8c1f8c1f\n")
