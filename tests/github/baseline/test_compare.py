"""What reports show of the baseline's results."""

import pytest

from agentci.github.baseline.compare import BaselineResults, compare_results
from agentci.model.result import Status
from tests.helpers.reports import make_result


@pytest.mark.parametrize(
    ("status", "score"), [("passed", 0.9), ("failed", 0.1), ("skipped", None), ("errored", None)]
)
def test_only_scored_checks_have_a_score(status: Status, score: float | None) -> None:
    """A program may print a score although it skips a check."""
    result = make_result(status, 0.0 if score is None else score)
    [check] = BaselineResults(name="base", results=(result,)).checks.values()
    assert (check.status, check.score) == (status, score)


def test_comparison_names_run_and_branch_of_the_baseline() -> None:
    result = make_result("passed", 1.0)
    url = "https://github.com/acme/desk/actions/runs/7"
    baseline = BaselineResults(name="base", results=(result,), url=url, branch="main")
    compared = compare_results(baseline, [result], [])
    assert (compared.url, compared.branch) == (url, "main")
