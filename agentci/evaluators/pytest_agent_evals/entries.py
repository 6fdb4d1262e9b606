"""Entries of ``evaluators:`` for the graders and prompts of pytest-agent-evals."""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, WithJsonSchema, model_validator

from agentci.evaluators.agentevals.entries import SandboxedEntry
from agentci.evaluators.fields import (
    Entry,
    GraderReference,
    RepeatableEntry,
    Seconds,
    Text,
    optional,
)
from agentci.evaluators.judge_config import JudgeSpec

# The function name of OpenAI's graders and Foundry's evaluators.
DEFAULT_FUNCTION: Final = "grade"
# The timeout of OpenAI's graders.
GRADER_SECONDS: Final = 120


class GraderEntry(SandboxedEntry):
    """A Python function, `grade(sample, item)`, that returns a score."""

    type: Literal["grader"] = Field(description="A Python function that returns a score.")
    grader: GraderReference = Field(
        description="`FILE.py:FUNCTION`, relative to this config; the default function is `grade`.",
        examples=["graders.py:is_short"],
    )
    timeout: Seconds = optional("Time limit of one call in seconds.", default=GRADER_SECONDS)
    network: bool = optional("Whether it can use the network.", default=True)

    @property
    def file(self) -> str:
        """The part of ``grader`` before the colon."""
        return self.grader.partition(":")[0]

    @property
    def function(self) -> str:
        """The part of ``grader`` after the colon, or ``grade``."""
        return self.grader.partition(":")[2] or DEFAULT_FUNCTION


Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
# An integer stays an integer, since its default scale differs.
Threshold: TypeAlias = Annotated[
    bool | int | Number, WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "number"}]})
]


class PromptEntry(RepeatableEntry, Entry):
    """A prompt template with which a language model grades."""

    type: Literal["prompt"] = Field(description="A prompt for a language model.")
    prompt: Text = Field(
        description="The prompt, a Jinja2 template, or the path of its file relative to this "
        "config; see docs/graders.md.",
        examples=["relevance.md"],
    )
    threshold: Threshold = Field(
        description="Lowest passing number, or the passing value, `true` or `false`."
    )
    scale: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="Lowest and highest number of the judge model. Default: 0 and 1 if "
        "`threshold` is a decimal between them, else unknown, and results have no score.",
        examples=[[1, 5]],
    )
    judge: JudgeSpec | None = optional("The judge model; default: the config's.")

    @model_validator(mode="after")
    def _on_its_scale(self) -> Self:
        if self.scale is None:
            return self
        low, high = self.scale
        if isinstance(self.threshold, bool):
            raise ValueError("`scale` requires a numeric `threshold`")  # noqa: TRY004
        if not low < high or not low <= self.threshold <= high:
            raise ValueError("`scale` must be [lowest, highest] and include the `threshold`")
        return self
