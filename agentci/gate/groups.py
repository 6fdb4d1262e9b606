"""What each demand of a gate is held against: checks that are required, by config and evaluator."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.policy import Bar, CaseBar, GatePolicy
from agentci.model.result import Result, Status

Judged: TypeAlias = Sequence[tuple[GatePolicy, Sequence[Result]]]

JUDGED: Final[tuple[Status, ...]] = ("passed", "failed")


class Group(Struct, frozen=True):
    """Required checks that are held against one bar; ``where`` tells them from others."""

    where: str
    bar: Bar
    results: tuple[Result, ...]

    def of(self, *statuses: Status) -> tuple[Result, ...]:
        """Those that ended so."""
        return tuple(result for result in self.results if result.status in statuses)


class Demands(Struct, frozen=True):
    """The gate of one config: what its demands are held against, each with its own groups."""

    where: str
    cases: CaseBar | None
    results: Sequence[Result]
    required: tuple[Result, ...]
    rates: tuple[Group, ...]
    scores: tuple[Group, ...]
    minds: tuple[Group, ...]

    def of(self, *statuses: Status) -> tuple[Result, ...]:
        """Those that ended so."""
        return tuple(result for result in self.required if result.status in statuses)


def demands_of(judged: Judged) -> list[Demands]:
    """Of all configs."""
    return [_demands(policy, results, alone=len(judged) == 1) for policy, results in judged]


def _demands(policy: GatePolicy, results: Sequence[Result], *, alone: bool) -> Demands:
    where = f"{results[0].config}: " if results and not alone else ""
    required = tuple(result for result in results if result.evaluator.required)

    def groups(own: Mapping[str, Bar]) -> tuple[Group, ...]:
        """The checks of each evaluator in ``own``, and before them all others together."""
        others = tuple(result for result in required if _by(result) not in own)
        return (
            Group(where, policy.overall, others),
            *(
                Group(f"{where}{name}: ", bar, tuple(r for r in required if _by(r) == name))
                for name, bar in own.items()
            ),
        )

    bars = policy.evaluators
    return Demands(
        where=where,
        cases=policy.cases,
        results=results,
        required=required,
        rates=groups({name: bar for name, bar in bars.items() if bar.min_pass_rate is not None}),
        scores=groups({name: bar for name, bar in bars.items() if bar.min_score is not None}),
        minds=groups(bars),
    )


def _by(result: Result) -> str:
    return result.evaluator.name
