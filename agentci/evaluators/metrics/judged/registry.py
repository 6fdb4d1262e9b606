"""The metrics that a judge model scores; a new metric is a module and a line here."""

from collections.abc import Mapping
from typing import Final

from agentci.evaluators.metrics.judged import (
    final_response_match,
    final_response_quality,
    hallucinations,
    tool_use_quality,
)
from agentci.evaluators.metrics.judged.judged_metric import JudgedMetric

JUDGED_METRICS: Final[Mapping[str, JudgedMetric]] = {
    final_response_match.name: final_response_match,
    final_response_quality.name: final_response_quality,
    tool_use_quality.name: tool_use_quality,
    hallucinations.name: hallucinations,
}
