"""Turn a comparison with a baseline into reasons for the gate decision."""

from collections.abc import Iterator, Mapping, Sequence

from agentci.gate.rules import GateReason
from agentci.model.gate import (
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    Gate,
    RegressionThresholds,
)

NO_BASELINE = "there is no baseline to compare with, though `max_regression` asks for one"


def find_regression_reasons(
    comparison: Comparison | None, gates: Sequence[Gate]
) -> Iterator[GateReason]:
    """List the regressions that fail the gate, and those that are only reported.

    Args:
        gates: the gates of all configs; a gate without regression thresholds adds no reason.
    """
    held = find_regression_thresholds(gates)
    if comparison is None or comparison.not_comparable:
        why = NO_BASELINE if comparison is None else comparison.not_comparable
        yield from _make_overall_reason(held, "non-comparable", why)
        return
    if comparison.stale:
        yield from _make_overall_reason(held, "stale", comparison.stale)
    several = len({trend.config for trend in comparison.evaluators}) > 1
    for trend in comparison.evaluators:
        bar = held.get(trend.config)
        if bar is None or trend.outcome == "pass":
            continue
        fails = trend.required and trend.outcome in bar.fail_on
        yield GateReason(
            "failed" if fails else "remark",
            _format_trend(trend, where=f"{trend.config}: " if several else ""),
        )


def _make_overall_reason(
    held: Mapping[str, RegressionThresholds], outcome: ComparisonOutcome, why: str
) -> Iterator[GateReason]:
    """One reason for all configs; it fails the gate if any config lists ``outcome`` as failing."""
    if held:
        fails = any(outcome in bar.fail_on for bar in held.values())
        yield GateReason("failed" if fails else "remark", why)


def _format_trend(trend: EvaluatorComparison, *, where: str) -> str:
    return f"{where}{trend.evaluator} against the baseline: {trend.outcome} ({trend.reason})"


def find_regression_thresholds(gates: Sequence[Gate]) -> dict[str, RegressionThresholds]:
    """The regression thresholds by config, for the configs that set them."""
    bars = ((gate.config, gate.policy.regression) for gate in gates)
    return {config: bar for config, bar in bars if bar is not None}
