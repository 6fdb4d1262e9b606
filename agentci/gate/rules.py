"""What speaks for and against opening the gate, each as a sentence."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import escape, truncate
from agentci._util.text.format import apart, count, percents_apart
from agentci.gate.case_scores import case_scores
from agentci.gate.groups import JUDGED, Demands, Group, Judged, demands_of
from agentci.gate.pass_rate_bounds import Proof, by_group, proof_of
from agentci.model.problem import Problem
from agentci.model.result import Result

Kind: TypeAlias = Literal["input", "interrupted", "failed", "nothing", "errored", "remark"]

# Sums of floats are off by less than this; people's bars are never this fine.
TOLERANCE = 1e-9

MAX_NAMES = 5
MAX_REASON = 200


class Reason(Struct, frozen=True):
    """One reason; a ``remark`` never shuts the gate."""

    kind: Kind
    text: str


def reasons(
    judged: Judged, *, problems: Sequence[Problem], uncovered: int, complete: bool
) -> list[Reason]:
    """Everything that the gate has to know of a run, in the order of the configs."""
    gates = demands_of(judged)
    told = [*_input(problems), *_interruption(complete=complete), *_nothing(gates)]
    for gate in gates:
        told += [reason for group in gate.rates for reason in _pass_rate(group)]
        told += [reason for group in gate.rates for reason in _proof(group)]
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


def _input(problems: Sequence[Problem]) -> Iterator[Reason]:
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
        yield Reason("input", f"the input is broken: {errors[0]}{more}")


def _interruption(*, complete: bool) -> Iterator[Reason]:
    if not complete:
        yield Reason("interrupted", "the run was cut short before everything was judged")


def _nothing(gates: Sequence[Demands]) -> Iterator[Reason]:
    """Gates that judged nothing; errors that are minded say enough, advice needs no gate."""
    if not gates:
        yield Reason("nothing", "nothing was judged")
    anything = any(gate.of(*JUDGED) for gate in gates)
    for gate in gates:
        minded = any(group.bar.on_error == "fail" and group.of("errored") for group in gate.minds)
        only_advises = gate.results and not gate.required and anything
        if not (gate.of(*JUDGED) or minded or only_advises):
            has_advice = any(result.status in JUDGED for result in gate.results)
            none = "no required check was judged" if has_advice else "nothing was judged"
            yield Reason("nothing", f"{gate.where}{none}")
        else:
            own = {group.where: group for group in (*gate.rates[1:], *gate.scores[1:])}
            for group in own.values():
                if group.results and not group.of(*JUDGED, "errored"):
                    yield Reason("nothing", f"{group.where}nothing was judged")


def _pass_rate(group: Group) -> Iterator[Reason]:
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


def _proof(group: Group) -> Iterator[Reason]:
    bar, passes = group.bar, by_group(group.of(*JUDGED))
    if proof := proof_of(passes, bar.min_pass_rate, bar.pass_rate_confidence):
        yield _proven(group.where, proof)


def _proven(where: str, proof: Proof) -> Reason:
    return Reason("remark" if proof.holds else "failed", f"{where}{proof.words}")


def _score(group: Group) -> Iterator[Reason]:
    least = group.bar.min_score
    if least is None or not group.of(*JUDGED):
        return
    mean = mean_score(group.results)
    if mean is None:
        yield Reason("failed", f"{group.where}no check has a score, and a mean is asked for")
    elif mean < least - TOLERANCE:
        written, bar = apart(mean, least)
        yield Reason("failed", f"{group.where}mean score {written} is below {bar}")


def _whole_cases(gate: Demands) -> Iterator[Reason]:
    """Cases that fell short as a whole; those that were not judged are minded elsewhere."""
    if gate.cases is None:
        return
    scores, cases = case_scores(gate.results), gate.cases
    passes = (score >= cases.threshold - TOLERANCE for score in scores.values())
    if proof := proof_of(passes, cases.min_pass_rate, cases.pass_rate_confidence):
        yield _proven(gate.where, proof)
    fallen = {k: v for k, v in scores.items() if v < gate.cases.threshold - TOLERANCE}
    if not fallen:
        return
    least, rate = gate.cases.min_pass_rate, 1 - len(fallen) / len(scores)
    written, bar = percents_apart(rate, least)
    worst = sorted(fallen, key=lambda case_id: fallen[case_id])
    names = ", ".join(truncate.listed([f"{each} {fallen[each]:.3g}" for each in worst], MAX_NAMES))
    told = f"{gate.where}{len(fallen):,} of {count(len(scores), 'case')} scored below"
    text = f"{told} {gate.cases.threshold:g} ({names}): pass rate {written} is"
    if rate < least - TOLERANCE:
        yield Reason("failed", f"{text} below {bar}")
    else:
        yield Reason("remark", f"{text} at least {bar}")


def _minded(group: Group) -> Iterator[Reason]:
    if skipped := group.of("skipped"):
        text = f"{group.where}{count(len(skipped), 'check')} had nothing to judge{_names(skipped)}"
        text += _shared_reason(skipped)
        yield Reason("failed" if group.bar.on_skip == "fail" else "remark", text)
    if errored := group.of("errored"):
        text = f"{group.where}{count(len(errored), 'check')} could not be judged{_names(errored)}"
        minded = group.bar.on_error == "fail"
        yield Reason("errored", text) if minded else Reason("remark", f"{text}: a warning only")


def _coverage(gates: Sequence[Demands], uncovered: int) -> Iterator[Reason]:
    if uncovered:
        minded = any(gate.minds[0].bar.on_skip == "fail" for gate in gates)
        text = f"{count(uncovered, 'golden case')} matched by no recording"
        yield Reason("failed" if minded else "remark", text)


def _advice(gates: Sequence[Demands]) -> Iterator[Reason]:
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
    return f" ({', '.join(truncate.listed(names, MAX_NAMES))})"


def _shared_reason(results: Sequence[Result]) -> str:
    """Why all of them, where that is one reason."""
    told = {escape.plain_line(result.reason or "") for result in results}
    return (
        f": {truncate.short(told.pop(), MAX_REASON)}" if len(told) == 1 and "" not in told else ""
    )


def _by(result: Result) -> str:
    return result.evaluator.name
