"""A case as graders know it: ``sample``, what the agent did, and ``item``, what it was asked by.

Their names are those of pytest-agent-evals, of OpenAI's graders and of Microsoft Foundry at once:
all of them call ``grade(sample, item)``.
"""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Final

from agentci._util.text.strict_json import compact
from agentci.model.case import Case
from agentci.model.json import Json, JsonObject
from agentci.model.trace import ToolCall, Turn

# Of `item`: where Foundry's graders look for what the agent did.
SAMPLE: Final = "sample"


def sample_of(case: Case) -> JsonObject:
    """What the agent did: the answer of its last turn, and the tool calls of all of them.

    ``output_json`` is there where all of the answer is a JSON object or array.
    """
    turns = case.trace.turns
    text = (turns[-1].final_text if turns else None) or ""
    calls = [call for turn in turns for call in turn.tool_calls]
    tools = [_as_chat(call) for call in calls]
    message: JsonObject = {"role": "assistant", "content": text, "tool_calls": tools}
    return {
        "output_text": text,
        **_parsed(text),
        "output_tools": tools,
        "output_items": [*chain.from_iterable(map(_items, turns))],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "tool_calls": [_flat(call) for call in calls],
        "tool_definitions": [*(case.row.tool_definitions if case.row else ())],
    }


def item_of(case: Case) -> JsonObject:
    """What the agent was asked by: the columns of its row, and ``query`` in any case.

    Without a row there is also ``ground_truth`` where a golden case has a final answer.
    """
    if case.row is not None:
        return {"query": case.row.query or _question(case), **case.row.columns}
    golden = case.golden.turns[-1].final_text if case.golden and case.golden.turns else None
    truth = {} if golden is None else {"ground_truth": golden}
    return {"query": _question(case), **truth}


def graded(case: Case) -> JsonObject:
    """The arguments of ``grade``, by their names."""
    sample = sample_of(case)
    return {SAMPLE: sample, "item": {**item_of(case), SAMPLE: sample}}


def _question(case: Case) -> str:
    return case.trace.turns[-1].user_text if case.trace.turns else ""


def _parsed(text: str) -> JsonObject:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {"output_json": value} if isinstance(value, dict | list) else {}


def _flat(call: ToolCall) -> JsonObject:
    return {
        "type": "tool_call",
        "name": call.name,
        "arguments": call.named_args,
        "tool_call_id": call.id,
    }


def _as_chat(call: ToolCall) -> JsonObject:
    """As in Chat Completions, which have arguments in JSON."""
    function: JsonObject = {"name": call.name, "arguments": compact(call.named_args)}
    return {"id": call.id, "type": "function", "function": function}


def _items(turn: Turn) -> Iterator[JsonObject]:
    """As in the Responses API: calls, what they gave, the answer."""
    for index, call in enumerate(turn.tool_calls):
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": compact(call.named_args),
        }
        for each in turn.tool_responses:
            if each.call == index:
                output = each.output if isinstance(each.output, str) else compact(each.output)
                yield {"type": "function_call_output", "call_id": call.id, "output": output}
    if turn.final_text:
        content = [{"type": "output_text", "text": turn.final_text}]
        yield {"type": "message", "role": "assistant", "content": content}
