"""``multi``: a formula over the scores of other graders."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.format import number
from agentci.errors import EvaluatorError
from agentci.evaluators.openai_eval.formula import Formula
from agentci.evaluators.openai_eval.text_graders import Grade, Grader
from agentci.model.json import JsonObject
from agentci.model.requests import Reply, Task

# What sums of shares may miss their bounds by, as floats are no exact numbers.
TOLERANCE: Final = 1e-9


class MultiGrader(Struct, frozen=True, kw_only=True):
    """The grader; ``members`` has all the names of its formula."""

    members: Mapping[str, Grader]
    formula: Formula

    def asks(self, row: JsonObject) -> tuple[Task, ...]:
        """What its members ask, one after the other."""
        return tuple(task for each in self.members.values() for task in each.asks(row))

    def grade(self, row: JsonObject, replies: Sequence[Reply]) -> Grade:
        """Compute the formula.

        Raises:
            EvaluatorError: a member cannot grade, or there is no score from 0 to 1.
        """
        grades = dict(self._grades(row, iter(replies)))
        scores = {name: each.score for name, each in grades.items()}
        score = self._value(scores)
        listed = ", ".join(f"{name} {each:.2f}" for name, each in scores.items())
        return Grade(
            score=score,
            told=f"{score:.2f} of {listed}",
            details={
                "scores": scores,
                "graders": {name: each.details for name, each in grades.items()},
            },
            reasoning="; ".join(
                f"{name}: {each.reasoning}" for name, each in grades.items() if each.reasoning
            ),
        )

    def _grades(self, row: JsonObject, replies: Iterator[Reply]) -> Iterator[tuple[str, Grade]]:
        for name, member in self.members.items():
            own = [next(replies) for _ in member.asks(row)]
            try:
                yield name, member.grade(row, own)
            except EvaluatorError as error:
                raise EvaluatorError(f"{name}: {error}") from None

    def _value(self, scores: Mapping[str, float]) -> float:
        try:
            value = self.formula.value(scores)
        except ValueError as error:
            raise EvaluatorError(f"no score comes of `{self.formula.text}`: {error}") from None
        if not -TOLERANCE <= value <= 1 + TOLERANCE:
            raise EvaluatorError(
                f"`{self.formula.text}` comes to {number(value)}, not to a score from 0 to 1"
            )
        return min(1.0, max(0.0, value))
