"""``execution_metrics``: what a run took, in several respects that count the same."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from agentci._util.text.javascript import fixed, number
from agentci.evaluators.agentv.helpers import ASSISTANT
from agentci.evaluators.agentv.verdict import Finding
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript

EXPLORING: Final = frozenset(
    {"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"}
)


class ExecutionMetrics(Struct, frozen=True, kw_only=True):
    """The rule; None stands for what is not limited."""

    max_tool_calls: float | None
    max_llm_calls: float | None
    max_tokens: float | None
    max_cost_usd: float | None
    max_duration_ms: float | None
    target_exploration_ratio: float | None
    exploration_tolerance: float

    def find(self, sample: Sample, transcript: Transcript) -> Finding:
        """See ``Rule``."""
        del sample
        checks = [*self._limits(transcript), *self._exploration(transcript)]
        measured = [each.measured for each in checks if each.measured is not None]
        return Finding(
            score=sum(each.fits for each in checks) / len(checks),
            hits=tuple(each.line for each in checks if each.fits),
            misses=tuple(each.line for each in checks if not each.fits),
            reasoning=f"execution_metrics {', '.join(measured)}"
            if measured
            else "No metrics evaluated",
        )

    def _limits(self, transcript: Transcript) -> Iterator["_Check"]:
        usage = transcript.token_usage
        calls = sum(1 for _ in transcript.tool_uses)
        asked = sum(message.role == ASSISTANT for message in transcript.messages)
        tokens = None if usage is None else usage.input + usage.output
        limits = (
            (_TOOL_CALLS, self.max_tool_calls, calls),
            (_LLM_CALLS, self.max_llm_calls, asked),
            (_TOKENS, self.max_tokens, tokens),
            (_COST, self.max_cost_usd, transcript.cost_usd),
            (_DURATION, self.max_duration_ms, transcript.duration_ms),
        )
        return (unit.check(taken, most) for unit, most, taken in limits if most is not None)

    def _exploration(self, transcript: Transcript) -> Iterator["_Check"]:
        target = self.target_exploration_ratio
        if target is None:
            return
        tools = [use.tool for use in transcript.tool_uses]
        if not tools:
            yield _Check(fits=False, line="Exploration ratio not available (no tool calls)")
            return
        ratio = sum(tool in EXPLORING for tool in tools) / len(tools)
        off = abs(ratio - target)
        fits = off <= self.exploration_tolerance
        where = f"{'within' if fits else 'outside'} tolerance of target {number(target)}"
        tolerance = number(self.exploration_tolerance)
        more = "" if fits else f" (diff: {fixed(off, 2)}, tolerance: {tolerance})"
        yield _Check(
            fits=fits,
            line=f"Exploration ratio {fixed(ratio, 2)} {where}{more}",
            measured=f"exploration_ratio={fixed(ratio, 2)}",
        )


class _Check(Struct, frozen=True, kw_only=True):
    """One respect; ``measured`` is None where nothing was recorded."""

    fits: bool
    line: str
    measured: str | None = None


class _Unit(Struct, frozen=True, kw_only=True):
    """How one respect is told: its name in lines, where it is missing, in the reasoning."""

    name: str
    source: str
    key: str
    form: str = "{}"
    digits: int | None = None

    def check(self, taken: float | None, most: float) -> _Check:
        if taken is None:
            return _Check(fits=False, line=f"{self.source} data not available")
        told, limit = self._told(taken), self._told(most)
        fits = taken <= most
        return _Check(
            fits=fits,
            line=f"{self.name} {told} {'<=' if fits else '>'} {limit} max",
            measured=f"{self.key}={told}",
        )

    def _told(self, value: float) -> str:
        return self.form.format(number(value) if self.digits is None else fixed(value, self.digits))


_TOOL_CALLS: Final = _Unit(name="Tool calls", source="Tool call", key="tool_calls")
_LLM_CALLS: Final = _Unit(name="LLM calls", source="LLM call count", key="llm_calls")
_TOKENS: Final = _Unit(name="Total tokens", source="Token usage", key="tokens")
_COST: Final = _Unit(name="Cost", source="Cost", key="cost", form="${}", digits=4)
_DURATION: Final = _Unit(name="Duration", source="Duration", key="duration", form="{}ms")
