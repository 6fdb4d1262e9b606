"""What a gate that passes warns of, beside the verdict."""

from typing import Any

import pytest

from agentci.model.gate import EvaluatorComparison, PolicyComparison
from agentci.model.result import BaselineCheck, Status
from agentci.model.trace import EARLY_END, PRINTED_KEY
from agentci.model.values import replace
from agentci.reports.comment import CommentReport
from agentci.reports.verdict import (
    format_conclusion,
    format_title,
    list_verdict_warnings,
    split_title,
)
from tests.helpers.reports import make_report, make_result, text_of
from tests.reports.html.pages import compared, make_change, make_trend

PASSED = make_report([make_result("passed", 0.9, case=case) for case in "ab"])
FAILING, LOST = make_change("a", 1.0, 0.1, "failed"), make_change("b", 1.0, None, "removed")


@pytest.mark.parametrize(
    ("trend", "warnings"),
    [
        pytest.param(
            make_trend(required=False, newly_failing=(FAILING,), no_longer_evaluated=(LOST,)),
            ("1 advisory check newly failing", "1 advisory check no longer evaluated"),
            id="advisory",
        ),
        pytest.param(
            make_trend(newly_failing=(FAILING,), no_longer_evaluated=(LOST,)),
            ("1 newly failing", "1 no longer evaluated (removed)"),
            id="required",
        ),
        pytest.param(
            make_trend(newly_failing=()), ("1 evaluator regressed",), id="only a lower mean score"
        ),
        pytest.param(
            make_trend(required=False, newly_failing=()), (), id="lower mean score of an advisory"
        ),
        pytest.param(make_trend(newly_failing=(), outcome="pass"), (), id="as before"),
    ],
)
def test_what_is_worse_than_in_the_baseline_is_a_warning(
    trend: EvaluatorComparison, warnings: tuple[str, ...]
) -> None:
    report = compared(PASSED, trend)
    assert list_verdict_warnings(report) == warnings
    failed = replace(report, decision=make_report([make_result("failed", 0.1)]).decision)
    assert list_verdict_warnings(failed) == ()


@pytest.mark.parametrize(
    ("required", "before", "start"),
    [
        pytest.param(True, "passed", "1 case newly failing, ", id="required"),
        pytest.param(False, "passed", "", id="only advisory"),
        pytest.param(True, "failed", "", id="as in the baseline"),
        pytest.param(True, None, "", id="without a baseline"),
    ],
)
def test_headline_of_a_failed_gate_starts_with_the_cases_that_newly_fail(
    required: bool, before: Status | None, start: str
) -> None:
    """As many as the line of cases counts; a case is one however many of its checks fail."""
    own = [make_result("failed", 0.1, evaluator=each, required=required) for each in ("a", "b")]
    kept = make_result("failed", 0.1, case="known")
    report = make_report([*own, kept])
    baseline = {kept.id: "failed", **{each.id: before for each in own}} if before else {}
    report = replace(
        report,
        baseline={id_: BaselineCheck(status=each, score=0.0) for id_, each in baseline.items()},
    )
    [reason] = report.decision.reasons
    count, _, rate = reason.partition(" (")
    assert format_title(report) == f"Quality gate failed: {start}{reason}"
    shown, rest = split_title(report, 40)
    assert (shown, rest) == (f"Quality gate failed: {start}{count}", rate[:-1])
    interrupted = replace(report, complete=False)
    assert format_title(interrupted) == f"Quality gate failed: {reason}"


@pytest.mark.parametrize(
    ("given", "warnings"),
    [
        pytest.param(
            {"details": {"possible_errors": ["`find`: not found"]}},
            ("1 case with a possible tool error",),
            id="possible error",
        ),
        pytest.param(
            {"details": {"possible_errors": ["`find`: not found"]}, "required": False},
            (),
            id="possible error of an advisory check",
        ),
        pytest.param(
            {"warnings": [f"{PRINTED_KEY}: `sk-…`"]}, ("1 case with a printed key",), id="key"
        ),
        pytest.param(
            {"warnings": [f"{EARLY_END}, with the finish reason length"]},
            ("1 case with a warning",),
            id="early end",
        ),
        pytest.param({"warnings": ["2 spans without a name were left out"]}, (), id="reading"),
    ],
)
def test_what_a_reviewer_must_look_at_is_a_warning(
    given: dict[str, Any], warnings: tuple[str, ...]
) -> None:
    """Once for each case, whatever the number of its checks."""
    names = "tone", "price"
    results = [make_result("passed", 0.9, evaluator=each, **given) for each in names]
    report = make_report([*results, make_result("passed", 0.9, case="cancels")])
    assert list_verdict_warnings(report) == warnings
    title = "Quality gate passed with 1 warning" if warnings else "Quality gate passed"
    assert format_conclusion(report) == title


def test_unknown_policy_of_the_base_is_a_warning() -> None:
    report = replace(PASSED, policy=PolicyComparison(base="main", unavailable="no git"))
    assert list_verdict_warnings(report) == ("the policy of the base is unknown: no git",)


@pytest.mark.parametrize(("kinds", "is_folded"), [(3, False), (4, True)])
def test_many_kinds_of_warnings_are_folded_in_the_comment(kinds: int, *, is_folded: bool) -> None:
    results = [
        make_result("passed", 0.9, case=f"c{n}", warnings=[f"{EARLY_END}: reason {n}"])
        for n in range(kinds)
    ]
    text = text_of(CommentReport(), make_report(results))
    assert ("<summary>4 warnings</summary>" in text) == is_folded
    assert text.count("the model ended its answer early: reason") == kinds
