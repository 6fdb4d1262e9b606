"""Entries of ``field_accuracy``."""

from typing import Annotated, Literal

from pydantic import Field

from agentci.evaluators.agentv.agentv_evaluator import Surroundings
from agentci.evaluators.agentv.entry_fields import JudgeEntry, NonNegative
from agentci.evaluators.agentv.field_accuracy import Aggregation, FieldAccuracy, FieldRule, Match
from agentci.evaluators.fields import Strict, Text


class FieldSpec(Strict):
    """One field of the answer."""

    path: Text = Field(description="Where it is: `invoice.items[0].price`.")
    match: Match = Field(description="How it is compared: exact, numeric_tolerance or date.")
    required: bool = Field(default=True, description="Whether it has to be there.")
    weight: NonNegative = Field(default=1.0, description="How much it counts.")
    tolerance: NonNegative = Field(default=0.0, description="How far a number may be off.")
    relative: bool = Field(
        default=False, description="Whether that is a share of the expected number."
    )
    formats: list[Text] = Field(
        default=[],
        description="Of dates, such as DD/MM/YYYY: whether the day or the month comes first.",
    )


class FieldAccuracyEntry(JudgeEntry):
    """An answer in JSON, field by field."""

    type: Literal["field_accuracy"] = Field(description="An answer in JSON, field by field.")
    fields: Annotated[list[FieldSpec], Field(min_length=1)] = Field(
        description="The fields that are compared with the expected answer."
    )
    aggregation: Aggregation = Field(
        default="weighted_average", description="How their scores become one."
    )


def field_accuracy(entry: FieldAccuracyEntry, surroundings: Surroundings) -> FieldAccuracy:
    """Make the rule."""
    is_v4 = surroundings.era == "v4"
    return FieldAccuracy(
        fields=tuple(
            FieldRule(**{**spec.model_dump(), "formats": tuple(spec.formats)})
            for spec in entry.fields
        ),
        aggregation=entry.aggregation,
        expected_name="expected_output" if is_v4 else "expected_messages",
        shows_all=is_v4,
    )
