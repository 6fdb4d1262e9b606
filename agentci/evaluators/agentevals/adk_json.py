"""Turns and results as Google's ADK has them in JSON."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agentci.errors import EvaluatorError
from agentci.model.json import Json, JsonObject
from agentci.model.trace import ToolCall, ToolResponse, Turn

AGENT: Final = "agent"


class _Strict(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, frozen=True)


class Note(_Strict):
    """A remark on a turn: what came of a rubric, an explanation, or an error."""

    id: str
    score: float | None
    rationale: str | None


class Scored(_Strict):
    """What was found of a turn, or of all; without a score, what kept it from having one."""

    score: float | None = None
    status: str = ""
    notes: tuple[Note, ...] = ()


class Result(Scored):
    """What ``shims/adk/measure.py`` prints: a result, or why there is none."""

    turns: tuple[Scored, ...] = ()
    refusal: str | None = None


def read_result(stdout: bytes) -> Result:
    """Read what was printed.

    Raises:
        EvaluatorError: it is no result.
    """
    try:
        return Result.model_validate_json(stdout)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"Google's ADK gave no result{where and f' ({where})'}: {first['msg']}"
        raise EvaluatorError(message) from None


def invocations(turns: Sequence[Turn]) -> list[Json]:
    """Turns as ADK's ``Invocation``; what was said between tool calls has no known place there."""
    return [
        {
            "invocation_id": turn.id,
            "user_content": _content("user", {"text": turn.user_text}),
            "final_response": (
                _content("model", *({"text": part} for part in turn.answer_parts))
                if turn.answer_parts
                else None
            ),
            "intermediate_data": {"invocation_events": list(_events(turn))},
        }
        for turn in turns
    ]


def _events(turn: Turn) -> Iterator[Json]:
    """The calls, each with the answers to it, and then the answers to nobody knows what."""
    for number, call in enumerate(turn.tool_calls):
        yield _event("model", {"function_call": _call(call)})
        yield from (_answer(each) for each in turn.tool_responses if each.call == number)
    yield from (_answer(each) for each in turn.tool_responses if each.call is None)


def _answer(response: ToolResponse) -> Json:
    output = response.output
    if not isinstance(output, dict):  # which ADK wants it to be
        output = {"error" if response.failed else "result": output}
    found = {"id": response.id, "name": response.name, "response": output}
    return _event("user", {"function_response": found})


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "name": call.name, "args": call.named_args}


def _event(role: str, part: JsonObject) -> Json:
    return {"author": AGENT, "content": _content(role, part)}


def _content(role: str, *parts: JsonObject) -> Json:
    return {"role": role, "parts": list(parts)}
