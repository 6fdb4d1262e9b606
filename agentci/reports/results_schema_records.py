"""The schema of what results are made of in ``results.json``, and of what they come to."""

from typing import get_args

from agentci.gate.statistics import Method
from agentci.model.choices import RepeatBy
from agentci.model.json import JsonObject
from agentci.model.result import Status
from agentci.model.trials import Strategy
from agentci.reports.schema_types import (
    BOOLEAN,
    COUNT,
    NUMBER_OR_NULL,
    TEXT,
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


def totals() -> dict[str, JsonObject]:
    """What checks come to."""
    return {
        "checks": COUNT,
        "passed": COUNT,
        "failed": COUNT,
        "errored": COUNT,
        "skipped": COUNT,
        "score": said(NUMBER_OR_NULL, "The mean of the scores that were given."),
    }


def evaluator() -> JsonObject:
    """One of the ``evaluators``."""
    return members(
        config=TEXT,
        evaluator=TEXT,
        **totals(),
        score_interval=said(
            _interval(), "Of the mean score, at 95 %; null where too few scores differ."
        ),
        pass_rate=said(NUMBER_OR_NULL, "Passed over passed and failed; null without any."),
        pass_rate_interval=said(
            _interval(), "Of the pass rate, at 95 %; null for fewer than two groups."
        ),
        groups=said(COUNT, "How many cases were judged that do not belong together."),
        flip_rate=said(
            NUMBER_OR_NULL, "The mean of its checks'; null where it was not asked several times."
        ),
    )


def _interval() -> JsonObject:
    bounds = members(
        low={"type": "number"}, high={"type": "number"}, method={"enum": list(get_args(Method))}
    )
    return {"anyOf": [bounds, {"type": "null"}]}
