"""Small traces and eval sets, built from Python values."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Calls: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]

# The range of span numbers that is reserved for one turn.
TURN_SPANS = 1000


def otlp(
    question: str = "What is the weather in Paris?",
    answer: str = "It is sunny.",
    *,
    calls: Calls = (("get_weather", {"city": "Paris"}),),
    trace: int = 1,
    turn: int = 0,
    attributes: Mapping[str, Any] | None = None,
) -> str:
    """One turn of a trace as an OTLP JSON document: an agent span over a model call and its tools.

    Several lines with the same trace form a conversation.
    """
    first = turn * TURN_SPANS
    messages = {
        "gen_ai.input.messages": [_message("user", question)],
        "gen_ai.output.messages": [_message("assistant", answer)],
    }
    spans = [
        _span(trace, first + 1, None, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}),
        _span(
            trace,
            first + 2,
            first + 1,
            "chat",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                **{key: json.dumps(value) for key, value in messages.items()},
                **(attributes or {}),
            },
        ),
    ]
    for index, (name, arguments) in enumerate(calls):
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        spans.append(_span(trace, first + 3 + index, first + 1, "execute_tool", tool))
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def eval_set(
    question: str = "What is the weather in Paris?",
    answer: str = "It is sunny.",
    *,
    calls: Calls = (("get_weather", {"city": "Paris"}),),
    case: str = "weather",
) -> str:
    """An eval set with one eval case of one turn."""
    return eval_set_of([eval_case(question, answer, calls=calls, case=case)])


def eval_set_of(cases: Sequence[Mapping[str, Any]]) -> str:
    """An eval set."""
    return json.dumps({"eval_set_id": "set", "eval_cases": cases}, indent=1)


def eval_case(question: str, answer: str, *, calls: Calls, case: str) -> Mapping[str, Any]:
    """An eval case of one turn."""
    turn = {
        "user_content": {"parts": [{"text": question}]},
        "final_response": {"parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [{"name": name, "args": args} for name, args in calls]},
    }
    return {"eval_id": case, "conversation": [turn]}


def _message(role: str, text: str) -> Mapping[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _span(
    trace: int, span: int, parent: int | None, name: str, attributes: Mapping[str, Any]
) -> Mapping[str, Any]:
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{trace:08x}{span:08x}",
        "parentSpanId": "" if parent is None else f"{trace:08x}{parent:08x}",
        "name": name,
        "startTimeUnixNano": str(span * 10**9),
        "endTimeUnixNano": str((span + 1) * 10**9),
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
        ],
    }
