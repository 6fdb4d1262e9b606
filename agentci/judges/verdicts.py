"""Parses the verdict in the response of a judge."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

from agentci._util.text.format import format_number
from agentci._util.text.suggest import quote_name
from agentci.evaluators.prompts.answer_schema import CHECKS, ID, OVERALL, REASONING, get_mark_field
from agentci.judges.provider import NoVerdictError, UnreadableVerdictError
from agentci.model.json import Json, JsonObject
from agentci.model.judges import (
    ChecklistSchema,
    JudgeScore,
    ModelResponse,
    ScoreSchema,
    ScoreValue,
    Verdict,
    VerdictSchema,
)


def parse_checklist_verdict(document: JsonObject, form: ChecklistSchema) -> Verdict | None:
    """Parse an object; None if it is not a checklist or has none of the criteria.

    Raises:
        UnreadableVerdictError: a score does not match the schema.
        NoVerdictError: a criterion has two different scores.
    """
    checks = document.get(CHECKS)
    marks: dict[str, JudgeScore] = {}
    for check in checks if isinstance(checks, list) else ():
        name = check.get(ID) if isinstance(check, Mapping) else None
        if not isinstance(check, Mapping) or name not in form.names:
            continue
        mark = _parse_mark(check, str(name), form)
        if marks.setdefault(str(name), mark).value != mark.value:
            said = f"the judge's reply contradicts itself about {quote_name(str(name))}"
            raise NoVerdictError(said)
    if not marks:
        return None
    # In schema order, whatever the order of the response.
    return Verdict(
        scores={name: marks[name] for name in form.names if name in marks},
        reason=_text_or_empty(document.get(OVERALL)),
    )


def _parse_mark(check: JsonObject, name: str, form: ChecklistSchema) -> JudgeScore:
    value, reason = check.get(get_mark_field(form)), _text_or_empty(check.get(REASONING))
    match form.kind:
        case "boolean" if isinstance(value, bool):
            return JudgeScore(value=value, reason=reason)
        case "label" if isinstance(value, str) and value in form.labels:
            return JudgeScore(value=value, reason=reason)
        case "number" if isinstance(value, float) and value.is_integer():
            if form.low <= value <= form.high:
                return JudgeScore(value=value, reason=reason)
        case _:
            pass
    wanted = {
        "boolean": "neither true nor false",
        "label": f"none of {', '.join(form.labels)}",
        "number": f"no whole number from {form.low} to {form.high}",
    }
    raise UnreadableVerdictError(f"the judge's mark for {quote_name(name)} is {wanted[form.kind]}")


def _text_or_empty(value: Json) -> str:
    return value if isinstance(value, str) else ""


VALUE_KEYS: Final = ("score", "result", "pass", "passed", "verdict", "rating")
REASON_KEYS: Final = ("reasoning", "reason", "explanation")
TRUE_WORDS: Final = frozenset({"true", "pass", "passed", "yes", "valid"})
FALSE_WORDS: Final = frozenset({"false", "fail", "failed", "no", "invalid"})
# The notes that AgentV 4 combines in one list.
HITS, MISSES, ASSERTIONS = "hits", "misses", "assertions"
MAX_RESPONSE_CHARACTERS: Final = 200_000

_QUOTES: Final = re.compile("[\"'“”]")
_NUMBER: Final = r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_PLAIN: Final = re.compile(_NUMBER, re.ASCII)
_PERCENT: Final = re.compile(rf"({_NUMBER})\s*%", re.ASCII)
_RATIO: Final = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})", re.ASCII)
_BRACE: Final = re.compile("[{}]")


def parse_verdict(response: ModelResponse, form: VerdictSchema) -> Verdict:
    """Parse the verdict of a whole response.

    Raises:
        UnreadableVerdictError: it contains no verdict.
        NoVerdictError: it was truncated or refused, or contradicts itself.
    """
    if response.ending != "complete":
        raise NoVerdictError(explain_incomplete_response(response))
    verdicts = [
        verdict
        for document in _find_objects(response.text)
        if (verdict := _parse_verdict(document, form)) is not None
    ]
    if not verdicts:
        raise UnreadableVerdictError("the judge's reply holds no verdict")
    if any(verdict.values != verdicts[0].values for verdict in verdicts):
        raise NoVerdictError("the judge's reply holds verdicts that contradict each other")
    return verdicts[0]


def explain_incomplete_response(response: ModelResponse) -> str:
    """Explain why a response that did not complete has no verdict."""
    said = f" ({response.finish_reason})" if response.finish_reason else ""
    match response.ending:
        case "truncated":
            return f"the judge's reply was cut off{said}: allow it more tokens"
        case "refused":
            return f"the judge's service or model refused to reply{said}"
        case _:
            return f"the judge's reply ended in an unknown way{said}"


def _find_objects(text: str) -> Iterator[JsonObject]:
    """Find the top-level JSON objects in a response.

    Raises:
        UnreadableVerdictError: an object cannot be parsed. Text in or after it may be a quotation,
            so that none of it is used.
        NoVerdictError: the response is too long to send back for correction.
    """
    if len(text) > MAX_RESPONSE_CHARACTERS:
        raise NoVerdictError("the judge's reply is far too long for a verdict")
    end = 0
    while (brace := _BRACE.search(text, end)) is not None:
        start = brace.start()
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _find_closing_brace(text, start)
            if brace[0] == "}" or _QUOTES.search(text, start, end):
                raise UnreadableVerdictError(
                    "the judge's reply holds JSON that is broken"
                ) from None
        else:
            yield value


def _find_closing_brace(text: str, start: int) -> int:
    """Find the end of the brace pair that opens at ``start``, or the end of the text."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _parse_verdict(document: JsonObject, form: VerdictSchema) -> Verdict | None:
    if isinstance(form, ChecklistSchema):
        return parse_checklist_verdict(document, form)
    names = dict.fromkeys((form.value_name, *VALUE_KEYS))
    given = [document[name] for name in names if name in document]
    values = [value for each in given if (value := _parse_value(each, form)) is not None]
    if not values:
        return None
    if form.kind != "number" and len(set(values)) > 1:
        raise NoVerdictError("the judge's reply holds verdicts that contradict each other")
    value = values[0]
    if isinstance(value, float) and not form.low <= value <= form.high:
        low, high = format_number(form.low), format_number(form.high)
        said = f"the judge's score is {format_number(value)}, not from {low} to {high}"
        raise UnreadableVerdictError(said)
    reasons = (document.get(name) for name in (form.reason_name, *REASON_KEYS))
    details = document.get("details")
    return Verdict(
        scores={form.value_name: JudgeScore(value=value)},
        reason=next((each for each in reasons if isinstance(each, str)), ""),
        notes=_parse_notes(document, form),
        details=details if isinstance(details, dict) else {},
    )


def _parse_notes(document: JsonObject, form: ScoreSchema) -> dict[str, tuple[str, ...]]:
    given = {name: _filter_texts(document.get(name)) for name in form.notes}
    if any(given.values()):
        return given
    listed = document.get(ASSERTIONS)
    asserted = [_parse_assertion(each) for each in (listed if isinstance(listed, list) else [])]
    return {name: tuple(said for whose, said in asserted if whose == name) for name in form.notes}


def _parse_assertion(given: Json) -> tuple[str, str]:
    """Return the note an assertion belongs to and its text; an empty note if unknown."""
    if not isinstance(given, dict):
        return "", ""
    holds = _parse_boolean(given.get("passed"))
    said = [
        text.strip()
        for text in (given.get("text"), given.get("evidence"))
        if isinstance(text, str) and text.strip()
    ]
    note = "" if holds is None or not said else HITS if holds else MISSES
    return note, ": ".join(said)


def _filter_texts(value: Json) -> tuple[str, ...]:
    """List the texts in a list, without blank ones."""
    given = value if isinstance(value, list) else []
    return tuple(each for each in given if isinstance(each, str) and each.strip())


def _parse_value(value: Json, form: ScoreSchema) -> ScoreValue | None:
    """Parse a value of the requested kind; None if it is of another kind."""
    match form.kind:
        case "boolean":
            return _parse_boolean(value)
        case "label":
            word = value.strip() if isinstance(value, str) else ""
            return word if word in form.labels else None
        case _:
            return _parse_number(value, form)


def _parse_number(value: Json, form: ScoreSchema) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if form.is_bounded:
        return _parse_numeric_text(text)
    return (
        float(text) if _PLAIN.fullmatch(text) else None
    )  # no percentages or ratios without bounds


def _parse_boolean(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    return word in TRUE_WORDS if word in TRUE_WORDS | FALSE_WORDS else None


def _parse_numeric_text(text: str) -> float | None:
    if _PLAIN.fullmatch(text):
        return float(text)
    if percent := _PERCENT.fullmatch(text):
        return float(percent[1]) / 100
    if (ratio := _RATIO.fullmatch(text)) and float(ratio[2]) > 0:
        return float(ratio[1]) / float(ratio[2])
    return None


def _reject_duplicate_keys(pairs: list[tuple[str, Json]]) -> JsonObject:
    """Build an object; its keys must be unique."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return value


def _parse_finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


# Integers are parsed as floats, because very long ones cannot be printed.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_reject_duplicate_keys,
    parse_constant=_parse_finite_float,
    parse_float=_parse_finite_float,
    parse_int=_parse_finite_float,
)
