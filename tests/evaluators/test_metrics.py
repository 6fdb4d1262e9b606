"""Properties of every registered metric."""

import pytest

from agentci.evaluators.metrics import (
    HOSTED_METRICS,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from agentci.model.trace import ToolCall, Turn


@pytest.mark.parametrize("name", METRICS)
def test_matching_turns_score_one(name: str) -> None:
    turn = Turn(
        id="t", user_text="q", answer_parts=("yes",), tool_calls=(ToolCall(name="f", args={}),)
    )
    found = METRICS[name].measure([turn, turn], [turn, turn], {})
    assert (found.score, found.turn_scores, found.misses) == (1.0, (1.0, 1.0), ())


def test_metric_is_not_both_supported_and_unsupported() -> None:
    assert not (METRICS.keys() | HOSTED_METRICS.keys()) & UNSUPPORTED_METRICS.keys()


def test_every_agentevals_metric_is_supported_or_explained() -> None:
    assert (
        len(METRICS) + len(JUDGED_METRIC_PURPOSES) + len(HOSTED_METRICS) + len(UNSUPPORTED_METRICS)
        == 17
    )
    assert all(UNSUPPORTED_METRICS.values())
