"""What an agent answers to a row, in a test that runs it."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Mapping
from typing import Any, Final

import pytest

from agentci.errors import EvaluatorError
from agentci.model.dataset import Row
from agentci.model.json import JsonObject
from agentci.model.values import replace
from agentci.recordings.dataset import definitions_of, turn_of
from agentci.recordings.trace_format import ShapeError

WANTED: Final = (
    'an agent returns text, or {"response": "...", "tool_calls": [...], "tool_definitions": [...]}'
)

# What functions of tests raise to say that something is wrong; skips and interrupts go on.
RAISED: Final = (Exception, pytest.fail.Exception)


def answered(row: Row, agent: object) -> Row:
    """The row with what ``agent`` did: a function of the row's columns, which may be a coroutine.

    Raises:
        EvaluatorError: it is no such function, or returned something else.
    """
    if not callable(agent):
        kind = type(agent).__name__
        raise EvaluatorError(f"the fixture `agent` is a {kind}, not a function of a row")
    try:
        returned = agent(dict(row.columns))
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
    except SystemExit as error:
        raise EvaluatorError(f"the agent called sys.exit({error.code!r})") from None
    told = {"response": returned} if isinstance(returned, str) else returned
    if not isinstance(told, Mapping):
        raise EvaluatorError(f"the agent returned a {type(returned).__name__}; {WANTED}")
    try:
        plain = json.loads(json.dumps(told, default=_members))
    except (TypeError, ValueError, RecursionError) as error:
        raise EvaluatorError(f"what the agent returned is no JSON: {error}; {WANTED}") from None
    try:
        turn = turn_of(plain, row.query)
        definitions = definitions_of(plain) or row.tool_definitions
    except ShapeError as error:
        raise EvaluatorError(f"of what the agent returned {error}; {WANTED}") from None
    if turn is None:
        raise EvaluatorError(f"the agent returned no response; {WANTED}")
    return replace(row, turn=turn, tool_definitions=definitions)


def _members(value: object) -> JsonObject:
    """Those of a mapping that is no dictionary.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value in it is of type {type(value).__name__}")


async def _awaited(returned: Awaitable[Any]) -> Any:
    return await returned
