"""What reports say of the comparison with the baseline."""

import re
from typing import Any

import pytest

from agentci.model.gate import CheckClasses, Comparison, ComparisonOutcome
from agentci.reports.comment import CommentReport
from agentci.reports.comparison import drop_missing, list_remarks
from agentci.reports.console import render_console
from agentci.reports.job_summary import SummaryReport
from tests.helpers.reports import make_report, make_result, text_of
from tests.reports.html.pages import compared, make_change, make_trend

MISSING, SKIPPED = make_change("a", 1.0, None, "removed"), make_change("b", 1.0, None, "skipped")
AGAIN = "4 checks of the baseline were evaluated again with this commit's evaluators"
CLASSES = CheckClasses(compared=2, removed=1, newly_skipped=1)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param({"outcome": "pass"}, [SKIPPED], id="case is missing as a whole"),
        pytest.param({"outcome": "fail"}, [SKIPPED], id="other checks have lower scores"),
        pytest.param(
            {"outcome": "fail", "both_after": 0.9}, [MISSING, SKIPPED], id="it alone is the drop"
        ),
        pytest.param(
            {"outcome": "fail", "classes": CheckClasses(removed=2)},
            [MISSING, SKIPPED],
            id="evaluator that only the baseline has",
        ),
    ],
)
def test_changes_of_missing_cases_are_none_of_the_evaluator(
    given: dict[str, Any], kept: list[Any]
) -> None:
    both = {"in_both": 2, "both_before": 0.9, "both_after": 0.6}
    gone = (MISSING, SKIPPED)
    trend = make_trend(**{**both, "classes": CLASSES, "no_longer_evaluated": gone, **given})
    assert [*drop_missing(trend, frozenset("a")).no_longer_evaluated] == kept


def test_each_evaluator_names_its_checks_of_missing_cases() -> None:
    """Whatever its outcome, which is that of the other cases."""
    both = {"in_both": 1, "both_before": 0.9, "both_after": 0.9, "newly_failing": ()}
    own = {"no_longer_evaluated": (MISSING,), "classes": CheckClasses(compared=1, removed=1)}
    outcomes: dict[str, ComparisonOutcome] = {"tone": "pass", "price": "inconclusive"}
    trends = [
        make_trend(**both, **own, evaluator=name, outcome=outcome)
        for name, outcome in outcomes.items()
    ]
    results = [make_result("passed", 0.9, evaluator=name) for name in outcomes]
    report = compared(make_report(results), *trends)
    gone = "1 no longer evaluated (removed)"
    labels = {"tone": "unchanged", "price": "inconclusive"}
    terminal = render_console(report, quiet=False, verbose=False, colour=False)
    for text in (text_of(CommentReport(), report), text_of(SummaryReport(), report), terminal):
        for name, label in labels.items():
            assert re.search(
                rf"{name}.*({re.escape(gone)}; {label}|{label}.*{re.escape(gone)})", text
            )


@pytest.mark.parametrize(
    ("given", "remarks"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"rescored": 1},
            ["1 check of the baseline was evaluated again with this commit's evaluators"],
            id="one check",
        ),
        pytest.param(
            {"rescored": 4, "rescored_from_results": 4},
            [f"{AGAIN}, on the runs that its results keep"],
            id="runs of the results",
        ),
        pytest.param(
            {"rescored": 4, "rescored_from_results": 1, "not_rescored": "2 checks changed, too"},
            [
                f"{AGAIN}, 1 of them on the runs that its results keep",
                "2 checks changed, too",
            ],
            id="some could not be",
        ),
    ],
)
def test_checks_that_were_evaluated_again_are_counted(
    given: dict[str, Any], remarks: list[str]
) -> None:
    assert [*list_remarks(Comparison(baseline="main", **given))] == remarks
