"""``type: grader``: a Python function, ``grade(sample, item)``, that returns a score."""

from typing import Final

from msgspec import Struct

from agentci._util.text.format import number
from agentci._util.text.strict_json import compact
from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.eval_result import EvalResult
from agentci.evaluators.agentevals.threshold import threshold_of
from agentci.evaluators.agentevals.truncate_result import without_excess
from agentci.evaluators.grader_payload import graded
from agentci.evaluators.grader_result import Grade, grade_in
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.judgement import Judgement
from agentci.model.place import Place
from agentci.model.program import Wanted
from agentci.model.requests import Need, ProgramReply, Reply, RunProgram
from agentci.model.values import replace

REASONS: Final = ("reason", "reasoning")


class Grader(Struct, frozen=True, kw_only=True):
    """A function that grades one case at a time, in a process of its own.

    Attributes:
        function: its name in the file.
        run: how its program is run, whatever it reads.
        program_place: where the config names the program.
    """

    identity: Identity
    function: str
    run: RunProgram
    program_place: Place

    @property
    def needs(self) -> tuple[Need, ...]:
        """The file with the function."""
        name = self.identity.name
        return (Wanted(program=self.run.program, name=name, place=self.program_place),)

    def ask(self, case: Case) -> RunProgram:
        """Have the function called with what was recorded, and with the row of the case."""
        return replace(self.run, stdin=compact({"function": self.function, **graded(case)}))

    def read(self, reply: Reply) -> Judgement:
        """Judge by the score.

        Raises:
            EvaluatorError: there is none, which is not a 0.
        """
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a grader was asked for, not {type(reply).__name__}")
        try:
            grade = grade_in(reply, network=self.run.network, in_image=bool(self.run.image))
            return judgement_of(grade, threshold=threshold_of(self.identity))
        except EvaluatorError as error:
            raise EvaluatorError(f"Custom evaluator '{self.identity.name}' {error}") from None


def judgement_of(grade: Grade, *, threshold: float) -> Judgement:
    """What a grade comes to.

    Raises:
        EvaluatorError: it is not from 0 to 1.
    """
    if not 0 <= grade.score <= 1:
        raise EvaluatorError(f"returned {number(grade.score)}, not a score from 0 to 1")
    result = EvalResult(score=grade.score, status=None, turn_scores=(), details=grade.details)
    details = without_excess(result, size=grade.size, shown=REASONS).details
    reasons = (details.get(name) for name in REASONS)
    return Judgement(
        score=grade.score,
        passed=grade.score >= threshold,
        reasoning=next((each for each in reasons if isinstance(each, str) and each.strip()), None),
        details=details,
    )
