"""What comes to a config from outside: options of the command line, and the files around it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentci.model.json import JsonObject
from agentci.model.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says of built-in metrics.

    Attributes:
        metrics: to add, or to put in place of the entries of these names.
        fields: as in agentevals 0.11.0 for ``metrics`` where there are any, else for all entries
            of this type; never for programs.
        place: of what comes from the command line.
    """

    metrics: tuple[str, ...]
    fields: JsonObject
    place: Place


class Find(Protocol):
    """Finds a program; raises InputError where it is missing, out of bounds or cannot be run."""

    def __call__(self, named: str, /, *, place: Place) -> Path:
        """The real path of the program that is ``named`` at ``place``."""
        ...
