"""Types that the fields of AgentV's evaluators share, and what all of their entries have."""

from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field

from agentci.evaluators.fields import Name, Share, Strict
from agentci.model.identity import ONCE, Repetition

NonNegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

DEFAULT_WEIGHT: Final = 1.0


def without_default(*names: str) -> Any:
    """A JSON Schema that does not ask for fields that are filled in where they are missing."""

    def leave(schema: dict[str, Any]) -> None:
        schema["required"] = [each for each in schema.get("required", ()) if each not in names]

    return leave


class JudgeEntry(Strict):
    """What the entries of all evaluators share."""

    model_config = ConfigDict(json_schema_extra=without_default("name"))

    name: Name = Field(
        description="Name of the evaluator in reports. In files with `tests` it may be left out."
    )
    type: str
    weight: NonNegative = Field(
        default=DEFAULT_WEIGHT, description="How much its score counts in the score of its case."
    )
    required: bool | Share = Field(
        default=True,
        description="Whether it can shut the gate; with `false` it is advisory and only warns. "
        "A number is the score that it has to reach.",
    )
    min_score: Share | None = Field(
        default=None, description="Score that it has to reach to pass; by default 0.8."
    )
    negate: bool = Field(
        default=False, description="Whether what it looks for must not be: the score is turned."
    )

    @property
    def repetition(self) -> Repetition:
        """Once, save in types that may say something else each time."""
        return ONCE
