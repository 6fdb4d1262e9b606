"""Parses the verdict in the response of a judge."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from json import JSONDecodeError
from typing import Final

from agentci._util.text.format import format_number
from agentci._util.text.json_document import TooManyBracesError, find_json_objects
from agentci._util.text.json_text import StrictJsonError, decode_strict_json
from agentci._util.text.suggest import quote_name
from agentci.evaluators.prompts import (
    CHECKS,
    ID,
    OVERALL,
    REASONING,
    find_untrusted_texts,
    get_mark_field,
)
from agentci.judges.providers import NoVerdictError, QuotedVerdictError, UnreadableVerdictError
from agentci.model.judges import (
    ChecklistSchema,
    JudgeScore,
    ModelResponse,
    ScoreSchema,
    ScoreValue,
    Verdict,
    VerdictSchema,
)
from agentci.model.values import Json, JsonObject


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
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            if float(value).is_integer() and schema.low <= value <= schema.high:
                return JudgeScore(value=float(value), reason=reason)
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

# A model that thinks aloud does so first.
_THOUGHTS: Final = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCES: Final = ("```", "~~~")
_NUMBER: Final = r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_PLAIN: Final = re.compile(_NUMBER, re.ASCII)
_PERCENT: Final = re.compile(rf"({_NUMBER})\s*%", re.ASCII)
_RATIO: Final = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})", re.ASCII)


def parse_verdict(response: ModelResponse, schema: VerdictSchema, judged: str = "") -> Verdict:
    """Parse the verdict of a whole response.

    A verdict is a JSON object that is the whole response, or the content of its only code fence,
    with no braces outside it. An object with the same value as JSON in what was judged is a
    quotation and never a verdict, whatever its spaces and the order of its keys.

    Args:
        judged: the user message; untrusted text in it is between markers.

    Raises:
        QuotedVerdictError: it repeats JSON from what was judged.
        UnreadableVerdictError: it has no verdict in that form.
        NoVerdictError: it was truncated or refused, contradicts itself, or is too long.
    """
    if response.ending != "complete":
        raise NoVerdictError(explain_incomplete_response(response))
    text = response.text
    if len(text) > MAX_RESPONSE_CHARACTERS:
        raise NoVerdictError(
            f"the judge's response has more than {MAX_RESPONSE_CHARACTERS:,} characters"
        )
    document = _extract_object(text)
    try:
        found = find_json_objects(text)
        if document is not None:
            # Decoded like what it is compared with.
            found = islice(find_json_objects(json.dumps(document)), 1)
        verdicts = [each for each in found if _is_verdict(each, schema)]
        quoted = verdicts and any(each in verdicts for each in _find_judged_objects(judged))
    except TooManyBracesError:
        raise NoVerdictError(TOO_MANY_BRACES) from None
    if quoted:
        raise QuotedVerdictError(QUOTED)
    if document is None:
        raise UnreadableVerdictError(NO_VERDICT if "{" not in text else NOT_ALONE)
    verdict = _parse_verdict(document, schema)
    if verdict is None:
        raise UnreadableVerdictError(NO_VERDICT)
    return verdict


NO_VERDICT: Final = "the judge's response contains no verdict"
NOT_ALONE: Final = (
    "the judge's response is neither one JSON object nor text with one in its only code fence"
)
TOO_MANY_BRACES: Final = "there are too many braces to search for quoted verdicts"
QUOTED: Final = "the judge's response repeats JSON from what it evaluates instead of a verdict"


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


def _extract_object(text: str) -> JsonObject | None:
    """Return the object that is the whole response or in its only code fence, else None.

    Raises:
        UnreadableVerdictError: it has a key twice, or a number out of range.
    """
    answer = _THOUGHTS.sub("", text.lstrip("\ufeff"), count=1).strip()
    for candidate in (answer, _find_fenced_text(answer)):
        if not candidate.lstrip().startswith("{"):
            continue  # so that prose such as `Infinity` is not refused as a number
        try:
            value = decode_strict_json(candidate)
        except JSONDecodeError:
            continue
        except StrictJsonError as error:
            raise UnreadableVerdictError(f"in the judge's response, {error}") from None
        return value if isinstance(value, dict) else None
    return None


def _find_fenced_text(text: str) -> str:
    """Return the text in the only code fence; empty if there are more, or braces outside it."""
    lines = text.split("\n")  # a string in JSON may contain other line separators, but not this one
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith(_FENCES)]
    if len(fences) != 2:  # noqa: PLR2004 (where it opens and where it closes)
        return ""
    first, last = fences
    outside = "".join((*lines[: first + 1], *lines[last:]))
    is_closed = lines[last].strip() in _FENCES and "{" not in outside and "}" not in outside
    return "\n".join(lines[first + 1 : last]) if is_closed else ""


def _is_verdict(document: JsonObject, schema: VerdictSchema) -> bool:
    try:
        return _parse_verdict(document, schema) is not None
    except NoVerdictError:
        return True


def _find_judged_objects(judged: str) -> Iterator[JsonObject]:
    """Find the JSON objects in the untrusted texts of a user message."""
    texts = [text.partition("\n")[2].removesuffix("\n") for text in find_untrusted_texts(judged)]
    for text in texts:
        yield from find_json_objects(text)
    # A template can split a text into lines, words or characters.
    for separator in ("\n", " ", "") if len(texts) > 1 else ():
        yield from find_json_objects(separator.join(texts))


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
