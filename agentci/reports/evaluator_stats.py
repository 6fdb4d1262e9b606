"""What the checks of an evaluator come to, and how much that says of cases that were not judged."""

import math
from collections.abc import Sequence

from msgspec import Struct

from agentci._util.text.format import number, percents_apart
from agentci.gate.groups import JUDGED
from agentci.gate.statistics import Interval, mean_interval, rate_interval
from agentci.model.result import Result

PERCENT = 100


class Standing(Struct, frozen=True, kw_only=True):
    """The checks of one evaluator that passed or failed.

    Attributes:
        pass_rate: 0 to 1; None without any.
        pass_rate_interval, score_interval: at 95 %; None where there are too few.
        groups: how many there are that do not belong together.
    """

    pass_rate: float | None
    pass_rate_interval: Interval | None
    score_interval: Interval | None
    groups: int


def standing_of(results: Sequence[Result]) -> Standing:
    """Of the checks of one evaluator of one config."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if result.status in JUDGED:
            groups.setdefault(result.case.group, []).append(result)
    passes = [[each.status == "passed" for each in group] for group in groups.values()]
    scores = [_scores(group) for group in groups.values()]
    judged = [each for group in passes for each in group]
    return Standing(
        pass_rate=sum(judged) / len(judged) if judged else None,
        pass_rate_interval=rate_interval(passes),
        score_interval=mean_interval([group for group in scores if group]),
        groups=len(groups),
    )


def rate_in_words(standing: Standing) -> str:
    """``75% (45 to 92%)``; empty where nothing was judged."""
    if standing.pass_rate is None:
        return ""
    rate, _ = percents_apart(standing.pass_rate, 1.0)
    interval = standing.pass_rate_interval
    if interval is None:
        return rate
    # Outwards, so that no more is said than is so.
    low, high = math.floor(interval.low * PERCENT), math.ceil(interval.high * PERCENT)
    return f"{rate} ({low} to {high}%)"


def score_in_words(score: float | None, standing: Standing) -> str:
    """``0.712 (0.62 to 0.81)``, without what the pass rate says already; empty without a score."""
    if score is None:
        return ""
    interval = standing.score_interval
    if interval in (None, standing.pass_rate_interval):
        return number(score)
    return f"{number(score)} ({number(interval.low, 2)} to {number(interval.high, 2)})"


def _scores(results: Sequence[Result]) -> list[float]:
    judgements = (result.judgement for result in results)
    scores = [each.score for each in judgements if each is not None and each.score is not None]
    return [score for score in scores if math.isfinite(score)]
