"""The metrics: computed here, scored by a judge model, computed by a service, or unsupported."""

from collections.abc import Mapping
from typing import Final

from agentci.evaluators.metrics import response_match, tool_trajectory
from agentci.evaluators.metrics.metric import HostedMetric, Metric

METRICS: Final[Mapping[str, Metric]] = {
    tool_trajectory.name: tool_trajectory,
    response_match.name: response_match,
}

# Metrics scored by a judge model, and their purpose. Their modules are in the registry of
# ``judged``, which is slow to load.
JUDGED_METRIC_PURPOSES: Final[Mapping[str, str]] = {
    "final_response_match_v2": "Whether the final answer says what the golden one says.",
    "rubric_based_final_response_quality_v1": "How many rubrics the final answer fulfils.",
    "rubric_based_tool_use_quality_v1": "How many rubrics the tool calls fulfil.",
    "hallucinations_v1": "How much of the final answer is shown by what tools answered.",
}

# Metrics that Google's ADK computes through Vertex AI.
HOSTED_METRICS: Final[Mapping[str, HostedMetric]] = {
    "response_evaluation_score": HostedMetric(
        purpose="How coherent the final answer is.", needs_expected=True, lowest=1.0, highest=5.0
    ),
    "safety_v1": HostedMetric(purpose="Whether the final answer is harmless."),
    "multi_turn_task_success_v1": HostedMetric(
        purpose="Whether the conversation reached what the user wanted.", scores_conversation=True
    ),
    "multi_turn_trajectory_quality_v1": HostedMetric(
        purpose="How good the steps of the conversation were.", scores_conversation=True
    ),
    "multi_turn_tool_use_quality_v1": HostedMetric(
        purpose="How good the tool calls of the conversation were.", scores_conversation=True
    ),
}
INSTALL_ADK: Final = 'pip install "google-adk[eval]>=2.13"'

UNRUNNABLE: Final = "it cannot be run by agentevals 0.11.0 either"

# Metrics of agentevals that this version does not run, and the reason.
UNSUPPORTED_METRICS: Final[Mapping[str, str]] = {
    "rubric_based_multi_turn_trajectory_quality_v1": UNRUNNABLE,
    "per_turn_user_simulator_quality_v1": UNRUNNABLE,
    "tool_call_count_v1": UNRUNNABLE,
    "inference_call_count_v1": UNRUNNABLE,
    "token_usage_v1": UNRUNNABLE,
    "invocation_duration_v1": UNRUNNABLE,
}
