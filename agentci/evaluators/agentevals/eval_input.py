"""What an evaluator's program reads on stdin: EvalInput, protocol 1.1.

Fields and spellings are those of agentevals 0.11.0; 1.1 is a superset of 1.0.
"""

import json
from functools import lru_cache
from typing import Final

from agentci._util.text.strict_json import compact, strict
from agentci.model.case import Case
from agentci.model.json import Json, JsonObject
from agentci.model.trace import ToolCall, ToolResponse, Turn
from agentci.model.values import Same

VERSION: Final = "1.1"


def eval_input(case: Case, *, name: str, threshold: float, config: JsonObject) -> str:
    """Write EvalInput as compact JSON; every key is there, whether it has a value or not."""
    asked: JsonObject = {
        "protocol_version": VERSION,
        "metric_name": name,
        "threshold": float(threshold),
        "config": config,
    }
    return f"{compact(asked)[:-1]},{_judged(Same(case))[1:]}"


@lru_cache(maxsize=4)
def _judged(same: Same[Case]) -> str:
    """What all programs read that judge a case; they do so one after the other."""
    trace, golden = same.value.trace, same.value.golden
    return compact(
        {
            "invocations": [
                {**_invocation(turn), "performance_metrics": trace.performance}
                for turn in trace.turns
            ],
            "expected_invocations": (
                None if golden is None else [_invocation(turn) for turn in golden.turns]
            ),
        }
    )


def _invocation(turn: Turn) -> dict[str, Json]:
    return {
        "invocation_id": turn.id,
        "user_content": turn.user_text,
        "final_response": turn.final_text,
        "intermediate_steps": {
            "tool_calls": [_tool_call(call) for call in turn.tool_calls],
            "tool_responses": [_tool_response(response) for response in turn.tool_responses],
        },
        "performance_metrics": None,
        "trace_id": turn.trace_id,
        "span_id": turn.span_id,
    }


def _tool_call(call: ToolCall) -> dict[str, Json]:
    # Always an object, because evaluators look into it without asking.
    return {"name": call.name, "args": call.named_args, "id": call.id}


def _tool_response(response: ToolResponse) -> dict[str, Json]:
    return {
        "name": response.name,
        "output": _text(response.output),
        "status": "error" if response.failed else None,
        "id": response.id,
        "response": response.output,
    }


def _text(output: Json) -> str:
    if output is None:
        return ""
    return output if isinstance(output, str) else json.dumps(strict(output), sort_keys=True)
