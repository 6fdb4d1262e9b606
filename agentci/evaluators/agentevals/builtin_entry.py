"""The entry of ``type: builtin``, with the names, spellings and defaults of agentevals.

Its evaluators do without it, and so without pydantic, if a metric is run without a config.
"""

from typing import Any, Final, Literal

from pydantic import Field, JsonValue, model_validator

from agentci.evaluators.fields import Entry, MatchType, RepeatableEntry, Share, Text, optional
from agentci.evaluators.judge_config import JudgeSpec
from agentci.model.values import OnTurnMismatch, TurnScore

# agentevals 0.11.0 accepts both spellings of these fields in built-in metrics.
CAMEL_CASE: Final = {
    "trajectoryMatchType": "trajectory_match_type",
    "judgeModel": "judge_model",
    "credentialRef": "credential_ref",
    "judgeBaseUrl": "judge_base_url",
}


def _with_camel_case(schema: dict[str, Any]) -> None:
    properties = schema["properties"]
    properties.update({camel: properties[snake] for camel, snake in CAMEL_CASE.items()})


class BuiltinEntry(RepeatableEntry, Entry, json_schema_extra=_with_camel_case):
    """A built-in metric."""

    type: Literal["builtin"] = Field(description="A built-in metric.")
    threshold: Share | None = optional("Minimum score to pass; default: the config's, or 0.5.")
    trajectory_match_type: MatchType | None = optional(
        "The same calls in order; with others between; in any order."
    )
    subagents: bool = optional(
        "Whether `tool_trajectory_avg_score` counts sub-agents' calls.",
        default=False,
    )
    ignore_args: bool = optional(
        "Whether `tool_trajectory_avg_score` compares only names, as in ADK 2.13.",
        default=False,
    )
    turn_score: TurnScore = optional(
        "Score of the lowest turn, or their mean.",
        default="mean",
    )
    on_turn_mismatch: OnTurnMismatch | None = optional(
        "Whether missing or unexpected turns fail; default: that of `gate`."
    )
    judge: JudgeSpec | None = optional("The judge model; default: the config's.")
    judge_model: Text | None = optional("agentevals' name for `model` in `judge`.")
    rubrics: list[Text | dict[str, JsonValue]] | None = optional(
        "Criteria of a rubric-based metric."
    )
    credential_ref: Text | None = optional("Not supported: use `api_key_env` of `judge`.")
    judge_base_url: Text | None = optional("agentevals' name for `base_url` in `judge`.")

    @model_validator(mode="before")
    @classmethod
    def _convert_to_snake_case(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for camel, snake in CAMEL_CASE.items():
            if camel in data and snake in data:
                raise ValueError(f"`{snake}` and `{camel}` are the same field; keep one of them")
        return {CAMEL_CASE.get(key, key): value for key, value in data.items()}
