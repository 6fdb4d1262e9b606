"""A Python that has started already: which one a program can be a fork of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.execution.limits import Confinement
from agentci.model.values import replace

PACKAGE: Final = str(Path(__file__).resolve().parents[2])
# Ours is found where it is, and nothing beside us in place of the standard library.
START: Final = (
    "import sys; bare = tuple(sys.modules); sys.flags.safe_path or sys.path.pop(0);"
    " sys.modules['agentci'] = ours = type(sys)('agentci'); ours.__path__ = [sys.argv[1]];"
)
WARM: Final = f"{START} from agentci.execution.child.prefork_server import main; main(bare)"

# What a Python or its libraries look at when they start, and never again.
AT_START: Final = ("GLIBC_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
# Of these, what makes no code run that would not run in us as well.
HARMLESS: Final = frozenset(
    {
        "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
        "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHONUTF8",
        "TZ",
    }
)  # fmt: skip
LOCALE_PREFIX: Final = "LC_"
# Each program has its own, and nothing of it is ours.
OF_PROGRAMS: Final = frozenset({"PYTHONPATH", "PYTHONUSERBASE"})
# Nobody's packages are here: the home of a user may be written to by those whom we jail.
NO_USER: Final = {"PYTHONUSERBASE": "/nonexistent"}
PROGRAMS_AT_A_TIME: Final = 8


class Warmth(Struct, frozen=True):
    """A Python that has started already.

    Attributes:
        python: its path.
        environment: what it has seen of a program's environment.
        confinement: the jail that it is in itself, where it imports what nobody vouches for.
    """

    python: str
    environment: tuple[tuple[str, str], ...]
    confinement: Confinement | None = None

    @classmethod
    def for_program(
        cls, python: str, environment: Mapping[str, str], confinement: Confinement
    ) -> "Warmth | None":
        """The one whose forks are as ``python`` would be in ``environment``, if one may be."""
        names = {name for name in environment if name.startswith(AT_START)} - OF_PROGRAMS
        if any(name not in HARMLESS and not name.startswith(LOCALE_PREFIX) for name in names):
            return None
        seen = NO_USER | {name: environment[name] for name in names}
        jail = replace(confinement, imports=None) if confinement.own_packages else None
        return cls(python, tuple(sorted(seen.items())), jail)

    @staticmethod
    def jail(of_programs: Confinement) -> Confinement:
        """Its own jail: that of its programs, with room for several of them at a time."""
        return replace(
            of_programs,
            readable=(*of_programs.readable, Path(PACKAGE)),
            processes=of_programs.processes * PROGRAMS_AT_A_TIME,
            folder_mb=of_programs.folder_mb * PROGRAMS_AT_A_TIME,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it, with a channel for stdin and a terminal for stderr.

        Its stdout is a pipe that nobody reads; programs inherit from it how streams are used.
        """
        return (self.python, "-c", WARM, PACKAGE)
