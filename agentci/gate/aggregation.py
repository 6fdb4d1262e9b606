"""Aggregate the results of trials, of repeats and of the evaluators of a case."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentci._util.text.format import format_count, format_score
from agentci.model.requests import NO_JUDGEMENT, Repetition
from agentci.model.result import (
    SCORED_STATUSES,
    CheckResult,
    RepeatOutcome,
    RepeatRecord,
    Status,
    TrialRecord,
    TrialScore,
    TrialStrategy,
)
from agentci.model.values import replace

# Allowance for floating-point error in sums.
TOLERANCE: Final = 1e-9

# Two-sided 95% critical values of Student's t for 1 to 29 degrees of freedom. From 30 on, AgentV
# uses the normal distribution.
T_CRITICAL_VALUES_95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
)  # fmt: skip
NORMAL_CRITICAL_VALUE_95: Final = 1.96

STRATEGY_LABELS: Final[dict[TrialStrategy, str]] = {
    "pass_at_k": "best",
    "mean": "mean",
    "confidence_interval": "95% confidence bound",
}


def mean_lower_bound(scores: Sequence[float]) -> float:
    """The lower end of the 95% confidence interval of the mean, at least 0.

    A single score is its own bound.
    """
    mean, runs = math.fsum(scores) / len(scores), len(scores)
    if runs == 1:
        return mean
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (runs - 1))
    t = (
        T_CRITICAL_VALUES_95[runs - 2]
        if runs - 2 < len(T_CRITICAL_VALUES_95)
        else NORMAL_CRITICAL_VALUE_95
    )
    return max(0.0, mean - t * deviation / math.sqrt(runs))


def aggregate_scores(scores: Sequence[float], strategy: TrialStrategy) -> float:
    """Reduce the scores of all trials to one; ``scores`` must not be empty."""
    if strategy == "pass_at_k":
        return max(scores)
    return math.fsum(scores) / len(scores) if strategy == "mean" else mean_lower_bound(scores)


def aggregate_trials(
    runs: Sequence[tuple[int, CheckResult]],
    best: int,
    strategy: TrialStrategy,
    *,
    cost_limited: bool,
) -> CheckResult:
    """Reduce the trials of one check to one result.

    With ``pass_at_k``, an errored trial counts as one that did not pass. With the other strategies,
    any errored trial makes the whole check errored, because a mean of the remaining trials would
    depend on which ones happened to succeed.

    Args:
        runs: attempt numbers and results, at least one.
        best: the attempt whose reasons are shown.
        cost_limited: whether the cost limit ended the trials early.
    """
    results = [result for _, result in runs]
    chosen = dict(runs)[best]
    record = TrialRecord(
        strategy=strategy,
        trials=tuple(_make_trial(attempt, result) for attempt, result in runs),
        cost_limited=cost_limited,
    )
    whole = replace(
        chosen,
        trials=record,
        seconds=math.fsum(result.seconds for result in results),
        cached=all(result.cached for result in results),
    )
    if strategy != "pass_at_k":
        errored = [(n, result) for n, result in runs if result.status == "errored"]
        if errored:
            attempt, result = errored[0]
            reason = f"{len(errored)} of {format_count(len(runs), 'trial')} errored; "
            reason += f"trial {attempt}: {result.reason}"
            return replace(
                whole, status="errored", judgement=None, reason=reason, repeats=result.repeats
            )
    scores = [each.score for each in record.trials if each.score is not None]
    if chosen.judgement is None or not scores or len(runs) == 1:
        return whole
    if strategy == "pass_at_k":
        return replace(whole, reason=_format_trial_reason(whole.reason, scores, strategy))
    failure_reason = _find_failed_trial(runs)
    score = aggregate_scores(scores, strategy)
    threshold = whole.evaluator.threshold
    reached = threshold is None or score >= threshold - TOLERANCE
    passed = failure_reason is None and reached
    return replace(
        whole,
        status="passed" if passed else "failed",
        judgement=replace(chosen.judgement, score=score, passed=passed, reason=None),
        reason=_format_trial_reason(failure_reason, scores, strategy),
    )


def _find_failed_trial(runs: Sequence[tuple[int, CheckResult]]) -> str | None:
    """The reason of a trial that failed although its score reached the threshold.

    Such a trial lacks something that is required, so the mean cannot pass.
    """
    for attempt, result in runs:
        if result.status == "failed" and _reaches_threshold(result.score, result):
            return f"trial {attempt}: {result.reason or FAILED_ABOVE_THRESHOLD}"
    return None


def _format_trial_reason(
    reason: str | None, scores: Sequence[float], strategy: TrialStrategy
) -> str:
    shown = ", ".join(format_score(score) for score in scores)
    text = f"{STRATEGY_LABELS[strategy]} of {format_count(len(scores), 'trial')}: {shown}"
    return f"{reason}; {text}" if reason else text


def _make_trial(attempt: int, result: CheckResult) -> TrialScore:
    if result.judgement is None or result.status == "skipped":
        return TrialScore(attempt=attempt, score=None, reason=result.reason)
    return TrialScore(attempt=attempt, score=result.judgement.score)


def compute_case_scores(
    results: Sequence[CheckResult], *, errors_score: float | None = None
) -> dict[str, float]:
    """The score of every case of one config by case id, over its required and optional checks.

    Errored required checks have ``errors_score``, or are left out, since the gate handles errors
    separately; an errored optional check scores 0. If all weights are 0 the score is 0. Both as in
    AgentV. With ``confidence_interval``, the interval is that of the case's scores, one per trial.
    """
    by_case: dict[str, list[tuple[CheckResult, float]]] = {}
    for result in results:
        score = None if result.judgement is None else result.judgement.score
        if result.status == "errored":
            score = errors_score if result.evaluator.required else 0.0
        elif result.status not in SCORED_STATUSES:
            continue
        if score is not None:
            by_case.setdefault(result.case.id, []).append((result, score))
    return {case_id: _score_case(scored) for case_id, scored in by_case.items()}


def _score_case(scored: Sequence[tuple[CheckResult, float]]) -> float:
    weights = [result.evaluator.weight for result, _ in scored]
    records = [result.trials for result, _ in scored if result.trials is not None]
    if len(records) < len(scored) or records[0].strategy != "confidence_interval":
        return _weighted_mean(weights, [score for _, score in scored])
    trials = zip(*(record.trials for record in records), strict=False)
    means = [_weighted_mean(weights, [each.score or 0.0 for each in trial]) for trial in trials]
    return aggregate_scores(means, "confidence_interval")


def _weighted_mean(weights: Sequence[float], scores: Sequence[float]) -> float:
    total = math.fsum(weights)
    weighted = (weight * score for weight, score in zip(weights, scores, strict=True))
    return math.fsum(weighted) / total if total else 0.0


NO_SCORE: Final = "no score; the mean of the repeats needs one"
FAILED_ABOVE_THRESHOLD: Final = "failed although its score reached the threshold"


def aggregate_repeats(results: Sequence[CheckResult], repetition: Repetition) -> CheckResult:
    """Reduce the repeats of one check to one result.

    An errored repeat makes the check errored; it may be the last one, since no further repeats are
    needed then. With ``mean``, a repeat without a score counts as errored. With ``majority``, the
    check passes if more than half of the repeats passed. With either, it is skipped if more than
    half of the repeats were skipped.

    Args:
        results: one per repeat in the order of the calls, at least one.
        repetition: how many repeats there should be, and how they are combined.
    """
    if repetition.aggregation == "mean":
        results = [_require_score(result) for result in results]
    for ordinal, result in enumerate(results, start=1):
        if result.status == "errored":
            error = f"repeat {ordinal} of {repetition.times}: {result.reason}"
            return _make_repeated_result(result, results, repetition, error)
    statuses = [result.status for result in results]
    skipped = [result for result in results if result.status == "skipped"]
    if 2 * len(skipped) > len(results):
        count = f"{len(skipped)} of {format_count(len(results), 'repeat')} skipped: "
        skip_reason = f"{count if len(skipped) < len(results) else ''}{skipped[0].reason}"
        return _make_repeated_result(skipped[0], results, repetition, skip_reason)
    score, failure_reason = _mean_of_scored(results), None
    passed = 2 * statuses.count("passed") > len(results)
    if repetition.aggregation == "mean":
        failure_reason = _find_failed_repeat(results)
        passed = failure_reason is None and _reaches_threshold(score, results[0])
    status: Status = "passed" if passed else "failed"
    shown = min(results, key=lambda result: _distance_from_aggregate(result, status, score))
    reason = shown.reason
    if repetition.aggregation == "mean" or len(set(statuses)) > 1:
        summary = _format_repeat_reason(results, repetition)
        reason = f"{failure_reason}; {summary}" if failure_reason else summary
    own = shown.judgement or NO_JUDGEMENT
    judgement = replace(own, score=score, passed=passed, reason=None)
    return _make_repeated_result(
        replace(shown, status=status, judgement=judgement), results, repetition, reason
    )


def compute_flip_rate(statuses: Sequence[Status]) -> float:
    """The share of ``statuses`` that differ from the most common one; 0 if all are equal."""
    [(_, most)] = Counter(statuses).most_common(1)
    return (len(statuses) - most) / len(statuses)


def _make_repeated_result(
    shown: CheckResult, results: Sequence[CheckResult], repetition: Repetition, reason: str | None
) -> CheckResult:
    statuses = [result.status for result in results]
    return replace(
        shown,
        reason=reason,
        seconds=math.fsum(result.seconds for result in results),
        cached=all(result.cached for result in results),
        repeats=RepeatRecord(
            aggregation=repetition.aggregation,
            flip_rate=None if "errored" in statuses else compute_flip_rate(statuses),
            repeats=tuple(
                RepeatOutcome(status=each.status, score=each.score, reason=each.reason)
                for each in results
            ),
        ),
    )


def _require_score(result: CheckResult) -> CheckResult:
    if result.status not in SCORED_STATUSES or result.score is not None:
        return result
    return replace(result, status="errored", judgement=None, reason=NO_SCORE)


def _find_failed_repeat(results: Sequence[CheckResult]) -> str | None:
    """The reason of a repeat that failed although its score reached the threshold.

    One cause is a missing turn. The mean cannot pass then.
    """
    for ordinal, result in enumerate(results, start=1):
        if result.status == "failed" and _reaches_threshold(result.score, result):
            return f"repeat {ordinal}: {result.reason or FAILED_ABOVE_THRESHOLD}"
    return None


def _reaches_threshold(score: float | None, result: CheckResult) -> bool:
    threshold = result.evaluator.threshold
    return score is not None and threshold is not None and score >= threshold - TOLERANCE


def _distance_from_aggregate(
    result: CheckResult, status: Status, score: float | None
) -> tuple[bool, bool, float]:
    """A sort key: how far a repeat is from the aggregate, to show the reason of the closest one."""
    own = result.score
    apart = 0.0 if own is None or score is None else abs(own - score)
    return result.status != status, result.status == "skipped", apart


def _mean_of_scored(results: Sequence[CheckResult]) -> float | None:
    """The mean score of the repeats that were not skipped; None if none has a score."""
    scores = _scores_of_evaluated(results)
    return math.fsum(scores) / len(scores) if scores else None


def _format_repeat_reason(results: Sequence[CheckResult], repetition: Repetition) -> str:
    """Format a reason: ``2 of 4 repeats passed, 1 skipped: 0.2, 0.9, 0.9``."""
    statuses, repeats = [result.status for result in results], format_count(len(results), "repeat")
    passed = f"{statuses.count('passed')} of {repeats} passed"
    text = passed if repetition.aggregation == "majority" else f"mean of {repeats}"
    if skipped := statuses.count("skipped"):
        text += f", {skipped} skipped"
    scores = ", ".join(map(format_score, _scores_of_evaluated(results)))
    return f"{text}: {scores}" if scores else text


def _scores_of_evaluated(results: Sequence[CheckResult]) -> list[float]:
    scores = (result.score for result in results if result.status != "skipped")
    return [score for score in scores if score is not None]
