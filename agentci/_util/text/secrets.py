"""Removes secrets from text."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from agentci._util.text.truncate import ELLIPSIS
from agentci.model.json import Json, JsonObject

HIDDEN: Final = "***"
# Shorter lines of a multi-line secret reveal nothing and are common in other text.
MIN_LINE_CHARACTERS: Final = 8
# Of a truncated secret, at most fewer characters than this stay readable.
MIN_PART_CHARACTERS: Final = 4


def redact(text: str, secrets: tuple[str, ...]) -> str:
    """Replace each of ``secrets`` in ``text``; none of them may be empty.

    Finds a secret as it is, line by line, escaped as in JSON, URLs and Python, and truncated with
    an ellipsis; other encodings are not found.
    """
    forms = _list_spellings(secrets)
    for form in forms:
        text = text.replace(form, HIDDEN)
    first, *others = text.split(ELLIPSIS)
    if not others:
        return text
    backwards = tuple(form[::-1] for form in forms)
    begun = [*(_redact_truncated(each, forms) for each in (first, *others[:-1])), others[-1]]
    ended = (_redact_truncated(each[::-1], backwards)[::-1] for each in begun[1:])
    return ELLIPSIS.join([begun[0], *ended])


def redact_members(members: JsonObject, secrets: tuple[str, ...]) -> JsonObject:
    """Redact all texts and names in ``members``."""
    return {redact(name, secrets): _redact_value(value, secrets) for name, value in members.items()}


def _redact_value(value: Json, secrets: tuple[str, ...]) -> Json:
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, Mapping):
        return redact_members(value, secrets)
    if isinstance(value, list | tuple):
        return [_redact_value(each, secrets) for each in value]
    return HIDDEN if str(value) in secrets else value


def _redact_truncated(text: str, forms: tuple[str, ...]) -> str:
    """Replace the beginning of a secret at the end of ``text``."""
    last = text[-MIN_PART_CHARACTERS:]
    if len(last) < MIN_PART_CHARACTERS:
        return text
    for form in forms:
        at = form.rfind(last)
        while at >= 0:
            begun = form[: at + MIN_PART_CHARACTERS]
            if text.endswith(begun):
                return text.removesuffix(begun) + HIDDEN
            at = form.rfind(last, 0, at + MIN_PART_CHARACTERS - 1)
    return text


@lru_cache(maxsize=16)
def _list_spellings(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """List the spellings of secrets, longest first, as shorter ones may be parts of others."""
    forms = {form for secret in secrets for form in _iterate_spellings(secret)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _iterate_spellings(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    # Python uses double quotes only for text with single but no double quotes, else it escapes.
    written = repr(f"{secret}'\"")[1:-4]
    yield from (written, written.replace("\\'", "'"))
    yield quote(secret, safe="", errors="backslashreplace")
    yield secret.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    yield from (line for line in secret.splitlines() if len(line) >= MIN_LINE_CHARACTERS)
