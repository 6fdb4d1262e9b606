"""Rows of data that an agent was asked by, each with whatever columns its author gave it."""

from typing import Final

from msgspec import Struct, field

from agentci.model.json import Json, JsonObject
from agentci.model.place import Place
from agentci.model.trace import Turn

# Columns that say what the agent did: the answer and the calls, each by either name, and its tools.
ANSWERS: Final = ("response", "output_text")
CALLS: Final = ("tool_calls", "output_tools")
DEFINITIONS: Final = "tool_definitions"


class Row(Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        id: unique in its dataset.
        query: what the agent is asked; empty where no column says so.
        columns: all of them, as they are written.
        tool_definitions: the tools that the agent had, as they are written; empty where the row
            does not say.
        turn: what the agent did; None where the row does not carry that.
    """

    id: str
    query: str
    columns: JsonObject
    place: Place
    tool_definitions: tuple[Json, ...] = ()
    turn: Turn | None = None

    @property
    def asked(self) -> JsonObject:
        """The columns that say nothing of what the agent did."""
        done = {*ANSWERS, *CALLS, DEFINITIONS}
        return {name: value for name, value in self.columns.items() if name not in done}


class Dataset(Struct, frozen=True, kw_only=True):
    """The rows of one file, in its order."""

    rows: tuple[Row, ...] = field(default=())
    place: Place
