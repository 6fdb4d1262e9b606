"""What `agentci show` prints: with ``--json``, whose keys are stable, and for people.

For people, foreign text is neutralised and truncated.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, to_builtins

from agentci._util.text import escape, json_text, truncate
from agentci._util.text.format import format_count, format_duration, format_number
from agentci.evaluators.agentevals.match_eval_case import NO_EVAL_SET
from agentci.model.case import Case, EvalSet
from agentci.model.result import Report
from agentci.model.trace import ToolResponse, Turn
from agentci.model.values import Json, JsonObject
from agentci.recordings.inspection import IgnoredAttributes, InspectedRun, Instrumentation
from agentci.recordings.telemetry.conventions.registry import CONVENTIONS
from agentci.reports.console import align_columns, colour_text
from agentci.reports.tool_calls import format_call

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
                {
                    "id": each.id,
                    "line": each.place.line,
                    "turns": list(_list_turn_objects(each.turns)),
                }
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
        "turns": list(_list_turn_objects(trace.turns)),
        "subagents": [
            {
                "name": each.name,
                "call_id": each.call_id,
                "turns": list(_list_turn_objects(each.turns)),
            }
            for each in trace.subagents
        ],
        "performance": trace.performance,
        "missing": list(run.missing),
        "switch": run.switch,
        "not_captured": trace.not_captured,
        "warnings": list(trace.warnings),
    }


def _list_turn_objects(turns: Sequence[Turn]) -> Iterator[Json]:
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


MAX_CASES: Final = 20
MAX_TURNS: Final = 20
MAX_CALLS: Final = 40
MAX_TEXT: Final = 300
MAX_ERROR: Final = 1000
MAX_CELL: Final = 60
MAX_ROWS: Final = 15
BOLD: Final = "1"
RED: Final = "1;31"
NOT_READ: Final = "not read"
TITLES: Final[Mapping[str, str]] = {one.name: one.title for one in CONVENTIONS}


def render_recording_text(shown: ShownRecording, *, colour: bool) -> str:
    """Render cases, what recorded them, what is missing and what is not read.

    It is for up to ``MAX_CASES`` cases; others are only counted.
    """
    sections = [_format_head(shown)]
    if shown.instrumentations:
        sections.append([*_list_instrumentations(shown.instrumentations)])
    sections += [[*_list_case(each, colour=colour)] for each in shown.cases]
    if shown.further_cases:
        left = truncate.format_omitted(shown.further_cases)
        sections.append([f"{left} cases; `agentci show --json` prints all"])
    if shown.ignored_attributes:
        sections.append([*_list_ignored(shown.ignored_attributes, colour=colour)])
    return _join(sections)


def render_requests_text(file: str, requests: Sequence[str]) -> str:
    """Render the requests of a recording for replay, by method and path."""
    count = format_count(len(requests), "recorded request")
    lines = [f"{file}: {count}, from which `agentci record --replay` answers the agent"]
    lines += [f"{number} {name}" for name, number in Counter(requests).most_common()]
    lines.append("The runs are in the traces, the .jsonl file next to the folder")
    return "".join(f"{_line(line)}\n" for line in lines)


def render_eval_set_text(eval_set: EvalSet, *, colour: bool) -> str:
    """Render the eval cases with their expected turns."""
    cases = eval_set.cases
    head = f"{eval_set.place.file}: eval set {eval_set.id}, {format_count(len(cases), 'eval case')}"
    sections = [[_line(head)]]
    for each in cases[:MAX_CASES]:
        title = colour_text(f"Case {_cell(each.id)}", BOLD, colour=colour)
        sections.append([title, *_list_turns(each.turns, colour=colour, is_expected=True)])
    if len(cases) > MAX_CASES:
        left = truncate.format_omitted(len(cases) - MAX_CASES)
        sections.append([f"{left} cases; `agentci show --json` prints all"])
    return _join(sections)


def _join(sections: Iterable[Sequence[str]]) -> str:
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections)


def _format_head(shown: ShownRecording) -> list[str]:
    parts = [shown.format, format_count(len(shown.cases) + shown.further_cases, "case")]
    spans = sum(each.spans for each in shown.instrumentations)
    if spans:
        traces = format_count(shown.traces, "trace")
        parts.append(f"{format_count(spans, 'span')} in {traces}")
    lines = [_line(f"{shown.file}: {', '.join(parts)}")]
    if shown.ignored_traces:
        count = format_count(shown.ignored_traces, "trace")
        lines.append(f"{count} without agent activity ignored")
    return lines


def _list_instrumentations(found: Sequence[Instrumentation]) -> Iterator[str]:
    rows = [
        (
            _cell(" ".join(filter(None, (each.scope, each.version))) or "no scope"),
            ", ".join(TITLES[name] for name in each.conventions) or NOT_READ,
            f"{each.spans:,}",
        )
        for each in found[:MAX_ROWS]
    ]
    yield from align_columns([("instrumentation", "convention", "spans"), *rows], names=2)
    if len(found) > MAX_ROWS:
        yield truncate.format_omitted(len(found) - MAX_ROWS)


def _list_case(shown: ShownCase, *, colour: bool) -> Iterator[str]:
    case, run, trace = shown.case, shown.run, shown.case.trace
    yield colour_text(f"Case {_cell(case.id)}", BOLD, colour=colour)
    facts = [_format_place(shown), *_list_performance(trace.performance)]
    yield f"  {', '.join(facts)}"
    if case.expected is not None:
        yield f"  eval case {_cell(case.expected.id)}"
    elif case.unmatched_reason not in (None, NO_EVAL_SET):
        yield f"  {_line(case.unmatched_reason)}"
    yield from _list_turns(trace.turns, colour=colour)
    for each in trace.subagents:
        yield f"  sub-agent {_cell(each.name or each.call_id or 'without a name')}"
        yield from (f"  {line}" for line in _list_turns(each.turns, colour=colour))
    if trace.not_captured:
        yield colour_text(f"  error: {_line(trace.not_captured, MAX_ERROR)}", RED, colour=colour)
    elif run.missing:
        switch = f"; to record content: {run.switch}" if run.switch else ""
        yield f"  not recorded: {', '.join(run.missing)}{switch}"
    yield from (f"  warning: {_line(each)}" for each in trace.warnings)


def _format_place(shown: ShownCase) -> str:
    run, trace = shown.run, shown.case.trace
    if not run.spans:
        return f"line {trace.place.line}"
    if run.traces > 1:
        joined = "conversation" if trace.conversation else "history"
        return f"{run.traces:,} traces from {_cell(trace.id)} on, joined by {joined}"
    return f"trace {_cell(trace.id)}"


def _list_performance(performance: Mapping[str, Json] | None) -> Iterator[str]:
    """Yield duration, model calls, models and tokens, as far as they were recorded."""
    found = performance or {}
    overall = _get_object(_get_object(found.get("latency")).get("overall"))
    longest = overall.get("max")
    if isinstance(longest, int | float) and longest:
        several = overall.get("count") not in (None, 0, 1)
        yield f"{format_number(longest / 1000)} s{' for the longest turn' if several else ''}"
    calls = _get_object(found.get("counts")).get("llm_calls")
    models = found.get("models")
    named = ", ".join(map(str, models)) if isinstance(models, list | tuple) else ""
    if isinstance(calls, int) and calls:
        yield format_count(calls, "model call") + (f" ({_cell(named)})" if named else "")
    elif named:
        yield _cell(named)
    tokens = _get_object(found.get("tokens"))
    counts = ((tokens.get("total_prompt"), "input"), (tokens.get("total_output"), "output"))
    known = [f"{n:,} {name}" for n, name in counts if isinstance(n, int | float)]
    if known and tokens.get("total"):
        yield f"{' / '.join(known)} tokens"
    cost = found.get("cost_usd")
    if isinstance(cost, int | float):
        yield f"{format_number(cost, 6)} USD"


def _get_object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list_turns(turns: Sequence[Turn], *, colour: bool, is_expected: bool = False) -> Iterator[str]:
    for number, turn in enumerate(turns[:MAX_TURNS], start=1):
        rows = [*_list_steps(turn, is_expected=is_expected)]
        for index, (name, text) in enumerate(rows):
            head = f"turn {number}" if index == 0 else ""
            shown = colour_text(text, RED, colour=colour) if name == "failed" else text
            yield f"  {head:<8}{name:<8}{shown}"
    if len(turns) > MAX_TURNS:
        yield f"  {truncate.format_omitted(len(turns) - MAX_TURNS)} turns"


def _list_steps(turn: Turn, *, is_expected: bool) -> Iterator[tuple[str, str]]:
    """Yield the question, tool calls with results, and the answer."""
    yield "user", _line(turn.user_text) or "not recorded"
    pairs = [*zip(turn.tool_calls, pair_responses(turn), strict=True)]
    for call, response in pairs[:MAX_CALLS]:
        unknown = " (arguments not recorded)" if call.args is None and not is_expected else ""
        yield "call", f"{_line(format_call(call.name, call.args))}{unknown}"
        if response is not None:
            name = "failed" if call.failed or response.failed else "result"
            yield name, _line(_format_value(response.output))
        elif not is_expected:
            yield "result", "not recorded"
    if len(pairs) > MAX_CALLS:
        yield "", f"{truncate.format_omitted(len(pairs) - MAX_CALLS)} calls"
    if turn.final_text is not None or not is_expected:
        yield "answer", _line(turn.final_text or "") or "not recorded"
    if spent := ", ".join(_list_spent(turn)):
        yield "took", spent


def _list_spent(turn: Turn) -> Iterator[str]:
    """Yield the duration, model calls and tokens of a turn, as far as they were recorded."""
    if turn.duration_ms is not None:
        yield format_duration(turn.duration_ms)
    if turn.model_steps:
        yield format_count(len(turn.model_steps), "model call")
    tokens: list[str] = []
    for counts, name in (
        ([step.input_tokens for step in turn.model_steps], "input"),
        ([step.output_tokens for step in turn.model_steps], "output"),
    ):
        if known := [count for count in counts if count is not None]:
            more = "" if len(known) == len(counts) else " or more"
            tokens.append(f"{sum(known):,}{more} {name}")
    if tokens:
        yield f"{' / '.join(tokens)} tokens"


def _format_value(value: Json) -> str:
    return value if isinstance(value, str) else json_text.dumps_readable(value)


def _list_ignored(found: Sequence[IgnoredAttributes], *, colour: bool) -> Iterator[str]:
    yield colour_text("Attributes that are not read", BOLD, colour=colour)
    rows = [
        (
            _cell(f"{each.prefix}*" if each.prefix.endswith(".") else each.prefix),
            f"{each.count:,}",
            _line(", ".join(each.names)),
        )
        for each in found[:MAX_ROWS]
    ]
    yield from (f"  {line}" for line in align_columns(rows, names=1))
    if len(found) > MAX_ROWS:
        yield f"  {truncate.format_omitted(len(found) - MAX_ROWS)}"


def _line(text: str, limit: int = MAX_TEXT) -> str:
    return truncate.short(escape.flatten_line(text), limit)


def _cell(text: str) -> str:
    return truncate.short(escape.flatten_line(text), MAX_CELL)
