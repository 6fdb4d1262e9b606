"""Recordings of an agent that always does the same, in any number, and golden cases for them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOLDEN_CASES = 100
START = 1_760_000_000_000_000_000  # nanoseconds
SYSTEM = "You are a weather assistant. Use the tools, answer in one sentence, and be kind. " * 4


def write_recordings(path: Path, count: int) -> None:
    """Write ``count`` traces as JSON Lines, as the file exporter of the Collector does."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            json.dump(make_export(number), file)
            file.write("\n")


def write_eval_set(path: Path, count: int = GOLDEN_CASES) -> None:
    """Write the golden cases that ``write_recordings`` takes turns with."""
    cases = [
        {
            "eval_id": f"city-{number}",
            "conversation": [
                {
                    "invocation_id": "e1",
                    "user_content": {"role": "user", "parts": [{"text": _question(number)}]},
                    "final_response": {"role": "model", "parts": [{"text": _answer(number)}]},
                    "intermediate_data": {
                        "tool_uses": [{"name": "get_weather", "args": _arguments(number)}],
                        "tool_responses": [],
                    },
                }
            ],
        }
        for number in range(count)
    ]
    path.write_text(json.dumps({"eval_set_id": "weather", "eval_cases": cases}, indent=2))


def _question(number: int) -> str:
    return f"What will the weather be in city {number % GOLDEN_CASES} tomorrow?"


def _answer(number: int) -> str:
    return f"It will be sunny in city {number % GOLDEN_CASES}, 21 degrees, with a light breeze."


def _arguments(number: int) -> dict[str, Any]:
    return {"city": f"city {number % GOLDEN_CASES}", "days": 1, "units": ["celsius", "km/h"]}


def make_export(number: int) -> dict[str, Any]:
    """Make the export of one trace as OTLP JSON."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": "weather-agent"})},
                "scopeSpans": [
                    {"scope": {"name": "benchmark"}, "spans": list(_spans(number))},
                ],
            }
        ]
    }


def _spans(number: int) -> Iterator[dict[str, Any]]:
    """One turn: the agent, a model call that wants a tool, the tool, a model call that answers."""
    call = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": _arguments(number)}
    result = {"type": "tool_call_response", "id": "c1", "response": {"sky": "clear", "high": 21}}
    asked = [_message("user", {"type": "text", "content": _question(number)})]
    heard = [*asked, _message("assistant", call), _message("tool", result)]
    answer = {"type": "text", "content": _answer(number)}
    yield _span(number, 0, "invoke_agent weather", {"gen_ai.operation.name": "invoke_agent"})
    yield _span(number, 1, "chat", _chat(asked, [_message("assistant", call)]))
    yield _span(
        number,
        2,
        "execute_tool get_weather",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": json.dumps(_arguments(number)),
            "gen_ai.tool.call.result": json.dumps(result["response"]),
        },
    )
    yield _span(number, 3, "chat", _chat(heard, [_message("assistant", answer)]))


def _message(role: str, part: object) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def _chat(asked: list[dict[str, Any]], said: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "benchmark",
        "gen_ai.request.model": "model-1",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(said),
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 40,
    }


def _span(number: int, place: int, name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    start = START + number * 10**9 + place * 10**8
    parent = {} if place == 0 else {"parentSpanId": f"{number * 4 + 1:016x}"}
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number * 4 + place + 1:016x}",
        **parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + (9 * 10**8 if place == 0 else 9 * 10**7)),
        "attributes": _attributes(attributes),
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)}}
        if isinstance(value, int)
        else {"key": key, "value": {"stringValue": value}}
        for key, value in values.items()
    ]
