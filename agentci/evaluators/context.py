"""What an entry of a config cannot say of itself, for those who make evaluators of entries."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from agentci.evaluators.judge_config import Judges
from agentci.model.place import Place
from agentci.model.program import LocalProgram, RemoteProgram


class Locate(Protocol):
    """Finds programs."""

    def __call__(self, named: str, field: str = "path") -> LocalProgram:
        """The program at the path ``named``, which stands in ``field`` of the entry.

        Raises:
            InputError: it is missing, out of bounds, or nothing that can be run.
        """
        ...


class TextFile(Struct, frozen=True, kw_only=True):
    """A file of the user's.

    Attributes:
        name: as it is shown.
    """

    name: str
    text: str


class Surroundings(Struct, frozen=True, kw_only=True):
    """What an entry cannot say of itself.

    Attributes:
        place: the entry in its config.
        place_of: the value of one of its fields; the entry where it has none of that name.
        locate: finds the program at a path that the entry gives.
        read: reads the file whose path stands in a field, by that path and the name of the field;
            raises InputError where it is missing, out of bounds, or no text.
        complete: fills in what the entry leaves to the source of a remote program; raises
            InputError where there is no such source, or no such place in it.
        judges: who judges, for those that ask models.
        turn_mismatch_fails: what the gate makes of missing or unexpected turns.
    """

    place: Place
    place_of: Callable[[str], Place]
    locate: Locate
    read: Callable[[str, str], TextFile]
    complete: Callable[[RemoteProgram], RemoteProgram]
    judges: Judges
    turn_mismatch_fails: bool
