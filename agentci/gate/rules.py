"""Find the reasons why the gate passes or fails, each as one sentence."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count, format_distinct, format_distinct_percents
from agentci.gate.aggregation import compute_case_scores
from agentci.gate.groups import (
    SCORED_STATUSES,
    CheckGroup,
    ConfigGate,
    GatedResults,
    make_config_gates,
)
from agentci.gate.statistics import PassRateBound, group_passes, make_pass_rate_bound
from agentci.model.problem import Problem
from agentci.model.result import CheckResult

ReasonKind: TypeAlias = Literal["input", "interrupted", "failed", "nothing", "errored", "remark"]

# Allowance for floating-point error in sums; thresholds are never this fine.
TOLERANCE = 1e-9

MAX_NAMES = 5
MAX_REASON_CHARS = 200


class GateReason(Struct, frozen=True):
    """One reason for a gate decision; a ``remark`` never fails the gate."""

    kind: ReasonKind
    text: str


def find_reasons(
    judged: GatedResults, *, problems: Sequence[Problem], uncovered: int, complete: bool
) -> list[GateReason]:
    """List all reasons, in the order of the configs."""
    gates = make_config_gates(judged)
    told = [
        *_find_input_errors(problems),
        *_find_interruption(complete=complete),
        *_find_empty_gates(gates),
    ]
    for gate in gates:
        told += [reason for group in gate.rate_groups for reason in _check_pass_rate(group)]
        told += [reason for group in gate.rate_groups for reason in _check_pass_rate_bound(group)]
        told += [reason for group in gate.score_groups for reason in _check_mean_score(group)]
        told += _check_case_scores(gate)
        told += [
            reason for group in gate.policy_groups for reason in _check_skips_and_errors(group)
        ]
    return [*told, *_check_coverage(gates, uncovered), *_check_advisory(gates)]


def format_pass_summary(judged: GatedResults) -> str:
    """The first reason shown when the gate passes."""
    required = [result for _, results in judged for result in results if result.evaluator.required]
    passed = sum(result.status == "passed" for result in required)
    total = sum(result.status in SCORED_STATUSES for result in required)
    if passed < total:
        return f"{passed:,} of {format_count(total, 'check')} passed"
    noun = "check" if total == len(required) else "judged check"
    return f"the only {noun} passed" if passed == 1 else f"all {format_count(passed, noun)} passed"


def compute_mean_score(results: Sequence[CheckResult]) -> float | None:
    """The mean score of the checks that passed or failed; None if none of them has a score."""
    scores = [
        result.judgement.score
        for result in results
        if result.status in SCORED_STATUSES
        and result.judgement is not None
        and result.judgement.score is not None
    ]
    finite = [score for score in scores if math.isfinite(score)]
    return math.fsum(finite) / len(finite) if finite else None


def _find_input_errors(problems: Sequence[Problem]) -> Iterator[GateReason]:
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
        yield GateReason("input", f"the input is broken: {errors[0]}{more}")


def _find_interruption(*, complete: bool) -> Iterator[GateReason]:
    if not complete:
        yield GateReason("interrupted", "the run was cut short before everything was judged")


def _find_empty_gates(gates: Sequence[ConfigGate]) -> Iterator[GateReason]:
    """Report gates without a passed or failed check.

    A gate is not reported if its errors already fail it, or if all its checks are advisory and
    another config has results.
    """
    if not gates:
        yield GateReason("nothing", "nothing was judged")
    anything = any(gate.with_status(*SCORED_STATUSES) for gate in gates)
    for gate in gates:
        minded = any(
            group.threshold.on_error == "fail" and group.with_status("errored")
            for group in gate.policy_groups
        )
        only_advises = gate.results and not gate.required and anything
        if not (gate.with_status(*SCORED_STATUSES) or minded or only_advises):
            has_advice = any(result.status in SCORED_STATUSES for result in gate.results)
            none = "no required check was judged" if has_advice else "nothing was judged"
            yield GateReason("nothing", f"{gate.prefix}{none}")
        else:
            own = {group.prefix: group for group in (*gate.rate_groups[1:], *gate.score_groups[1:])}
            for group in own.values():
                if group.results and not group.with_status(*SCORED_STATUSES, "errored"):
                    yield GateReason("nothing", f"{group.prefix}nothing was judged")


def _check_pass_rate(group: CheckGroup) -> Iterator[GateReason]:
    failed, judged = len(group.with_status("failed")), len(group.with_status(*SCORED_STATUSES))
    if not failed:
        return
    least, rate = group.threshold.min_pass_rate or 0.0, (judged - failed) / judged
    written, bar = format_distinct_percents(rate, least)
    text = (
        f"{group.prefix}{failed:,} of {format_count(judged, 'check')} failed: pass rate "
        f"{written} is"
    )
    if rate < least - TOLERANCE:
        yield GateReason("failed", f"{text} below {bar}")
    else:
        yield GateReason("remark", f"{text} at least {bar}")


def _check_pass_rate_bound(group: CheckGroup) -> Iterator[GateReason]:
    bar, passes = group.threshold, group_passes(group.with_status(*SCORED_STATUSES))
    if proof := make_pass_rate_bound(passes, bar.min_pass_rate, bar.pass_rate_confidence):
        yield _make_bound_reason(group.prefix, proof)


def _make_bound_reason(where: str, proof: PassRateBound) -> GateReason:
    return GateReason("remark" if proof.is_reached else "failed", f"{where}{proof.summary}")


def _check_mean_score(group: CheckGroup) -> Iterator[GateReason]:
    least = group.threshold.min_score
    if least is None or not group.with_status(*SCORED_STATUSES):
        return
    mean = compute_mean_score(group.results)
    if mean is None:
        yield GateReason("failed", f"{group.prefix}no check has a score, and a mean is asked for")
    elif mean < least - TOLERANCE:
        written, bar = format_distinct(mean, least)
        yield GateReason("failed", f"{group.prefix}mean score {written} is below {bar}")


def _check_case_scores(gate: ConfigGate) -> Iterator[GateReason]:
    """Report cases below the score threshold; cases without a score are reported elsewhere."""
    if gate.cases is None:
        return
    scores, cases = compute_case_scores(gate.results), gate.cases
    passes = (score >= cases.threshold - TOLERANCE for score in scores.values())
    if proof := make_pass_rate_bound(passes, cases.min_pass_rate, cases.pass_rate_confidence):
        yield _make_bound_reason(gate.prefix, proof)
    fallen = {k: v for k, v in scores.items() if v < gate.cases.threshold - TOLERANCE}
    if not fallen:
        return
    least, rate = gate.cases.min_pass_rate, 1 - len(fallen) / len(scores)
    written, bar = format_distinct_percents(rate, least)
    worst = sorted(fallen, key=lambda case_id: fallen[case_id])
    names = ", ".join(
        truncate.truncate_list([f"{each} {fallen[each]:.3g}" for each in worst], MAX_NAMES)
    )
    told = f"{gate.prefix}{len(fallen):,} of {format_count(len(scores), 'case')} scored below"
    text = f"{told} {gate.cases.threshold:g} ({names}): pass rate {written} is"
    if rate < least - TOLERANCE:
        yield GateReason("failed", f"{text} below {bar}")
    else:
        yield GateReason("remark", f"{text} at least {bar}")


def _check_skips_and_errors(group: CheckGroup) -> Iterator[GateReason]:
    if skipped := group.with_status("skipped"):
        text = (
            f"{group.prefix}{format_count(len(skipped), 'check')} had nothing to "
            f"judge{_format_evaluator_names(skipped)}"
        )
        text += _format_shared_reason(skipped)
        yield GateReason("failed" if group.threshold.on_skip == "fail" else "remark", text)
    if errored := group.with_status("errored"):
        text = (
            f"{group.prefix}{format_count(len(errored), 'check')} could not be "
            f"judged{_format_evaluator_names(errored)}"
        )
        minded = group.threshold.on_error == "fail"
        yield (
            GateReason("errored", text)
            if minded
            else GateReason("remark", f"{text}: a warning only")
        )


def _check_coverage(gates: Sequence[ConfigGate], uncovered: int) -> Iterator[GateReason]:
    if uncovered:
        minded = any(gate.policy_groups[0].threshold.on_skip == "fail" for gate in gates)
        text = f"{format_count(uncovered, 'golden case')} matched by no recording"
        yield GateReason("failed" if minded else "remark", text)


def _check_advisory(gates: Sequence[ConfigGate]) -> Iterator[GateReason]:
    fallen = [
        result
        for gate in gates
        for result in gate.results
        if not result.evaluator.required and result.status in {"failed", "errored"}
    ]
    if fallen:
        text = (
            f"{format_count(len(fallen), 'advisory check')} did not "
            f"pass{_format_evaluator_names(fallen)}"
        )
        yield GateReason("remark", text)


def _format_evaluator_names(results: Sequence[CheckResult]) -> str:
    names = list(dict.fromkeys(result.evaluator.name for result in results))
    return f" ({', '.join(truncate.truncate_list(names, MAX_NAMES))})"


def _format_shared_reason(results: Sequence[CheckResult]) -> str:
    """The reason of all ``results`` if they share one; otherwise empty."""
    told = {escape.flatten_line(result.reason or "") for result in results}
    return (
        f": {truncate.short(told.pop(), MAX_REASON_CHARS)}"
        if len(told) == 1 and "" not in told
        else ""
    )
