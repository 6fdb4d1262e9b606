"""What `agentci show` prints with ``--json``: the keys are stable."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, to_builtins

from agentci._util.text import json_text
from agentci.model.case import Case, EvalSet
from agentci.model.result import Report
from agentci.model.trace import ToolResponse, Turn
from agentci.model.values import Json, JsonObject
from agentci.recordings.inspection import IgnoredAttributes, InspectedRun, Instrumentation

MODEL_CALL_KEYS: Final = (
    *("model", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens"),
    *("cost_usd", "duration_ms"),
)


class ShownCase(Struct, frozen=True, kw_only=True):
    """A case with what is known about its recording."""

    case: Case
    run: InspectedRun


class ShownRecording(Struct, frozen=True, kw_only=True):
    """What is understood of a file of recorded runs.

    Attributes:
        format: name of the file's format.
        cases: those that are shown.
        further_cases: number of those that are not.
        traces: number of traces, with those that are ignored.
        ignored_traces: number of traces without agent activity.
    """

    file: str
    format: str
    cases: tuple[ShownCase, ...]
    further_cases: int = 0
    traces: int = 0
    instrumentations: tuple[Instrumentation, ...] = ()
    ignored_attributes: tuple[IgnoredAttributes, ...] = ()
    ignored_traces: int = 0


def render_recording_json(shown: ShownRecording) -> str:
    """Render a recording as JSON."""
    return _render(
        {
            "kind": "recording",
            "file": shown.file,
            "format": shown.format,
            "instrumentations": [to_builtins(each) for each in shown.instrumentations],
            "ignored_attributes": [to_builtins(each) for each in shown.ignored_attributes],
            "ignored_traces": shown.ignored_traces,
            "cases": [_make_case(each) for each in shown.cases],
        }
    )


def render_eval_set_json(eval_set: EvalSet) -> str:
    """Render an eval set as JSON."""
    return _render(
        {
            "kind": "eval_set",
            "file": eval_set.place.file,
            "id": eval_set.id,
            "cases": [
                {"id": each.id, "line": each.place.line, "turns": list(_list_turns(each.turns))}
                for each in eval_set.cases
            ],
        }
    )


def render_requests_json(file: str, requests: Sequence[str]) -> str:
    """Render the requests of a recording for replay, by method and path, as JSON."""
    return _render({"kind": "requests", "file": file, "requests": list(requests)})


def render_results_json(report: Report, file: str) -> str:
    """Render the decision and the checks of a report as JSON."""
    return _render(
        {
            "kind": "results",
            "file": file,
            "complete": report.complete,
            "decision": to_builtins(report.decision),
            "totals": to_builtins(report.totals),
            "checks": [
                {
                    "config": each.config,
                    "case": each.case.id,
                    "evaluator": each.evaluator.name,
                    "status": each.status,
                    "score": each.score,
                    "reason": each.reason,
                }
                for each in report.results
            ],
        }
    )


def _render(value: JsonObject) -> str:
    return f"{json_text.dumps(value)}\n"


def _make_case(shown: ShownCase) -> JsonObject:
    case, run, trace = shown.case, shown.run, shown.case.trace
    return {
        "id": case.id,
        "eval_case": None if case.expected is None else case.expected.id,
        "unmatched_reason": case.unmatched_reason,
        "trace": trace.id,
        "conversation": trace.conversation,
        "file": trace.place.file,
        "line": trace.place.line,
        "conventions": list(run.conventions),
        "traces": run.traces,
        "spans": run.spans,
        "turns": list(_list_turns(trace.turns)),
        "subagents": [
            {"name": each.name, "call_id": each.call_id, "turns": list(_list_turns(each.turns))}
            for each in trace.subagents
        ],
        "performance": trace.performance,
        "missing": list(run.missing),
        "switch": run.switch,
        "not_captured": trace.not_captured,
        "warnings": list(trace.warnings),
    }


def _list_turns(turns: Sequence[Turn]) -> Iterator[Json]:
    for turn in turns:
        yield {
            "user": turn.user_text,
            "user_recorded": turn.user_text_recorded,
            "tool_calls": [
                {
                    "name": call.name,
                    "args": call.args,
                    "id": call.id,
                    "result": None if response is None else response.output,
                    "failed": call.failed,
                    "duration_ms": call.duration_ms,
                }
                for call, response in zip(turn.tool_calls, pair_responses(turn), strict=True)
            ],
            "intermediate_texts": list(turn.intermediate_texts),
            "answer": turn.final_text,
            "duration_ms": turn.duration_ms,
            "model_calls": [
                {name: getattr(step, name) for name in MODEL_CALL_KEYS} for step in turn.model_steps
            ],
        }


def pair_responses(turn: Turn) -> list[ToolResponse | None]:
    """Return the response to each tool call of a turn; None where none was recorded."""
    by_index = {each.call_index: each for each in turn.tool_responses}
    by_id = {each.id: each for each in turn.tool_responses if each.call_index is None}
    return [
        by_index.get(index) or (None if call.id is None else by_id.get(call.id))
        for index, call in enumerate(turn.tool_calls)
    ]
