"""What graders read: a recorded turn beside its golden one, under the names of the Evals API."""

from collections.abc import Mapping
from typing import Final

from agentci.model.json import JsonObject
from agentci.model.trace import Turn
from agentci.text.strict_json import readable

EXPECTED: Final = "expected_response"

# The namespaces of templates, and what is in them.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "item": ("query", "actual_response", EXPECTED, "sample"),
    "sample": ("output_text", "output_tools"),
}


def row_of(turn: Turn, golden: Turn | None) -> JsonObject:
    """The namespaces of one turn; what was not answered is an empty text.

    ``item.sample`` is there for graders that were written for Microsoft Foundry.
    """
    answer = turn.final_text or ""
    sample: JsonObject = {
        "output_text": answer,
        "output_tools": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": readable(call.named_args)},
            }
            for call in turn.tool_calls
        ],
    }
    item: JsonObject = {
        "query": turn.user_text,
        "actual_response": answer,
        EXPECTED: (golden and golden.final_text) or "",
        "sample": sample,
    }
    return {"item": item, "sample": sample}
