"""The schema of what ``results.json`` says of a baseline."""

from agentci.model.comparison import OUTCOMES
from agentci.model.json import JsonObject
from agentci.reports.schema_types import BOOLEAN, COUNT, NUMBER_OR_NULL, TEXT, members, said


def regression_bar() -> JsonObject:
    """The ``regression`` of a gate."""
    bar = members(
        max_drop=said({"type": "number"}, "Of the mean score of an evaluator."),
        confidence={"type": "number"},
        shuts={"type": "array", "items": _outcome()},
    )
    return said(
        {"anyOf": [bar, {"type": "null"}]}, "Null where a comparison with a baseline only informs."
    )


def comparison_schema() -> JsonObject:
    """The ``comparison`` of a report."""
    change = members(case=TEXT, before=NUMBER_OR_NULL, after=NUMBER_OR_NULL)
    changes: JsonObject = {"type": "array", "items": change}
    trend = members(
        config=TEXT,
        evaluator=TEXT,
        required=BOOLEAN,
        pairs=said(COUNT, "Checks that both runs judged."),
        before=said(NUMBER_OR_NULL, "Mean score in the baseline."),
        after=said(NUMBER_OR_NULL, "Mean score in this run."),
        regressions=said(changes, "Checks that passed and now fail."),
        improvements=said(changes, "Checks that failed and now pass."),
        chance=said(NUMBER_OR_NULL, "Of such a drop if nothing had changed."),
        outcome=_outcome(),
        why=TEXT,
    )
    comparison = members(
        baseline=said(TEXT, "Where the baseline was found."),
        trends=said({"type": "array", "items": trend}, "One an evaluator."),
        refused=said(TEXT, "Why nothing can be compared; empty where something can."),
        added=said(COUNT, "Checks that the baseline does not have."),
        gone=said(COUNT, "Checks that only the baseline has."),
        commit=said(TEXT, "What the baseline is of; empty where it does not say."),
        stale=said(TEXT, "Why it may be of another commit than it should; empty where it is not."),
    )
    return {"anyOf": [comparison, {"type": "null"}]}


def _outcome() -> JsonObject:
    return {"enum": list(OUTCOMES)}
