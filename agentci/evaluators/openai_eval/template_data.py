"""What graders read: a recorded turn beside its golden one, under the names of the Evals API."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Final

from msgspec import Struct

from agentci.evaluators.grader_payload import SAMPLE, item_of, sample_of
from agentci.evaluators.metrics.metric import turn_counts
from agentci.model.case import Case
from agentci.model.json import JsonObject
from agentci.model.requests import Skip
from agentci.model.trace import Turn
from agentci.model.values import replace

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


class LinedUp(Struct, frozen=True, kw_only=True):
    """The turns of a case that are graded.

    Attributes:
        rows: the namespaces of each.
        counts: of turns without a partner; empty where none is needed.
    """

    rows: tuple[Mapping[str, JsonObject], ...]
    counts: JsonObject


def line_up(case: Case, *, compares: bool) -> LinedUp | Skip:
    """The turns of a case beside the golden ones.

    Args:
        compares: a turn without a golden one is not graded.
    """
    actual, golden = case.trace.turns, case.golden.turns if case.golden else ()
    if compares and not golden:
        return Skip(reason=case.no_golden_because or "the golden case has no turns")
    graded = actual[: len(golden)] if compares else actual
    return LinedUp(
        rows=tuple(
            row_of(case, mine, its) for mine, its in zip_longest(graded, golden[: len(graded)])
        ),
        counts=turn_counts(actual, golden) if compares else {},
    )


def row_of(case: Case, turn: Turn, golden: Turn | None) -> Mapping[str, JsonObject]:
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
