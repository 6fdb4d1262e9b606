"""``tool_trajectory``: which tools were used, in which order, with which arguments."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.evaluators.agentv.expected_tool_call import ExpectedUse
from agentci.evaluators.agentv.verdict import Finding
from agentci.model.sample import Sample
from agentci.model.transcript import ToolUse, Transcript

Mode: TypeAlias = Literal["any_order", "in_order", "exact", "superset", "subset"]


class Trajectory(Struct, frozen=True, kw_only=True):
    """The rule.

    Attributes:
        at_least: how messages write it: ``≥``, since AgentV 4 ``>=``.
        strict: whether calls too many count in ``exact``, and whether ``in_order`` looks past a
            call with the wrong arguments, and past a tool that is not there.
    """

    mode: Mode
    minimums: Mapping[str, float]
    expected: tuple[ExpectedUse, ...]
    at_least: str = "≥"
    strict: bool = False

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See :class:`Rule`."""
        del sample
        uses = tuple(transcript.tool_uses)
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
        """Whether an empty list of expected uses asks for nothing."""
        if self.mode == "exact":
            return not (self.strict and uses)
        return self.mode in ("in_order", "superset")

    def _counted(self, uses: Sequence[ToolUse]) -> Finding:
        if not self.minimums:
            return Finding(score=1.0, hits=("No tool requirements specified",))
        tally = _Tally()
        for tool, least in self.minimums.items():
            count = sum(use.tool == tool for use in uses)
            line = f"{tool}: called {count} times (required {self.at_least}{least:g})"
            tally.note(line, hit=count >= least)
        return tally.finding(len(self.minimums))

    def _in_order(self, uses: Sequence[ToolUse]) -> Finding:
        tally = _Tally()
        position = 0
        for index, wanted in enumerate(self.expected):
            found = self._next(wanted, uses, position)
            if found is None:
                line = f"Expected {wanted.tool} at position {index}, not found in remaining trace"
                tally.note(line, hit=False)
                position = position if self.strict else len(uses)
            elif wanted.takes(uses[found]):
                tally.note(f"Found {wanted.tool} at position {found}", hit=True)
                tally.time(wanted, uses[found])
                position = found + 1
            else:
                where = f"Expected {wanted.tool} at position {index}"
                tally.note(f"{where}: tool found at {found} but args mismatch", hit=False)
                position = position if self.strict else found + 1
        return tally.finding(len(self.expected), self.expected)

    def _next(self, wanted: ExpectedUse, uses: Sequence[ToolUse], start: int) -> int | None:
        """The next use of the tool; with ``strict`` the next that fits, if there is one."""
        named = [i for i in range(start, len(uses)) if uses[i].tool == wanted.tool]
        fitting = (i for i in named if wanted.takes(uses[i]))
        first = named[0] if named else None
        return next(fitting, first) if self.strict else first

    def _exact(self, uses: Sequence[ToolUse]) -> Finding:
        tally = _Tally()
        if len(uses) != len(self.expected):
            tally.remark(f"Expected {len(self.expected)} tool calls, got {len(uses)}")
        for index, wanted in enumerate(self.expected):
            if index >= len(uses):
                line, hit = f"Position {index}: expected {wanted.tool}, got nothing", False
            elif uses[index].tool != wanted.tool:
                got = uses[index].tool
                line, hit = f"Position {index}: expected {wanted.tool}, got {got}", False
            elif not wanted.takes(uses[index]):
                line, hit = f"Position {index}: {wanted.tool} args mismatch", False
            else:
                line, hit = f"Position {index}: {wanted.tool}", True
            tally.note(line, hit=hit)
            if hit:
                tally.time(wanted, uses[index])
        total = max(len(self.expected), len(uses)) if self.strict else len(self.expected)
        return tally.finding(total, self.expected)

    def _superset(self, uses: Sequence[ToolUse]) -> Finding:
        tally = _Tally()
        left = list(range(len(uses)))
        for wanted in self.expected:
            fits = (i for i in left if uses[i].tool == wanted.tool and wanted.takes(uses[i]))
            found = next(fits, None)
            if found is None:
                tally.note(f"Expected {wanted.tool} not found in actual trajectory", hit=False)
            else:
                left.remove(found)
                tally.note(f"Found {wanted.tool} at position {found}", hit=True)
                tally.time(wanted, uses[found])
        return tally.finding(len(self.expected), self.expected)

    def _subset(self, uses: Sequence[ToolUse]) -> Finding:
        if not uses:
            return Finding(score=1.0, hits=("No tool calls to check",))
        if not self.expected:
            line = f"{len(uses)} unexpected tool call(s) with empty allowed list"
            return Finding(score=0.0, misses=(line,))
        tally = _Tally()
        for index, use in enumerate(uses):
            allowed = any(each.tool == use.tool and each.takes(use) for each in self.expected)
            line = f"Position {index}: {use.tool} is {'' if allowed else 'not '}in allowed set"
            tally.note(line, hit=allowed)
        return tally.finding(len(uses))


class _Tally:
    """Hits and misses, of each use that is looked for and of the time it took."""

    def __init__(self) -> None:
        self._hits: list[str] = []
        self._misses: list[str] = []
        self._remarks = 0
        self._untimed = 0

    def note(self, line: str, *, hit: bool) -> None:
        (self._hits if hit else self._misses).append(line)

    def remark(self, line: str) -> None:
        """Tell of something that does not count."""
        self._misses.append(line)

    def time(self, wanted: ExpectedUse, use: ToolUse) -> None:
        """Note whether a use that was found took too long; without a time it does not count."""
        most, taken = wanted.max_duration_ms, use.duration_ms
        if most is None:
            return
        if taken is None:
            self._untimed += 1
        elif taken <= most:
            self.note(f"{wanted.tool} completed in {taken:g}ms (max: {most:g}ms)", hit=True)
        else:
            self.note(f"{wanted.tool} took {taken:g}ms (max: {most:g}ms)", hit=False)

    def finding(self, total: int, expected: Sequence[ExpectedUse] = ()) -> Finding:
        """The share of hits; every limit of time counts as one more that could be hit."""
        timed = sum(each.max_duration_ms is not None for each in expected) - self._untimed
        return Finding(
            score=len(self._hits) / (total + timed),
            hits=tuple(self._hits),
            misses=tuple(self._misses),
        )
