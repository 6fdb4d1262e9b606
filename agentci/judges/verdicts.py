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


def parse_checklist_verdict(document: JsonObject, schema: ChecklistSchema) -> Verdict | None:
    """Parse an object; None if it is not a checklist or has none of the criteria.

    Raises:
        UnreadableVerdictError: a score does not match the schema.
        NoVerdictError: a criterion has two different scores.
    """
    checks = document.get(CHECKS)
    scores: dict[str, JudgeScore] = {}
    for check in checks if isinstance(checks, list) else ():
        name = check.get(ID) if isinstance(check, Mapping) else None
        if not isinstance(check, Mapping) or name not in schema.names:
            continue
        score = _parse_mark(check, str(name), schema)
        if scores.setdefault(str(name), score).value != score.value:
            raise NoVerdictError(
                f"the judge's response contradicts itself on {quote_name(str(name))}"
            )
    if not scores:
        return None
    # In schema order, whatever the order of the response.
    return Verdict(
        scores={name: scores[name] for name in schema.names if name in scores},
        reason=_text_or_empty(document.get(OVERALL)),
    )


def _parse_mark(check: JsonObject, name: str, schema: ChecklistSchema) -> JudgeScore:
    value, reason = check.get(get_mark_field(schema)), _text_or_empty(check.get(REASONING))
    match schema.kind:
        case "boolean" if isinstance(value, bool):
            return JudgeScore(value=value, reason=reason)
        case "label" if isinstance(value, str) and value in schema.labels:
            return JudgeScore(value=value, reason=reason)
        case "number" if isinstance(value, float) and value.is_integer():
            if schema.low <= value <= schema.high:
                return JudgeScore(value=value, reason=reason)
        case _:
            pass
    problems = {
        "boolean": "not true or false",
        "label": f"not one of {', '.join(schema.labels)}",
        "number": f"not a whole number from {schema.low} to {schema.high}",
    }
    raise UnreadableVerdictError(
        f"the judge's score for {quote_name(name)} is {problems[schema.kind]}"
    )


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


def parse_verdict(response: ModelResponse, schema: VerdictSchema) -> Verdict:
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
        if (verdict := _parse_verdict(document, schema)) is not None
    ]
    if not verdicts:
        raise UnreadableVerdictError("the judge's response contains no verdict")
    if any(verdict.values != verdicts[0].values for verdict in verdicts):
        raise NoVerdictError("the judge's response contains contradictory verdicts")
    return verdicts[0]


def explain_incomplete_response(response: ModelResponse) -> str:
    """Explain why a response that did not complete has no verdict."""
    reason = f" ({response.finish_reason})" if response.finish_reason else ""
    match response.ending:
        case "truncated":
            return f"the judge's response was truncated{reason}; raise `max_output_tokens`"
        case "refused":
            return f"the judge's service or model refused to respond{reason}"
        case _:
            return f"the judge's response ended for an unknown reason{reason}"


def _find_objects(text: str) -> Iterator[JsonObject]:
    """Find the top-level JSON objects in a response.

    Raises:
        UnreadableVerdictError: an object cannot be parsed. Text in or after it may be a quotation,
            so that none of it is used.
        NoVerdictError: the response is too long to send back for correction.
    """
    if len(text) > MAX_RESPONSE_CHARACTERS:
        raise NoVerdictError(
            f"the judge's response has more than {MAX_RESPONSE_CHARACTERS:,} characters"
        )
    end = 0
    while (brace := _BRACE.search(text, end)) is not None:
        start = brace.start()
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _find_closing_brace(text, start)
            if brace[0] == "}" or _QUOTES.search(text, start, end):
                raise UnreadableVerdictError("the judge's response contains invalid JSON") from None
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


def _parse_verdict(document: JsonObject, schema: VerdictSchema) -> Verdict | None:
    if isinstance(schema, ChecklistSchema):
        return parse_checklist_verdict(document, schema)
    names = dict.fromkeys((schema.value_name, *VALUE_KEYS))
    found = [document[name] for name in names if name in document]
    values = [value for each in found if (value := _parse_value(each, schema)) is not None]
    if not values:
        return None
    if schema.kind != "number" and len(set(values)) > 1:
        raise NoVerdictError("the judge's response contains contradictory verdicts")
    value = values[0]
    if isinstance(value, float) and not schema.low <= value <= schema.high:
        low, high = format_number(schema.low), format_number(schema.high)
        raise UnreadableVerdictError(
            f"the judge's score is {format_number(value)}; it must be from {low} to {high}"
        )
    reasons = (document.get(name) for name in (schema.reason_name, *REASON_KEYS))
    details = document.get("details")
    return Verdict(
        scores={schema.value_name: JudgeScore(value=value)},
        reason=next((each for each in reasons if isinstance(each, str)), ""),
        notes=_parse_notes(document, schema),
        details=details if isinstance(details, dict) else {},
    )


def _parse_notes(document: JsonObject, schema: ScoreSchema) -> dict[str, tuple[str, ...]]:
    found = {name: _filter_texts(document.get(name)) for name in schema.notes}
    if any(found.values()):
        return found
    items = document.get(ASSERTIONS)
    assertions = [_parse_assertion(each) for each in (items if isinstance(items, list) else [])]
    return {
        name: tuple(texts for whose, texts in assertions if whose == name) for name in schema.notes
    }


def _parse_assertion(found: Json) -> tuple[str, str]:
    """Return the note an assertion belongs to and its text; an empty note if unknown."""
    if not isinstance(found, dict):
        return "", ""
    passed = _parse_boolean(found.get("passed"))
    texts = [
        text.strip()
        for text in (found.get("text"), found.get("evidence"))
        if isinstance(text, str) and text.strip()
    ]
    note = "" if passed is None or not texts else HITS if passed else MISSES
    return note, ": ".join(texts)


def _filter_texts(value: Json) -> tuple[str, ...]:
    """List the texts in a list, without blank ones."""
    found = value if isinstance(value, list) else []
    return tuple(each for each in found if isinstance(each, str) and each.strip())


def _parse_value(value: Json, schema: ScoreSchema) -> ScoreValue | None:
    """Parse a value of the requested kind; None if it is of another kind."""
    match schema.kind:
        case "boolean":
            return _parse_boolean(value)
        case "label":
            word = value.strip() if isinstance(value, str) else ""
            return word if word in schema.labels else None
        case _:
            return _parse_number(value, schema)


def _parse_number(value: Json, schema: ScoreSchema) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if schema.is_bounded:
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
        raise ValueError("duplicate key")
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
