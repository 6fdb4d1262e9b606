"""Evaluators whose type is the name of a program in a folder that AgentV looks into by itself."""

from collections.abc import Mapping

from msgspec import Struct

from agentci.config.agentv.evaluator_names import unused
from agentci.config.agentv.file_references import Files
from agentci.config.agentv.tree import node_of, value_of, with_items, with_values
from agentci.config.yaml_nodes import Fields, Items, Node, plain_data
from agentci.evaluators.agentv.types import NOT_YET, TYPES, canonical


class OwnTypes(Struct, frozen=True, kw_only=True):
    """Writes entries of such types out as what they are: code judges."""

    files: Files

    def written_out(self, entries: Node) -> Node:
        """The list ``entries`` with a command in each of them; anything else as it is."""
        if not isinstance(entries, Items):
            return entries
        names: set[str] = set()
        return with_items(entries, lambda entry: self._of(entry, names))

    def _of(self, entry: Node, names: set[str]) -> Node:
        """An entry; ``names`` are those that were given before to others without one."""
        data = plain_data(entry)
        kind = data.get("type") if isinstance(data, Mapping) else None
        if not isinstance(entry, Fields) or not isinstance(kind, str):
            return entry
        path = None if canonical(kind) in (*TYPES, *NOT_YET) else self.files.assertion(kind)
        if path is None:
            return entry
        place = entry.fields["type"].value.place
        values = {
            "type": node_of("code_judge", place),
            "command": node_of(["bun", "run", path], place),
        }
        if value_of(entry, "name") is None:
            name = unused(kind, names)
            names.add(name)
            values["name"] = node_of(name, place)
        return with_values(entry, values)
