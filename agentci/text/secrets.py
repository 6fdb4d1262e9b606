"""Text without what only programs are to know."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from agentci.model.json import Json, JsonObject

HIDDEN: Final = "***"
# A line of a longer secret that is shorter than this says nothing, and stands everywhere.
MIN_LINE: Final = 8


def without(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` with a mark for each of ``secrets``, none of which is empty.

    They are found as they are, line by line, and as JSON and addresses write them; not in whatever
    other ways there are to write them.
    """
    for form in _forms(secrets):
        text = text.replace(form, HIDDEN)
    return text


def without_in(members: JsonObject, secrets: tuple[str, ...]) -> JsonObject:
    """``members`` with all texts and names as ``without`` leaves them."""
    return {without(name, secrets): _clean(value, secrets) for name, value in members.items()}


def _clean(value: Json, secrets: tuple[str, ...]) -> Json:
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, Mapping):
        return without_in(value, secrets)
    if isinstance(value, list | tuple):
        return [_clean(each, secrets) for each in value]
    return value


@lru_cache(maxsize=16)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """How they may be written, long ones first, of which others may be parts."""
    forms = {form for secret in secrets for form in _forms_of(secret)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _forms_of(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="", errors="backslashreplace")
    yield secret.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    yield from (line for line in secret.splitlines() if len(line) >= MIN_LINE)
