"""Finds the tool calls of a turn: matches tool spans with the tool calls in model messages."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci.model.trace import ToolCall, ToolResponse
from agentci.model.values import Json, replace
from agentci.recordings.telemetry import messages, semconv
from agentci.recordings.telemetry.json_input import parse_value
from agentci.recordings.telemetry.messages import ToolCallPart, ToolResponsePart
from agentci.recordings.telemetry.span_views import ModelCall, SpanNode, SpanView, merge_failures

# Beginnings of span names that are followed by the name of the tool.
_NAME_PREFIXES: Final = ("execute_tool", semconv.MCP_TOOL_CALL)


class ToolRun(Struct, frozen=True, kw_only=True):
    """One run of a tool, as its spans record it.

    Attributes:
        span_id, start: of the outermost span.
        duration: nanoseconds, of the outermost span.
        is_name_guessed: whether ``name`` comes from the span's name because no span names the tool.
    """

    span_id: str
    start: int
    duration: int
    name: str
    is_name_guessed: bool
    id: str | None
    arguments: Json
    result: Json
    failed: bool | None


def find_tool_runs(members: Iterable[SpanNode]) -> tuple[ToolRun, ...]:
    """Find the tool runs among spans ordered parents first; sorted by start."""
    outermost: dict[SpanNode, SpanNode] = {}
    found: dict[SpanNode, list[SpanView]] = {}
    for node in members:
        if node.view.kind == "tool":
            above = node.enclosing_tool
            outer = outermost[above] if above is not None and _is_nested_run(above, node) else node
            outermost[node] = outer
            found.setdefault(outer, []).append(node.view)
    return tuple(sorted(map(_make_tool_run, found.values()), key=get_run_order))


def get_run_order(run: ToolRun) -> tuple[int, str]:
    """Return what tool runs are sorted by: start, then id of the span."""
    return run.start, run.span_id


def _is_nested_run(outer: SpanNode, inner: SpanNode) -> bool:
    first, second = outer.view.tool, inner.view.tool
    if first.id is not None and first.id == second.id:
        return True
    if first.name is None or second.name is None:
        return semconv.MCP_METHOD in inner.view.span.attributes
    if semconv.MCP_METHOD in inner.view.span.attributes:
        return _have_same_tool(first.name, second.name)
    return first.name == second.name


def _have_same_tool(name: str, bare: str) -> bool:
    """Return whether two names are equal, or one has the name of a server before it."""
    if len(name) < len(bare):
        name, bare = bare, name
    return name == bare or (name.endswith(bare) and not name[-len(bare) - 1].isalnum())


def _make_tool_run(views: Sequence[SpanView]) -> ToolRun:
    outer, facts = views[0].span, [view.tool for view in views]
    name = next((fact.name for fact in facts if fact.name), None)
    return ToolRun(
        span_id=outer.id,
        start=outer.start,
        duration=outer.duration,
        name=name or _guess_tool_name(outer.name),
        is_name_guessed=name is None,
        id=next((fact.id for fact in facts if fact.id), None),
        arguments=_read_first_value(fact.arguments for fact in facts),
        result=_read_first_value(fact.result for fact in facts),
        failed=merge_failures(view.span.failed or view.tool.failed for view in views),
    )


def _read_first_value(recorded: Iterable[Json]) -> Json:
    return parse_value(next((value for value in recorded if value is not None), None))


def _guess_tool_name(span_name: str) -> str:
    words = span_name.split(maxsplit=2)
    return words[1] if span_name.startswith(_NAME_PREFIXES) and len(words) > 1 else span_name


class ToolRequest(Struct, frozen=True, kw_only=True):
    """A tool call in a model's output.

    Attributes:
        call_index: index of the model call that made it.
        result: None if no response was found.
        failed: None if it is not recorded whether the tool failed.
    """

    part: ToolCallPart
    call_index: int
    result: Json = None
    failed: bool | None = None


class _ToolAnswer(Struct, frozen=True, kw_only=True):
    """A tool response, and the index of the first model call that receives it."""

    part: ToolResponsePart
    call_index: int

    def may_answer(self, request: ToolRequest) -> bool:
        """Return whether it may answer a request without naming its id."""
        return self.call_index > request.call_index and self.part.name in (None, request.part.name)


def find_tool_requests(
    calls: Sequence[ModelCall],
) -> tuple[tuple[ToolRequest, ...], tuple[str, ...]]:
    """List the tool calls in the outputs of model calls, in order, with their responses.

    A response belongs to a request of a model call before the one that first receives it: matched
    by id, else to the first request that it fits.

    Returns:
        The requests, and warnings about guesses.
    """
    requests = _list_requests(calls)
    answers = _list_answers(calls)
    by_id = {answer.part.id: answer for answer in answers}
    ids = {request.part.id for request in requests} - {None}
    unmatched = [answer for answer in answers if answer.part.id not in ids]
    warnings: list[str] = []
    joined: list[ToolRequest] = []
    for request in requests:
        answer = by_id.get(request.part.id) if request.part.id is not None else None
        if answer is not None and answer.call_index > request.call_index:
            del by_id[request.part.id]
        else:
            answer = _match_by_order(request, unmatched, warnings)
        joined.append(
            request
            if answer is None
            else replace(request, result=answer.part.value, failed=answer.part.failed)
        )
    return tuple(joined), tuple(warnings)


def _list_requests(calls: Sequence[ModelCall]) -> list[ToolRequest]:
    return [
        ToolRequest(part=part, call_index=index)
        for index, call in enumerate(calls)
        for part in messages.extract_tool_calls(call.output)
    ]


def _list_answers(calls: Sequence[ModelCall]) -> list[_ToolAnswer]:
    found: dict[tuple[str | None, str], _ToolAnswer] = {}
    for index, call in enumerate(calls):
        for part in messages.extract_tool_responses(call.input):
            by_content = (part.name, json.dumps(part.value, sort_keys=True))
            key = (None, part.id) if part.id else by_content
            found.setdefault(key, _ToolAnswer(part=part, call_index=index))
    return list(found.values())


def _match_by_order(
    request: ToolRequest, unmatched: list[_ToolAnswer], warnings: list[str]
) -> _ToolAnswer | None:
    """Remove and return the first unmatched response that fits, else None."""
    answer = next((each for each in unmatched if each.may_answer(request)), None)
    if answer is None:
        return None
    unmatched.remove(answer)
    if answer.part.id is not None:
        warnings.append(
            f"tool {request.part.name} result joined by order "
            f"(response id '{answer.part.id}' matches no call)",
        )
    return answer


EMPTY_VALUES: Final[tuple[Json, ...]] = (None, {}, "", [])
NANOSECONDS_PER_MILLISECOND: Final = 1e6


class ToolInvocation(Struct, frozen=True, kw_only=True):
    """One use of a tool.

    Attributes:
        arguments: as recorded; None if they are missing or could not be read.
        result: None if none was recorded.
        failed: None if it is not recorded whether the tool failed.
        call_index: index of the model call that requested it; None if not recorded.
        start: nanoseconds since 1970; None without a tool span.
        duration: nanoseconds; None without a tool span.
        span_id: of its span; None without one.
    """

    name: str
    id: str | None
    arguments: Json
    result: Json
    failed: bool | None = None
    call_index: int | None = None
    start: int | None = None
    duration: int | None = None
    span_id: str | None = None


def find_tool_invocations(
    calls: Sequence[ModelCall], runs: Sequence[ToolRun]
) -> tuple[tuple[ToolInvocation, ...], tuple[str, ...]]:
    """Find the tool uses of a turn, in order.

    Returns:
        The tool uses, and warnings about guesses.
    """
    requests, warnings = find_tool_requests(calls)
    if not runs:
        return tuple(map(_make_unmatched_invocation, requests)), warnings
    runs = _order_simultaneous_runs(runs, requests)
    matches = _match_runs_to_requests(runs, requests)
    runs_by_request = {request: run for run, request in matches.items()}
    added = _group_unmatched_requests(requests, runs_by_request)
    uses = list(added[None])
    for index, run in enumerate(runs):
        uses += [
            _merge_run_with_request(run, requests[matches[index]] if index in matches else None),
            *added[index],
        ]
    guesses = [
        *_format_guess_warnings(runs, requests, matches),
        *_format_unmatched_warnings(requests, set(matches.values())),
    ]
    return tuple(uses), (*warnings, *guesses)


def make_tool_calls(uses: Sequence[ToolInvocation]) -> tuple[ToolCall, ...]:
    """Convert tool uses to tool calls."""
    return tuple(
        ToolCall(
            name=use.name,
            args=use.arguments,
            id=use.id,
            step=use.call_index,
            failed=use.failed,
            start=use.start,
            duration_ms=None
            if use.duration is None
            else use.duration / NANOSECONDS_PER_MILLISECOND,
            span_id=use.span_id,
        )
        for use in uses
    )


def make_tool_responses(uses: Sequence[ToolInvocation]) -> tuple[ToolResponse, ...]:
    """Convert tool uses that have a result or failed to tool responses."""
    return tuple(
        ToolResponse(
            name=use.name, output=use.result, id=use.id, failed=bool(use.failed), call_index=index
        )
        for index, use in enumerate(uses)
        if use.failed or use.result is not None
    )


def _make_unmatched_invocation(call: ToolRequest) -> ToolInvocation:
    part = call.part
    return ToolInvocation(
        name=part.name,
        id=part.id,
        arguments=part.arguments,
        result=call.result,
        failed=call.failed,
        call_index=call.call_index,
    )


def _order_simultaneous_runs(
    runs: Sequence[ToolRun], requests: Sequence[ToolRequest]
) -> Sequence[ToolRun]:
    """Order runs that started together, as far as the recording can tell, as the model called."""
    starts = Counter(run.start for run in runs)
    if len(starts) == len(runs):
        return runs

    def find_request(run: ToolRun) -> int:
        if starts[run.start] == 1:
            return 0
        by_id = (at for at, one in enumerate(requests) if _have_same_call_id(run, one))
        by_value = (
            at
            for at, one in enumerate(requests)
            if (run.name, run.arguments) == (one.part.name, one.part.arguments)
        )
        return next(chain(by_id, by_value), len(requests))

    return sorted(runs, key=lambda run: (run.start, find_request(run)))


def _match_runs_to_requests(
    runs: Sequence[ToolRun], requests: Sequence[ToolRequest]
) -> dict[int, int]:
    """Map run indices to request indices: by call id, else the next request of the same name."""
    free = dict(enumerate(requests))
    matches: dict[int, int] = {}
    for index, run in enumerate(runs):
        same_call = (key for key, request in free.items() if _have_same_call_id(run, request))
        same_tool = (key for key, request in free.items() if run.name == request.part.name)
        match = next(chain(same_call, same_tool), None)
        if match is not None:
            matches[index] = match
            del free[match]
    return matches


def _have_same_call_id(run: ToolRun, request: ToolRequest) -> bool:
    return run.id is not None and run.id == request.part.id


def _group_unmatched_requests(
    requests: Sequence[ToolRequest], runs_by_request: Mapping[int, int]
) -> defaultdict[int | None, list[ToolInvocation]]:
    """Group requests without a run by the run of the last request before them that has one."""
    added: defaultdict[int | None, list[ToolInvocation]] = defaultdict(list)
    run: int | None = None
    for index, request in enumerate(requests):
        run = runs_by_request.get(index, run)
        if index not in runs_by_request:
            added[run].append(_make_unmatched_invocation(request))
    return added


def _merge_run_with_request(run: ToolRun, request: ToolRequest | None) -> ToolInvocation:
    arguments, result = run.arguments, run.result
    if request is not None:
        if _is_better(request.part.arguments, arguments):
            arguments = request.part.arguments
        if _fills_empty_value(request.result, result):
            result = request.result
    return ToolInvocation(
        name=run.name,
        id=run.id,
        arguments=arguments,
        result=result,
        failed=_merge_status(run, request),
        call_index=None if request is None else request.call_index,
        start=run.start or None,
        duration=run.duration,
        span_id=run.span_id,
    )


def _merge_status(run: ToolRun, request: ToolRequest | None) -> bool | None:
    requested = None if request is None else request.failed
    return requested if run.failed is None else run.failed or requested is True


def _is_better(requested: Json, recorded: Json) -> bool:
    """Return whether a tool's span lacks the arguments, or has them only as text."""
    if isinstance(requested, dict) and isinstance(recorded, str):
        return True
    return _fills_empty_value(requested, recorded)


def _fills_empty_value(value: Json, gap: Json) -> bool:
    return gap in EMPTY_VALUES and value not in EMPTY_VALUES


def _format_guess_warnings(
    runs: Sequence[ToolRun], requests: Sequence[ToolRequest], matches: Mapping[int, int]
) -> Iterator[str]:
    for index, run in enumerate(runs):
        if run.is_name_guessed:
            yield (
                f"tool span {run.span_id} has no gen_ai.tool.name; "
                f"used span name token '{run.name}'"
            )
        if index in matches and not _have_same_call_id(run, request := requests[matches[index]]):
            filled = [
                *(
                    ["arguments"]
                    if _fills_empty_value(request.part.arguments, run.arguments)
                    else []
                ),
                *(["result"] if _fills_empty_value(request.result, run.result) else []),
            ]
            if filled:
                what = " and ".join(filled)
                yield (
                    f"tool {run.name} {what} joined from message parts by name (call ids differ)"
                )


def _format_unmatched_warnings(requests: Sequence[ToolRequest], matched: set[int]) -> Iterator[str]:
    for index, request in enumerate(requests):
        if index not in matched:
            where = "tool_calls" if request.part.is_fallback else "message parts"
            yield f"tool {request.part.name} appears only in {where}, without a tool span"
