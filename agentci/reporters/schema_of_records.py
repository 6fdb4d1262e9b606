"""The schema of what ``results.json`` says of runs and answers that make one result."""

from typing import get_args

from agentci.model.choices import RepeatBy
from agentci.model.json import JsonObject
from agentci.model.result import Status
from agentci.model.trials import Strategy
from agentci.reporters.schema_words import (
    BOOLEAN,
    COUNT,
    NUMBER_OR_NULL,
    TEXT_OR_NULL,
    members,
    said,
)

STATUS: JsonObject = {"enum": list(get_args(Status))}


def trials() -> JsonObject:
    """The ``trials`` of a result."""
    trial = members(
        attempt=said(COUNT, "Counted from 0."),
        score=NUMBER_OR_NULL,
        reason=said(TEXT_OR_NULL, "Why it could not be judged."),
    )
    return members(
        strategy={"enum": list(get_args(Strategy))},
        trials={"type": "array", "items": trial},
        cost_limited=said(BOOLEAN, "Whether a limit of costs kept further runs from being made."),
    )


def repeats() -> JsonObject:
    """The ``repeats`` of a result."""
    repeat = members(
        status=STATUS,
        score=NUMBER_OR_NULL,
        reason=said(TEXT_OR_NULL, "As that of a result."),
    )
    return members(
        by=said({"enum": list(get_args(RepeatBy))}, "What decides."),
        flip_rate=said(
            NUMBER_OR_NULL,
            "Share of the verdicts that are another than that of most; null where one could not be "
            "judged.",
        ),
        repeats={"type": "array", "items": repeat},
    )
