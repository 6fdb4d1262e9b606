"""YAML as a tree with places, within limits: what explodes or nests too deep is refused.

The tree is built from the parser's events, so that a hostile file is refused before it costs
memory; PyYAML's own loader would follow it to the end.
"""

from collections.abc import Iterator
from typing import Final

import yaml

from agentci.config.yaml_errors import syntax_problem, unprintable
from agentci.config.yaml_keys import Pair, build_fields
from agentci.config.yaml_nodes import Fields, Items, Node, Scalar
from agentci.config.yaml_scalars import read_plain
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.model.problem import Problem

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000

_NEEDS: Final = "a config has `evaluators:`, an eval file `cases:` or `tests:`"
_TOO_MUCH: Final = "keep data in files of its own"
_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

_STANDARD: Final = "tag:yaml.org,2002:"
_COLLECTION_TAGS: Final = frozenset({"!", f"{_STANDARD}seq", f"{_STANDARD}map"})
_TEXT_TAGS: Final = frozenset({"!", f"{_STANDARD}str"})
_SCALAR_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_STANDARD}int": (int,),
    f"{_STANDARD}float": (int, float),
    f"{_STANDARD}bool": (bool,),
    f"{_STANDARD}null": (type(None),),
}


def compose(text: str, *, file: str) -> tuple[Fields, tuple[Problem, ...]]:
    """Read YAML whose top level is a mapping.

    Returns:
        The tree, and the problems and notices that leave the tree usable.

    Raises:
        InputError: it is not YAML, not one mapping, or beyond the limits.
    """
    root, problems = compose_any(text, file=file)
    if not isinstance(root, Fields):
        raise _not_a_mapping(root)
    return root, problems


def compose_any(text: str, *, file: str) -> tuple[Node, tuple[Problem, ...]]:
    """Read YAML; as ``compose``, save that any top level will do.

    Raises:
        InputError: it is not YAML, not one document, or beyond the limits.
    """
    if problem := unprintable(text, file=file):
        raise InputError([problem])
    composer = _Composer(text, file)
    try:
        root = composer.document()
    except yaml.YAMLError as error:
        raise InputError([syntax_problem(error, text, file=file)]) from None
    return root, tuple(composer.problems)


class _Composer:
    def __init__(self, text: str, file: str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, Node | None] = {}
        self._size = 0

    def document(self) -> Node:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise InputError.of("the file is empty", place=Place(file=self._file), hint=_NEEDS)
        root = self._node(next(self._events), depth=0)
        next(self._events)  # the end of the document
        after = next(self._events)
        if isinstance(after, yaml.DocumentStartEvent):
            raise InputError.of(
                "the file holds more than one YAML document",
                place=self._place(after),
                hint="keep one config in one file",
            )
        return root

    def _node(self, event: yaml.Event, *, depth: int) -> Node:
        place = self._place(event)
        self._limit(1, depth, place)
        match event:
            case yaml.AliasEvent():
                return self._repeated(event, depth, place)
            case yaml.ScalarEvent():
                node: Node = self._scalar(event, place)
            case yaml.SequenceStartEvent():
                self._begin(event, place)
                node = self._items(depth, place)
            case yaml.MappingStartEvent():
                self._begin(event, place)
                node = self._fields(depth, place)
            case _:  # pragma: no cover (the parser has no other events here)
                raise TypeError(event)
        self._anchors[event.anchor or ""] = node
        return node

    def _begin(self, event: yaml.CollectionStartEvent, place: Place) -> None:
        """Take note of an anchor whose node is not complete yet, and refuse foreign tags."""
        self._anchors[event.anchor or ""] = None
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            self._complain(*_foreign(event.tag), place)

    def _repeated(self, event: yaml.AliasEvent, depth: int, place: Place) -> Node:
        name = event.anchor
        if name not in self._anchors:
            raise InputError.of(
                f"there is no &{name} above for *{name} to repeat",
                place=place,
                hint="put a text that begins with * in quotes",
            )
        node = self._anchors[name]
        if node is None:
            raise InputError.of(f"*{name} is inside &{name}, which it repeats", place=place)
        self._limit(node.size, depth + node.height, place)
        return node

    def _items(self, depth: int, place: Place) -> Items:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth=depth + 1))
        return Items(
            place=place,
            items=tuple(items),
            size=1 + sum(item.size for item in items),
            height=1 + max((item.height for item in items), default=0),
        )

    def _fields(self, depth: int, place: Place) -> Fields:
        pairs: list[Pair] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event) or self._node(event, depth=depth + 1)
            pairs.append((key, self._node(next(self._events), depth=depth + 1)))
        fields, problems = build_fields(pairs, place)
        self.problems += problems
        return fields

    def _key(self, event: yaml.Event) -> Scalar | None:
        """A key as it is written, whatever YAML would take it for; None where it is no scalar."""
        if not isinstance(event, yaml.ScalarEvent):
            return None
        plain = event.tag is None and event.implicit[0]
        node = Scalar(place=self._place(event), value=event.value, text=event.value, plain=plain)
        self._anchors[event.anchor or ""] = node
        return node

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> Scalar:
        text = event.value
        if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
            return Scalar(place=place, value=text, text=text, plain=False)
        reading = read_plain(text)
        if event.tag is not None:
            types = _SCALAR_TAGS.get(event.tag)
            if types is None:
                self._complain(*_foreign(event.tag), place)
            elif not isinstance(reading.value, types):
                self._complain(f"{text!r} does not fit its tag", "remove the tag", place)
        if reading.refusal is not None:
            self._complain(reading.refusal, reading.hint, place)
        if reading.notice is not None:
            notice, hint = reading.notice, reading.hint
            self.problems.append(Problem(message=notice, place=place, hint=hint, severity="notice"))
        return Scalar(place=place, value=reading.value, text=text, plain=True)

    def _complain(self, message: str, hint: str | None, place: Place) -> None:
        self.problems.append(Problem(message=message, place=place, hint=hint))

    def _limit(self, size: int, depth: int, place: Place) -> None:
        self._size += size
        if self._size > MAX_NODES:
            message = f"the file holds more than {MAX_NODES:,} values, with aliases written out"
            raise InputError.of(message, place=place, hint=_TOO_MUCH)
        if depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels are nested here"
            raise InputError.of(message, place=place, hint=_TOO_MUCH)

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        if mark is None:  # pragma: no cover (marks are optional in PyYAML's types alone)
            return Place(file=self._file)
        return Place(file=self._file, line=mark.line + 1, column=mark.column + 1)


def _foreign(tag: str) -> tuple[str, str]:
    short = tag.replace(_STANDARD, "!!")
    return f"the tag {short} is not known here", "remove it; a config holds only plain values"


def _not_a_mapping(root: Node) -> InputError:
    match root:
        case Items():
            message, hint = (
                "the top level is a list, not a mapping of keys",
                "put evaluators below `evaluators:`, cases below `tests:`",
            )
        case Scalar(value=None, plain=True):
            message, hint = "the file holds no config", _NEEDS
        case _:
            message, hint = "the top level is text, not a mapping of keys", _NEEDS
    return InputError.of(message, place=root.place, hint=hint)
