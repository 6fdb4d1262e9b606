"""Decides whether the gate opens, and says why."""

from collections.abc import Sequence

from agentci.model.choices import FailOn
from agentci.model.problem import Problem
from agentci.model.result import (
    EXIT_INVALID,
    EXIT_SHUT,
    EXIT_UNJUDGED,
    Decision,
    Result,
    Totals,
)
from agentci.reasons import Judged, Kind, mean_score, praise, reasons


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


def decide(
    judged: Judged,
    *,
    problems: Sequence[Problem],
    uncovered: int,
    complete: bool,
    fail_on: FailOn,
) -> Decision:
    """Hold the results of every config against its policy; all of them have to reach it.

    Args:
        judged: the policy and the results of each config.
        problems: of all configs and recordings; one error among them makes the input unusable.
        uncovered: golden cases that no recording matched.
        complete: False where the run was broken off, which never opens the gate.
        fail_on: which reasons may shut the gate: ``error`` spares the failures, ``never`` all
            but broken input and a run that was broken off.
    """
    told = reasons(judged, problems=problems, uncovered=uncovered, complete=complete)
    shutting = [reason for reason in told if reason.kind in _SHUTS[fail_on]]
    shutting.sort(key=lambda reason: _WEIGHT.index(reason.kind))
    spared = [reason for reason in told if reason.kind not in (*_SHUTS[fail_on], "remark")]
    return Decision(
        open=not shutting,
        exit_code=_EXIT_CODE[shutting[0].kind] if shutting else 0,
        why=(
            *(reason.text for reason in shutting),
            *(f"{reason.text}; reported only (fail-on: {fail_on})" for reason in spared),
            *(() if shutting or spared else (praise(judged),)),
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
