"""Graders that ask a language model, as the Evals API writes them."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, model_validator

from agentci._util.text.suggest import quoted
from agentci._util.text.templates import named
from agentci.evaluators.fields import Count, Strict, Text
from agentci.evaluators.openai_eval.grader_fields import Finite, Template
from agentci.evaluators.openai_eval.specs import GradedSpec, GraderSpec


class TextPart(Strict):
    """A part of a message; only text is read."""

    type: Literal["input_text", "output_text"] = Field(description="Text.")
    text: Template = Field(description="Template of the text.")


class Message(Strict):
    """A message to the model that grades."""

    type: Literal["message"] = Field(default="message", description="A message.")
    role: Literal["user", "assistant", "system", "developer"] = Field(description="Whose it is.")
    content: Template | TextPart | list[TextPart] = Field(description="Template of its text.")

    @property
    def text(self) -> str:
        """All of its text."""
        match self.content:
            case str():
                return self.content
            case TextPart():
                return self.content.text
            case parts:
                return "\n".join(each.text for each in parts)


Messages: TypeAlias = Annotated[list[Message], Field(min_length=1)]


class SamplingParams(Strict):
    """How the model that grades is asked."""

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = Field(
        default=None, description="Sent where it is set; many models take none."
    )
    reasoning_effort: Text | None = Field(
        default=None, description="How long a model that reasons may think."
    )
    max_completions_tokens: Count | None = Field(
        default=None, description="Tokens of one reply, thoughts included."
    )
    seed: JsonValue = Field(default=None, description="Not sent: replies are not repeatable by it.")
    top_p: JsonValue = Field(default=None, description="Not sent.")


class ModelSpec(GraderSpec):
    """What graders share that ask a model."""

    model: Text | None = Field(
        default=None,
        description="Model that grades, of the service that `judge` names, OpenAI's by default; "
        "without it that of `judge`.",
    )
    input: Messages = Field(description="The messages that say what to grade, and how.")

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if not any(named(each.text) for each in self.input):
            raise ValueError(
                "no message names what is to be graded: write `{{ item.actual_response }}` in one"
            )
        return self


class LabelModel(ModelSpec):
    """A model that gives each answer one of several labels."""

    type: Literal["label_model"] = Field(description="A model that gives a label.")
    labels: Annotated[list[Text], Field(min_length=1)] = Field(description="The labels.")
    passing_labels: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Those with which a turn passes."
    )

    @model_validator(mode="after")
    def _known_labels(self) -> Self:
        for label in self.passing_labels:
            if label not in self.labels:
                raise ValueError(f"the passing label {quoted(label)} is none of the labels")
        return self


class ScoreModel(ModelSpec, GradedSpec):
    """A model that gives each answer a number."""

    type: Literal["score_model"] = Field(description="A model that gives a number.")
    range: Annotated[list[Finite], Field(min_length=2, max_length=2)] = Field(
        default=[0, 1], description="The least and the greatest number; scores are shares of that."
    )
    pass_threshold: Finite | None = Field(
        default=None,
        description="Number that a turn has to reach, within `range`; by default the entry's "
        "`threshold`, which is a share of it.",
    )
    sampling_params: SamplingParams | None = Field(
        default=None, description="How the model is asked."
    )

    @property
    def own_threshold(self) -> float | None:
        """See ``GradedSpec``."""
        return None if self.pass_threshold is None else self.share(self.pass_threshold)

    def share(self, value: float) -> float:
        """A number of the range as a share of it."""
        low, high = self.range
        return (value - low) / (high - low)

    @model_validator(mode="after")
    def _within_its_range(self) -> Self:
        low, high = self.range
        if low >= high:
            raise ValueError("range begins with its least number")
        if self.pass_threshold is not None and not low <= self.pass_threshold <= high:
            raise ValueError(f"pass_threshold is not within the range, {low:g} to {high:g}")
        return self
