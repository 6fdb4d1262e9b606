"""What the results of several runs of a case come to, by AgentV's strategies."""

import math
from collections.abc import Sequence
from typing import Final

from agentci._util.text.format import count, number
from agentci.model.judgement import Judgement
from agentci.model.result import Result
from agentci.model.trials import Strategy, Trial, TrialRecord
from agentci.model.values import replace

# Sums of floats are off by less than this.
TOLERANCE: Final = 1e-9

# Student's t, two-sided, 95 %, for 1 to 29 degrees of freedom; from 30 on AgentV takes the normal
# distribution's.
STUDENTS_T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
)  # fmt: skip
NORMAL: Final = 1.96

HEADINGS: Final[dict[Strategy, str]] = {
    "pass_at_k": "the best",
    "mean": "the mean",
    "confidence_interval": "the lower end of the 95 % confidence interval",
}


def lower_bound(scores: Sequence[float]) -> float:
    """The lower end of the 95 % confidence interval of the mean, from 0 on; of one score itself."""
    mean, runs = math.fsum(scores) / len(scores), len(scores)
    if runs == 1:
        return mean
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (runs - 1))
    t = STUDENTS_T[runs - 2] if runs - 2 < len(STUDENTS_T) else NORMAL
    return max(0.0, mean - t * deviation / math.sqrt(runs))


def together(scores: Sequence[float], strategy: Strategy) -> float:
    """One score of those of all runs, at least one."""
    if strategy == "pass_at_k":
        return max(scores)
    return math.fsum(scores) / len(scores) if strategy == "mean" else lower_bound(scores)


def combined(
    runs: Sequence[tuple[int, Result]], best: int, strategy: Strategy, *, cost_limited: bool
) -> Result:
    """One result of those of one check.

    Where the best run counts, one that could not be judged is one that did not pass. A mean over
    those that happened to be judged would be none: the check could not be judged, either.

    Args:
        runs: by their attempts, at least one.
        best: the attempt whose reasons are shown.
    """
    results = [result for _, result in runs]
    chosen = dict(runs)[best]
    record = TrialRecord(
        strategy=strategy,
        trials=tuple(_trial(attempt, result) for attempt, result in runs),
        cost_limited=cost_limited,
    )
    whole = replace(
        chosen,
        trials=record,
        seconds=math.fsum(result.seconds for result in results),
        cached=all(result.cached for result in results),
    )
    if strategy != "pass_at_k":
        lost = [(n, result) for n, result in runs if result.status == "errored"]
        if lost:
            attempt, result = lost[0]
            reason = f"{len(lost)} of {count(len(runs), 'trial')} could not be judged; "
            reason += f"trial {attempt}: {result.reason}"
            return replace(
                whole, status="errored", judgement=None, reason=reason, repeats=result.repeats
            )
    scores = [each.score for each in record.trials if each.score is not None]
    if chosen.judgement is None or not scores or len(runs) == 1:
        return whole
    if strategy == "pass_at_k":
        return replace(whole, reason=_told(whole.reason, scores, strategy))
    return _over_all(whole, chosen.judgement, scores, strategy, _overruled(runs))


def _over_all(
    whole: Result,
    judgement: Judgement,
    scores: Sequence[float],
    strategy: Strategy,
    overruled: str | None,
) -> Result:
    score = together(scores, strategy)
    bar = whole.evaluator.threshold
    passed = overruled is None and (bar is None or score >= bar - TOLERANCE)
    return replace(
        whole,
        status="passed" if passed else "failed",
        judgement=replace(judgement, score=score, passed=passed, reason=None),
        reason=_told(overruled, scores, strategy),
    )


def _overruled(runs: Sequence[tuple[int, Result]]) -> str | None:
    """Why no mean passes: a run failed whatever its score, as one that lacks what is required."""
    for attempt, result in runs:
        score = None if result.judgement is None else result.judgement.score
        bar = result.evaluator.threshold
        reached = score is not None and bar is not None and score >= bar - TOLERANCE
        if reached and result.status == "failed":
            return f"trial {attempt}: {result.reason or 'failed whatever its score'}"
    return None


def _told(reason: str | None, scores: Sequence[float], strategy: Strategy) -> str:
    shown = ", ".join(number(score) for score in scores)
    told = f"{HEADINGS[strategy]} of {count(len(scores), 'trial')}: {shown}"
    return f"{reason}; {told}" if reason else told


def _trial(attempt: int, result: Result) -> Trial:
    if result.judgement is None or result.status == "skipped":
        return Trial(attempt=attempt, score=None, reason=result.reason)
    return Trial(attempt=attempt, score=result.judgement.score)
