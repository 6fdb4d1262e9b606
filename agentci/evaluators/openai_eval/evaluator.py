"""``type: openai_eval``: a grader over every turn, all of which have to pass."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from agentci.errors import EvaluatorError
from agentci.evaluators.constant import settled
from agentci.evaluators.openai_eval.combine_turns import judgement_of
from agentci.evaluators.openai_eval.template_data import line_up
from agentci.evaluators.openai_eval.text_graders import Grade, Grader
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import JsonObject
from agentci.model.judgement import Judgement
from agentci.model.requests import Compose, Need, Reply, Settled, Skip, Task

# A row, and what is asked to grade it.
Asked: TypeAlias = tuple[JsonObject, tuple[Task, ...]]


class OpenAIEvaluator(Struct, frozen=True, kw_only=True):
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
        lined_up = line_up(case, compares=self.identity.needs_golden)
        if isinstance(lined_up, Skip):
            return lined_up
        asked = [(row, self.grader.asks(row)) for row in lined_up.rows]

        def judge(replies: Sequence[Reply]) -> Settled:
            grades = [*self._grades(asked, replies)]
            judgement = judgement_of(
                grades,
                [each.score >= self.least for each in grades],
                least=self.least,
                counts=lined_up.counts,
                turn_mismatch_fails=self.turn_mismatch_fails,
            )
            return Settled(judgement=judgement)

        return Compose(
            parts=tuple((self.identity.name, task) for _, tasks in asked for task in tasks),
            then=judge,
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
