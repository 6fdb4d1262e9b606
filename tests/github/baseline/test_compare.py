"""What reports show of the baseline's results."""

import pytest

from agentci.github.baseline.compare import BaselineResults
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
