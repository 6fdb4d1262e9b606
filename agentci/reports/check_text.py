"""One check in words: what came of it, and what was found."""

from collections.abc import Iterator, Sequence

from agentci._util.text import escape, truncate
from agentci._util.text.format import apart, number
from agentci.model.case import Exchange
from agentci.model.result import Result
from agentci.reports import tool_calls

MAX_TURNS = 5


def headline(result: Result) -> str:
    """What came of a check: "score 0.33, wanted at least 0.7"; a program's words on their lines."""
    if result.status == "errored":
        return result.reason or "it gave no reason"
    if result.status == "skipped":
        return result.reason or "there was nothing to judge"
    if result.reason is not None and (result.status == "passed" or _is_good_enough(result)):
        return f"{result.reason} ({_score(result)})"
    if result.status == "passed":
        return _score(result)
    reason = "" if result.reason is None else f"{result.reason}; "
    return f"{reason}{_score(result)}, wanted {result.evaluator.bar}"


def outcome(result: Result) -> str:
    """The headline, and whether it is that of an earlier run."""
    return f"{headline(result)} (cached)" if result.cached else headline(result)


def lines(text: str) -> tuple[str, ...]:
    """What a program printed, without what cannot be seen and lines that are blank."""
    return tuple(line.rstrip() for line in escape.plain(text).split("\n") if line.strip())


def is_below_bar(result: Result) -> bool:
    """Whether the score alone explains a failure."""
    score, bar = _score_of(result), result.evaluator.threshold
    return score is not None and bar is not None and score < bar


def findings(result: Result) -> tuple[str, ...]:
    """The details of a judgement, a line each: misses, tool calls, reasoning."""
    judgement = result.judgement
    if judgement is None:
        return ()
    misses = (f"- {miss}" for miss in judgement.misses)
    reasoning = (judgement.reasoning or "").splitlines()
    return (
        *misses,
        *tool_calls.diff(judgement.details),
        *(f"- {turn}" for turn in low_turns(result)),
        *reasoning,
    )


def low_turns(result: Result) -> tuple[str, ...]:
    """The turns that made a check fail, where the evaluator told nothing but their scores."""
    judgement = result.judgement
    if judgement is None or judgement.misses or tool_calls.unmatched(judgement.details):
        return ()
    turns = dict(enumerate(result.case.dialogue, start=1))
    told = [
        f"turn {turn}: {_apart(score, result.evaluator.threshold)}{''.join(_said(turns.get(turn)))}"
        for turn, score in _lowest(result, judgement.turn_scores)
    ]
    return truncate.listed(told, MAX_TURNS)


def _lowest(result: Result, turn_scores: Sequence[float | None]) -> list[tuple[int, float]]:
    """The turns below the threshold, else those of the lowest score; none if it is not to blame."""
    if _is_good_enough(result):
        return []
    scores = [(turn, score) for turn, score in enumerate(turn_scores, 1) if score is not None]
    least = min((score for _, score in scores), default=0.0)
    bar = result.evaluator.threshold
    low = [each for each in scores if bar is not None and each[1] < bar]
    return low or [each for each in scores if each[1] <= least]


def _said(turn: Exchange | None) -> Iterator[str]:
    """What was asked and answered."""
    if turn is None:
        return
    if turn.asked:
        yield f'; asked "{turn.asked}"'
    yield "; no answer" if turn.answered is None else f'; answered "{turn.answered}"'


def _is_good_enough(result: Result) -> bool:
    score, bar = _score_of(result), result.evaluator.threshold
    return score is not None and bar is not None and score >= bar


def _score(result: Result) -> str:
    score = _score_of(result)
    return "no score" if score is None else f"score {_apart(score, result.evaluator.threshold)}"


def _score_of(result: Result) -> float | None:
    return None if result.judgement is None else result.judgement.score


def _apart(score: float, bar: float | None) -> str:
    """The score, with enough decimals to show on which side of the bar it is."""
    return number(score) if bar is None or score >= bar else apart(score, bar)[0]
