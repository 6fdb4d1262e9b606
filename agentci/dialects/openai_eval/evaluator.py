"""``type: openai_eval``: a grader over every turn, all of which have to pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TypeAlias

from agentci.dialects.openai_eval.graders import Grade, Grader
from agentci.dialects.openai_eval.rows import row_of
from agentci.dialects.settled import settled
from agentci.dialects.turns import turn_mismatch
from agentci.errors import EvaluatorError
from agentci.metrics.base import mean, turn_counts
from agentci.model.case import Case
from agentci.model.exchange import Compose, Need, Reply, Settled, Skip, Task
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.text.words import count

# A row, and what is asked to grade it.
Asked: TypeAlias = tuple[JsonObject, tuple[Task, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIEvaluator:
    """The evaluator.

    Attributes:
        needs: who grades, and what calls functions that do.
        least: the score that every turn has to reach.
        turn_mismatch_fails: whether missing or unexpected turns fail a case whatever its score,
            where it compares with golden turns.
    """

    identity: Identity
    grader: Grader
    least: float
    needs: tuple[Need, ...] = ()
    turn_mismatch_fails: bool = True

    def ask(self, case: Case) -> Compose | Skip:
        """Have done what the grader needs for each turn, then grade them."""
        actual, golden = case.trace.turns, case.golden.turns if case.golden else ()
        if self.identity.needs_golden and not golden:
            return Skip(reason=case.no_golden_because or "the golden case has no turns")
        counts = turn_counts(actual, golden) if self.identity.needs_golden else {}
        graded = actual[: len(golden)] if self.identity.needs_golden else actual
        rows = [row_of(case, mine, its) for mine, its in zip_longest(graded, golden[: len(graded)])]
        asked = [(row, self.grader.asks(row)) for row in rows]
        return Compose(
            parts=tuple((self.identity.name, task) for _, tasks in asked for task in tasks),
            then=lambda replies: Settled(
                judgement=self._judge([*self._grades(asked, replies)], counts)
            ),
        )

    def read(self, reply: Reply) -> Judgement:
        """What came of it."""
        return settled(reply)

    def _grades(self, asked: Sequence[Asked], replies: Sequence[Reply]) -> Iterator[Grade]:
        rest = iter(replies)
        for number, (row, tasks) in enumerate(asked, start=1):
            try:
                yield self.grader.grade(row, tuple(islice(rest, len(tasks))))
            except EvaluatorError as error:
                raise EvaluatorError(f"turn {number}: {error}") from None

    def _judge(self, grades: Sequence[Grade], counts: JsonObject) -> Judgement:
        """Every turn has to pass; the score is their mean."""
        scores = tuple(each.score for each in grades)
        misses = tuple(
            f"turn {number}: {each.told}"
            for number, each in enumerate(grades, start=1)
            if each.score < self.least
        )
        score = mean(scores)
        mismatch = turn_mismatch(len(grades), counts) if self.turn_mismatch_fails else None
        reason = mismatch
        if misses:
            short = f"{count(len(misses), 'turn')} of {len(grades)} fell short"
            reason = short if score >= self.least else None
        return Judgement(
            score=score,
            passed=not misses and mismatch is None,
            reason=reason,
            turn_scores=scores,
            misses=(mismatch, *misses) if misses and mismatch else misses,
            reasoning=_reasoning(grades),
            details={
                "results": [
                    {"score": each.score, "passed": each.score >= self.least, **each.details}
                    for each in grades
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
