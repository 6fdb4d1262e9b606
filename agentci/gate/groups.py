"""What each demand of a gate is held against: checks that are required, by config and evaluator."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.gate import CaseThresholds, GatePolicy, GateThresholds
from agentci.model.result import CheckResult, Status

GatedResults: TypeAlias = Sequence[tuple[GatePolicy, Sequence[CheckResult]]]

SCORED_STATUSES: Final[tuple[Status, ...]] = ("passed", "failed")


class CheckGroup(Struct, frozen=True):
    """Required checks that are held against one bar; ``prefix`` tells them from others."""

    prefix: str
    threshold: GateThresholds
    results: tuple[CheckResult, ...]

    def with_status(self, *statuses: Status) -> tuple[CheckResult, ...]:
        """Those that ended so."""
        return tuple(result for result in self.results if result.status in statuses)


class ConfigGate(Struct, frozen=True):
    """The gate of one config: what its demands are held against, each with its own groups."""

    prefix: str
    cases: CaseThresholds | None
    results: Sequence[CheckResult]
    required: tuple[CheckResult, ...]
    rate_groups: tuple[CheckGroup, ...]
    score_groups: tuple[CheckGroup, ...]
    policy_groups: tuple[CheckGroup, ...]

    def with_status(self, *statuses: Status) -> tuple[CheckResult, ...]:
        """Those that ended so."""
        return tuple(result for result in self.required if result.status in statuses)


def make_config_gates(judged: GatedResults) -> list[ConfigGate]:
    """Of all configs."""
    return [
        _make_config_gate(policy, results, alone=len(judged) == 1) for policy, results in judged
    ]


def _make_config_gate(
    policy: GatePolicy, results: Sequence[CheckResult], *, alone: bool
) -> ConfigGate:
    where = f"{results[0].config}: " if results and not alone else ""
    required = tuple(result for result in results if result.evaluator.required)

    def groups(own: Mapping[str, GateThresholds]) -> tuple[CheckGroup, ...]:
        """The checks of each evaluator in ``own``, and before them all others together."""
        others = tuple(result for result in required if _evaluator_name(result) not in own)
        return (
            CheckGroup(where, policy.overall, others),
            *(
                CheckGroup(
                    f"{where}{name}: ",
                    bar,
                    tuple(r for r in required if _evaluator_name(r) == name),
                )
                for name, bar in own.items()
            ),
        )

    bars = policy.evaluators
    return ConfigGate(
        prefix=where,
        cases=policy.cases,
        results=results,
        required=required,
        rate_groups=groups(
            {name: bar for name, bar in bars.items() if bar.min_pass_rate is not None}
        ),
        score_groups=groups({name: bar for name, bar in bars.items() if bar.min_score is not None}),
        policy_groups=groups(bars),
    )


def _evaluator_name(result: CheckResult) -> str:
    return result.evaluator.name
