"""Evaluators that several files share: ``{include: NAME}`` in a list stands for those of a file."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from agentci.config.agentv.file_references import Files, Source
from agentci.config.agentv.tree import listed, value_of
from agentci.config.yaml_document import read_tree
from agentci.config.yaml_nodes import Fields, Items, Node, Scalar
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.model.problem import Problem

KEY: Final = "include"
LIST: Final = "assertions"
# AgentV's own limit.
MAX_DEPTH: Final = 3


class Includes(Struct, kw_only=True):
    """Writes out the evaluators that a file includes.

    Attributes:
        problems: what is wrong with the files that are included.
    """

    files: Files
    problems: list[Problem] = field(default_factory=list)

    def written_out(self, entries: Node, *, chain: tuple[str, ...] = ()) -> Node:
        """The list ``entries`` with all that it includes; anything else as it is.

        Args:
            chain: absolute paths of the files through which the list was reached.
        """
        if not isinstance(entries, Items):
            return entries
        written = (each for entry in entries.items for each in self._of(entry, chain))
        return listed(written, entries.place)

    def _of(self, entry: Node, chain: tuple[str, ...]) -> Iterator[Node]:
        named = value_of(entry, KEY)
        if not isinstance(entry, Fields) or named is None or len(entry.fields) > 1:
            yield entry
            return
        try:
            yield from self._included(named, chain)
        except InputError as error:
            self.problems += error.problems

    def _included(self, named: Node, chain: tuple[str, ...]) -> tuple[Node, ...]:
        if not isinstance(named, Scalar) or not isinstance(named.value, str) or not named.value:
            raise InputError.of("include must be the name of a file", place=named.place)
        source = self.files.template(named.value, named.place, beside=chain[-1] if chain else None)
        if source.path in chain:
            raise _refused(f"{named.value} includes itself", named.place)
        if len(chain) == MAX_DEPTH:
            raise _refused(f"more than {MAX_DEPTH} files include each other", named.place)
        entries = self.written_out(self._entries(source), chain=(*chain, source.path))
        return entries.items if isinstance(entries, Items) else ()

    def _entries(self, source: Source) -> Node:
        root, problems = read_tree(source.data, file=source.file)
        self.problems += problems
        entries = value_of(root, LIST)
        if not isinstance(entries, Items):
            raise InputError.of(
                f"a file that is included lists `{LIST}`",
                place=root.place if entries is None else entries.place,
            )
        return entries


def _refused(message: str, place: Place) -> InputError:
    return InputError.of(message, place=place, hint="list the evaluators themselves")
