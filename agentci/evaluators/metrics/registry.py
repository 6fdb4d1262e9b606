"""The metrics: computed here, scored by a judge model, computed by a service, or unsupported."""

from collections.abc import Mapping
from typing import Final

from agentci.evaluators.metrics import response_match, tool_trajectory
from agentci.evaluators.metrics.metric import HostedMetric, Metric

METRICS: Final[Mapping[str, Metric]] = {
    tool_trajectory.name: tool_trajectory,
    response_match.name: response_match,
}

# Metrics scored by a judge model, and their purpose. They are in ``judged``, which is slow to load.
JUDGED_METRIC_PURPOSES: Final[Mapping[str, str]] = {
    "final_response_match_v2": "Whether the final answer matches the expected one in meaning.",
    "rubric_based_final_response_quality_v1": "Share of rubrics that the final answer fulfils.",
    "rubric_based_tool_use_quality_v1": "Share of rubrics that the tool calls fulfil.",
    "hallucinations_v1": "Share of the final answer that the tool results support.",
}

# Metrics that Google's ADK computes through Vertex AI.
HOSTED_METRICS: Final[Mapping[str, HostedMetric]] = {
    "response_evaluation_score": HostedMetric(
        purpose="Coherence of the final answer.", needs_expected=True, lowest=1.0, highest=5.0
    ),
    "safety_v1": HostedMetric(purpose="Whether the final answer is harmless."),
    "multi_turn_task_success_v1": HostedMetric(
        purpose="Whether the conversation achieved the user's goal.", scores_conversation=True
    ),
    "multi_turn_trajectory_quality_v1": HostedMetric(
        purpose="Quality of the steps of the conversation.", scores_conversation=True
    ),
    "multi_turn_tool_use_quality_v1": HostedMetric(
        purpose="Quality of the tool calls of the conversation.", scores_conversation=True
    ),
}
INSTALL_ADK: Final = 'pip install "google-adk[eval]>=2.13"'

UNRUNNABLE: Final = "agentevals 0.11.0 cannot run it either"

# Metrics of agentevals that this version does not run, and the reason.
UNSUPPORTED_METRICS: Final[Mapping[str, str]] = {
    "rubric_based_multi_turn_trajectory_quality_v1": UNRUNNABLE,
    "per_turn_user_simulator_quality_v1": UNRUNNABLE,
    "tool_call_count_v1": UNRUNNABLE,
    "inference_call_count_v1": UNRUNNABLE,
    "token_usage_v1": UNRUNNABLE,
    "invocation_duration_v1": UNRUNNABLE,
}
