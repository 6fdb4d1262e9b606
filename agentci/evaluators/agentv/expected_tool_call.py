"""Uses of tools that are looked for, and how their arguments are compared."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from agentci.evaluators.agentv.equality import equal, leaf
from agentci.model.json import Json, JsonObject
from agentci.model.transcript import ToolUse

ArgsMatch: TypeAlias = Literal["exact", "superset", "subset", "ignore"] | tuple[str, ...]


class ExpectedUse(Struct, frozen=True, kw_only=True):
    """A use of a tool that is looked for.

    Attributes:
        args: None, ``any``, or what it has to be given.
        match: how ``args`` are compared.
        max_duration_ms: None where it may take as long as it likes.
    """

    tool: str
    args: Json = None
    match: ArgsMatch = "superset"
    max_duration_ms: float | None = None

    def takes(self, use: ToolUse) -> bool:
        """Whether the arguments of ``use`` are as they should be."""
        if not isinstance(self.args, Mapping) or self.match == "ignore":
            return True
        return isinstance(use.input, Mapping) and _fits(self.args, use.input, self.match)


def _fits(wanted: JsonObject, given: JsonObject, match: ArgsMatch) -> bool:
    if match == "exact":
        return equal(wanted, given)
    if match == "superset":
        return _holds(given, wanted)
    if match == "subset":
        return _holds(wanted, given)
    return all(_same_at(path, wanted, given) for path in match)


def _holds(whole: JsonObject, part: JsonObject) -> bool:
    return all(key in whole and equal(value, whole[key]) for key, value in part.items())


def _same_at(path: str, wanted: Json, given: Json) -> bool:
    """Whether both have the same at a dotted path; what is not asked for may be anything."""
    found, value = leaf(wanted, path)
    if not found:
        return True
    there, actual = leaf(given, path)
    return there and equal(value, actual)
