"""What a comparison with a baseline has to say to the gate."""

from collections.abc import Iterator, Mapping, Sequence

from agentci.gate.rules import Reason
from agentci.model.comparison import Comparison, Outcome, RegressionBar, Trend
from agentci.model.policy import Gate

NO_BASELINE = "there is no baseline to compare with, though `max_regression` asks for one"


def reasons_of(comparison: Comparison | None, gates: Sequence[Gate]) -> Iterator[Reason]:
    """What shuts the gate, and what is worth a remark beside it.

    Args:
        gates: of all configs; those without a bar are only informed.
    """
    held = bars_of(gates)
    if comparison is None or comparison.refused:
        why = NO_BASELINE if comparison is None else comparison.refused
        yield from _as_a_whole(held, "non-comparable", why)
        return
    if comparison.stale:
        yield from _as_a_whole(held, "stale", comparison.stale)
    several = len({trend.config for trend in comparison.trends}) > 1
    for trend in comparison.trends:
        bar = held.get(trend.config)
        if bar is None or trend.outcome == "pass":
            continue
        shuts = trend.required and trend.outcome in bar.shuts
        yield Reason(
            "failed" if shuts else "remark",
            _said(trend, where=f"{trend.config}: " if several else ""),
        )


def _as_a_whole(held: Mapping[str, RegressionBar], outcome: Outcome, why: str) -> Iterator[Reason]:
    """What is so for all evaluators of all configs, and shuts the gate where one of them minds."""
    if held:
        shuts = any(outcome in bar.shuts for bar in held.values())
        yield Reason("failed" if shuts else "remark", why)


def _said(trend: Trend, *, where: str) -> str:
    return f"{where}{trend.evaluator} against the baseline: {trend.outcome} ({trend.why})"


def bars_of(gates: Sequence[Gate]) -> dict[str, RegressionBar]:
    """How much worse a run may be, by the configs that say so."""
    bars = ((gate.config, gate.policy.regression) for gate in gates)
    return {config: bar for config, bar in bars if bar is not None}
