"""Limits on time, tokens, cost and model calls.

What is known may fail, but only the whole may pass: a run whose known part is within the limit has
no verdict if the rest was not recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.format import format_count, format_distinct_durations, format_duration
from agentci.errors import EvaluatorError, SkippedError
from agentci.evaluators.checks.check import CheckFinding, list_turns, make_finding
from agentci.model.case import Case
from agentci.model.gate import MAX_MS, MAX_USD
from agentci.model.trace import ModelPrice, ModelStep, Trace, Turn
from agentci.recordings.prices import add_cached, count_input, price_steps

MAX: Final = "max"
NANOSECONDS: Final = 1_000_000  # in a millisecond
SECOND: Final = 1000
NO_TIMES: Final = "the recording has no times of turns"
REPLAYED: Final = "replayed: latency was not measured"
NO_MODEL_CALLS: Final = "the recording does not tell its model calls apart"


class MaxLatency(Struct, frozen=True, kw_only=True):
    """How long each turn, or all turns together, may take.

    Attributes:
        limits: ``MAX_MS``.
        scope: ``turn`` or ``run``.
    """

    limits: Mapping[str, float]
    scope: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        _check_measured(case)
        turns = case.trace.turns
        times = [turn.duration_ms for turn in turns]
        known = [each for each in times if each is not None]
        details = {"turn_seconds": [None if each is None else each / SECOND for each in times]}
        most = self.limits[MAX_MS]
        if self.scope == "run":
            misses = _describe_excess("all turns took", sum(known), most)
        else:
            misses = tuple(
                miss
                for number, each in enumerate(times, start=1)
                if each is not None
                for miss in _describe_excess(f"turn {number} took", each, most)
            )
        if not misses and len(known) < len(times):
            raise EvaluatorError(
                _describe_missing(len(times) - len(known), len(times), "time", "turn")
            )
        hits = (f"the slowest turn took {format_duration(max(known))}",) if known else ()
        return make_finding(*misses, hits=hits, details=details)


class MaxDuration(Struct, frozen=True, kw_only=True):
    """How long the run may take, from the first start to the last end.

    Attributes:
        limits: ``MAX_MS``.
    """

    limits: Mapping[str, float]

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        _check_measured(case)
        turns = case.trace.turns
        spans = [
            (turn.start / NANOSECONDS, turn.start / NANOSECONDS + turn.duration_ms)
            for turn in turns
            if turn.start is not None and turn.duration_ms is not None
        ]
        if not spans:
            raise EvaluatorError(NO_TIMES)
        taken = max(end for _, end in spans) - min(start for start, _ in spans)
        misses = _describe_excess("the run took", taken, self.limits[MAX_MS])
        if not misses and len(spans) < len(turns):
            raise EvaluatorError(
                _describe_missing(len(turns) - len(spans), len(turns), "time", "turn")
            )
        hits = (f"the run took {format_duration(taken)}",)
        return make_finding(*misses, hits=hits, details={"seconds": taken / SECOND})


def _check_measured(case: Case) -> None:
    """Check that the times are those of the model.

    Raises:
        SkippedError: they are those of a replay.
    """
    if case.trace.replayed:
        raise SkippedError(REPLAYED)


def _describe_excess(subject: str, milliseconds: float, most: float) -> tuple[str, ...]:
    if milliseconds <= most:
        return ()
    taken, limit = format_distinct_durations(milliseconds, most)
    return (f"{subject} {taken}, more than {limit}",)


def _describe_missing(missing: int, total: int, what: str, noun: str) -> str:
    return f"{missing} of {format_count(total, noun)} recorded no {what}"


class UsedTokens(Struct, frozen=True, kw_only=True):
    """Tokens of some model calls: those that are known, and how many calls do not state them.

    Attributes:
        input: with those from a cache.
        unknown, unknown_input, unknown_output: number of calls without one of both counts, without
            the input, and without the output.
        calls: number of all calls; 0 if they are unknown.
    """

    input: float
    output: float
    unknown: int
    unknown_input: int
    unknown_output: int
    calls: int

    def get(self, name: str) -> float:
        """Return the known tokens of a limit."""
        counts = {"max input": self.input, "max output": self.output}
        return counts.get(name, self.input + self.output)

    def count_unknown(self, name: str) -> int:
        """Return how many calls do not state the tokens of a limit."""
        counts = {"max input": self.unknown_input, "max output": self.unknown_output}
        return counts.get(name, self.unknown)


def _sum_usage(steps: Sequence[ModelStep]) -> UsedTokens:
    inputs = [count_input(step) for step in steps]
    outputs = [step.output_tokens for step in steps]
    return UsedTokens(
        input=sum(each for each in inputs if each is not None),
        output=sum(each for each in outputs if each is not None),
        unknown=sum(None in pair for pair in zip(inputs, outputs, strict=True)),
        unknown_input=inputs.count(None),
        unknown_output=outputs.count(None),
        calls=len(steps),
    )


class MaxTokens(Struct, frozen=True, kw_only=True):
    """How many tokens may be used.

    Attributes:
        limits: ``max total``, ``max input`` and ``max output``.
        per: ``run``, ``turn`` or ``call``.
    """

    limits: Mapping[str, float]
    per: str

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        parts = self._list_parts(case.trace)
        misses = [
            f"{subject} used {usage.get(name):,.0f} {_describe_tokens(name)}, more than {most:,.0f}"
            for subject, usage in parts
            for name, most in self.limits.items()
            if usage.get(name) > most
        ]
        if not misses:
            self._check_known(parts)
        total = _sum_parts([usage for _, usage in parts])
        return make_finding(
            *misses,
            hits=(f"{total:,.0f} tokens", *_describe_added(case.trace)),
            details={"tokens": total},
        )

    def _list_parts(self, trace: Trace) -> list[tuple[str, UsedTokens]]:
        turns = list_turns(trace)
        if self.per == "run":
            return [("the run", _measure_run(trace))]
        if self.per == "turn":
            return [
                (f"turn {number}", _sum_turn(turn)) for number, turn in enumerate(turns, start=1)
            ]
        return [
            (f"model call {number} of turn {at}", _sum_usage([step]))
            for at, turn in enumerate(turns, start=1)
            for number, step in enumerate(turn.model_steps, start=1)
        ] + [
            (f"turn {at}", _sum_turn(turn))
            for at, turn in enumerate(turns, start=1)
            if not turn.model_steps
        ]

    def _check_known(self, parts: Sequence[tuple[str, UsedTokens]]) -> None:
        calls = sum(usage.calls for _, usage in parts)
        unknown = max(sum(usage.count_unknown(name) for _, usage in parts) for name in self.limits)
        if unknown and calls:
            of = format_count(calls, "model call")
            raise EvaluatorError(f"{unknown} of {of} recorded no usage")
        if unknown:
            raise EvaluatorError("no model call recorded its usage")


def _describe_added(trace: Trace) -> tuple[str, ...]:
    steps = [step for turn in list_turns(trace) for step in turn.model_steps]
    number = sum(count_input(step) != step.input_tokens for step in steps)
    if not number:
        return ()
    calls = format_count(number, "model call")
    return (f"{calls} recorded more cached than input tokens; both were counted",)


def _describe_tokens(name: str) -> str:
    kind = name.removeprefix(MAX).strip()
    return "tokens" if kind == "total" else f"{kind} tokens"


def _sum_parts(parts: Iterable[UsedTokens]) -> float:
    return sum(usage.input + usage.output for usage in parts)


# A turn whose model calls are not known.
_UNKNOWN: Final = UsedTokens(
    input=0, output=0, unknown=1, unknown_input=1, unknown_output=1, calls=0
)


def _sum_turn(turn: Turn) -> UsedTokens:
    return _sum_usage(turn.model_steps) if turn.model_steps else _UNKNOWN


def _measure_run(trace: Trace) -> UsedTokens:
    """The tokens of a run: of its model calls, else those that are recorded for all of it."""
    turns = [_sum_turn(turn) for turn in list_turns(trace)]
    usage = trace.usage
    if any(each.unknown for each in turns) and usage is not None and not trace.subagents:
        total = add_cached(usage.input, usage.cached or 0)
        return UsedTokens(
            input=total, output=usage.output, unknown=0, unknown_input=0, unknown_output=0, calls=0
        )
    return UsedTokens(
        input=sum(each.input for each in turns),
        output=sum(each.output for each in turns),
        unknown=sum(each.unknown for each in turns),
        unknown_input=sum(each.unknown_input for each in turns),
        unknown_output=sum(each.unknown_output for each in turns),
        calls=sum(each.calls for each in turns),
    )


class MaxCost(Struct, frozen=True, kw_only=True):
    """How much the run may cost: as recorded, else tokens by their prices.

    Attributes:
        limits: ``MAX_USD``.
        prices: by patterns of models; the first that matches counts.
    """

    limits: Mapping[str, float]
    prices: tuple[tuple[str, ModelPrice], ...] = ()

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        trace = case.trace
        if trace.cost_usd is not None:
            known, missing = trace.cost_usd, ""
        else:
            known, missing = self._price(list_turns(trace))
        most = self.limits[MAX_USD]
        line = f"the run cost ${known:.6g}"
        if known > most:
            return make_finding(f"{line}, more than ${most:g}", details={"cost_usd": known})
        if missing:
            raise EvaluatorError(missing)
        return make_finding(hits=(line,), details={"cost_usd": known})

    def _price(self, turns: Sequence[Turn]) -> tuple[float, str]:
        """The known cost, and why it is not all; empty if it is."""
        steps = (step for turn in turns for step in turn.model_steps)
        known, missing = price_steps(steps, dict(self.prices))
        return known, missing if all(turn.model_steps for turn in turns) else NO_MODEL_CALLS


class MaxModelCalls(Struct, frozen=True, kw_only=True):
    """How many calls of a model there may be.

    Attributes:
        limits: ``max``.
    """

    limits: Mapping[str, float]

    def evaluate(self, case: Case) -> CheckFinding:
        """See ``CheckRule``."""
        turns = list_turns(case.trace)
        number, most = sum(len(turn.model_steps) for turn in turns), self.limits[MAX]
        line = format_count(number, "model call")
        if number > most:
            return make_finding(f"{line}, more than {most:,.0f}")
        if not all(turn.model_steps for turn in turns):
            raise EvaluatorError(NO_MODEL_CALLS)
        return make_finding(hits=(line,))
