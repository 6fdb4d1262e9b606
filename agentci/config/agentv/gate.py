"""The gate of an eval file, which may look at whole cases."""

from collections.abc import Collection, Sequence

from agentci.config.build import gate_policy
from agentci.config.models import EvalFileGateSpec
from agentci.model.policy import CaseBar, GatePolicy
from agentci.model.values import replace


def policy_of(
    gate: EvalFileGateSpec, names: Sequence[str], *, vital: Collection[str], line: float
) -> GatePolicy:
    """The policy over the evaluators ``names``.

    Args:
        vital: names of those that say of themselves that they are required.
        line: the score that passes, where nothing else is said.
    """
    policy = gate_policy(gate, names)
    if gate.cases is None:
        return policy
    threshold = line if gate.cases.threshold is None else gate.cases.threshold
    loose = replace(policy.overall, min_pass_rate=0.0, min_score=None)
    strict = {
        name: replace(loose, min_pass_rate=1.0)
        for name in names
        if name in vital and name not in policy.evaluators
    }
    overall = policy.overall
    if "min_pass_rate" not in gate.model_fields_set:
        overall = replace(overall, min_pass_rate=0.0)
    return GatePolicy(
        overall=overall,
        evaluators={**policy.evaluators, **strict},
        cases=CaseBar(
            threshold=threshold,
            min_pass_rate=gate.cases.min_pass_rate,
            pass_rate_confidence=gate.cases.pass_rate_confidence,
        ),
    )
