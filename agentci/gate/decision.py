"""The decision of the gate, from the reasons that its rules yield."""

from collections.abc import Sequence
from typing import TypeVar

from agentci.gate.rules import (
    ALL_COVERED,
    NO_REQUIRED_EVALUATED,
    Coverage,
    GateReason,
    ReasonKind,
    ResultsByPolicy,
    compute_mean_score,
    find_reasons,
    format_pass_summary,
)
from agentci.model.gate import CaseThresholds, GatePolicy, GateThresholds
from agentci.model.result import (
    EXIT_ERRORED,
    EXIT_GATE_FAILED,
    EXIT_INVALID_INPUT,
    SCORED_STATUSES,
    CheckResult,
    Decision,
    Shard,
    Totals,
)
from agentci.model.values import FailOn, Problem, replace

ThresholdT = TypeVar("ThresholdT", GateThresholds, CaseThresholds)


def compute_totals(results: Sequence[CheckResult]) -> Totals:
    """Count ``results`` by status and compute the mean score of those that passed or failed.

    Skipped checks are left out of the mean: evaluators often return a score of 0 for them.
    """
    statuses = [result.status for result in results]
    return Totals(
        checks=len(statuses),
        passed=statuses.count("passed"),
        failed=statuses.count("failed"),
        errored=statuses.count("errored"),
        skipped=statuses.count("skipped"),
        score=compute_mean_score(results),
    )


def decide(
    results_by_policy: ResultsByPolicy,
    *,
    problems: Sequence[Problem],
    complete: bool,
    fail_on: FailOn,
    coverage: Coverage = ALL_COVERED,
    also: Sequence[GateReason] = (),
) -> Decision:
    """Check the results of every config against its policy; the gate passes if all configs do.

    Args:
        results_by_policy: the policy and the results of each config.
        problems: problems in all configs and recorded runs; any error makes the input invalid.
        complete: False if the run was interrupted, which always fails the gate.
        fail_on: which reasons may fail the gate: ``error`` ignores failed checks, ``never``
            ignores everything except invalid input and an interrupted run.
        also: further reasons, such as those from a comparison with a baseline.
    """
    reasons = find_reasons(
        results_by_policy, problems=problems, coverage=coverage, complete=complete
    )
    return _make_decision([*reasons, *also], format_pass_summary(results_by_policy), fail_on)


def decide_shard(
    results_by_policy: ResultsByPolicy,
    *,
    shard: Shard,
    problems: Sequence[Problem],
    complete: bool,
    fail_on: FailOn,
) -> Decision:
    """Check the results of one shard against the policies.

    A shard can fail the gate but cannot pass it. A config without results in this shard is not a
    failure, since other shards may have its results.
    """
    results_by_policy = [
        (_drop_pass_rate_confidence(policy), results) for policy, results in results_by_policy
    ]
    reasons = find_reasons(
        results_by_policy, problems=problems, coverage=ALL_COVERED, complete=complete
    )
    own = [reason for reason in reasons if reason.kind != "not_evaluated"]
    decision = _make_decision(own, _format_shard_summary(results_by_policy), fail_on)
    note = f"results of {shard} only; `agentci merge` decides for all shards"
    return replace(decision, passed=False, reasons=(*decision.reasons, note))


def _drop_pass_rate_confidence(policy: GatePolicy) -> GatePolicy:
    """Remove ``pass_rate_confidence``: one shard has too few cases to reach it."""

    def drop(thresholds: ThresholdT) -> ThresholdT:
        return replace(thresholds, pass_rate_confidence=None)

    return replace(
        policy,
        overall=drop(policy.overall),
        evaluators={name: drop(each) for name, each in policy.evaluators.items()},
        cases=None if policy.cases is None else drop(policy.cases),
    )


def _format_shard_summary(results_by_policy: ResultsByPolicy) -> str:
    results = [each for _, group in results_by_policy for each in group]
    if not results:
        return "no checks in this shard"
    if not any(each.evaluator.required and each.status in SCORED_STATUSES for each in results):
        return NO_REQUIRED_EVALUATED
    return format_pass_summary(results_by_policy)


def _make_decision(reasons: Sequence[GateReason], pass_summary: str, fail_on: FailOn) -> Decision:
    shown = [each.text for each in reasons if each.kind in ("worse", "unknown")]
    unknown = [GateReason("remark", each.text) for each in reasons if each.kind == "unknown"]
    reasons = [each for each in reasons if each.kind not in ("worse", "unknown")]
    failing = [each for each in reasons if each.kind in _FAILING_KINDS[fail_on]]
    failing.sort(key=lambda each: _KINDS_BY_PRIORITY.index(each.kind))
    ignored = [each for each in reasons if each.kind not in (*_FAILING_KINDS[fail_on], "remark")]
    note = f"; reported only (fail-on: {fail_on})"
    reported_only = [f"{each.text}{note}" for each in ignored]
    errored = {each.text: each.errored for each in failing if each.errored}
    errored |= {f"{each.text}{note}": f"{each.errored}{note}" for each in ignored if each.errored}
    if failing or ignored:
        reasons += unknown
    return Decision(
        passed=not failing,
        exit_code=_EXIT_CODES[failing[0].kind] if failing else 0,
        reasons=(
            *(each.text for each in failing),
            *reported_only,
            *(() if failing or ignored else (", ".join([pass_summary, *shown]),)),
        ),
        notes=tuple(each.text for each in reasons if each.kind == "remark"),
        unlisted_notes=tuple(
            each.text for each in reasons if each.kind == "remark" and not each.shown_elsewhere
        ),
        fail_on=fail_on,
        reported_only=tuple(reported_only),
        errored=errored,
    )


_KINDS_BY_PRIORITY: tuple[ReasonKind, ...] = (
    "input",
    "interrupted",
    "failed",
    "not_evaluated",
    "errored",
)
_EXIT_CODES: dict[ReasonKind, int] = {
    "input": EXIT_INVALID_INPUT,
    "interrupted": EXIT_GATE_FAILED,
    "failed": EXIT_GATE_FAILED,
    "not_evaluated": EXIT_GATE_FAILED,
    "errored": EXIT_ERRORED,
}
_FAILING_KINDS: dict[FailOn, tuple[ReasonKind, ...]] = {
    "never": ("input", "interrupted"),
    "error": ("input", "interrupted", "not_evaluated", "errored"),
    "failed": _KINDS_BY_PRIORITY,
}
