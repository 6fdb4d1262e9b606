"""What graders read: a recorded turn beside its golden one, under the names of the Evals API."""

from dataclasses import replace
from typing import Final

from agentci.dialects.samples import SAMPLE, item_of, sample_of
from agentci.model.case import Case
from agentci.model.json import JsonObject
from agentci.model.trace import Turn

ITEM: Final = "item"
# What agentevals calls the two texts.
ACTUAL: Final = "actual_response"
EXPECTED: Final = "expected_response"

SAMPLE_NAMES: Final = (
    "output_text",
    "output_json",
    "output_tools",
    "output_items",
    "choices",
    "tool_calls",
    "tool_definitions",
)


def row_of(case: Case, turn: Turn, golden: Turn | None) -> JsonObject:
    """The namespaces of templates for one turn of a case; what was not answered is an empty text.

    Columns of a dataset count more than what agentevals gives, save for what was recorded.
    """
    partner = None
    if case.golden is not None and golden is not None:
        partner = replace(case.golden, turns=(golden,))
    one = replace(case, trace=replace(case.trace, turns=(turn,)), golden=partner)
    sample = sample_of(one)
    item: JsonObject = {
        EXPECTED: (golden and golden.final_text) or "",
        **item_of(one),
        ACTUAL: turn.final_text or "",
        SAMPLE: sample,
    }
    return {ITEM: item, SAMPLE: sample}
