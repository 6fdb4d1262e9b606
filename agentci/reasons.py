"""What speaks for and against opening the gate, each as a sentence."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.case_scores import case_scores
from agentci.model.policy import Bar, CaseBar, GatePolicy
from agentci.model.problem import Problem
from agentci.model.result import Result, Status
from agentci.text import clip, escape
from agentci.text.words import apart, count, percents_apart

Judged: TypeAlias = Sequence[tuple[GatePolicy, Sequence[Result]]]
Kind: TypeAlias = Literal["input", "interrupted", "failed", "nothing", "errored", "remark"]

# Sums of floats are off by less than this; people's bars are never this fine.
TOLERANCE = 1e-9

MAX_NAMES = 5
MAX_REASON = 200

JUDGED: tuple[Status, ...] = ("passed", "failed")


class Reason(Struct, frozen=True):
    """One reason; a ``remark`` never shuts the gate."""

    kind: Kind
    text: str


def reasons(
    judged: Judged, *, problems: Sequence[Problem], uncovered: int, complete: bool
) -> list[Reason]:
    """Everything that the gate has to know of a run, in the order of the configs."""
    gates = _gates(judged)
    told = [*_input(problems), *_interruption(complete=complete), *_nothing(gates)]
    for gate in gates:
        told += [reason for group in gate.rates for reason in _pass_rate(group)]
        told += [reason for group in gate.scores for reason in _score(group)]
        told += _whole_cases(gate)
        told += [reason for group in gate.minds for reason in _minded(group)]
    return [*told, *_coverage(gates, uncovered), *_advice(gates)]


def praise(judged: Judged) -> str:
    """What an open gate says first."""
    required = [result for _, results in judged for result in results if result.evaluator.required]
    passed = sum(result.status == "passed" for result in required)
    total = sum(result.status in JUDGED for result in required)
    if passed < total:
        return f"{passed:,} of {count(total, 'check')} passed"
    noun = "check" if total == len(required) else "judged check"
    return f"the only {noun} passed" if passed == 1 else f"all {count(passed, noun)} passed"


def mean_score(results: Sequence[Result]) -> float | None:
    """The mean score of what passed or failed; None without any."""
    scores = [
        result.judgement.score
        for result in results
        if result.status in JUDGED
        and result.judgement is not None
        and result.judgement.score is not None
    ]
    finite = [score for score in scores if math.isfinite(score)]
    return math.fsum(finite) / len(finite) if finite else None


class _Group(Struct, frozen=True):
    """Required checks that are held against one bar; ``where`` tells them from others."""

    where: str
    bar: Bar
    results: tuple[Result, ...]

    def of(self, *statuses: Status) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.status in statuses)


class _Gate(Struct, frozen=True):
    """The gate of one config: what its demands are held against, each with its own groups."""

    where: str
    cases: CaseBar | None
    results: Sequence[Result]
    required: tuple[Result, ...]
    rates: tuple[_Group, ...]
    scores: tuple[_Group, ...]
    minds: tuple[_Group, ...]

    def of(self, *statuses: Status) -> tuple[Result, ...]:
        return tuple(result for result in self.required if result.status in statuses)


def _gates(judged: Judged) -> list[_Gate]:
    return [_gate(policy, results, alone=len(judged) == 1) for policy, results in judged]


def _gate(policy: GatePolicy, results: Sequence[Result], *, alone: bool) -> _Gate:
    where = f"{results[0].config}: " if results and not alone else ""
    required = tuple(result for result in results if result.evaluator.required)

    def groups(own: Mapping[str, Bar]) -> tuple[_Group, ...]:
        """The checks of each evaluator in ``own``, and before them all others together."""
        others = tuple(result for result in required if _by(result) not in own)
        return (
            _Group(where, policy.overall, others),
            *(
                _Group(f"{where}{name}: ", bar, tuple(r for r in required if _by(r) == name))
                for name, bar in own.items()
            ),
        )

    bars = policy.evaluators
    return _Gate(
        where=where,
        cases=policy.cases,
        results=results,
        required=required,
        rates=groups({name: bar for name, bar in bars.items() if bar.min_pass_rate is not None}),
        scores=groups({name: bar for name, bar in bars.items() if bar.min_score is not None}),
        minds=groups(bars),
    )


def _input(problems: Sequence[Problem]) -> Iterator[Reason]:
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
        yield Reason("input", f"the input is broken: {errors[0]}{more}")


def _interruption(*, complete: bool) -> Iterator[Reason]:
    if not complete:
        yield Reason("interrupted", "the run was cut short before everything was judged")


def _nothing(gates: Sequence[_Gate]) -> Iterator[Reason]:
    """Gates that judged nothing; errors that are minded say enough, advice needs no gate."""
    if not gates:
        yield Reason("nothing", "nothing was judged")
    anything = any(gate.of(*JUDGED) for gate in gates)
    for gate in gates:
        minded = any(group.bar.on_error == "fail" and group.of("errored") for group in gate.minds)
        only_advises = gate.results and not gate.required and anything
        if not (gate.of(*JUDGED) or minded or only_advises):
            yield Reason("nothing", f"{gate.where}nothing was judged")
        else:
            own = {group.where: group for group in (*gate.rates[1:], *gate.scores[1:])}
            for group in own.values():
                if group.results and not group.of(*JUDGED, "errored"):
                    yield Reason("nothing", f"{group.where}nothing was judged")


def _pass_rate(group: _Group) -> Iterator[Reason]:
    failed, judged = len(group.of("failed")), len(group.of(*JUDGED))
    if not failed:
        return
    least, rate = group.bar.min_pass_rate or 0.0, (judged - failed) / judged
    written, bar = percents_apart(rate, least)
    text = f"{group.where}{failed:,} of {count(judged, 'check')} failed: pass rate {written} is"
    if rate < least - TOLERANCE:
        yield Reason("failed", f"{text} below {bar}")
    else:
        yield Reason("remark", f"{text} at least {bar}")


def _score(group: _Group) -> Iterator[Reason]:
    least = group.bar.min_score
    if least is None or not group.of(*JUDGED):
        return
    mean = mean_score(group.results)
    if mean is None:
        yield Reason("failed", f"{group.where}no check has a score, and a mean is asked for")
    elif mean < least - TOLERANCE:
        written, bar = apart(mean, least)
        yield Reason("failed", f"{group.where}mean score {written} is below {bar}")


def _whole_cases(gate: _Gate) -> Iterator[Reason]:
    """Cases that fell short as a whole; those that were not judged are minded elsewhere."""
    if gate.cases is None:
        return
    scores = case_scores(gate.results)
    fallen = {k: v for k, v in scores.items() if v < gate.cases.threshold - TOLERANCE}
    if not fallen:
        return
    least, rate = gate.cases.min_pass_rate, 1 - len(fallen) / len(scores)
    written, bar = percents_apart(rate, least)
    worst = sorted(fallen, key=lambda case_id: fallen[case_id])
    names = ", ".join(clip.listed([f"{each} {fallen[each]:.3g}" for each in worst], MAX_NAMES))
    told = f"{gate.where}{len(fallen):,} of {count(len(scores), 'case')} scored below"
    text = f"{told} {gate.cases.threshold:g} ({names}): pass rate {written} is"
    if rate < least - TOLERANCE:
        yield Reason("failed", f"{text} below {bar}")
    else:
        yield Reason("remark", f"{text} at least {bar}")


def _minded(group: _Group) -> Iterator[Reason]:
    if skipped := group.of("skipped"):
        text = f"{group.where}{count(len(skipped), 'check')} had nothing to judge{_names(skipped)}"
        text += _shared_reason(skipped)
        yield Reason("failed" if group.bar.on_skip == "fail" else "remark", text)
    if errored := group.of("errored"):
        text = f"{group.where}{count(len(errored), 'check')} could not be judged{_names(errored)}"
        minded = group.bar.on_error == "fail"
        yield Reason("errored", text) if minded else Reason("remark", f"{text}: a warning only")


def _coverage(gates: Sequence[_Gate], uncovered: int) -> Iterator[Reason]:
    if uncovered:
        minded = any(gate.minds[0].bar.on_skip == "fail" for gate in gates)
        text = f"{count(uncovered, 'golden case')} matched by no recording"
        yield Reason("failed" if minded else "remark", text)


def _advice(gates: Sequence[_Gate]) -> Iterator[Reason]:
    fallen = [
        result
        for gate in gates
        for result in gate.results
        if not result.evaluator.required and result.status in {"failed", "errored"}
    ]
    if fallen:
        text = f"{count(len(fallen), 'advisory check')} did not pass{_names(fallen)}"
        yield Reason("remark", text)


def _names(results: Sequence[Result]) -> str:
    names = list(dict.fromkeys(map(_by, results)))
    return f" ({', '.join(clip.listed(names, MAX_NAMES))})"


def _shared_reason(results: Sequence[Result]) -> str:
    """Why all of them, where that is one reason."""
    told = {escape.plain_line(result.reason or "") for result in results}
    return f": {clip.short(told.pop(), MAX_REASON)}" if len(told) == 1 and "" not in told else ""


def _by(result: Result) -> str:
    return result.evaluator.name
