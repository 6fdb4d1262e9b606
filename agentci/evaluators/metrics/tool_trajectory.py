"""Scores whether the agent called the expected tools with the expected arguments."""

from collections.abc import Callable, Mapping, Sequence
from reprlib import Repr
from typing import Final, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import EvaluatorError
from agentci.evaluators.metrics.metric import (
    check_comparison_count,
    count_unpaired_turns,
    mean,
    pair_turns,
)
from agentci.evaluators.recorded_calls import check_tool_calls_recorded
from agentci.model.requests import MetricResult
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject, replace

name: Final = "tool_trajectory_avg_score"
needs_expected: Final = True

SHOWN_CHARACTERS: Final = 200


def explain_missing(_expected: Sequence[Turn]) -> str:
    """Return nothing: a turn without expected calls expects none."""
    return ""


def read_expected(expected: Sequence[Turn]) -> list[Json]:
    """Return names and arguments of the expected calls; ids are not compared."""
    return [[[call.name, call.args] for call in turn.tool_calls] for turn in expected]


def drop_arguments(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return turns whose tool calls all have no arguments, to compare only names."""
    return tuple(
        replace(turn, tool_calls=tuple(replace(call, args={}) for call in turn.tool_calls))
        for turn in turns
    )


def measure(actual: Sequence[Turn], expected: Sequence[Turn], options: JsonObject) -> MetricResult:
    """Score each turn 1 or 0.

    The option ``match_type`` is a ``MatchType`` in any case; the default is EXACT.
    """
    match_type = read_match_type(options)
    compared = [_compare(*turns, match_type) for turns in pair_turns(actual, expected)]
    scores = tuple(float(each.is_match) for each in compared)
    return MetricResult(
        score=mean(scores),
        turn_scores=scores,
        misses=tuple(
            f"turn {number}: {each.miss}"
            for number, each in enumerate(compared, start=1)
            if not each.is_match
        ),
        details={
            "comparisons": [each.as_json for each in compared],
            **count_unpaired_turns(actual, expected),
        },
    )


class _Comparison(Struct, frozen=True, kw_only=True):
    """The recorded and the expected calls of one turn."""

    turn_id: str
    actual: tuple[ToolCall, ...]
    expected: tuple[ToolCall, ...]
    order: str
    is_match: bool

    @property
    def miss(self) -> str:
        """Describe the expected and the recorded calls."""
        return (
            f"expected {_format_calls(self.expected)}{self.order}, got {_format_calls(self.actual)}"
        )

    @property
    def as_json(self) -> JsonObject:
        """Format the comparison as agentevals' reports do."""
        return {
            "invocation_id": self.turn_id,
            "expected": [{"name": call.name, "args": call.args} for call in self.expected],
            "actual": [{"name": call.name, "args": call.args} for call in self.actual],
            "matched": self.is_match,
        }


def read_match_type(options: JsonObject) -> str:
    """Return the option ``match_type`` in upper case, or the default.

    Raises:
        EvaluatorError: it is unknown.
    """
    match_type = str(options.get("match_type") or "EXACT").upper()
    if match_type not in MATCHERS:
        known = ", ".join(MATCHERS)
        raise EvaluatorError(f"unknown match type `{match_type}`; it must be one of {known}")
    return match_type


def _compare(actual: Turn, expected: Turn, match_type: str) -> _Comparison:
    """Compare the calls of two turns.

    Recorded arguments other than an object are wrapped; those that were not recorded equal nothing
    for sure. Expected calls stay unchanged: missing arguments there equal no recorded call, as in
    agentevals 0.11.0.

    Raises:
        EvaluatorError: it depends on calls or arguments that were not recorded.
    """
    check_tool_calls_recorded([actual])
    made = tuple(ToolCall(name=call.name, args=call.named_args) for call in actual.tool_calls)
    matches, order = MATCHERS[match_type]
    is_match = matches(actual.tool_calls, expected.tool_calls, _are_equal)
    if not is_match and matches(actual.tool_calls, expected.tool_calls, _may_be_equal):
        unknown = next(call.name for call in actual.tool_calls if call.args is None)
        raise EvaluatorError(
            f"the arguments of {unknown} were not recorded; turn on content capture in the "
            "instrumentation of the tools"
        )
    return _Comparison(
        turn_id=actual.id,
        actual=made,
        expected=expected.tool_calls,
        order=order if len(expected.tool_calls) > 1 else "",
        is_match=is_match,
    )


Equality: TypeAlias = Callable[[ToolCall, ToolCall], bool]


def _match_exactly(
    made: Sequence[ToolCall], expected: Sequence[ToolCall], are_equal: Equality
) -> bool:
    return len(made) == len(expected) and all(map(are_equal, made, expected))


def _match_in_order(
    made: Sequence[ToolCall], expected: Sequence[ToolCall], are_equal: Equality
) -> bool:
    rest = iter(made)
    return all(any(are_equal(call, each) for call in rest) for each in expected)


def _match_in_any_order(
    made: Sequence[ToolCall], expected: Sequence[ToolCall], are_equal: Equality
) -> bool:
    check_comparison_count(len(made), len(expected))
    rest = list(made)
    for each in expected:
        found = next((i for i, call in enumerate(rest) if are_equal(call, each)), None)
        if found is None:
            return False
        del rest[found]
    return True


def _are_equal(actual: ToolCall, expected: ToolCall) -> bool:
    """Compare as Python does: ``1 == 1.0 == True``; key order and ids are ignored."""
    return (
        actual.args is not None
        and actual.name == expected.name
        and actual.named_args == expected.args
    )


def _may_be_equal(actual: ToolCall, expected: ToolCall) -> bool:
    """Compare, where arguments that were not recorded may have been any."""
    if actual.args is None:
        return actual.name == expected.name and expected.args is not None
    return _are_equal(actual, expected)


Matcher: TypeAlias = Callable[[Sequence[ToolCall], Sequence[ToolCall], Equality], bool]

# The function for each match type, and what it adds to the message of a miss.
MATCHERS: Mapping[str, tuple[Matcher, str]] = {
    "EXACT": (_match_exactly, ""),
    "IN_ORDER": (_match_in_order, " in this order"),
    "ANY_ORDER": (_match_in_any_order, " in any order"),
}


def _format_calls(tool_calls: Sequence[ToolCall]) -> str:
    text = ", ".join(map(_format_call, tool_calls)) or "no tool call"
    return truncate.characters(text, SHOWN_CHARACTERS)


def _format_call(call: ToolCall) -> str:
    """Format a call as code: ``get_weather(city='Paris')``."""
    if not isinstance(call.args, Mapping):
        return f"{call.name}(without `args`, which matches no call)"
    arguments = (f"{key}={SHORT_REPR.repr(value)}" for key, value in call.args.items())
    return f"{call.name}({', '.join(arguments)})"


SHORT_REPR = Repr()
SHORT_REPR.maxlevel = 3
SHORT_REPR.maxstring = SHORT_REPR.maxother = 60
