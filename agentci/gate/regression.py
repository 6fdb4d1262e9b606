"""Turn a comparison with a baseline into reasons for the gate decision."""

from collections.abc import Iterator, Mapping, Sequence

from agentci.gate.comparison import describe_outcome, describe_worse
from agentci.gate.rules import GateReason, ReasonKind
from agentci.model.gate import (
    Comparison,
    ComparisonOutcome,
    EvaluatorComparison,
    Gate,
    RegressionThresholds,
)

NO_BASELINE = "no baseline found; `max_regression` needs one"


def find_regression_reasons(
    comparison: Comparison | None, gates: Sequence[Gate]
) -> Iterator[GateReason]:
    """List what got worse than the baseline: what fails the gate, and what is only reported.

    Checks that no longer pass are reported in any case; outcomes only with regression thresholds.

    Args:
        gates: the gates of all configs.
    """
    by_config = {gate.config: gate.policy.regression for gate in gates if gate.policy.regression}
    if comparison is None or comparison.not_comparable:
        text = NO_BASELINE if comparison is None else comparison.not_comparable
        yield from _make_overall_reason(by_config, "non-comparable", text)
        return
    if comparison.stale:
        yield from _make_overall_reason(by_config, "stale", comparison.stale)
    several = len({each.config for each in comparison.evaluators}) > 1
    strict = {gate.config for gate in gates if gate.policy.on_removed == "fail"}
    for each in comparison.evaluators:
        prefix = f"{each.config}: " if several else ""
        thresholds = by_config.get(each.config)
        if thresholds is not None and each.outcome != "pass":
            fails = each.required and _fails_gate(each, thresholds)
            text = f"{prefix}{each.evaluator} {describe_outcome(each)}"
            yield GateReason(_failing_kind(each) if fails else "remark", text)
        if each.worse:
            removed = any(change.status == "removed" for change in each.worse)
            fails = each.required and removed and each.config in strict
            text = f"{prefix}{each.evaluator}: {describe_worse(each)}"
            yield GateReason("failed" if fails else "remark", text)


def _fails_gate(compared: EvaluatorComparison, thresholds: RegressionThresholds) -> bool:
    if thresholds.mode == "prove" and compared.outcome != "pass":
        # Nothing can be shown about an evaluator that the baseline does not have.
        added = compared.classes.added
        return compared.outcome != "non-comparable" or compared.classes.total > added
    return compared.outcome in thresholds.fail_on


def _failing_kind(compared: EvaluatorComparison) -> ReasonKind:
    """Errors alone do not show that the agent got worse."""
    statuses = {each.status for each in compared.worse}
    return "errored" if statuses == {"errored"} else "failed"


def _make_overall_reason(
    by_config: Mapping[str, RegressionThresholds], outcome: ComparisonOutcome, text: str
) -> Iterator[GateReason]:
    """One reason for all configs; it fails the gate if any config lists ``outcome`` as failing."""
    if by_config:
        fails = any(outcome in each.fail_on for each in by_config.values())
        yield GateReason("failed" if fails else "remark", text)
