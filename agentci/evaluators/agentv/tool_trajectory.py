"""``tool_trajectory``: which tools were called, in which order, with which arguments."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self, TypeAlias

from msgspec import Struct
from pydantic import Field, JsonValue, model_validator

from agentci._util.text.javascript import equal_json, find_at_path
from agentci.evaluators.agentv.agentv_evaluator import AgentvContext, AgentvEntry, NonNegative
from agentci.evaluators.agentv.findings import Finding
from agentci.evaluators.evaluator import list_recorded_uses
from agentci.evaluators.fields import StrictModel, Text, optional
from agentci.evaluators.metrics import check_comparison_count
from agentci.model.case import AgentvCase
from agentci.model.trace import ToolUse, Transcript
from agentci.model.values import Json, JsonObject

ArgsMatch: TypeAlias = Literal["exact", "superset", "subset", "ignore"] | tuple[str, ...]


class ExpectedToolCall(Struct, frozen=True, kw_only=True):
    """An expected tool call.

    Attributes:
        args: the expected arguments; None or ``any`` match all arguments.
        match: how ``args`` are compared.
        max_duration_ms: the longest duration in milliseconds; None for no limit.
    """

    tool: str
    args: Json = None
    match: ArgsMatch = "superset"
    max_duration_ms: float | None = None

    def matches(self, use: ToolUse) -> bool:
        """Return whether the arguments of ``use`` match."""
        if not isinstance(self.args, Mapping) or self.match == "ignore":
            return True
        return isinstance(use.input, Mapping) and _match_arguments(self.args, use.input, self.match)


def _match_arguments(expected: JsonObject, actual: JsonObject, match: ArgsMatch) -> bool:
    if match == "exact":
        return equal_json(expected, actual)
    if match == "superset":
        return _contains_all(actual, expected)
    if match == "subset":
        return _contains_all(expected, actual)
    return all(_equal_at_path(path, expected, actual) for path in match)


def _contains_all(whole: JsonObject, part: JsonObject) -> bool:
    return all(key in whole and equal_json(value, whole[key]) for key, value in part.items())


def _equal_at_path(path: str, expected: Json, actual: Json) -> bool:
    """Compare the values at a path; a path that ``expected`` does not have matches anything."""
    found, value = find_at_path(expected, path)
    if not found:
        return True
    is_given, given_value = find_at_path(actual, path)
    return is_given and equal_json(value, given_value)


TrajectoryMode: TypeAlias = Literal["any_order", "in_order", "exact", "superset", "subset"]


class Trajectory(Struct, frozen=True, kw_only=True):
    """The ``tool_trajectory`` rule.

    Attributes:
        at_least: the sign in messages: ``≥``, or ``>=`` since AgentV 4.
        strict: whether extra calls count in ``exact``, and whether ``in_order`` searches past a
            call with the wrong arguments and continues after a missing tool.
    """

    mode: TrajectoryMode
    minimums: Mapping[str, float]
    expected: tuple[ExpectedToolCall, ...]
    at_least: str = "≥"
    strict: bool = False

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``.

        Raises:
            EvaluatorError: the tool calls were not recorded.
        """
        uses = list_recorded_uses(transcript)
        if self.mode != "exact":
            check_comparison_count(len(uses), max(len(self.expected), len(self.minimums)))
        if not self.expected and self._needs_expected(uses):
            return Finding(score=1.0, hits=("No tool sequence specified",))
        rules = {
            "any_order": self._counted,
            "in_order": self._in_order,
            "exact": self._exact,
            "superset": self._superset,
            "subset": self._subset,
        }
        return rules[self.mode](uses)

    def _needs_expected(self, uses: Sequence[ToolUse]) -> bool:
        """Return whether an empty ``expected`` list passes without a check in this mode."""
        if self.mode == "exact":
            return not (self.strict and uses)
        return self.mode in ("in_order", "superset")

    def _counted(self, uses: Sequence[ToolUse]) -> Finding:
        if not self.minimums:
            return Finding(score=1.0, hits=("No tool requirements specified",))
        score = _TrajectoryScore()
        for tool, least in self.minimums.items():
            count = sum(use.tool == tool for use in uses)
            line = f"{tool}: called {count} times (required {self.at_least}{least:g})"
            score.add(line, hit=count >= least)
        return score.make_finding(len(self.minimums))

    def _in_order(self, uses: Sequence[ToolUse]) -> Finding:
        score = _TrajectoryScore()
        position = 0
        for index, expected in enumerate(self.expected):
            found = self._next(expected, uses, position)
            if found is None:
                line = f"Expected {expected.tool} at position {index}, not found in remaining trace"
                score.add(line, hit=False)
                position = position if self.strict else len(uses)
            elif expected.matches(uses[found]):
                score.add(f"Found {expected.tool} at position {found}", hit=True)
                score.add_duration(expected, uses[found])
                position = found + 1
            else:
                where = f"Expected {expected.tool} at position {index}"
                score.add(f"{where}: tool found at {found} but args mismatch", hit=False)
                position = position if self.strict else found + 1
        return score.make_finding(len(self.expected), self.expected)

    def _next(self, expected: ExpectedToolCall, uses: Sequence[ToolUse], start: int) -> int | None:
        """Return the next call of the tool; with ``strict``, prefer one whose arguments match."""
        named = [i for i in range(start, len(uses)) if uses[i].tool == expected.tool]
        fitting = (i for i in named if expected.matches(uses[i]))
        first = named[0] if named else None
        return next(fitting, first) if self.strict else first

    def _exact(self, uses: Sequence[ToolUse]) -> Finding:
        score = _TrajectoryScore()
        if len(uses) != len(self.expected):
            score.add_uncounted_miss(f"Expected {len(self.expected)} tool calls, got {len(uses)}")
        for index, expected in enumerate(self.expected):
            if index >= len(uses):
                line, hit = f"Position {index}: expected {expected.tool}, got nothing", False
            elif uses[index].tool != expected.tool:
                got = uses[index].tool
                line, hit = f"Position {index}: expected {expected.tool}, got {got}", False
            elif not expected.matches(uses[index]):
                line, hit = f"Position {index}: {expected.tool} args mismatch", False
            else:
                line, hit = f"Position {index}: {expected.tool}", True
            score.add(line, hit=hit)
            if hit:
                score.add_duration(expected, uses[index])
        total = max(len(self.expected), len(uses)) if self.strict else len(self.expected)
        return score.make_finding(total, self.expected)

    def _superset(self, uses: Sequence[ToolUse]) -> Finding:
        score = _TrajectoryScore()
        unmatched = list(range(len(uses)))
        for expected in self.expected:
            fits = (
                i for i in unmatched if uses[i].tool == expected.tool and expected.matches(uses[i])
            )
            found = next(fits, None)
            if found is None:
                score.add(f"Expected {expected.tool} not found in actual trajectory", hit=False)
            else:
                unmatched.remove(found)
                score.add(f"Found {expected.tool} at position {found}", hit=True)
                score.add_duration(expected, uses[found])
        return score.make_finding(len(self.expected), self.expected)

    def _subset(self, uses: Sequence[ToolUse]) -> Finding:
        if not uses:
            return Finding(score=1.0, hits=("No tool calls to check",))
        if not self.expected:
            line = f"{len(uses)} unexpected tool call(s) with empty allowed list"
            return Finding(score=0.0, misses=(line,))
        score = _TrajectoryScore()
        for index, use in enumerate(uses):
            allowed = any(each.tool == use.tool and each.matches(use) for each in self.expected)
            line = f"Position {index}: {use.tool} is {'' if allowed else 'not '}in allowed set"
            score.add(line, hit=allowed)
        return score.make_finding(len(uses))


class _TrajectoryScore:
    """Counts hits and misses of expected calls and their time limits."""

    def __init__(self) -> None:
        self._hits: list[str] = []
        self._misses: list[str] = []
        self._untimed = 0

    def add(self, line: str, *, hit: bool) -> None:
        (self._hits if hit else self._misses).append(line)

    def add_uncounted_miss(self, line: str) -> None:
        """Report a miss that does not count in the score."""
        self._misses.append(line)

    def add_duration(self, expected: ExpectedToolCall, use: ToolUse) -> None:
        """Check the time limit of a matched call; a call without a duration does not count."""
        most, taken = expected.max_duration_ms, use.duration_ms
        if most is None:
            return
        if taken is None:
            self._untimed += 1
        elif taken <= most:
            self.add(f"{expected.tool} completed in {taken:g}ms (max: {most:g}ms)", hit=True)
        else:
            self.add(f"{expected.tool} took {taken:g}ms (max: {most:g}ms)", hit=False)

    def make_finding(self, total: int, expected: Sequence[ExpectedToolCall] = ()) -> Finding:
        """Score the share of hits; each checked time limit counts as one more item."""
        timed = sum(each.max_duration_ms is not None for each in expected) - self._untimed
        return Finding(
            score=len(self._hits) / (total + timed),
            hits=tuple(self._hits),
            misses=tuple(self._misses),
        )


ArgsMatchSpec: TypeAlias = Literal["exact", "superset", "subset", "ignore"] | list[Text]


class ExpectedCallSpec(StrictModel):
    """An expected tool call."""

    tool: Text = Field(description="Name of the tool.")
    args: JsonValue = optional("Its arguments; by default, and with `any`, all match.")
    args_match: ArgsMatchSpec | None = optional(
        "How its arguments are compared; by default as `args_match` of the evaluator."
    )
    max_duration_ms: NonNegative | None = optional(
        "Longest duration in milliseconds; needs `strict` in files without `tests`."
    )


class TrajectoryEntry(AgentvEntry):
    """Compares the tool calls of a run with the expected ones."""

    type: Literal["tool_trajectory"] = Field(
        description="Compares the tool calls with the expected ones."
    )
    mode: TrajectoryMode = Field(
        description="any_order (minimum number of calls per tool), in_order (other calls may be in "
        "between), exact, superset (at least these calls), subset (only these calls)."
    )
    minimums: dict[str, NonNegative] | None = optional(
        "Minimum number of calls per tool, for any_order."
    )
    expected: list[ExpectedCallSpec] | None = optional(
        "The expected tool calls, for all other modes."
    )
    args_match: ArgsMatchSpec | None = optional(
        "How arguments are compared: exact, superset (the expected ones, and others), "
        "subset, ignore, or a list of the paths to compare. By default exact in files with "
        "`tests`, else superset."
    )
    strict: bool = optional(
        "Whether extra calls lower the score of `exact`, and `in_order` continues "
        "after a call that does not match; AgentV does neither.",
        default=False,
    )

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode == "any_order" and self.minimums is None:
            raise ValueError("mode any_order needs `minimums`, such as {search: 1}")
        if self.mode != "any_order" and self.expected is None:
            raise ValueError(f"mode {self.mode} needs `expected`, such as [{{tool: search}}]")
        return self


def make_trajectory(entry: TrajectoryEntry, context: AgentvContext) -> Trajectory:
    """Make the rule; arguments and durations are compared as in the file's AgentV version."""
    is_v4 = context.version == "v4"
    timed = is_v4 or entry.strict

    def match_of(call: ExpectedCallSpec) -> ArgsMatch:
        named = call.args_match or entry.args_match or ("exact" if is_v4 else "superset")
        return tuple(named) if isinstance(named, list) else named

    return Trajectory(
        mode=entry.mode,
        minimums=entry.minimums or {},
        expected=tuple(
            ExpectedToolCall(
                tool=call.tool,
                args=call.args,
                match=match_of(call),
                max_duration_ms=call.max_duration_ms if timed else None,
            )
            for call in entry.expected or ()
        ),
        at_least=">=" if is_v4 else "≥",
        strict=entry.strict,
    )
