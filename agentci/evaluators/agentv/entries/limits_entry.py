"""Entries of ``latency``, ``cost``, ``token_usage`` and ``execution_metrics``."""

from typing import Literal, Self

from pydantic import Field, model_validator

from agentci.evaluators.agentv.agentv_evaluator import Surroundings
from agentci.evaluators.agentv.entry_fields import JudgeEntry, NonNegative
from agentci.evaluators.agentv.execution_metrics import ExecutionMetrics
from agentci.evaluators.agentv.limits import Cost, Latency, Tokens
from agentci.evaluators.fields import Share


class LatencyEntry(JudgeEntry):
    """How long the run took."""

    type: Literal["latency"] = Field(description="How long the run took.")
    threshold: NonNegative = Field(description="Milliseconds that it may take.")


def latency(entry: LatencyEntry, _: Surroundings) -> Latency:
    """Make the rule."""
    return Latency(threshold=entry.threshold)


class CostEntry(JudgeEntry):
    """What the run cost."""

    type: Literal["cost"] = Field(description="What the run cost.")
    budget: NonNegative = Field(description="US dollars that it may cost.")


def cost(entry: CostEntry, _: Surroundings) -> Cost:
    """Make the rule."""
    return Cost(budget=entry.budget)


class TokenUsageEntry(JudgeEntry):
    """How many tokens the run took."""

    type: Literal["token_usage"] = Field(description="How many tokens the run took.")
    max_total: NonNegative | None = Field(default=None, description="Of all kinds.")
    max_input: NonNegative | None = Field(default=None, description="Read.")
    max_output: NonNegative | None = Field(default=None, description="Written.")

    @model_validator(mode="after")
    def _with_a_limit(self) -> Self:
        if self.max_total is None and self.max_input is None and self.max_output is None:
            raise ValueError("token_usage needs max_total, max_input or max_output")
        return self


def tokens(entry: TokenUsageEntry, _: Surroundings) -> Tokens:
    """Make the rule."""
    return Tokens(**entry.model_dump(include={"max_input", "max_output", "max_total"}))


class ExecutionMetricsEntry(JudgeEntry):
    """What the run took, in several respects."""

    type: Literal["execution_metrics"] = Field(
        description="What the run took, in several respects."
    )
    max_tool_calls: NonNegative | None = Field(default=None, description="Uses of tools.")
    max_llm_calls: NonNegative | None = Field(default=None, description="Messages of the agent.")
    max_tokens: NonNegative | None = Field(default=None, description="Tokens, read and written.")
    max_cost_usd: NonNegative | None = Field(default=None, description="US dollars.")
    max_duration_ms: NonNegative | None = Field(default=None, description="Milliseconds.")
    target_exploration_ratio: Share | None = Field(
        default=None, description="Share of uses of tools that only look around."
    )
    exploration_tolerance: NonNegative = Field(
        default=0.2, description="How far from that it may be."
    )

    @model_validator(mode="after")
    def _with_a_limit(self) -> Self:
        limits = self.model_dump(exclude={*JudgeEntry.model_fields, "exploration_tolerance"})
        if all(value is None for value in limits.values()):
            raise ValueError(f"execution_metrics needs one of {', '.join(limits)}")
        return self


def execution_metrics(entry: ExecutionMetricsEntry, _: Surroundings) -> ExecutionMetrics:
    """Make the rule."""
    return ExecutionMetrics(**entry.model_dump(exclude=set(JudgeEntry.model_fields)))
