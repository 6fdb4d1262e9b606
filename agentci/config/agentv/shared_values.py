"""What an eval file says once for all of its cases, and their ``vars``, put into each of them."""

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct, field

from agentci.config.agentv.placeholders import CaseFiller
from agentci.config.agentv.tree import (
    listed,
    mapping,
    node_of,
    value_of,
    with_items,
    with_values,
)
from agentci.config.yaml_nodes import Fields, Items, Node, Scalar, plain_data
from agentci.model.json import JsonObject
from agentci.model.problem import Problem

INPUT: Final = "input"
ATTACHED: Final = "input_files"
TURNS: Final = "turns"
# What a case is asked by, in the order in which it is looked for.
ASKED: Final = ("input_messages", INPUT)
# What `vars` are put into, also of turns; not into evaluators, as in AgentV.
FILLED: Final = (
    *("criteria", "expected_outcome", "outcome", *ASKED, ATTACHED),
    *("expected_output", "expected_messages"),
)
LISTS: Final = ("assertions", "assert", "evaluators", "execution")

Fill: TypeAlias = Callable[[Node], Node]


class Shared(Struct, kw_only=True):
    """What stands at the top of an eval file.

    Attributes:
        problems: what does not go together, and what has no effect.
    """

    root: Fields
    problems: list[Problem] = field(default_factory=list)

    def completed(self, case: Node) -> Node:
        """``case`` as if it stood by itself; anything but a mapping as it is."""
        if not isinstance(case, Fields):
            return case
        fill = self._filler(case)
        values = _filled(case, fill)
        skips = value_of(value_of(case, "execution"), "skip_defaults")
        top = None if isinstance(skips, Scalar) and skips.value is True else self.root
        key = next((each for each in ASKED if value_of(case, each) is not None), None)
        before = _through(fill, value_of(top, INPUT))
        if key is not None:
            attached = values.get(ATTACHED) or _through(fill, value_of(top, ATTACHED))
            values[key] = self._asked(values[key], before=before, attached=attached)
        elif before is not None and value_of(case, TURNS) is not None:
            values[INPUT] = before
        metadata = _merged(value_of(self.root, "metadata"), value_of(case, "metadata"))
        if metadata is not None:
            values["metadata"] = metadata
        return with_values(case, values)

    def _filler(self, case: Fields) -> Fill:
        given = value_of(case, "vars")
        if not isinstance(given, Fields):
            return lambda node: node
        values: JsonObject = {key: plain_data(each.value) for key, each in given.fields.items()}
        filler = CaseFiller(values=values, problems=self.problems)
        for owner in (case, *_turns(case)):
            for node in (value_of(owner, key) for key in LISTS):
                if node is not None:
                    filler.look_over(node)
        return filler.filled

    def _asked(self, own: Node, *, before: Node | None, attached: Node | None) -> Node:
        """The messages of a case behind those that come before; what is no message as it is."""
        if attached is not None:
            own = self._with_files(own, attached)
        if before is None:
            return own
        first, then = _messages(before), _messages(own)
        return listed((*first, *then), own.place) if first and then else own

    def _with_files(self, own: Node, attached: Node) -> Node:
        """A text as a message with files before it."""
        if not isinstance(attached, Items):
            return own
        if not isinstance(own, Scalar):
            self.problems.append(
                Problem(
                    message=f"`{ATTACHED}` go with an `{INPUT}` that is text",
                    place=own.place,
                    hint="refer to files inside of messages: {type: file, value: PATH}",
                )
            )
            return own
        files = [_part("file", each) for each in attached.items]
        parts = listed((*files, _part("text", own)), own.place)
        return listed([_message(parts)], own.place)


def _filled(case: Fields, fill: Fill) -> dict[str, Node]:
    values = {key: fill(each.value) for key, each in case.fields.items() if key in FILLED}
    turns = value_of(case, TURNS)
    if isinstance(turns, Items):
        values[TURNS] = with_items(
            turns,
            lambda turn: (
                with_values(turn, _filled(turn, fill)) if isinstance(turn, Fields) else turn
            ),
        )
    return values


def _through(fill: Fill, node: Node | None) -> Node | None:
    return None if node is None else fill(node)


def _turns(case: Fields) -> tuple[Node, ...]:
    turns = value_of(case, TURNS)
    return turns.items if isinstance(turns, Items) else ()


def _messages(asked: Node) -> tuple[Node, ...]:
    """What is asked as messages; none where it can be no message."""
    match asked:
        case Items():
            return asked.items
        case Fields() if "role" in asked.fields:
            return (asked,)
        case Fields() | Scalar(value=str()):
            return (_message(asked),)
        case _:
            return ()


def _message(content: Node) -> Node:
    return mapping({"role": node_of("user", content.place), "content": content}, content.place)


def _part(kind: str, value: Node) -> Node:
    return mapping({"type": node_of(kind, value.place), "value": value}, value.place)


def _merged(shared: Node | None, own: Node | None) -> Node | None:
    """The metadata of a case, which comes before those of the file; None where one is missing."""
    if isinstance(shared, Fields) and isinstance(own, Fields):
        return with_values(shared, {key: each.value for key, each in own.fields.items()})
    return shared if own is None else None
