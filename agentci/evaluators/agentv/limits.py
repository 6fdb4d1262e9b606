"""``latency``, ``cost``, ``token_usage`` and ``execution_metrics``: limits on what a run used."""

from collections.abc import Iterator
from typing import Final, Literal, Self

from msgspec import Struct
from pydantic import Field, model_validator

from agentci._util.text.javascript import format_js_fixed, format_js_number
from agentci.evaluators.agentv.agentv_evaluator import AgentvContext, AgentvEntry, NonNegative
from agentci.evaluators.agentv.findings import ASSISTANT, Finding
from agentci.evaluators.evaluator import NO_TOOL_CALLS
from agentci.evaluators.fields import Share, optional
from agentci.model.case import AgentvCase
from agentci.model.trace import Transcript

EXPLORATION_TOOLS: Final = frozenset(
    {"read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch"}
)


class ExecutionMetrics(Struct, frozen=True, kw_only=True):
    """The ``execution_metrics`` rule; None means no limit."""

    max_tool_calls: float | None
    max_llm_calls: float | None
    max_tokens: float | None
    max_cost_usd: float | None
    max_duration_ms: float | None
    target_exploration_ratio: float | None
    exploration_tolerance: float

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
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

    def _limits(self, transcript: Transcript) -> Iterator["_LimitCheck"]:
        usage = transcript.token_usage
        is_known = transcript.tool_calls_recorded
        tool_calls = sum(1 for _ in transcript.tool_uses) if is_known else None
        llm_calls = sum(message.role == ASSISTANT for message in transcript.messages)
        tokens = None if usage is None else usage.input + usage.output
        limits = (
            (_TOOL_CALLS, self.max_tool_calls, tool_calls),
            (_LLM_CALLS, self.max_llm_calls, llm_calls),
            (_TOKENS, self.max_tokens, tokens),
            (_COST, self.max_cost_usd, transcript.cost_usd),
            (_DURATION, self.max_duration_ms, transcript.duration_ms),
        )
        return (unit.check(taken, most) for unit, most, taken in limits if most is not None)

    def _exploration(self, transcript: Transcript) -> Iterator["_LimitCheck"]:
        target = self.target_exploration_ratio
        if target is None:
            return
        tools = [use.tool for use in transcript.tool_uses]
        if not tools:
            lack = "no tool calls" if transcript.tool_calls_recorded else NO_TOOL_CALLS
            yield _LimitCheck(fits=False, line=f"Exploration ratio not available ({lack})")
            return
        ratio = sum(tool in EXPLORATION_TOOLS for tool in tools) / len(tools)
        off = abs(ratio - target)
        fits = off <= self.exploration_tolerance
        where = f"{'within' if fits else 'outside'} tolerance of target {format_js_number(target)}"
        tolerance = format_js_number(self.exploration_tolerance)
        more = "" if fits else f" (diff: {format_js_fixed(off, 2)}, tolerance: {tolerance})"
        yield _LimitCheck(
            fits=fits,
            line=f"Exploration ratio {format_js_fixed(ratio, 2)} {where}{more}",
            measured=f"exploration_ratio={format_js_fixed(ratio, 2)}",
        )


class _LimitCheck(Struct, frozen=True, kw_only=True):
    """The check of one metric; ``measured`` is None if the metric was not recorded."""

    fits: bool
    line: str
    measured: str | None = None


class _MetricFormat(Struct, frozen=True, kw_only=True):
    """How one metric is printed.

    Attributes:
        name: its name in lines.
        source: its name in the line for a missing value.
        key: its name in the reasoning.
    """

    name: str
    source: str
    key: str
    form: str = "{}"
    digits: int | None = None

    def check(self, taken: float | None, most: float) -> _LimitCheck:
        if taken is None:
            return _LimitCheck(fits=False, line=f"{self.source} data not available")
        text, limit = self._format_value(taken), self._format_value(most)
        fits = taken <= most
        return _LimitCheck(
            fits=fits,
            line=f"{self.name} {text} {'<=' if fits else '>'} {limit} max",
            measured=f"{self.key}={text}",
        )

    def _format_value(self, value: float) -> str:
        return self.form.format(
            format_js_number(value) if self.digits is None else format_js_fixed(value, self.digits)
        )


_TOOL_CALLS: Final = _MetricFormat(name="Tool calls", source="Tool call", key="tool_calls")
_LLM_CALLS: Final = _MetricFormat(name="LLM calls", source="LLM call count", key="llm_calls")
_TOKENS: Final = _MetricFormat(name="Total tokens", source="Token usage", key="tokens")
_COST: Final = _MetricFormat(name="Cost", source="Cost", key="cost", form="${}", digits=4)
_DURATION: Final = _MetricFormat(name="Duration", source="Duration", key="duration", form="{}ms")


class LatencyLimit(Struct, frozen=True, kw_only=True):
    """At most ``threshold`` milliseconds."""

    threshold: float

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        taken = transcript.duration_ms
        if taken is None:
            return _make_missing_finding(
                "No duration data available in trace", "Execution duration not reported by provider"
            )
        most = format_js_number(self.threshold)
        sign = "<=" if taken <= self.threshold else ">"
        return _make_limit_finding(
            f"Duration {format_js_number(taken)}ms {sign} {most}ms threshold",
            fits=taken <= self.threshold,
            reasoning=f"Execution took {format_js_number(taken)}ms (threshold: {most}ms)",
        )


class CostLimit(Struct, frozen=True, kw_only=True):
    """At most ``budget`` US dollars."""

    budget: float

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        cost = transcript.cost_usd
        if cost is None:
            return _make_missing_finding(
                "No cost data available in trace", "Execution cost not reported by provider"
            )
        paid, most = format_js_fixed(cost, 4), format_js_fixed(self.budget, 4)
        sign = "<=" if cost <= self.budget else ">"
        return _make_limit_finding(
            f"Cost ${paid} {sign} ${most} budget",
            fits=cost <= self.budget,
            reasoning=f"Execution cost ${paid} (budget: ${most})",
        )


class TokenLimits(Struct, frozen=True, kw_only=True):
    """At most as many tokens as each given limit."""

    max_input: float | None
    max_output: float | None
    max_total: float | None

    def read_expectation(self, _: AgentvCase) -> None:
        """Read nothing of the case."""

    def evaluate(self, _: AgentvCase, transcript: Transcript) -> Finding:
        """See ``ScoringRule``."""
        usage = transcript.token_usage
        if usage is None:
            return _make_missing_finding(
                "No token usage data available in trace", "Token usage not reported by provider"
            )
        cached = usage.cached or 0
        total = usage.input + usage.output + cached
        checks = (
            ("Input", usage.input, self.max_input),
            ("Output", usage.output, self.max_output),
            ("Total", total, self.max_total),
        )
        hits: list[str] = []
        misses: list[str] = []
        for kind, used, most in checks:
            if most is not None:
                fits = used <= most
                line = (
                    f"{kind} tokens {format_js_number(used)} {'<=' if fits else '>'} "
                    f"{format_js_number(most)}"
                )
                (hits if fits else misses).append(line)
        counts = {"input": usage.input, "output": usage.output, "cached": cached, "total": total}
        text = ", ".join(f"{name}={format_js_number(each)}" for name, each in counts.items())
        return Finding(
            score=0.0 if misses else 1.0,
            hits=tuple(hits),
            misses=tuple(misses),
            reasoning=f"token_usage {text}",
        )


def _make_missing_finding(miss: str, reasoning: str) -> Finding:
    return Finding(score=0.0, misses=(miss,), reasoning=reasoning)


def _make_limit_finding(line: str, *, fits: bool, reasoning: str) -> Finding:
    return Finding(
        score=1.0 if fits else 0.0,
        hits=(line,) if fits else (),
        misses=() if fits else (line,),
        reasoning=reasoning,
    )


class LatencyEntry(AgentvEntry):
    """How long the run took."""

    type: Literal["latency"] = Field(description="Limit on the duration of the run.")
    threshold: NonNegative = Field(description="Longest duration in milliseconds.")


class CostEntry(AgentvEntry):
    """What the run cost."""

    type: Literal["cost"] = Field(description="Limit on the cost of the run.")
    budget: NonNegative = Field(description="Highest cost in US dollars.")


class TokenUsageEntry(AgentvEntry):
    """How many tokens the run used."""

    type: Literal["token_usage"] = Field(description="Limits on the tokens of the run.")
    max_total: NonNegative | None = optional("Limit on all tokens: input, output and cached.")
    max_input: NonNegative | None = optional("Limit on input tokens.")
    max_output: NonNegative | None = optional("Limit on output tokens.")

    @model_validator(mode="after")
    def _check_any_limit(self) -> Self:
        if self.max_total is None and self.max_input is None and self.max_output is None:
            raise ValueError("token_usage needs max_total, max_input or max_output")
        return self


def make_token_limits(entry: TokenUsageEntry, _: AgentvContext) -> TokenLimits:
    """Make the rule."""
    return TokenLimits(**entry.model_dump(include={"max_input", "max_output", "max_total"}))


class ExecutionMetricsEntry(AgentvEntry):
    """Limits on several metrics of the run."""

    type: Literal["execution_metrics"] = Field(description="Limits on several metrics of the run.")
    max_tool_calls: NonNegative | None = optional("Limit on tool calls.")
    max_llm_calls: NonNegative | None = optional("Limit on messages of the agent.")
    max_tokens: NonNegative | None = optional("Limit on input and output tokens.")
    max_cost_usd: NonNegative | None = optional("Highest cost in US dollars.")
    max_duration_ms: NonNegative | None = optional("Longest duration in milliseconds.")
    target_exploration_ratio: Share | None = optional(
        "Expected share of tool calls that only explore, such as `read` and `search`."
    )
    exploration_tolerance: NonNegative = optional(
        "Largest allowed difference from that share.", default=0.2
    )

    @model_validator(mode="after")
    def _check_any_limit(self) -> Self:
        limits = self.model_dump(exclude={*AgentvEntry.model_fields, "exploration_tolerance"})
        if all(value is None for value in limits.values()):
            raise ValueError(f"execution_metrics needs one of {', '.join(limits)}")
        return self


def make_execution_metrics(entry: ExecutionMetricsEntry, _: AgentvContext) -> ExecutionMetrics:
    """Make the rule."""
    return ExecutionMetrics(**entry.model_dump(exclude=set(AgentvEntry.model_fields)))
