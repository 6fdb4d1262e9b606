"""Turn a comparison with a baseline into reasons for the gate decision."""

from collections.abc import Iterator, Mapping, Sequence

from agentci.gate.comparison import describe_outcome
from agentci.gate.rules import GateReason
from agentci.model.gate import Comparison, ComparisonOutcome, Gate, RegressionThresholds

NO_BASELINE = "no baseline found; `max_regression` needs one"
# Outcomes that neither show nor exclude a drop.
UNDECIDED = ("inconclusive", "insufficient-data")


def find_regression_reasons(
    comparison: Comparison | None, gates: Sequence[Gate]
) -> Iterator[GateReason]:
    """List the regressions that fail the gate, and those that are only reported.

    Args:
        gates: the gates of all configs; a gate without regression thresholds adds no reason.
    """
    by_config = find_regression_thresholds(gates)
    if comparison is None or comparison.not_comparable:
        text = NO_BASELINE if comparison is None else comparison.not_comparable
        yield from _make_overall_reason(by_config, "non-comparable", text)
        return
    if comparison.stale:
        yield from _make_overall_reason(by_config, "stale", comparison.stale)
    several = len({each.config for each in comparison.evaluators}) > 1
    for each in comparison.evaluators:
        thresholds = by_config.get(each.config)
        if thresholds is None or each.outcome == "pass":
            continue
        unproven = thresholds.mode == "prove" and each.outcome in UNDECIDED
        fails = each.required and (unproven or each.outcome in thresholds.fail_on)
        prefix = f"{each.config}: " if several else ""
        text = f"{prefix}{each.evaluator} {describe_outcome(each)}"
        yield GateReason("failed" if fails else "remark", text)


def _make_overall_reason(
    by_config: Mapping[str, RegressionThresholds], outcome: ComparisonOutcome, text: str
) -> Iterator[GateReason]:
    """One reason for all configs; it fails the gate if any config lists ``outcome`` as failing."""
    if by_config:
        fails = any(outcome in each.fail_on for each in by_config.values())
        yield GateReason("failed" if fails else "remark", text)


def find_regression_thresholds(gates: Sequence[Gate]) -> dict[str, RegressionThresholds]:
    """The regression thresholds by config, for the configs that set them."""
    policies = ((gate.config, gate.policy.regression) for gate in gates)
    return {config: thresholds for config, thresholds in policies if thresholds is not None}
