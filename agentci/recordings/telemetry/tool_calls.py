"""The tools that a turn used: runs that have spans, completed by what the model asked for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci.model.json import Json
from agentci.model.trace import ToolCall, ToolResponse
from agentci.recordings.telemetry.model_calls import Call
from agentci.recordings.telemetry.tool_requests import Asked, requests_of
from agentci.recordings.telemetry.tool_runs import Run

EMPTY: Final[tuple[Json, ...]] = (None, {}, "", [])


class Use(Struct, frozen=True, kw_only=True):
    """One use of a tool.

    Attributes:
        arguments: as recorded; None where they were not, or could not be read.
        result: None where none was recorded.
        duration: nanoseconds; None where no span tells.
    """

    name: str
    id: str | None
    arguments: Json
    result: Json
    failed: bool = False
    duration: int | None = None


def uses_of(calls: Sequence[Call], runs: Sequence[Run]) -> tuple[tuple[Use, ...], tuple[str, ...]]:
    """The uses of tools in a turn, in order, and what had to be guessed."""
    asked, warnings = requests_of(calls)
    if not runs:
        return tuple(map(_without_run, asked)), warnings
    claims = _claims(runs, asked)
    added = _added(asked, {request: run for run, request in claims.items()})
    uses = list(added[None])
    for index, run in enumerate(runs):
        uses += [_completed(run, asked[claims[index]] if index in claims else None), *added[index]]
    guesses = [*_guesses(runs, asked, claims), *_unclaimed(asked, set(claims.values()))]
    return tuple(uses), (*warnings, *guesses)


def calls_made(uses: Sequence[Use]) -> tuple[ToolCall, ...]:
    """What was asked of the tools."""
    return tuple(ToolCall(name=use.name, args=use.arguments, id=use.id) for use in uses)


def responses_given(uses: Sequence[Use]) -> tuple[ToolResponse, ...]:
    """The answers of those tools that gave one, or failed."""
    return tuple(
        ToolResponse(name=use.name, output=use.result, id=use.id, failed=use.failed, call=index)
        for index, use in enumerate(uses)
        if use.failed or use.result is not None
    )


def _without_run(asked: Asked) -> Use:
    part = asked.part
    return Use(name=part.name, id=part.id, arguments=part.arguments, result=asked.result)


def _claims(runs: Sequence[Run], asked: Sequence[Asked]) -> dict[int, int]:
    """Which request each run carries out: the one of its id, else the next of its name."""
    free = dict(enumerate(asked))
    claims: dict[int, int] = {}
    for index, run in enumerate(runs):
        same_call = (key for key, one in free.items() if _is_same_call(run, one))
        same_tool = (key for key, one in free.items() if run.name == one.part.name)
        claim = next(chain(same_call, same_tool), None)
        if claim is not None:
            claims[index] = claim
            del free[claim]
    return claims


def _is_same_call(run: Run, asked: Asked) -> bool:
    return run.id is not None and run.id == asked.part.id


def _added(
    asked: Sequence[Asked], carried_out: Mapping[int, int]
) -> defaultdict[int | None, list[Use]]:
    """Requests without a run, by the run of the last request before them that has one.

    Those that agentevals 0.11.0 overlooks are left out: where there are runs it knows the calls.
    """
    added: defaultdict[int | None, list[Use]] = defaultdict(list)
    run: int | None = None
    for index, one in enumerate(asked):
        run = carried_out.get(index, run)
        if index not in carried_out and not one.part.overlooked:
            added[run].append(_without_run(one))
    return added


def _completed(run: Run, asked: Asked | None) -> Use:
    arguments, result = run.arguments, run.result
    if asked is not None:
        arguments = asked.part.arguments if _fills(asked.part.arguments, arguments) else arguments
        result = asked.result if _fills(asked.result, result) else result
    return Use(
        name=run.name,
        id=run.id,
        arguments=arguments,
        result=result,
        failed=run.failed,
        duration=run.duration,
    )


def _fills(value: Json, gap: Json) -> bool:
    return gap in EMPTY and value not in EMPTY


def _guesses(
    runs: Sequence[Run], asked: Sequence[Asked], claims: Mapping[int, int]
) -> Iterator[str]:
    for index, run in enumerate(runs):
        if run.is_guessed:
            yield (
                f"tool span {run.span_id} has no gen_ai.tool.name; "
                f"used span name token '{run.name}'"
            )
        if index in claims and not _is_same_call(run, one := asked[claims[index]]):
            filled = [
                *(["arguments"] if _fills(one.part.arguments, run.arguments) else []),
                *(["result"] if _fills(one.result, run.result) else []),
            ]
            if filled:
                what = " and ".join(filled)
                yield (
                    f"tool {run.name} {what} joined from message parts by name (call ids differ)"
                )


def _unclaimed(asked: Sequence[Asked], claimed: set[int]) -> Iterator[str]:
    for index, one in enumerate(asked):
        if index not in claimed:
            where = "tool_calls" if one.part.overlooked else "message parts"
            left_out = ", and is not counted" if one.part.overlooked else ""
            yield f"tool {one.part.name} appears only in {where}, without a tool span{left_out}"
