"""Entries of the assertions about the text of an answer, which AgentV has since version 4."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agentci.evaluators.agentv.agentv_evaluator import Surroundings
from agentci.evaluators.agentv.entry_fields import JudgeEntry
from agentci.evaluators.agentv.text_match import RegexMatch, TextMatch, regex_of


class OneTextEntry(JudgeEntry):
    """Whether the answer has a text."""

    type: Literal["contains", "icontains", "starts_with", "ends_with", "equals"] = Field(
        description="Whether the answer has a text."
    )
    value: str = Field(description="The text.")


class TextsEntry(JudgeEntry):
    """Whether the answer has some texts."""

    type: Literal["contains_any", "contains_all", "icontains_any", "icontains_all"] = Field(
        description="Whether the answer has some texts."
    )
    value: Annotated[list[str], Field(min_length=1)] = Field(description="The texts.")


class RegexEntry(JudgeEntry):
    """Whether the answer matches a regular expression."""

    type: Literal["regex"] = Field(description="Whether the answer matches a regular expression.")
    value: str = Field(description="The expression, without slashes.")
    flags: str = Field(default="", description="Its flags, such as `i`.")

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        regex_of(self.value, self.flags)
        return self


class IsJsonEntry(JudgeEntry):
    """Whether the answer is JSON."""

    type: Literal["is_json"] = Field(description="Whether the answer is JSON.")


def text(entry: OneTextEntry, _: Surroundings) -> TextMatch:
    """Make the rule."""
    return TextMatch(kind=entry.type, values=(entry.value,))


def texts(entry: TextsEntry, _: Surroundings) -> TextMatch:
    """Make the rule."""
    return TextMatch(kind=entry.type, values=tuple(entry.value))


def regex(entry: RegexEntry, _: Surroundings) -> RegexMatch:
    """Make the rule."""
    pattern = regex_of(entry.value, entry.flags)
    return RegexMatch(pattern=pattern, shown=entry.value, flags=entry.flags)


def is_json(entry: IsJsonEntry, _: Surroundings) -> TextMatch:
    """Make the rule."""
    return TextMatch(kind=entry.type, values=())
