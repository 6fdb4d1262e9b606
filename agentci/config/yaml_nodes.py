"""YAML files as trees in which every node has its position: build, read and change them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from agentci.model.values import Json, Place

# The keys and indexes from the top of a document to one of its parts.
KeyPath: TypeAlias = tuple[str | int, ...]


class ScalarNode(Struct, frozen=True, kw_only=True):
    """A single value.

    Attributes:
        text: as written, without quotes.
        plain: whether it is unquoted, so that the type of ``value`` follows from the text.
    """

    place: Place
    value: str | float | bool | None
    text: str
    plain: bool

    @property
    def size(self) -> int:
        """The number of values in the node, including itself."""
        return 1

    @property
    def height(self) -> int:
        """The number of levels nested in the node."""
        return 0


class SequenceNode(Struct, frozen=True, kw_only=True):
    """A list.

    Attributes:
        size: the number of values in it, including itself, with aliases expanded.
        height: the number of levels nested in it, with aliases expanded.
    """

    place: Place
    items: "tuple[Node, ...]"
    size: int
    height: int


class MappingEntry(Struct, frozen=True, kw_only=True):
    """The value of a mapping's key; ``place`` is that of the key."""

    place: Place
    value: "Node"


class MappingNode(Struct, frozen=True, kw_only=True):
    """A mapping; ``size`` and ``height`` are as in :class:`SequenceNode`."""

    place: Place
    fields: Mapping[str, MappingEntry]
    size: int
    height: int


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


def plain_data(node: Node) -> Json:
    """Convert ``node`` to dicts, lists and scalars."""
    match node:
        case ScalarNode():
            return node.value
        case SequenceNode():
            return [plain_data(item) for item in node.items]
        case MappingNode():
            return {key: plain_data(field.value) for key, field in node.fields.items()}


def make_node(value: Json, place: Place) -> Node:
    """Make a node from a value; all its parts have the position ``place``."""
    if value is None or isinstance(value, str | int | float):
        return ScalarNode(place=place, value=value, text=str(value), plain=False)
    if isinstance(value, Mapping):
        return make_mapping({key: make_node(each, place) for key, each in value.items()}, place)
    return make_sequence((make_node(each, place) for each in value), place)


def make_sequence(nodes: Iterable[Node], place: Place) -> SequenceNode:
    """Make a list of ``nodes``."""
    items = tuple(nodes)
    return SequenceNode(
        place=place,
        items=items,
        size=1 + sum(each.size for each in items),
        height=1 + max((each.height for each in items), default=0),
    )


def change_items(node: SequenceNode, change: Callable[[Node], Node]) -> SequenceNode:
    """Change each item of a list."""
    items = tuple(map(change, node.items))
    if all(one is other for one, other in zip(items, node.items, strict=True)):
        return node
    return make_sequence(items, node.place)


def make_mapping(values: Mapping[str, Node], place: Place) -> MappingNode:
    """Make a mapping of ``values``; each key has the position of its value."""
    return make_mapping_from_entries(
        {k: MappingEntry(place=v.place, value=v) for k, v in values.items()}, place
    )


def make_mapping_from_entries(fields: Mapping[str, MappingEntry], place: Place) -> MappingNode:
    """Make a mapping of ``fields``."""
    values = [each.value for each in fields.values()]
    return MappingNode(
        place=place,
        fields=fields,
        size=1 + sum(each.size for each in values),
        height=1 + max((each.height for each in values), default=0),
    )


def replace_values(node: MappingNode, values: Mapping[str, Node]) -> MappingNode:
    """Replace or add values in a mapping."""
    fields = dict(node.fields)
    others = {k: v for k, v in values.items() if k not in fields or fields[k].value is not v}
    if not others:
        return node
    for key, value in others.items():
        place = fields[key].place if key in fields else value.place
        fields[key] = MappingEntry(place=place, value=value)
    return make_mapping_from_entries(fields, node.place)


def change_texts(node: Node, change: Callable[[ScalarNode, str], Node]) -> Node:
    """Change all texts in ``node``; ``change`` receives each node with its text."""
    match node:
        case ScalarNode(value=str(text)):
            return change(node, text)
        case MappingNode():
            return replace_values(
                node, {key: change_texts(each.value, change) for key, each in node.fields.items()}
            )
        case SequenceNode():
            return change_items(node, lambda each: change_texts(each, change))
        case _:
            return node


def find_value(node: Node | None, key: str) -> Node | None:
    """The value of ``key``; None if ``node`` is not a mapping or has no such key."""
    found = node.fields.get(key) if isinstance(node, MappingNode) else None
    return None if found is None else found.value


def find_text(node: Node | None, key: str) -> str:
    """The value of ``key`` as text; empty if there is none."""
    found = find_value(node, key)
    return "" if not isinstance(found, ScalarNode) or found.value is None else str(found.value)


def find_first(owner: Node | None, keys: Sequence[str]) -> Node | None:
    """The value of the first of ``keys`` that ``owner`` has."""
    found: list[Node | None] = [find_value(owner, key) for key in keys]
    return next((each for each in found if each is not None), None)
