"""What a function that grades returned, as ``shims/grading/grade.py`` prints it."""

from typing import Final

from msgspec import Struct

from agentci.errors import EvaluatorError
from agentci.evaluators.process_errors import ending, silence
from agentci.evaluators.program_output import EXAMPLE, parse_output
from agentci.model.json import JsonObject
from agentci.model.requests import ProgramReply

SCORE: Final = "score"


class Grade(Struct, frozen=True, kw_only=True):
    """What came back of one call.

    Attributes:
        score: any finite number.
        details: what else the function returned, in a dict.
        size: how many bytes all of it was printed in.
    """

    score: float
    details: JsonObject
    size: int


def grade_in(reply: ProgramReply, *, network: bool = True, in_image: bool = False) -> Grade:
    """Read a reply.

    Args:
        network: whether the function had one.
        in_image: whether it ran in an image.

    Raises:
        EvaluatorError: it raised, or returned no number; as the end of a sentence about it.
    """
    if reply.exit_code != 0:
        raise EvaluatorError(ending(reply, network=network, in_image=in_image))
    if not reply.stdout:  # the function has ended its process
        raise EvaluatorError(silence(reply, EXAMPLE))
    try:
        document = parse_output(reply.stdout)
    except EvaluatorError as error:
        raise EvaluatorError(f"returned what is no JSON: {error}") from None
    score = document.get(SCORE)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise EvaluatorError("printed a result of its own, without a score; return it")
    details = {name: value for name, value in document.items() if name != SCORE}
    return Grade(score=float(score), details=details, size=len(reply.stdout))
