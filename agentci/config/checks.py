"""Items of `checks:` in a config: their names, and which of them are not checks.

Imports no models: rules are also used without a config.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.evaluators.checks.names import (
    CHECK_NAMES,
    SPELLINGS,
    find_alias,
    find_kind,
    name_checks,
)
from agentci.model.values import Json, Place, Problem

CHECKS_KEY: Final = "checks"
LONG_FORM: Final = "check"
VALUE_KEY: Final = "value"


class CheckItem(Struct, frozen=True, kw_only=True):
    """One item of ``checks``.

    Attributes:
        name: in reports; unique in its config.
        kind: one of ``CHECK_NAMES``, or another spelling.
        value: path of its value in the file; that of the item if it is only the name.
    """

    name: str
    kind: str
    path: KeyPath
    value: KeyPath
    place: Place


def list_check_items(document: YamlDocument, at: KeyPath = (CHECKS_KEY,)) -> tuple[CheckItem, ...]:
    """List the items of the list ``at`` that are checks, in file order; others are problems."""
    items = _list_items(document, at)
    found: list[CheckItem] = []
    for index, (item, name) in enumerate(zip(items, name_checks(items), strict=True)):
        kind = find_kind(item)
        if name is None or kind is None or not is_check_name(kind):
            continue
        path: KeyPath = (*at, index)
        key = VALUE_KEY if isinstance(item, Mapping) and LONG_FORM in item else kind
        found.append(
            CheckItem(
                name=name,
                kind=SPELLINGS.get(kind, kind),
                path=path,
                value=(*path, key) if isinstance(item, Mapping) else path,
                place=document.place_of(path),
            )
        )
    return tuple(found)


def is_check_name(name: str) -> bool:
    """Return whether ``name`` is that of a check."""
    return name in CHECK_NAMES or name in SPELLINGS


def find_check_item_problems(
    document: YamlDocument, at: KeyPath = (CHECKS_KEY,)
) -> Iterator[Problem]:
    """Find the items of the list ``at`` that are not checks, and names that are used twice."""
    for index, item in enumerate(_list_items(document, at)):
        kind = find_kind(item)
        if kind is None or not is_check_name(kind):
            yield _explain_item(item, kind, (*at, index), document)
    first: dict[str, Place] = {}
    evaluators = document.data.get("evaluators")
    for index, entry in enumerate(evaluators if isinstance(evaluators, list) else ()):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if isinstance(name, str):
            first.setdefault(name, document.place_of(("evaluators", index, "name")))
    for each in list_check_items(document, at):
        if each.name in first:
            yield Problem(
                message=f"the name {quote_name(each.name)} is already used on line "
                f"{first[each.name].line}",
                place=each.place,
                hint=f"write `check: {each.kind}` with `value` and a `name` of its own",
            )
        first.setdefault(each.name, each.place)


def _list_items(document: YamlDocument, at: KeyPath) -> Sequence[Json]:
    items = document.value(at)
    return items if isinstance(items, list) else []


def _explain_item(item: Json, kind: str | None, path: KeyPath, document: YamlDocument) -> Problem:
    place = document.place_of(path)
    if isinstance(item, str) and is_check_name(item):
        return Problem(
            message=f"the check `{item}` has no value",
            place=place,
            hint=f"write `- {item}: VALUE`",
        )
    if kind is not None:
        written = find_alias(kind)
        known = suggest_name(kind, CHECK_NAMES) or f"known checks: {', '.join(CHECK_NAMES)}"
        return Problem(
            message=f"unknown check {quote_name(kind)}",
            place=place,
            hint=known if written is None else f"here it is `{written}`",
        )
    if isinstance(item, Mapping):
        named = next((key for key in item if is_check_name(key)), None)
        return Problem(
            message="a check has one key, its name, or `check` with its name",
            place=place,
            hint=f"write `check: {named}`, `value: ...` and the options"
            if named
            else "such as `- max_latency: 5s`",
        )
    return Problem(
        message="each check must be a mapping of its name to its value",
        place=place,
        hint="such as `- max_latency: 5s`",
    )
