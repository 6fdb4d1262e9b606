"""What the grades of all turns come to."""

from collections.abc import Sequence

from agentci._util.text.format import count
from agentci.evaluators.metrics.metric import mean
from agentci.evaluators.openai_eval.text_graders import Grade
from agentci.evaluators.turn_mismatch import turn_mismatch
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement


def judgement_of(
    grades: Sequence[Grade],
    passed: Sequence[bool],
    *,
    least: float,
    counts: JsonObject,
    turn_mismatch_fails: bool,
) -> Judgement:
    """Every turn has to pass; the score is their mean.

    Args:
        passed: a turn each.
        least: the score that passes.
        counts: of turns without a partner.
        turn_mismatch_fails: whether such turns fail the case.
    """
    misses = tuple(
        f"turn {number}: {grade.told}"
        for number, (grade, passes) in enumerate(zip(grades, passed, strict=True), start=1)
        if not passes
    )
    scores = tuple(each.score for each in grades)
    score = mean(scores)
    mismatch = turn_mismatch(len(grades), counts) if turn_mismatch_fails else None
    reason = mismatch
    if misses:
        short = f"{count(len(misses), 'turn')} of {len(grades)} fell short"
        reason = short if score >= least else None
    return Judgement(
        score=score,
        passed=not misses and mismatch is None,
        reason=reason,
        turn_scores=scores,
        misses=(mismatch, *misses) if misses and mismatch else misses,
        reasoning=_reasoning(grades),
        details={
            "results": [
                {"score": grade.score, "passed": passes, **grade.details}
                for grade, passes in zip(grades, passed, strict=True)
            ],
            **counts,
        },
    )


def _reasoning(grades: Sequence[Grade]) -> str | None:
    """What models said, turn by turn where there are several."""
    several = len(grades) > 1
    lines = (
        f"turn {number}: {each.reasoning}" if several else each.reasoning
        for number, each in enumerate(grades, start=1)
        if each.reasoning
    )
    return "\n".join(lines) or None
