"""One check in words: what came of it, and what was found."""

from collections.abc import Iterator, Sequence

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_distinct, format_number
from agentci.model.case import DialogueTurn
from agentci.model.result import CheckResult
from agentci.reports import tool_calls

MAX_TURNS = 5


def format_headline(result: CheckResult) -> str:
    """What came of a check: "score 0.33, wanted at least 0.7"; a program's words on their lines."""
    if result.status == "errored":
        return result.reason or "it gave no reason"
    if result.status == "skipped":
        return result.reason or "there was nothing to judge"
    if result.reason is not None and (result.status == "passed" or _reaches_threshold(result)):
        return f"{result.reason} ({_format_score(result)})"
    if result.status == "passed":
        return _format_score(result)
    reason = "" if result.reason is None else f"{result.reason}; "
    return f"{reason}{_format_score(result)}, wanted {result.evaluator.requirement}"


def format_outcome(result: CheckResult) -> str:
    """The headline, and whether it is that of an earlier run."""
    return f"{format_headline(result)} (cached)" if result.cached else format_headline(result)


def split_lines(text: str) -> tuple[str, ...]:
    """What a program printed, without what cannot be seen and lines that are blank."""
    return tuple(line.rstrip() for line in escape.remove_control(text).split("\n") if line.strip())


def is_below_threshold(result: CheckResult) -> bool:
    """Whether the score alone explains a failure."""
    score, bar = _get_score(result), result.evaluator.threshold
    return score is not None and bar is not None and score < bar


def list_findings(result: CheckResult) -> tuple[str, ...]:
    """The details of a judgement, a line each: misses, tool calls, reasoning."""
    judgement = result.judgement
    if judgement is None:
        return ()
    misses = (f"- {miss}" for miss in judgement.misses)
    reasoning = (judgement.reasoning or "").splitlines()
    return (
        *misses,
        *tool_calls.format_diff(judgement.details),
        *(f"- {turn}" for turn in low_scoring_turns(result)),
        *reasoning,
    )


def low_scoring_turns(result: CheckResult) -> tuple[str, ...]:
    """The turns that made a check fail, where the evaluator told nothing but their scores."""
    judgement = result.judgement
    if judgement is None or judgement.misses or tool_calls.find_unmatched_turns(judgement.details):
        return ()
    turns = dict(enumerate(result.case.dialogue, start=1))
    told = [
        f"turn {turn}: "
        f"{_format_distinct_score(score, result.evaluator.threshold)}"
        f"{''.join(_format_turn(turns.get(turn)))}"
        for turn, score in _find_low_turns(result, judgement.turn_scores)
    ]
    return truncate.truncate_list(told, MAX_TURNS)


def _find_low_turns(
    result: CheckResult, turn_scores: Sequence[float | None]
) -> list[tuple[int, float]]:
    """The turns below the threshold, else those of the lowest score; none if it is not to blame."""
    if _reaches_threshold(result):
        return []
    scores = [(turn, score) for turn, score in enumerate(turn_scores, 1) if score is not None]
    least = min((score for _, score in scores), default=0.0)
    bar = result.evaluator.threshold
    low = [each for each in scores if bar is not None and each[1] < bar]
    return low or [each for each in scores if each[1] <= least]


def _format_turn(turn: DialogueTurn | None) -> Iterator[str]:
    """What was asked and answered."""
    if turn is None:
        return
    if turn.question:
        yield f'; asked "{turn.question}"'
    yield "; no answer" if turn.answer is None else f'; answered "{turn.answer}"'


def _reaches_threshold(result: CheckResult) -> bool:
    score, bar = _get_score(result), result.evaluator.threshold
    return score is not None and bar is not None and score >= bar


def _format_score(result: CheckResult) -> str:
    score = _get_score(result)
    return (
        "no score"
        if score is None
        else f"score {_format_distinct_score(score, result.evaluator.threshold)}"
    )


def _get_score(result: CheckResult) -> float | None:
    return None if result.judgement is None else result.judgement.score


def _format_distinct_score(score: float, bar: float | None) -> str:
    """The score, with enough decimals to show on which side of the bar it is."""
    return format_number(score) if bar is None or score >= bar else format_distinct(score, bar)[0]
