"""Statistics of an evaluator's checks, with confidence intervals."""

import math
from collections.abc import Sequence

from msgspec import Struct

from agentci._util.text.format import format_distinct_percents, format_number
from agentci.gate.groups import SCORED_STATUSES
from agentci.gate.statistics import (
    ConfidenceInterval,
    mean_confidence_interval,
    pass_rate_confidence_interval,
)
from agentci.model.result import CheckResult

PERCENT = 100


class EvaluatorStats(Struct, frozen=True, kw_only=True):
    """Statistics over the checks of one evaluator that passed or failed.

    Attributes:
        pass_rate: 0 to 1; None without checks.
        pass_rate_interval: at 95 %; None for too few groups.
        score_interval: of the mean score, at 95 %; None for too few groups.
        groups: number of independent groups of cases.
    """

    pass_rate: float | None
    pass_rate_interval: ConfidenceInterval | None
    score_interval: ConfidenceInterval | None
    groups: int


def compute_evaluator_stats(results: Sequence[CheckResult]) -> EvaluatorStats:
    """Compute statistics of the checks of one evaluator of one config."""
    groups: dict[str, list[CheckResult]] = {}
    for result in results:
        if result.status in SCORED_STATUSES:
            groups.setdefault(result.case.group, []).append(result)
    passes = [[each.status == "passed" for each in group] for group in groups.values()]
    scores = [_scores(group) for group in groups.values()]
    judged = [each for group in passes for each in group]
    return EvaluatorStats(
        pass_rate=sum(judged) / len(judged) if judged else None,
        pass_rate_interval=pass_rate_confidence_interval(passes),
        score_interval=mean_confidence_interval([group for group in scores if group]),
        groups=len(groups),
    )


def format_pass_rate(standing: EvaluatorStats) -> str:
    """Format ``75% (45 to 92%)``; "" without a pass rate."""
    if standing.pass_rate is None:
        return ""
    rate, _ = format_distinct_percents(standing.pass_rate, 1.0)
    interval = standing.pass_rate_interval
    if interval is None:
        return rate
    # Round outwards, so that the interval never looks narrower than it is.
    low, high = math.floor(interval.low * PERCENT), math.ceil(interval.high * PERCENT)
    return f"{rate} ({low} to {high}%)"


def format_mean_score(score: float | None, standing: EvaluatorStats) -> str:
    """Format ``0.712 (0.62 to 0.81)``, without an interval equal to that of the pass rate."""
    if score is None:
        return ""
    interval = standing.score_interval
    if interval in (None, standing.pass_rate_interval):
        return format_number(score)
    return (
        f"{format_number(score)} ({format_number(interval.low, 2)} to "
        f"{format_number(interval.high, 2)})"
    )


def _scores(results: Sequence[CheckResult]) -> list[float]:
    judgements = (result.judgement for result in results)
    scores = [each.score for each in judgements if each is not None and each.score is not None]
    return [score for score in scores if math.isfinite(score)]
