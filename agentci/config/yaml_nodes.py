"""A YAML file as a tree in which every part knows its place."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from agentci.model.json import Json
from agentci.model.problem import Place

# The keys and indexes that lead from the top of a document to one of its parts.
KeyPath: TypeAlias = tuple[str | int, ...]


class ScalarNode(Struct, frozen=True, kw_only=True):
    """A single value.

    Attributes:
        text: as written, without quotes.
        plain: written without quotes, so that YAML guessed the type of ``value``.
    """

    place: Place
    value: str | float | bool | None
    text: str
    plain: bool

    @property
    def size(self) -> int:
        """How many values it holds, itself included."""
        return 1

    @property
    def height(self) -> int:
        """How many levels are nested in it."""
        return 0


class SequenceNode(Struct, frozen=True, kw_only=True):
    """A list.

    Attributes:
        size: how many values it holds, itself included, aliases expanded.
        height: how many levels are nested in it, aliases expanded.
    """

    place: Place
    items: "tuple[Node, ...]"
    size: int
    height: int


class MappingEntry(Struct, frozen=True, kw_only=True):
    """A key of a mapping, and its value."""

    place: Place
    value: "Node"


class MappingNode(Struct, frozen=True, kw_only=True):
    """A mapping; ``size`` and ``height`` as in :class:`Items`."""

    place: Place
    fields: Mapping[str, MappingEntry]
    size: int
    height: int


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


def plain_data(node: Node) -> Json:
    """What ``node`` says, as dicts, lists and scalars."""
    match node:
        case ScalarNode():
            return node.value
        case SequenceNode():
            return [plain_data(item) for item in node.items]
        case MappingNode():
            return {key: plain_data(field.value) for key, field in node.fields.items()}
