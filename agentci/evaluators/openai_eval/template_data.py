"""The input of graders: a recorded and an expected turn, with the names of the Evals API."""

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
# agentevals' names for the two texts.
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
        rows: the template namespaces of each turn.
        counts: counts of unpaired turns; empty if the grader does not compare turns.
    """

    rows: tuple[Mapping[str, JsonObject], ...]
    counts: JsonObject


def select_graded_turns(case: Case, *, compares: bool) -> GradedTurns | Skip:
    """Pair the turns of a case with the expected turns.

    Args:
        compares: whether turns without an expected turn are left out.
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
    """Make the template namespaces for one turn of a case; a missing text is empty.

    Dataset columns override the expected response, but not the recorded values.
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
