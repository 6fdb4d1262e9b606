"""Cases that stand in other files: ``tests: PATH``, or items of the list that are paths."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from agentci.config.agentv.file_references import Files, Source
from agentci.config.agentv.jsonl import lines_of
from agentci.config.agentv.tree import listed, node_of, value_of, with_values
from agentci.config.yaml_document import read_tree
from agentci.config.yaml_nodes import Fields, Items, Node, Scalar
from agentci.errors import InputError
from agentci.model.problem import Problem

URL_PREFIX: Final = "file://"
LINES: Final = ".jsonl"


class ExternalCases(Struct, kw_only=True):
    """Reads the cases that an eval file keeps elsewhere.

    Attributes:
        problems: what is wrong with the files.
    """

    files: Files
    problems: list[Problem] = field(default_factory=list)

    def written_out(self, cases: Node) -> Node:
        """The list ``cases``, paths replaced by what stands there; anything else as it is."""
        match cases:
            case Scalar(value=str(named)) if named.strip():
                return listed(self._at(named, cases), cases.place)
            case Items():
                return listed(
                    (each for item in cases.items for each in self._of(item)), cases.place
                )
            case _:
                return cases

    def _of(self, item: Node) -> Iterator[Node]:
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.value.strip():
            yield from self._at(item.value, item)
        else:
            yield item

    def _at(self, named: str, node: Scalar) -> Iterator[Node]:
        """The cases of all files that ``named`` leads to."""
        try:
            sources = self.files.cases(named.removeprefix(URL_PREFIX), node.place)
        except InputError as error:
            self.problems += error.problems
            return
        for source in sources:
            try:
                yield from self._read(source)
            except InputError as error:
                self.problems += error.problems

    def _read(self, source: Source) -> Iterator[Node]:
        if source.file.endswith(LINES):
            yield from lines_of(source.data, file=source.file).items
            return
        root, problems = read_tree(source.data, file=source.file)
        self.problems += problems
        if source.case_id is not None:
            yield _named(root, source.case_id)
        elif isinstance(root, Items):
            yield from root.items
        else:
            raise InputError.of(
                "a file of cases is a list of them",
                place=root.place,
                hint="an eval file is named by itself: `agentci run` takes several",
            )


def _named(case: Node, folder: str) -> Node:
    """The case of a folder, which is called as that where it has no id of its own."""
    if not isinstance(case, Fields) or value_of(case, "id") is not None:
        return case
    return with_values(case, {"id": node_of(folder, case.place)})
