"""Decides whether the gate opens, and says why."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentci.model.choices import FailOn
from agentci.model.policy import Bar, GatePolicy
from agentci.model.problem import Problem
from agentci.model.result import Decision, Result, Status, Totals
from agentci.text import clip
from agentci.text.words import apart, count, percents_apart

# Sums of floats are off by less than this; people's bars are never this fine.
TOLERANCE = 1e-9

MAX_NAMES = 5


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
        score=_mean_score(results),
    )


def decide(
    judged: Sequence[tuple[GatePolicy, Sequence[Result]]],
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
        fail_on: which findings may shut the gate: ``error`` spares the failures, ``never`` all
            but broken input and a run that was broken off.
    """
    gates = [_gate(policy, results, alone=len(judged) == 1) for policy, results in judged]
    findings = [*_input(problems), *_interruption(complete=complete), *_nothing(gates)]
    for group in (group for gate in gates for group in gate.groups):
        findings += [*_pass_rate(group), *_score(group), *_skips(group), *_errors(group)]
    findings += [*_coverage(gates, uncovered), *_advice(gates)]

    shutting = [finding for finding in findings if finding.kind in _SHUTS[fail_on]]
    shutting.sort(key=lambda finding: _WEIGHT.index(finding.kind))
    spared = [f for f in findings if f.kind not in (*_SHUTS[fail_on], "remark")]
    return Decision(
        open=not shutting,
        exit_code=_EXIT_CODE[shutting[0].kind] if shutting else 0,
        why=(
            *(finding.text for finding in shutting),
            *(f"{finding.text}; reported only (fail-on: {fail_on})" for finding in spared),
            *(() if shutting or spared else (_praise(gates),)),
            *(finding.text for finding in findings if finding.kind == "remark"),
        ),
    )


_Kind: TypeAlias = Literal["input", "interrupted", "failed", "nothing", "errored", "remark"]

_JUDGED: tuple[Status, ...] = ("passed", "failed")
_WEIGHT: tuple[_Kind, ...] = ("input", "interrupted", "failed", "nothing", "errored")
_EXIT_CODE: dict[_Kind, int] = {
    "input": 2,
    "interrupted": 1,
    "failed": 1,
    "nothing": 1,
    "errored": 3,
}
_SHUTS: dict[FailOn, tuple[_Kind, ...]] = {
    "never": ("input", "interrupted"),
    "error": ("input", "interrupted", "nothing", "errored"),
    "failed": _WEIGHT,
}


@dataclass(frozen=True, slots=True)
class _Finding:
    """One reason; a ``remark`` never shuts the gate."""

    kind: _Kind
    text: str


@dataclass(frozen=True, slots=True)
class _Group:
    """Required checks that are held against one bar; ``where`` tells them from others."""

    where: str
    bar: Bar
    results: tuple[Result, ...]

    def of(self, *statuses: Status) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.status in statuses)


@dataclass(frozen=True, slots=True)
class _Gate:
    """The gate of one config: the checks without a bar of their own, then those that have one."""

    where: str
    results: Sequence[Result]
    groups: tuple[_Group, ...]

    @property
    def required(self) -> tuple[Result, ...]:
        return tuple(result for group in self.groups for result in group.results)

    def of(self, *statuses: Status) -> tuple[Result, ...]:
        return tuple(result for group in self.groups for result in group.of(*statuses))


def _gate(policy: GatePolicy, results: Sequence[Result], *, alone: bool) -> _Gate:
    where = f"{results[0].config}: " if results and not alone else ""
    members: dict[str | None, list[Result]] = {None: [], **{name: [] for name in policy.evaluators}}
    for result in results:
        if result.required:
            members[result.evaluator if result.evaluator in members else None].append(result)
    own = ((f"{where}{name}: ", bar, name) for name, bar in policy.evaluators.items())
    groups = tuple(
        _Group(label, bar, tuple(members[name]))
        for label, bar, name in ((where, policy.overall, None), *own)
    )
    return _Gate(where, results, groups)


def _input(problems: Sequence[Problem]) -> Iterator[_Finding]:
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
        yield _Finding("input", f"the input is broken: {errors[0]}{more}")


def _interruption(*, complete: bool) -> Iterator[_Finding]:
    if not complete:
        yield _Finding("interrupted", "the run was broken off before everything was judged")


def _nothing(gates: Sequence[_Gate]) -> Iterator[_Finding]:
    """Gates that judged nothing; errors that are minded say enough, advice needs no gate."""
    if not gates:
        yield _Finding("nothing", "nothing was judged")
    anything = any(gate.of(*_JUDGED) for gate in gates)
    for gate in gates:
        minded = any(group.bar.on_error == "fail" and group.of("errored") for group in gate.groups)
        only_advises = gate.results and not gate.required and anything
        if not (gate.of(*_JUDGED) or minded or only_advises):
            yield _Finding("nothing", f"{gate.where}nothing was judged")


def _pass_rate(group: _Group) -> Iterator[_Finding]:
    failed, judged = len(group.of("failed")), len(group.of(*_JUDGED))
    if not failed:
        return
    least, rate = group.bar.min_pass_rate, (judged - failed) / judged
    written, bar = percents_apart(rate, least)
    text = f"{group.where}{failed:,} of {count(judged, 'check')} failed: pass rate {written} is"
    if rate < least - TOLERANCE:
        yield _Finding("failed", f"{text} below {bar}")
    else:
        yield _Finding("remark", f"{text} at least {bar}")


def _score(group: _Group) -> Iterator[_Finding]:
    least = group.bar.min_score
    if least is None or not group.of(*_JUDGED):
        return
    mean = _mean_score(group.results)
    if mean is None:
        yield _Finding("failed", f"{group.where}no check has a score, and a mean is asked for")
    elif mean < least - TOLERANCE:
        written, bar = apart(mean, least)
        yield _Finding("failed", f"{group.where}mean score {written} is below {bar}")


def _errors(group: _Group) -> Iterator[_Finding]:
    if errored := group.of("errored"):
        text = f"{group.where}{count(len(errored), 'check')} could not be judged{_names(errored)}"
        minded = group.bar.on_error == "fail"
        yield _Finding("errored", text) if minded else _Finding("remark", f"{text}: a warning only")


def _skips(group: _Group) -> Iterator[_Finding]:
    if skipped := group.of("skipped"):
        text = f"{group.where}{count(len(skipped), 'check')} had nothing to judge{_names(skipped)}"
        yield _Finding("failed" if group.bar.on_skip == "fail" else "remark", text)


def _coverage(gates: Sequence[_Gate], uncovered: int) -> Iterator[_Finding]:
    if uncovered:
        minded = any(gate.groups[0].bar.on_skip == "fail" for gate in gates)
        text = f"{count(uncovered, 'golden case')} matched by no recording"
        yield _Finding("failed" if minded else "remark", text)


def _advice(gates: Sequence[_Gate]) -> Iterator[_Finding]:
    fallen = [
        result
        for gate in gates
        for result in gate.results
        if not result.required and result.status in {"failed", "errored"}
    ]
    if fallen:
        text = f"{count(len(fallen), 'advisory check')} did not pass{_names(fallen)}"
        yield _Finding("remark", text)


def _praise(gates: Sequence[_Gate]) -> str:
    """What an open gate says first."""
    required = sum(len(gate.required) for gate in gates)
    judged = sum(len(gate.of(*_JUDGED)) for gate in gates)
    passed = sum(len(gate.of("passed")) for gate in gates)
    if passed < judged:
        return f"{passed:,} of {count(judged, 'check')} passed"
    noun = "check" if judged == required else "judged check"
    return f"the only {noun} passed" if passed == 1 else f"all {count(passed, noun)} passed"


def _names(results: Sequence[Result]) -> str:
    names = list(dict.fromkeys(result.evaluator for result in results))
    return f" ({', '.join(clip.listed(names, MAX_NAMES))})"


def _mean_score(results: Sequence[Result]) -> float | None:
    scores = [
        result.judgement.score
        for result in results
        if result.status in _JUDGED
        and result.judgement is not None
        and result.judgement.score is not None
    ]
    finite = [score for score in scores if math.isfinite(score)]
    return math.fsum(finite) / len(finite) if finite else None
