"""What every metric promises."""

import pytest

from agentci.evaluators.metrics.registry import (
    HOSTED_METRICS,
    JUDGED_METRIC_PURPOSES,
    METRICS,
    UNSUPPORTED_METRICS,
)
from agentci.model.trace import ToolCall, Turn


@pytest.mark.parametrize("name", METRICS)
class TestEveryMetric:
    def test_stands_under_its_own_name(self, name: str) -> None:
        assert METRICS[name].name == name

    def test_is_content_with_turns_that_do_as_the_golden_ones(self, name: str) -> None:
        turn = Turn(
            id="t", user_text="q", answer_parts=("yes",), tool_calls=(ToolCall(name="f", args={}),)
        )
        found = METRICS[name].measure([turn, turn], [turn, turn], {})
        assert (found.score, found.turn_scores, found.misses) == (1.0, (1.0, 1.0), ())


def test_a_metric_is_here_or_not_yet_here() -> None:
    assert not (METRICS.keys() | HOSTED_METRICS.keys()) & UNSUPPORTED_METRICS.keys()


def test_every_other_metric_of_agentevals_has_a_reason() -> None:
    assert (
        len(METRICS) + len(JUDGED_METRIC_PURPOSES) + len(HOSTED_METRICS) + len(UNSUPPORTED_METRICS)
        == 17
    )
    assert all(UNSUPPORTED_METRICS.values())
