"""Decides whether the gate opens, and says why."""

from collections.abc import Sequence
from typing import TypeVar

from agentci.gate.groups import JUDGED, Judged
from agentci.gate.rules import Kind, Reason, mean_score, praise, reasons
from agentci.model.choices import FailOn
from agentci.model.policy import Bar, CaseBar, Gate, GatePolicy
from agentci.model.problem import Problem
from agentci.model.result import (
    EXIT_INVALID,
    EXIT_SHUT,
    EXIT_UNJUDGED,
    Decision,
    Result,
    Totals,
)
from agentci.model.shard import Shard
from agentci.model.values import replace

B = TypeVar("B", Bar, CaseBar)


def totals(results: Sequence[Result]) -> Totals:
    """Count ``results`` and take the mean score of those that passed or failed.

    What declined to judge often says 0 beside it, and has judged nothing.
    """
    statuses = [result.status for result in results]
    return Totals(
        checks=len(statuses),
        passed=statuses.count("passed"),
        failed=statuses.count("failed"),
        errored=statuses.count("errored"),
        skipped=statuses.count("skipped"),
        score=mean_score(results),
    )


def judged_by(gates: Sequence[Gate], results: Sequence[Result]) -> Judged:
    """The policy of every config with its results; all results are of these configs."""
    by_config: dict[str, list[Result]] = {gate.config: [] for gate in gates}
    for result in results:
        by_config[result.config].append(result)
    return [(gate.policy, by_config[gate.config]) for gate in gates]


def decide(
    judged: Judged,
    *,
    problems: Sequence[Problem],
    uncovered: int,
    complete: bool,
    fail_on: FailOn,
    also: Sequence[Reason] = (),
) -> Decision:
    """Hold the results of every config against its policy; all of them have to reach it.

    Args:
        judged: the policy and the results of each config.
        problems: of all configs and recordings; one error among them makes the input unusable.
        uncovered: golden cases that no recording matched.
        complete: False where the run was broken off, which never opens the gate.
        fail_on: which reasons may shut the gate: ``error`` spares the failures, ``never`` all
            but broken input and a run that was broken off.
        also: what else speaks for and against it, as a comparison with a baseline does.
    """
    told = reasons(judged, problems=problems, uncovered=uncovered, complete=complete)
    return _decision([*told, *also], praise(judged), fail_on)


def decide_shard(
    judged: Judged,
    *,
    shard: Shard,
    problems: Sequence[Problem],
    complete: bool,
    fail_on: FailOn,
) -> Decision:
    """Hold the results of one shard against the policies, as far as that makes sense alone.

    It shuts the gate by what was judged in it; what was not may have been judged in another. It
    never opens the gate.
    """
    judged = [(_without_proofs(policy), results) for policy, results in judged]
    told = reasons(judged, problems=problems, uncovered=0, complete=complete)
    own = [reason for reason in told if reason.kind != "nothing"]
    decision = _decision(own, _praise_of_part(judged), fail_on)
    over_all = f"this is {shard}: `agentci merge` decides over all of them"
    return replace(decision, open=False, why=(*decision.why, over_all))


def _without_proofs(policy: GatePolicy) -> GatePolicy:
    """What can be asked of a part: it has too few cases to prove what all of them may."""

    def loose(bar: B) -> B:
        return replace(bar, pass_rate_confidence=None)

    return replace(
        policy,
        overall=loose(policy.overall),
        evaluators={name: loose(bar) for name, bar in policy.evaluators.items()},
        cases=None if policy.cases is None else loose(policy.cases),
    )


def _praise_of_part(judged: Judged) -> str:
    results = [result for _, group in judged for result in group]
    if not results:
        return "no check falls into it"
    if not any(result.evaluator.required and result.status in JUDGED for result in results):
        return "no required check was judged"
    return praise(judged)


def _decision(told: Sequence[Reason], otherwise: str, fail_on: FailOn) -> Decision:
    shutting = [reason for reason in told if reason.kind in _SHUTS[fail_on]]
    shutting.sort(key=lambda reason: _WEIGHT.index(reason.kind))
    spared = [reason for reason in told if reason.kind not in (*_SHUTS[fail_on], "remark")]
    return Decision(
        open=not shutting,
        exit_code=_EXIT_CODE[shutting[0].kind] if shutting else 0,
        why=(
            *(reason.text for reason in shutting),
            *(f"{reason.text}; reported only (fail-on: {fail_on})" for reason in spared),
            *(() if shutting or spared else (otherwise,)),
            *(reason.text for reason in told if reason.kind == "remark"),
        ),
    )


_WEIGHT: tuple[Kind, ...] = ("input", "interrupted", "failed", "nothing", "errored")
_EXIT_CODE: dict[Kind, int] = {
    "input": EXIT_INVALID,
    "interrupted": EXIT_SHUT,
    "failed": EXIT_SHUT,
    "nothing": EXIT_SHUT,
    "errored": EXIT_UNJUDGED,
}
_SHUTS: dict[FailOn, tuple[Kind, ...]] = {
    "never": ("input", "interrupted"),
    "error": ("input", "interrupted", "nothing", "errored"),
    "failed": _WEIGHT,
}
