"""What reports say of the comparison with the baseline."""

from typing import Any

import pytest

from agentci.model.gate import CheckClasses, Comparison
from agentci.reports.comparison import drop_missing, list_remarks
from tests.reports.html.pages import make_change, make_trend

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
