"""What the answers of an evaluator come to that is asked several times about one case."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentci._util.text.format import count, number
from agentci.gate.trial_scores import TOLERANCE
from agentci.model.identity import Repetition
from agentci.model.judgement import Judgement
from agentci.model.result import Repeat, RepeatRecord, Result, Status
from agentci.model.values import replace

NO_SCORE: Final = "it gave no score, and the mean of all is asked for"


def repeated(results: Sequence[Result], repetition: Repetition) -> Result:
    """One result of those of all answers about one case, in the order of asking, at least one.

    One that could not be judged leaves the check without a judgement: it may be the last, since
    nothing more need be asked then. By the mean, so does one without a score. A check passes where
    more than half of all pass, and is skipped where more than half had nothing to judge.
    """
    if repetition.by == "mean":
        results = [_with_score(result) for result in results]
    for ordinal, result in enumerate(results, start=1):
        if result.status == "errored":
            reason = f"repeat {ordinal} of {repetition.times}: {result.reason}"
            return _whole(result, results, repetition, reason)
    statuses = [result.status for result in results]
    skipped = [result for result in results if result.status == "skipped"]
    if 2 * len(skipped) > len(results):
        some = f"{len(skipped)} of {count(len(results), 'repeat')} had nothing to judge: "
        reason = f"{some if len(skipped) < len(results) else ''}{skipped[0].reason}"
        return _whole(skipped[0], results, repetition, reason)
    score, overruled = _mean(results), None
    passed = 2 * statuses.count("passed") > len(results)
    if repetition.by == "mean":
        overruled = _overruled(results)
        passed = overruled is None and _is_reached(score, results[0])
    status: Status = "passed" if passed else "failed"
    shown = min(results, key=lambda result: _distance(result, status, score))
    told = shown.reason
    if repetition.by == "mean" or len(set(statuses)) > 1:
        told = "; ".join(each for each in (overruled, _told(results, repetition)) if each)
    own = shown.judgement or Judgement(score=None, passed=None)
    judgement = replace(own, score=score, passed=passed, reason=None)
    return _whole(replace(shown, status=status, judgement=judgement), results, repetition, told)


def flip_rate(statuses: Sequence[Status]) -> float:
    """The share of verdicts that are another than that of most: 0 where all are the same."""
    [(_, most)] = Counter(statuses).most_common(1)
    return (len(statuses) - most) / len(statuses)


def _whole(
    shown: Result, results: Sequence[Result], repetition: Repetition, reason: str | None
) -> Result:
    statuses = [result.status for result in results]
    return replace(
        shown,
        reason=reason,
        seconds=math.fsum(result.seconds for result in results),
        cached=all(result.cached for result in results),
        repeats=RepeatRecord(
            by=repetition.by,
            flip_rate=None if "errored" in statuses else flip_rate(statuses),
            repeats=tuple(
                Repeat(status=each.status, score=_score(each), reason=each.reason)
                for each in results
            ),
        ),
    )


def _with_score(result: Result) -> Result:
    if result.status not in ("passed", "failed") or _score(result) is not None:
        return result
    return replace(result, status="errored", judgement=None, reason=NO_SCORE)


def _overruled(results: Sequence[Result]) -> str | None:
    """Why no mean passes: one failed whatever its score, as for a turn that is missing."""
    for ordinal, result in enumerate(results, start=1):
        if result.status == "failed" and _is_reached(_score(result), result):
            return f"repeat {ordinal}: {result.reason or 'failed whatever its score'}"
    return None


def _is_reached(score: float | None, result: Result) -> bool:
    bar = result.evaluator.threshold
    return score is not None and bar is not None and score >= bar - TOLERANCE


def _distance(result: Result, status: Status, score: float | None) -> tuple[bool, bool, float]:
    """How far an answer is from what all come to, since the reasons of one are shown."""
    own = _score(result)
    apart = 0.0 if own is None or score is None else abs(own - score)
    return result.status != status, result.status == "skipped", apart


def _mean(results: Sequence[Result]) -> float | None:
    """Of those that judged something."""
    scores = _scores(results)
    return math.fsum(scores) / len(scores) if scores else None


def _told(results: Sequence[Result], repetition: Repetition) -> str:
    """``2 of 4 repeats passed, 1 had nothing to judge: 0.2, 0.9, 0.9``."""
    statuses, repeats = [result.status for result in results], count(len(results), "repeat")
    passed = f"{statuses.count('passed')} of {repeats} passed"
    told = passed if repetition.by == "majority" else f"the mean of {repeats}"
    if skipped := statuses.count("skipped"):
        told += f", {skipped} had nothing to judge"
    return ": ".join([told, ", ".join(map(number, _scores(results)))]).removesuffix(": ")


def _scores(results: Sequence[Result]) -> list[float]:
    scores = (_score(result) for result in results if result.status != "skipped")
    return [score for score in scores if score is not None]


def _score(result: Result) -> float | None:
    return None if result.judgement is None else result.judgement.score
