"""Checks of tool calls: which, how many, how often the same, and whether they failed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from agentci._util.text import json_text, truncate
from agentci._util.text.format import format_count
from agentci._util.text.patterns import matches_any, matches_name
from agentci.errors import EvaluatorError
from agentci.evaluators.checks.check import CheckFinding, list_tool_calls, list_turns, make_finding
from agentci.evaluators.evaluator import check_tool_calls_recorded
from agentci.evaluators.trajectory.expectation import CallPattern, ForbiddenCall
from agentci.evaluators.trajectory.match import (
    CallComparer,
    RecordedCall,
    UnrecordedCallError,
    find_forbidden,
    list_rule_patterns,
)
from agentci.evaluators.trajectory.matchers import format_value, pair_arguments, read_arguments
from agentci.model.case import Case
from agentci.model.requests import POSSIBLE_ERRORS
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.values import Json, replace
from agentci.recordings.tool_errors import (
    format_error,
    is_tool_error,
    looks_like_error,
    parse_result,
)

MAX_NAMES: Final = 10
MAX_ARGS: Final = 80
MAX_CALL: Final = 300
ALL_CALLS: Final = "*"
RECORD_STATUS: Final = (
    "send `is_error` with each tool result (Anthropic's API), or record the spans of the tools"
)
# Before the patterns of tools in the names of limits.
MAXIMUM: Final = "max "
MINIMUM: Final = "min "


class ToolRule(Protocol):
    """A rule in which a misspelled tool would go unnoticed.

    Attributes:
        named_tools: patterns of tools, and whether the rule checks nothing if no run calls one.
    """

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """The patterns of the tools."""


class CallRule(Protocol):
    """A rule in which a misspelled argument would go unnoticed.

    Attributes:
        forbidden_calls: patterns of calls with arguments that, if misspelled, forbid nothing.
    """

    @property
    def forbidden_calls(self) -> tuple[CallPattern, ...]:
        """The patterns of the calls."""


def list_forbidden_calls(rules: Iterable[ForbiddenCall]) -> tuple[CallPattern, ...]:
    """List the patterns of the calls that rules name."""
    return tuple(pattern for rule in rules for pattern in list_rule_patterns(rule))


def list_forbidden_tools(rules: Iterable[ForbiddenCall]) -> Iterator[str]:
    """List the patterns of the tools that rules name."""
    return (tool for pattern in list_forbidden_calls(rules) for tool in pattern.tools)


def check_tools_recorded(case: Case) -> None:
    """Check that it is known which tools were called.

    Raises:
        EvaluatorError: it is not.
    """
    check_tool_calls_recorded(list_turns(case.trace))


def make_recorded_calls(turns: Sequence[Turn]) -> tuple[RecordedCall, ...]:
    """Convert the calls of turns for comparisons; calls of one model answer share a group."""
    return tuple(
        RecordedCall(
            name=call.name,
            args=call.args,
            status=None if call.failed is None else "error" if call.failed else "ok",
            group=None if call.step is None else f"{number}/{call.step}",
        )
        for number, turn in enumerate(turns)
        for call in turn.tool_calls
    )


def format_call(call: RecordedCall) -> str:
    """Format ``find_order(order_id="4711")``."""
    args = read_arguments(call.args)
    if args is None:
        return call.name
    written = (f"{key}={format_value(value)}" for key, value in args.items())
    return truncate.short(f"{call.name}({', '.join(written)})", MAX_CALL)


class ToolCallLimits(Struct, frozen=True, kw_only=True):
    """How many tool calls there may be.

    Attributes:
        limits: by ``max`` and a pattern of tools.
    """

    limits: Mapping[str, float]

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        return {key.removeprefix(MAXIMUM): most > 0 for key, most in self.limits.items()}

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        calls = list_tool_calls(case.trace)
        misses: list[str] = []
        for key, most in self.limits.items():
            pattern = key.removeprefix(MAXIMUM)
            number = sum(matches_name(pattern, call.name) for call in calls)
            if number > most:
                of = "" if pattern == ALL_CALLS else f" of `{pattern}`"
                misses.append(f"{format_count(number, 'tool call')}{of}, more than {most:,.0f}")
        if not misses:
            check_tools_recorded(case)
        return make_finding(*misses, hits=(format_count(len(calls), "tool call"),))


class RepeatLimit(Struct, frozen=True, kw_only=True):
    """How often a tool may be called with equal arguments.

    Attributes:
        tools: patterns of the tools that count.
        limits: ``max``.
    """

    tools: tuple[str, ...]
    limits: Mapping[str, float]

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        return dict.fromkeys(self.tools, True)

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        most = self.limits["max"]
        calls = [call for call in list_tool_calls(case.trace) if matches_any(self.tools, call.name)]
        known = Counter(_make_key(call) for call in calls if call.args is not None)
        misses = [
            f"`{name}` was called {number} times with {truncate.short(args, MAX_ARGS)}, "
            f"more than {most:.0f}"
            for (name, args), number in known.items()
            if number > most
        ]
        if not misses:
            check_tools_recorded(case)
            self._check_arguments(calls, known)
        return make_finding(*misses)

    def _check_arguments(
        self, calls: Sequence[ToolCall], known: Mapping[tuple[str, str], int]
    ) -> None:
        """Check that calls without recorded arguments cannot be too many equal ones."""
        unknown = Counter(call.name for call in calls if call.args is None)
        for tool, number in unknown.items():
            equal = max((times for (name, _), times in known.items() if name == tool), default=0)
            if number + equal > self.limits["max"]:
                raise EvaluatorError(
                    f"the arguments of `{tool}` were not recorded in {format_count(number, 'call')}"
                )


def _make_key(call: ToolCall) -> tuple[str, str]:
    return call.name, json_text.dumps_readable(_sort_keys(call.args))


def _sort_keys(value: Json) -> Json:
    """A value in which equal values are written the same way: keys in order, 1.0 as 1."""
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sort_keys(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ToolErrorLimit(Struct, frozen=True, kw_only=True):
    """How many tool calls may fail.

    Attributes:
        tools: patterns of the tools that count.
        recovered: whether a later call of the tool that succeeds heals an error.
        allow_unknown: whether calls of which no status is recorded count as successful.
        limits: ``max``.
    """

    tools: tuple[str, ...]
    recovered: bool
    allow_unknown: bool
    limits: Mapping[str, float]

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        return dict.fromkeys(self.tools, True)

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        found = [
            (call, response)
            for turn in list_turns(case.trace)
            for call, response in _pair_with_responses(turn)
            if matches_any(self.tools, call.name)
        ]
        found = [(_complete_status(*each), each[1]) for each in found]
        calls = [call for call, _ in found]
        errors = [
            (call, response)
            for index, (call, response) in enumerate(found)
            if call.failed and not (self.recovered and _is_healed(call, calls[index + 1 :]))
        ]
        is_failed = len(errors) > self.limits["max"]
        if not is_failed:
            check_tools_recorded(case)
            if not self.allow_unknown:
                _check_statuses(calls)
        by_name: dict[str, list[str]] = {}
        for call, response in errors:
            text = "" if response is None else format_error(response.output)
            by_name.setdefault(call.name, []).append(text)
        possible = [
            f"`{call.name}`: {format_error(parse_result(response.output))}"
            for call, response in found
            if call.failed is None and response is not None and looks_like_error(response.output)
        ]
        return CheckFinding(
            score=1 - len(errors) / len(calls) if calls else 1.0,
            passes=not is_failed,
            misses=tuple(_describe_errors(name, texts) for name, texts in by_name.items()),
            details={POSSIBLE_ERRORS: possible[:MAX_NAMES]} if possible else {},
        )


def _pair_with_responses(turn: Turn) -> Iterator[tuple[ToolCall, ToolResponse | None]]:
    responses = {each.call_index: each for each in turn.tool_responses}
    return ((call, responses.get(at)) for at, call in enumerate(turn.tool_calls))


def _complete_status(call: ToolCall, response: ToolResponse | None) -> ToolCall:
    """Add that a call failed if only that is not recorded, and its result can only be an error."""
    is_error = call.failed is None and response is not None and is_tool_error(response.output)
    return replace(call, failed=True) if is_error else call


def _describe_errors(name: str, errors: Sequence[str]) -> str:
    """Describe the failed calls of a tool by their number and the first error that is known."""
    times = "" if len(errors) == 1 else f" {len(errors)} times"
    known = [*dict.fromkeys(filter(None, errors))]
    first = ", first" if len(known) > 1 else ""
    return f"`{name}` failed{times}{f'{first}: {known[0]}' if known else ''}"


def _is_healed(failed: ToolCall, later: Sequence[ToolCall]) -> bool:
    return any(call.name == failed.name and call.failed is False for call in later)


def _check_statuses(calls: Sequence[ToolCall]) -> None:
    unknown = [call.name for call in calls if call.failed is None]
    if unknown:
        raise EvaluatorError(
            f"the recording does not say whether {_list_names(unknown)} failed "
            f"({len(unknown)} of {format_count(len(calls), 'call')}); {RECORD_STATUS}"
        )


class RequiredTools(Struct, frozen=True, kw_only=True):
    """Tools that must be called; the score is the share of them.

    Attributes:
        limits: ``min`` and a pattern of tools: how often they must be called at least.
    """

    limits: Mapping[str, float]

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        return {key.removeprefix(MINIMUM): False for key in self.limits}

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        calls = list_tool_calls(case.trace)
        misses: list[str] = []
        for key, least in self.limits.items():
            pattern = key.removeprefix(MINIMUM)
            number = sum(matches_name(pattern, call.name) for call in calls)
            if number < least:
                times = "not called" if not number else f"called {number} times, not {least:.0f}"
                misses.append(f"`{pattern}` was {times}")
        if misses:
            check_tools_recorded(case)
        return CheckFinding(score=1 - len(misses) / len(self.limits), misses=tuple(misses))


class ForbiddenTools(Struct, frozen=True, kw_only=True):
    """Calls that must not be made."""

    rules: tuple[ForbiddenCall, ...]

    @property
    def named_tools(self) -> Mapping[str, bool]:
        """See ``ToolRule``."""
        return dict.fromkeys(list_forbidden_tools(self.rules), False)

    @property
    def forbidden_calls(self) -> tuple[CallPattern, ...]:
        """See ``CallRule``."""
        return list_forbidden_calls(self.rules)

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        calls = make_recorded_calls(list_turns(case.trace))
        titles = _list_titles(case.trace)
        comparer = CallComparer(calls)
        # A rule that needs something that was not recorded may be broken, too: the others first.
        missing: UnrecordedCallError | None = None
        misses: list[str] = []
        called: list[str] = []
        for rule in self.rules:
            try:
                comparer.check_recorded(list_rule_patterns(rule))
            except UnrecordedCallError as error:
                missing = missing or error
                continue
            found = find_forbidden((rule,), comparer)
            for title, call, broken in zip(titles, calls, found, strict=True):
                if broken:
                    called.append(call.name)
                    misses.append(f"{title}{_describe_forbidden(rule, call)}")
        if not misses:
            check_tools_recorded(case)
        if not misses and missing is not None:
            raise missing
        return _make_forbidden_finding(misses, called)


def _list_titles(trace: Trace) -> list[str]:
    """List the titles of the turns of all calls: none in a single turn and in sub-agents."""
    has_turns = len(trace.turns) > 1
    return [
        f"turn {number}: " if has_turns and number <= len(trace.turns) else ""
        for number, turn in enumerate(list_turns(trace), start=1)
        for _ in turn.tool_calls
    ]


def _describe_forbidden(rule: ForbiddenCall, call: RecordedCall) -> str:
    """Describe a call with the arguments that a rule compares, and what it forbids of them."""
    rules, args = rule.pattern.find_rules(call.name), read_arguments(call.args)
    if rules is None or args is None:
        return f"`{call.name}` was called{_describe_condition(rule)}"
    compared = pair_arguments(rules, args)
    names = {name for name, _, _ in compared}
    shown = args if rules.whole else {name: args[name] for name in args if name in names}
    forbidden = [
        f"{name} {'match' if rules.whole else 'matches'} {matcher.text}"
        for name, matcher, _ in compared
        if matcher is not None and not matcher.is_plain
    ]
    text = format_call(replace(call, args=shown))
    reasons = f": {', '.join(forbidden)}" if forbidden else ""
    return f"`{text}` is forbidden{_describe_condition(rule)}{reasons}"


def _make_forbidden_finding(misses: Iterable[str], called: Iterable[str]) -> CheckFinding:
    """Make a finding that reports show before others: see ``has_forbidden_call``."""
    names = [*dict.fromkeys(called)]
    return make_finding(*dict.fromkeys(misses), details={"forbidden": names} if names else None)


def _describe_condition(rule: ForbiddenCall) -> str:
    conditions = {" without an earlier": rule.before, " after": rule.after}
    return "".join(
        f"{words} {_list_names(pattern.tools)}"
        for words, pattern in conditions.items()
        if pattern is not None
    )


class AllowedTools(Struct, frozen=True, kw_only=True):
    """The only tools that may be called."""

    tools: tuple[str, ...]

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        named = zip(_list_titles(case.trace), list_tool_calls(case.trace), strict=True)
        others = [
            (title, call.name) for title, call in named if not matches_any(self.tools, call.name)
        ]
        if not others:
            check_tools_recorded(case)
        misses = (f"{title}`{name}` was called and is not allowed" for title, name in others)
        return _make_forbidden_finding(misses, (name for _, name in others))


def _list_names(names: Sequence[str]) -> str:
    distinct = [f"`{name}`" for name in dict.fromkeys(names)]
    return ", ".join(truncate.truncate_list(distinct, MAX_NAMES))
