"""What graders read: a recorded turn beside its golden one, under the names of the Evals API."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Final

from msgspec import Struct

from agentci.evaluators.grader_protocol import SAMPLE, make_item, make_sample
from agentci.evaluators.metrics.metric import count_unpaired_turns
from agentci.model.case import Case
from agentci.model.json import JsonObject
from agentci.model.requests import Skip
from agentci.model.trace import Turn
from agentci.model.values import replace

ITEM: Final = "item"
# What agentevals calls the two texts.
ACTUAL_FIELD: Final = "actual_response"
EXPECTED_FIELD: Final = "expected_response"

SAMPLE_FIELDS: Final = (
    "output_text",
    "output_json",
    "output_tools",
    "output_items",
    "choices",
    "tool_calls",
    "tool_definitions",
)


class GradedTurns(Struct, frozen=True, kw_only=True):
    """The turns of a case that are graded.

    Attributes:
        rows: the namespaces of each.
        counts: of turns without a partner; empty where none is needed.
    """

    rows: tuple[Mapping[str, JsonObject], ...]
    counts: JsonObject


def select_graded_turns(case: Case, *, compares: bool) -> GradedTurns | Skip:
    """The turns of a case beside the golden ones.

    Args:
        compares: a turn without a golden one is not graded.
    """
    actual, golden = case.trace.turns, case.expected.turns if case.expected else ()
    if compares and not golden:
        return Skip(reason=case.unmatched_reason or "the golden case has no turns")
    graded = actual[: len(golden)] if compares else actual
    return GradedTurns(
        rows=tuple(
            make_template_row(case, mine, its)
            for mine, its in zip_longest(graded, golden[: len(graded)])
        ),
        counts=count_unpaired_turns(actual, golden) if compares else {},
    )


def make_template_row(case: Case, turn: Turn, golden: Turn | None) -> Mapping[str, JsonObject]:
    """The namespaces of templates for one turn of a case; what was not answered is an empty text.

    Columns of a dataset count more than what agentevals gives, save for what was recorded.
    """
    partner = None
    if case.expected is not None and golden is not None:
        partner = replace(case.expected, turns=(golden,))
    one = replace(case, trace=replace(case.trace, turns=(turn,)), expected=partner)
    sample = make_sample(one)
    item: JsonObject = {
        EXPECTED_FIELD: (golden and golden.final_text) or "",
        **make_item(one),
        ACTUAL_FIELD: turn.final_text or "",
        SAMPLE: sample,
    }
    return {ITEM: item, SAMPLE: sample}
