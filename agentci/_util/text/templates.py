"""Fills ``{{ name }}`` placeholders in one pass; inserted values are never expanded."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentci._util.text import json_text
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.model.values import Json, JsonObject

_STEP: Final = r"\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,9}\]|\[\"[^\"\\\]\n]*\"\]"
_PLACE: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)((?:" + _STEP + r")*)\s*\}\}")
_STEPS: Final = re.compile(_STEP)


class MissingPlaceholderError(Exception):
    """A template names a missing value; the message is a sentence."""


def fill_placeholders(
    template: str,
    values: JsonObject,
    *,
    show: Callable[[str, str], str] = lambda _, text: text,
    leaves_unknown: bool = False,
) -> str:
    """Insert values into a template: strings as they are, other values as JSON.

    Args:
        show: receives the path of a placeholder and its text, and returns the text to insert.
        leaves_unknown: keep placeholders whose path does not exist.

    Raises:
        MissingPlaceholderError: a path does not exist, and ``leaves_unknown`` is False.
    """

    def text_of(place: re.Match[str]) -> str:
        path = place[1] + place[2]
        try:
            value = _resolve_path(values, place[1], _STEPS.findall(place[2]))
        except MissingPlaceholderError:
            if leaves_unknown:
                return place[0]
            raise
        return show(path, value if isinstance(value, str) else json_text.dumps_readable(value))

    return _PLACE.sub(text_of, template)


def list_template_paths(template: str) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """List the placeholders of a template: each a name, and the members and indices after it."""
    return tuple(
        (place[1], tuple(map(_parse_step, _STEPS.findall(place[2]))))
        for place in _PLACE.finditer(template)
    )


def list_template_names(template: str) -> tuple[str, ...]:
    """List the names of the placeholders, each once."""
    return tuple(dict.fromkeys(name for name, _ in list_template_paths(template)))


def _resolve_path(values: JsonObject, name: str, steps: Sequence[str]) -> Json:
    if name not in values:
        hint = suggest_name(name, tuple(values)) or f"use one of {', '.join(values) or '(none)'}"
        raise MissingPlaceholderError(
            f"the template uses the unknown variable {quote_name(name)}; {hint}"
        )
    value, path = values[name], name
    for step in steps:
        value = _get_member(value, step, path)
        path += step
    return value


def _get_member(value: Json, step: str, path: str) -> Json:
    key = _parse_step(step)
    if isinstance(key, str) and isinstance(value, Mapping) and key in value:
        return value[key]
    is_text = isinstance(value, str)
    if isinstance(key, int) and isinstance(value, Sequence) and not is_text and key < len(value):
        return value[key]
    names = tuple(value) if isinstance(value, Mapping) else ()
    meant = suggest_name(f"{key}", names)
    raise MissingPlaceholderError(
        f"the template uses {quote_name(path + step)}, but {path} has no such part"
        f"{f'; {meant}' if meant else ''}"
    )


def _parse_step(step: str) -> str | int:
    if step.startswith("."):
        return step[1:]
    return step[2:-2] if step.startswith('["') else int(step[1:-1])
