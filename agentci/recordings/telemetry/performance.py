"""Latency, tokens and counts of a conversation, as agentevals 0.11.0 reports them."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from agentci.model.json import JsonObject
from agentci.recordings.telemetry.normalize import Usage
from agentci.recordings.telemetry.tool_calls import Use
from agentci.recordings.telemetry.turn_builder import Draft

NANOSECONDS_PER_MILLISECOND: Final = 1e6


def performance(
    turns: Sequence[Draft], uses: Sequence[Use], root_durations: Sequence[int]
) -> JsonObject:
    """What the turns took.

    Args:
        uses: the tools of all turns.
        root_durations: nanoseconds; they stand in for the turns' where there are no turns.
    """
    calls = list(chain.from_iterable(turn.calls for turn in turns))
    overall = [max(turn.end - turn.start, 0) for turn in turns] or root_durations
    executions = [use.duration for use in uses if use.duration is not None]
    return {
        "latency": {
            "overall": _milliseconds(overall),
            "llm_calls": _milliseconds([max(call.end - call.start, 0) for call in calls]),
            "tool_executions": _milliseconds(executions),
        },
        "tokens": _tokens([call.usage for call in calls if call.usage is not None]),
        "counts": {
            "llm_calls": len(calls),
            "tool_calls": len(uses),
            "invocations": len(turns),
        },
        "models": sorted({call.model for call in calls if call.model}),
        "tool_names": sorted({use.name for use in uses}),
    }


def _milliseconds(nanoseconds: Sequence[int]) -> JsonObject:
    return _distribution([value / NANOSECONDS_PER_MILLISECOND for value in nanoseconds])


def _tokens(usages: Sequence[Usage]) -> JsonObject:
    prompts = [usage.input or 0 for usage in usages]
    outputs = [usage.output or 0 for usage in usages]
    totals = [float(prompt + output) for prompt, output in zip(prompts, outputs, strict=True)]
    return {
        "total_prompt": sum(prompts),
        "total_output": sum(outputs),
        "total": sum(prompts) + sum(outputs),
        "per_llm_call": _distribution(totals),
        "cache_creation_tokens": sum(usage.cache_write or 0 for usage in usages),
        "cache_read_tokens": sum(usage.cache_read or 0 for usage in usages),
    }


def _distribution(values: Sequence[float]) -> JsonObject:
    ordered = sorted(values) or [0.0]
    size = len(ordered)
    median = (ordered[(size - 1) // 2] + ordered[size // 2]) / 2
    return {
        "min": ordered[0],
        "median": median,
        "max": ordered[-1],
        "count": len(values),
        "p50": median,
        "p95": ordered[int(size * 0.95)],
        "p99": ordered[int(size * 0.99)],
    }
