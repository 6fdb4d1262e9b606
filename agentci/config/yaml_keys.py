"""Keys of a YAML mapping: each once, each a text, with merges carried out."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from agentci.config.yaml_nodes import Field, Fields, Items, Node, Scalar
from agentci.config.yaml_scalars import SWITCHES
from agentci.model.place import Place
from agentci.model.problem import Problem

Pair: TypeAlias = tuple[Node, Node]


def build_fields(pairs: Sequence[Pair], place: Place) -> tuple[Fields, tuple[Problem, ...]]:
    """Make a mapping of keys and values in the order of the file.

    Keys are taken as they are written, also numbers; of a key that stands twice the first counts.
    Keys of the mapping itself count before those that ``<<`` merges into it; of those, the first
    of a list and the last of several ``<<``, as PyYAML does.
    """
    problems: list[Problem] = []
    fields: dict[str, Field] = {}
    merged: list[Fields] = []
    for key, value in pairs:
        if isinstance(key, Scalar) and key.plain and key.text == "<<":
            merged = [*_mappings(value, problems), *merged]
            continue
        problem = _problem(key, fields)
        if problem is not None:
            problems.append(problem)
        elif isinstance(key, Scalar):
            fields[key.text] = Field(place=key.place, value=value)
    for mapping in merged:
        fields = {**mapping.fields, **fields}
    return _measured(fields, place), tuple(problems)


def _problem(key: Node, before: dict[str, Field]) -> Problem | None:
    if not isinstance(key, Scalar):
        hint = "put a text that begins with { or [ in quotes"
        return Problem(message="a key must be text", place=key.place, hint=hint)
    text = key.text
    if text in before:
        message = f"the key {text!r} appears twice, first on line {before[text].place.line}"
        return Problem(message=message, place=key.place, hint="remove one of them")
    if key.plain and text.lower() in SWITCHES:
        message = f"YAML reads the key {text} as true or false"
        return Problem(message=message, place=key.place, hint=f'put it in quotes: "{text}"')
    if key.plain and text in {"", "~"}:
        return Problem(message="a key is missing before the colon", place=key.place)
    return None


def _mappings(node: Node, problems: list[Problem]) -> Iterator[Fields]:
    """Find what ``<<`` merges, the weightiest first."""
    for part in node.items if isinstance(node, Items) else (node,):
        if isinstance(part, Fields):
            yield part
        else:
            message = "<< merges mappings, and this is not one"
            hint = "give it an alias of a mapping (`<<: *name`), or a list of them"
            problems.append(Problem(message=message, place=part.place, hint=hint))


def _measured(fields: dict[str, Field], place: Place) -> Fields:
    values = [field.value for field in fields.values()]
    return Fields(
        place=place,
        fields=fields,
        size=1 + sum(1 + value.size for value in values),
        height=1 + max((value.height for value in values), default=0),
    )
