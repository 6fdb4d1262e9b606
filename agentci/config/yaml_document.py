"""Read config files, keeping the position of every part."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from agentci._util.workspace import decode_utf8
from agentci.config.yaml_nodes import (
    MappingEntry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    plain_data,
)
from agentci.model.values import Json, JsonObject, Place, Problem


class YamlDocument(Struct, frozen=True, kw_only=True):
    """The content of a config file, with positions.

    Attributes:
        file: the file name, as shown to the user.
        data: dicts with text keys, lists and scalars; never NaN or infinity.
        problems: errors that did not stop the parser (a duplicate key, ``010``), and notes about
            values that YAML reads differently than they look.
    """

    file: str
    data: JsonObject
    root: MappingNode
    problems: tuple[Problem, ...] = ()

    def place_of(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """The position of the value at ``path``, or of its key if ``key`` is set.

        A missing value has the position of its nearest existing parent.
        """
        trail = list(self._find_nodes(path))
        if not trail:
            return self.root.place
        last = trail[-1]
        return last.place if key and len(trail) == len(path) else _get_value_node(last).place

    def has(self, path: Sequence[str | int]) -> bool:
        """Whether ``path`` exists."""
        return self._find(path) is not None

    def value(self, path: Sequence[str | int]) -> Json:
        """The value at ``path``; None if it does not exist."""
        node = self._find(path)
        return None if node is None else plain_data(node)

    def plain_text(self, path: Sequence[str | int]) -> str | None:
        """The text of the value at ``path`` if it is unquoted; else None."""
        node = self._find(path)
        return node.text if isinstance(node, ScalarNode) and node.plain else None

    def _find(self, path: Sequence[str | int]) -> Node | None:
        trail = [self.root, *self._find_nodes(path)]
        return _get_value_node(trail[-1]) if len(trail) > len(path) else None

    def _find_nodes(self, path: Sequence[str | int]) -> Iterator[MappingEntry | Node]:
        """The nodes along ``path``, as far as they exist."""
        node: Node = self.root
        for step in path:
            found = _find_child(node, step)
            if found is None:
                return
            yield found
            node = _get_value_node(found)


def make_document(root: MappingNode, *, file: str, problems: Iterable[Problem]) -> YamlDocument:
    """Make a document with ``root`` as its tree."""
    data = {key: plain_data(field.value) for key, field in root.fields.items()}
    return YamlDocument(file=file, data=data, root=root, problems=tuple(problems))


def read_yaml(data: bytes, *, file: str, content_hint: str = "") -> YamlDocument:
    """Read a config file.

    Args:
        data: content of the file.
        file: the file name, as shown to the user.
        content_hint: as of ``parse_yaml_mapping``.

    Raises:
        InputError: the content is not UTF-8, not YAML, not a mapping, or beyond the size limits.
    """
    # PyYAML would take half of the start-up time, and a run without a config does not need it.
    from agentci.config.yaml_parse import parse_yaml_mapping  # noqa: PLC0415

    text = decode_utf8(data, file=file)
    root, problems = parse_yaml_mapping(text, file=file, content_hint=content_hint)
    content = {key: plain_data(field.value) for key, field in root.fields.items()}
    return YamlDocument(file=file, data=content, root=root, problems=problems)


def read_tree(
    data: bytes, *, file: str, content_hint: str = ""
) -> tuple[Node, tuple[Problem, ...]]:
    """Read a part of a config from a separate file; its top level may be a list.

    Args:
        content_hint: what to write if the file is empty.

    Raises:
        InputError: as for ``read_yaml``, except that any top level is accepted.
    """
    from agentci.config.yaml_parse import parse_yaml_node  # noqa: PLC0415

    return parse_yaml_node(decode_utf8(data, file=file), file=file, content_hint=content_hint)


def _find_child(node: Node, step: str | int) -> MappingEntry | Node | None:
    match node, step:
        case MappingNode(), str():
            return node.fields.get(step)
        case SequenceNode(), int() if 0 <= step < len(node.items):
            return node.items[step]
        case _:
            return None


def _get_value_node(found: MappingEntry | Node) -> Node:
    return found.value if isinstance(found, MappingEntry) else found
