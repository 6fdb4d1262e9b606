"""The arguments of grading functions (``sample`` and ``item``) and what they return.

The names are those of pytest-agent-evals, OpenAI's graders and Microsoft Foundry, which all call
``grade(sample, item)``.
"""

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Final

from msgspec import Struct

from agentci._util.text.json_text import dumps_compact
from agentci.errors import EvaluatorError
from agentci.evaluators.evaluator import ARGUMENTS, TOOL_CALLS
from agentci.evaluators.program_output import (
    EXAMPLE_RESULT,
    describe_exit,
    describe_missing_output,
    parse_output,
)
from agentci.model.case import Case, Expectation
from agentci.model.requests import ProgramOutput, Unrecorded
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject
from agentci.recordings.telemetry.json_input import parse_nested_json

# Also a key of `item`, where Foundry's graders look for the agent's output.
SAMPLE: Final = "sample"
# Key of `item` with the expected response of a case without a dataset row.
GROUND_TRUTH: Final = "ground_truth"
ITEM: Final = "item"
SAMPLE_FIELDS: Final = (
    "output_text",
    "output_json",
    "output_tools",
    "output_items",
    "choices",
    "tool_calls",
    "tool_definitions",
)


# Position of `item` in the arguments of a grading function.
ITEM_POSITION: Final = 1


def make_sample(case: Case) -> JsonObject:
    """Make the ``sample``: the response of the last turn, and the tool calls of all turns.

    ``output_json`` is set if the whole response is a JSON object or array. What was not recorded is
    None: tool calls, or the arguments of one.
    """
    turns = case.trace.turns
    text = (turns[-1].final_text if turns else None) or ""
    calls = [call for turn in turns for call in turn.tool_calls]
    is_known = all(turn.tool_calls_recorded for turn in turns)
    tools = [_format_chat_call(call) for call in calls] if is_known else None
    message: JsonObject = {"role": "assistant", "content": text, "tool_calls": tools}
    return {
        "output_text": text,
        **_parse_output_json(text),
        "output_tools": tools,
        "output_items": [*chain.from_iterable(map(_format_response_items, turns))]
        if is_known
        else None,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "tool_calls": [_format_flat_call(call) for call in calls] if is_known else None,
        "tool_definitions": [*(case.dataset_row.tool_definitions if case.dataset_row else ())],
    }


def list_unrecorded_in_sample(sample: Json) -> tuple[Unrecorded, ...]:
    """List what a ``sample`` of ``make_sample`` does not say."""
    calls = sample["tool_calls"] if isinstance(sample, dict) else None
    if not isinstance(calls, list):
        return (TOOL_CALLS,)
    unknown = any(isinstance(call, dict) and call["arguments"] is None for call in calls)
    return (ARGUMENTS,) if unknown else ()


def make_item(case: Case) -> JsonObject:
    """Make the ``item``: the columns of the dataset row, and always ``query``.

    Without a row, ``ground_truth`` is the expected final response, if there is one.
    """
    if case.dataset_row is not None:
        return {"query": case.dataset_row.query or _extract_query(case), **case.dataset_row.columns}
    expected = case.expected.turns[-1].final_text if case.expected and case.expected.turns else None
    truth = {} if expected is None else {GROUND_TRUTH: expected}
    return {"query": _extract_query(case), **truth}


def read_item_columns(
    expectation: Expectation, names: Collection[str] | None, *, expected: Turn | None
) -> JsonObject:
    """Return what ``make_item`` takes from the expectation of a case.

    Args:
        names: the keys of ``item`` that are read; None for all.
        expected: the expected turn whose response is ``ground_truth``.
    """
    columns = expectation.columns
    if columns is None:
        truth = None if expected is None else expected.final_text
        columns = {} if truth is None else {GROUND_TRUTH: truth}
    return {name: value for name, value in columns.items() if names is None or name in names}


def make_grade_arguments(case: Case) -> JsonObject:
    """Return the arguments of ``grade`` by name."""
    sample = make_sample(case)
    return {SAMPLE: sample, ITEM: {**make_item(case), SAMPLE: sample}}


def _extract_query(case: Case) -> str:
    return case.trace.turns[-1].user_text if case.trace.turns else ""


def _parse_output_json(text: str) -> JsonObject:
    try:
        value = parse_nested_json(text)
    except ValueError:
        return {}
    return {"output_json": value} if isinstance(value, dict | list) else {}


def _format_flat_call(call: ToolCall) -> JsonObject:
    return {
        "type": "tool_call",
        "name": call.name,
        "arguments": None if call.args is None else call.named_args,
        "tool_call_id": call.id,
    }


def _format_chat_call(call: ToolCall) -> JsonObject:
    """Format a call as in Chat Completions, with arguments as JSON text."""
    function: JsonObject = {"name": call.name, "arguments": _format_arguments(call)}
    return {"id": call.id, "type": "function", "function": function}


def _format_arguments(call: ToolCall) -> str | None:
    return None if call.args is None else dumps_compact(call.named_args)


def _format_response_items(turn: Turn) -> Iterator[JsonObject]:
    """Format a turn as in the Responses API: calls, their outputs, the response."""
    for index, call in enumerate(turn.tool_calls):
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": _format_arguments(call),
        }
        for each in turn.tool_responses:
            if each.call_index == index:
                output = each.output if isinstance(each.output, str) else dumps_compact(each.output)
                yield {"type": "function_call_output", "call_id": call.id, "output": output}
    if turn.final_text:
        content = [{"type": "output_text", "text": turn.final_text}]
        yield {"type": "message", "role": "assistant", "content": content}


SCORE: Final = "score"


class FunctionGrade(Struct, frozen=True, kw_only=True):
    """The result of one call of a grading function.

    Attributes:
        score: any finite number.
        details: other values in the dict that the function returned.
        size: size of the printed result in bytes.
    """

    score: float
    details: JsonObject
    size: int


def parse_grade(
    response: ProgramOutput, *, network: bool = True, in_image: bool = False
) -> FunctionGrade:
    """Parse the output of a grading function.

    Args:
        network: whether the function had network access.
        in_image: whether it ran in an image.

    Raises:
        EvaluatorError: if it raised or returned no number; the message completes a sentence about
            the function.
    """
    if response.exit_code != 0:
        raise EvaluatorError(describe_exit(response, network=network, in_image=in_image))
    if not response.stdout:  # the function ended its process
        raise EvaluatorError(describe_missing_output(response, EXAMPLE_RESULT))
    try:
        document = parse_output(response.stdout)
    except EvaluatorError as error:
        raise EvaluatorError(f"returned an invalid result: {error}") from None
    score = document.get(SCORE)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise EvaluatorError("printed a result without a score; return the score instead")
    details = {name: value for name, value in document.items() if name != SCORE}
    return FunctionGrade(score=float(score), details=details, size=len(response.stdout))
