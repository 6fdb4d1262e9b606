"""Reads verdicts out of replies: however they are dressed, but never by guessing."""

import json
import math
import re
from collections.abc import Iterator
from typing import Final

from agentci._util.text.format import number
from agentci.judges.checklists import verdict_in_checklist
from agentci.judges.provider import NoVerdictError, UnreadableError
from agentci.model.json import Json, JsonObject
from agentci.model.judging import AnyForm, Checklist, Form, ModelReply
from agentci.model.ruling import Mark, Value, Verdict

VALUE_NAMES: Final = ("score", "result", "pass", "passed", "verdict", "rating")
REASON_NAMES: Final = ("reasoning", "reason", "explanation")
YES: Final = frozenset({"true", "pass", "passed", "yes", "valid"})
NO: Final = frozenset({"false", "fail", "failed", "no", "invalid"})
# The notes that AgentV 4 makes one list of.
HITS, MISSES, ASSERTIONS = "hits", "misses", "assertions"
MAX_CHARACTERS: Final = 200_000

_QUOTES: Final = re.compile("[\"'“”]")
_NUMBER: Final = r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_PLAIN: Final = re.compile(_NUMBER, re.ASCII)
_PERCENT: Final = re.compile(rf"({_NUMBER})\s*%", re.ASCII)
_RATIO: Final = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})", re.ASCII)
_BRACE: Final = re.compile("[{}]")


def read_verdict(reply: ModelReply, form: AnyForm) -> Verdict:
    """What a whole reply says.

    Raises:
        UnreadableError: there is no verdict in it.
        NoVerdictError: it was cut off or withheld, or it contradicts itself.
    """
    if reply.ending != "complete":
        raise NoVerdictError(unfinished(reply))
    verdicts = [
        verdict
        for document in _objects(reply.text)
        if (verdict := _verdict_in(document, form)) is not None
    ]
    if not verdicts:
        raise UnreadableError("the judge's reply holds no verdict")
    if any(verdict.values != verdicts[0].values for verdict in verdicts):
        raise NoVerdictError("the judge's reply holds verdicts that contradict each other")
    return verdicts[0]


def unfinished(reply: ModelReply) -> str:
    """Why a reply is none, of one that did not come to its own end."""
    said = f" ({reply.finish_reason})" if reply.finish_reason else ""
    match reply.ending:
        case "truncated":
            return f"the judge's reply was cut off{said}: allow it more tokens"
        case "refused":
            return f"the judge's service or model refused to reply{said}"
        case _:
            return f"the judge's reply ended in an unknown way{said}"


def _objects(text: str) -> Iterator[JsonObject]:
    """The JSON objects in a reply that stand in no other.

    Raises:
        UnreadableError: something like one cannot be read. What is inside of it or behind it may
            be a quotation, so none of it is believed.
        NoVerdictError: it is too long to be sent back.
    """
    if len(text) > MAX_CHARACTERS:
        raise NoVerdictError("the judge's reply is far too long for a verdict")
    end = 0
    while (brace := _BRACE.search(text, end)) is not None:
        start = brace.start()
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _end_of_group(text, start)
            if brace[0] == "}" or _QUOTES.search(text, start, end):
                raise UnreadableError("the judge's reply holds JSON that is broken") from None
        else:
            yield value


def _end_of_group(text: str, start: int) -> int:
    """Where the braces that open at ``start`` are closed again, or the end of the text."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _verdict_in(document: JsonObject, form: AnyForm) -> Verdict | None:
    if isinstance(form, Checklist):
        return verdict_in_checklist(document, form)
    names = dict.fromkeys((form.value_name, *VALUE_NAMES))
    given = [document[name] for name in names if name in document]
    values = [value for each in given if (value := _value(each, form)) is not None]
    if not values:
        return None
    if form.kind != "number" and len(set(values)) > 1:
        raise NoVerdictError("the judge's reply holds verdicts that contradict each other")
    value = values[0]
    if isinstance(value, float) and not form.low <= value <= form.high:
        low, high = number(form.low), number(form.high)
        said = f"the judge's score is {number(value)}, not from {low} to {high}"
        raise UnreadableError(said)
    reasons = (document.get(name) for name in (form.reason_name, *REASON_NAMES))
    details = document.get("details")
    return Verdict(
        marks={form.value_name: Mark(value=value)},
        reason=next((each for each in reasons if isinstance(each, str)), ""),
        notes=_notes(document, form),
        details=details if isinstance(details, dict) else {},
    )


def _notes(document: JsonObject, form: Form) -> dict[str, tuple[str, ...]]:
    given = {name: _texts(document.get(name)) for name in form.notes}
    if any(given.values()):
        return given
    listed = document.get(ASSERTIONS)
    asserted = [_assertion(each) for each in (listed if isinstance(listed, list) else [])]
    return {name: tuple(said for whose, said in asserted if whose == name) for name in form.notes}


def _assertion(given: Json) -> tuple[str, str]:
    """Which note an assertion is one of, and what it says; of neither where that cannot be told."""
    if not isinstance(given, dict):
        return "", ""
    holds = _holds(given.get("passed"))
    said = [
        text.strip()
        for text in (given.get("text"), given.get("evidence"))
        if isinstance(text, str) and text.strip()
    ]
    note = "" if holds is None or not said else HITS if holds else MISSES
    return note, ": ".join(said)


def _texts(value: Json) -> tuple[str, ...]:
    """The texts in a list, blank ones left out."""
    given = value if isinstance(value, list) else []
    return tuple(each for each in given if isinstance(each, str) and each.strip())


def _value(value: Json, form: Form) -> Value | None:
    """A value of the kind that was asked for; None where it is of another."""
    match form.kind:
        case "boolean":
            return _holds(value)
        case "label":
            word = value.strip() if isinstance(value, str) else ""
            return word if word in form.labels else None
        case _:
            return _grade(value, form)


def _grade(value: Json, form: Form) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if form.is_bounded:
        return _written(text)
    return float(text) if _PLAIN.fullmatch(text) else None  # parts of what, nobody says


def _holds(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    return word in YES if word in YES | NO else None


def _written(text: str) -> float | None:
    if _PLAIN.fullmatch(text):
        return float(text)
    if percent := _PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    if (ratio := _RATIO.fullmatch(text)) and float(ratio[2]) > 0:
        return float(ratio[1]) / float(ratio[2])
    return None


def _members(pairs: list[tuple[str, Json]]) -> JsonObject:
    """An object, each name of which stands in it once."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# Integers are floats here, because some are too long to be written.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_finite, parse_float=_finite, parse_int=_finite
)
