"""What a code judge answers, in either shape: hits and misses, or assertions."""

from collections.abc import Iterator
from typing import Final

from agentci._util.text import truncate
from agentci.evaluators.agentv.verdict import Finding, clamped
from agentci.model.json import Json, JsonObject

MAX_KEPT_BYTES: Final = 256 * 1024
MAX_LINES: Final = 100
MAX_LINE: Final = 1_000

NO_SCORE: Final = "the judge gave no `score` as a number, which counts as 0"


def finding_in(document: JsonObject, *, size: int, prefers_assertions: bool) -> Finding:
    """Read an answer as laxly as AgentV does: what is not as it should be is passed over.

    Args:
        size: bytes that it was printed in; of a large one only the beginning is kept.
        prefers_assertions: whether they count where both shapes are given, as in AgentV 4.
    """
    asserted = list(_assertions(document.get("assertions")))
    told = [*_texts(document.get("hits"))], [*_texts(document.get("misses"))]
    if asserted and (prefers_assertions or not any(told)):
        told = [t for t, passed in asserted if passed], [t for t, passed in asserted if not passed]
    score, reason = _score(document.get("score"), asserted)
    reasoning, details = document.get("reasoning"), document.get("details")
    kept = size <= MAX_KEPT_BYTES
    hits, misses = (tuple(each) if kept else _beginning(each) for each in told)
    return Finding(
        score=score,
        hits=hits,
        misses=misses,
        reasoning=reasoning if isinstance(reasoning, str) and reasoning.strip() else None,
        details=details if kept and isinstance(details, dict) else {},
        reason=reason,
    )


def _score(given: Json, asserted: list[tuple[str, bool]]) -> tuple[float, str | None]:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return clamped(given), None
    if asserted and given is None:
        return sum(passed for _, passed in asserted) / len(asserted), None
    return 0.0, NO_SCORE


def _texts(given: Json) -> Iterator[str]:
    for each in given if isinstance(given, list) else ():
        if isinstance(each, str) and each.strip():
            yield each


def _assertions(given: Json) -> Iterator[tuple[str, bool]]:
    for each in given if isinstance(given, list) else ():
        text = each.get("text") if isinstance(each, dict) else None
        if isinstance(text, str):
            yield text, bool(each.get("passed"))


def _beginning(lines: list[str]) -> tuple[str, ...]:
    return truncate.listed([truncate.characters(line, MAX_LINE) for line in lines], MAX_LINES)
