"""What an evaluator's program answers: EvalResult, as strict or lax as agentevals 0.11.0 takes it.

Stricter in two points, because there it says "passed" where nobody meant it: a boolean is no
score, and another major version of the protocol is not ours to read.
"""

import math
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.strict_json import readable
from agentci.errors import EvaluatorError
from agentci.evaluators.agentevals.eval_input import VERSION
from agentci.model.json import Json, JsonObject

Verdict: TypeAlias = Literal["PASSED", "FAILED", "NOT_EVALUATED"]

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
MAX_SHOWN: Final = 60


class EvalResult(Struct, frozen=True, kw_only=True):
    """The answer of one program.

    Attributes:
        score: 0 to 1.
        status: the program's own verdict; None leaves it to score and threshold.
        turn_scores: as given: of any number and size, None where a turn has none.
    """

    score: float
    status: Verdict | None
    turn_scores: tuple[float | None, ...]
    details: JsonObject


def eval_result(document: JsonObject) -> EvalResult:
    """Read an answer; fields that are not known are left alone.

    Raises:
        EvaluatorError: a field is missing or holds what it must not.
    """
    _check_version(document.get("protocol_version"))
    return EvalResult(
        score=_score(document),
        status=_status(document.get("status")),
        turn_scores=_turn_scores(document.get("per_invocation_scores", [])),
        details=_details(document.get("details")),
    )


def _check_version(version: Json) -> None:
    ours = VERSION.partition(".")[0]
    if version is not None and str(version).partition(".")[0] != ours:
        raise EvaluatorError(
            f"it speaks protocol {truncate.short(str(version), MAX_SHOWN)}, agentci speaks {ours}.x"
        )


def _score(document: JsonObject) -> float:
    if "score" not in document:
        raise EvaluatorError("score is missing; give a number from 0 to 1, also beside a status")
    given = document["score"]
    number = None if isinstance(given, bool) else _number(given)
    if number is None or not 0 <= number <= 1:
        raise EvaluatorError(f"score is {_shown(given)}, not a number from 0 to 1")
    return number


def _status(given: Json) -> Verdict | None:
    if given is None:
        return None
    for verdict in VERDICTS:
        if given == verdict:
            return verdict
        if isinstance(given, str) and given.upper() == verdict:
            raise EvaluatorError(f"status is {_shown(given)}; write it as {verdict}")
    raise EvaluatorError(f"status is {_shown(given)}, not one of {', '.join(VERDICTS)} or null")


def _turn_scores(given: Json) -> tuple[float | None, ...]:
    if not isinstance(given, list):
        raise EvaluatorError(f"per_invocation_scores is {_shown(given)}, not a list of numbers")
    return tuple(_turn_score(score, index) for index, score in enumerate(given))


def _turn_score(given: Json, index: int) -> float | None:
    number = _number(given)
    if number is None and given is not None:
        where = f"per_invocation_scores[{index}]"
        raise EvaluatorError(f"{where} is {_shown(given)}, neither a number nor null")
    return number


def _details(given: Json) -> JsonObject:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise EvaluatorError(f"details is {_shown(given)}, neither an object nor null")
    return given


def _number(given: Json) -> float | None:
    """A number, also from its text; true and false are 1 and 0."""
    if not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _shown(given: Json) -> str:
    return truncate.short(readable(given), MAX_SHOWN)
