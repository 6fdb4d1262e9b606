"""A YAML file as a tree in which every node has its position."""

from collections.abc import Mapping
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
