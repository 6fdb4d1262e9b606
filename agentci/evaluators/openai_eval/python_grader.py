"""``python``: a function in the source text of a config, called in a process of its own."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from agentci._util.child_programs import GRADE
from agentci._util.text.format import number
from agentci._util.text.strict_json import compact
from agentci.errors import EvaluatorError
from agentci.evaluators.grader_result import grade_in
from agentci.evaluators.openai_eval.text_graders import Grade
from agentci.model.json import JsonObject
from agentci.model.program import LocalProgram
from agentci.model.requests import ProgramReply, Reply, RunProgram, Task

FUNCTION: Final = "grade"
# As OpenAI runs them.
MEMORY_MB: Final = 2048
NETWORK: Final = False

# What calls the function.
CALLER: Final = LocalProgram(path=GRADE)


class FunctionGrader(Struct, frozen=True, kw_only=True):
    """The grader; ``source`` defines the function."""

    source: str
    timeout_seconds: float

    def asks(self, row: JsonObject) -> tuple[Task, ...]:
        """Have the function called."""
        call = RunProgram(
            program=CALLER,
            stdin=compact({"function": FUNCTION, "source": self.source, **row}),
            timeout_seconds=self.timeout_seconds,
            network=NETWORK,
            memory_mb=MEMORY_MB,
        )
        return (call,)

    def grade(self, row: JsonObject, replies: Sequence[Reply]) -> Grade:
        """Take what it returned.

        Raises:
            EvaluatorError: that is no score from 0 to 1, or nothing.
        """
        del row
        [reply] = replies
        if not isinstance(reply, ProgramReply):
            raise TypeError(f"a function was called, and {type(reply).__name__} came")
        try:
            score = grade_in(reply, network=NETWORK).score
        except EvaluatorError as error:
            raise EvaluatorError(f"{FUNCTION} {error}") from None
        if not 0 <= score <= 1:
            raise EvaluatorError(f"{FUNCTION} returned {number(score)}, not a score from 0 to 1")
        return Grade(score=score, told=f"{FUNCTION} returned {score:.2f}")
