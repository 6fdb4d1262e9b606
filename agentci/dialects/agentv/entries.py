"""Entries of evaluators as AgentV writes them, with its names, spellings and defaults."""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, model_validator

from agentci.dialects.agentv.fields import JudgeEntry, NonNegative, without_default
from agentci.dialects.agentv.payload import Wire
from agentci.dialects.agentv.trajectory import Mode
from agentci.dialects.fields import Count, Seconds, Share, Strict, Text, VariableName
from agentci.model.exchange import MEMORY_MB, PROCESSES

DEFAULT_TIMEOUT_SECONDS: Final = 120

Command: TypeAlias = Text | Annotated[list[Text], Field(min_length=1)]
Args: TypeAlias = Literal["exact", "superset", "subset", "ignore"] | list[Text]


class CodeJudgeEntry(JudgeEntry):
    """A command that reads a case with its run from stdin, and writes a score to stdout."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=without_default("name", "script"),
    )

    type: Literal["code_judge"] = Field(description="A command of your own.")
    script: Command = Field(
        description="The command: a list of words, or a line for the shell. `command` says the "
        "same."
    )
    cwd: Text | None = Field(
        default=None, description="Folder that it runs in; by default that of this file."
    )
    wire: Wire | None = Field(
        default=None,
        description="The words that it is given the case in: those of one generation of AgentV "
        "(`camel`, `snake`, `v4`), or of all at once (`union`, the default).",
    )
    timeout: Seconds = Field(
        default=DEFAULT_TIMEOUT_SECONDS, description="Seconds after which it is stopped."
    )
    network: bool = Field(default=True, description="Whether it may use the network.")
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables that it may see, beside the harmless ones.",
    )
    memory_mb: Count = Field(
        default=MEMORY_MB, description="MiB of memory that each process of it may use."
    )
    processes: Count = Field(
        default=PROCESSES, description="Processes that it may have at a time, threads included."
    )
    target: JsonValue = Field(default=None, description="Access to a language model: not yet.")

    @model_validator(mode="before")
    @classmethod
    def _with_script(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if "command" in data and "script" in data:
            raise ValueError("script and command are one field: keep one of them")
        return {"script" if key == "command" else key: value for key, value in data.items()}


class ExpectedCall(Strict):
    """A use of a tool that is looked for."""

    tool: Text = Field(description="Name of the tool.")
    args: JsonValue = Field(
        default=None, description="Its arguments; left out, or `any`, they may be what they like."
    )
    args_match: Args | None = Field(default=None, description="How they are compared.")
    max_duration_ms: NonNegative | None = Field(
        default=None,
        description="Milliseconds that it may take; files without `tests` need `strict` for that.",
    )


class TrajectoryEntry(JudgeEntry):
    """Which tools were used."""

    type: Literal["tool_trajectory"] = Field(description="Which tools were used.")
    mode: Mode = Field(
        description="any_order (each at least so often), in_order (others may come between), "
        "exact, superset (at least these), subset (none but these)."
    )
    minimums: dict[str, NonNegative] | None = Field(
        default=None, description="How often each tool has to be used, for any_order."
    )
    expected: list[ExpectedCall] | None = Field(
        default=None, description="The uses that are looked for, for all other modes."
    )
    args_match: Args | None = Field(
        default=None,
        description="How arguments are compared: by default exactly in files with `tests`, else "
        "those that are listed (superset).",
    )
    strict: bool = Field(
        default=False,
        description="Whether calls too many count against `exact`, and `in_order` looks on after "
        "a call that does not fit; AgentV does neither.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.mode == "any_order" and self.minimums is None:
            raise ValueError("mode any_order needs `minimums`, such as {search: 1}")
        if self.mode != "any_order" and self.expected is None:
            raise ValueError(f"mode {self.mode} needs `expected`, such as [{{tool: search}}]")
        return self


class LatencyEntry(JudgeEntry):
    """How long the run took."""

    type: Literal["latency"] = Field(description="How long the run took.")
    threshold: NonNegative = Field(description="Milliseconds that it may take.")


class CostEntry(JudgeEntry):
    """What the run cost."""

    type: Literal["cost"] = Field(description="What the run cost.")
    budget: NonNegative = Field(description="US dollars that it may cost.")


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
