"""The jail for one run of one program: what a confinement comes to on this machine."""

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from agentci.execution.allowed_paths import is_too_wide, programs_in, rules_of
from agentci.execution.child import landlock, seccomp
from agentci.execution.child.capabilities import NOBODY
from agentci.execution.child.landlock import Rule
from agentci.execution.child.messages import Message
from agentci.execution.limits import (
    ELSEWHERE,
    MEBIBYTE,
    NO_LANDLOCK,
    Confinement,
    limits_of,
)
from agentci.execution.permissions import first_closed

SHARED_MEMORY: Final = b"/dev/shm"
TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 (a folder of its own is made there)
PROCESSORS: Final = os.cpu_count() or 1
# How many programs at a time have a user each.
USERS: Final = 1024
RUNS: Final = 1 << 18
# From this version on, Landlock keeps signals inside.
SIGNALS_SINCE: Final = 6
# From this version on, it keeps files from being emptied.
EMPTYING_SINCE: Final = 3
# For each processor: of other checks, and of what else the user does. The fewer there are, the
# sooner a fork bomb is ended that we have no privilege against.
SPARE_PROCESSES: Final = 128

# For those who ask: the list of users has no name for a user of its own.
NAMED: Final = {"USER": "agentci", "LOGNAME": "agentci"}
# Without the system's settings, which may hold tokens, and with checkouts of whoever owns them: a
# program is never their owner, and has no settings of its own to say that it may.
GIT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}

NO_FILTER: Final = (
    "evaluators' programs can use the network, whatever `network` says:"
    " this kernel has no seccomp filters for its processor, or forbids them"
)
ALL_PORTS: Final = (
    "evaluators' programs with `target` can reach every TCP port of this machine, whatever"
    " `network` says: this kernel's Landlock cannot hold them to one"
)
AS_ROOT: Final = "evaluators' programs run as root: agentci may not start them as another user here"
SIGNALS: Final = (
    "evaluators' programs can send signals to agentci and to each other:"
    " they share a user, and this kernel's Landlock does not keep signals in"
)

EMPTYING: Final = (
    "evaluators' programs can empty files that their user may write to: they share it with others,"
    " and this kernel's Landlock does not keep them from that"
)


class Cell(Struct, frozen=True, kw_only=True):
    """How a program is jailed.

    Attributes:
        scratch: its private folder, to be made and removed; None where it has none.
        scratch_bytes: how large that may grow.
        alone: whether nobody else runs as its user.
        environment: what it sees.
        shortcomings: what was wanted and cannot be had, a sentence each.
    """

    jail: Message | None
    environment: Mapping[str, str]
    scratch: str | None = None
    scratch_bytes: int = 0
    alone: bool = False
    shortcomings: tuple[str, ...] = ()

    def order(self, command: Sequence[str], cwd: Path) -> Message:
        """What a ward has to do to run ``command`` in it."""
        return {
            "command": [os.fsencode(part) for part in command],
            "cwd": os.fsencode(cwd),
            "environment": {os.fsencode(k): os.fsencode(v) for k, v in self.environment.items()},
            "jail": self.jail,
            "alone": self.alone,
            "scratch": None if self.scratch is None else os.fsencode(self.scratch),
            "disk": self.scratch_bytes,
        }


class Builder(Struct, frozen=True, kw_only=True):
    """Builds cells for the programs of one executor.

    Attributes:
        facts: what a jail can do here, see ``agentci.execution.child.capabilities``.
        run: a number that other runs on this machine hardly have.
    """

    facts: Mapping[str, Any]
    run: int = field(default_factory=lambda: secrets.randbelow(RUNS))

    def build(
        self,
        confinement: Confinement,
        *,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        timeout_seconds: float,
        number: int,
    ) -> Cell:
        """Build a cell as close to what is wanted as this machine allows.

        Args:
            number: none that runs now has the same.
        """
        readable = (cwd, *confinement.readable)
        temporary = _temporary(environment)
        programs = programs_in(command)
        interpreters = programs_in((confinement.interpreter,))
        closed = first_closed((*programs, *interpreters, *readable, temporary))
        user = self._user(number, closed)
        scratch = f"{temporary}/agentci-{secrets.token_hex(8)}"
        alone = user is not None and user != NOBODY
        jail = {
            "user": user,
            "searches": self.facts["searching"] or (user is not None and closed is not None),
            "limits": limits_of(
                confinement,
                timeout_seconds=timeout_seconds,
                processors=PROCESSORS,
                others=0 if alone else SPARE_PROCESSES * PROCESSORS + self.facts["tasks"],
            ),
            "landlock": self.facts["landlock"],
            "rules": self._rules(confinement, programs, environment, readable, scratch, alone),
            "port": _port(confinement),
            "filter": self._filter(confinement, as_root=user is None and self.facts["root"]),
        }
        return Cell(
            jail=jail,
            environment=_at_home(environment, scratch),
            scratch=scratch,
            scratch_bytes=confinement.folder_mb * MEBIBYTE,
            alone=alone,
            shortcomings=tuple(self._shortcomings(user, closed, _port(confinement))),
        )

    def _user(self, number: int, closed: str | None) -> int | None:
        first: int | None = self.facts["users"]
        if first is None or first == NOBODY or (closed is not None and not self._searches):
            return first if closed is None or self._searches else None
        return first + self.run * USERS + number % USERS

    @property
    def _searches(self) -> bool:
        """Whether closed folders can be opened to another user, by Landlock's leave alone."""
        return bool(self.facts["searches"] and self.facts["landlock"])

    def _rules(
        self,
        confinement: Confinement,
        programs: tuple[str, ...],
        environment: Mapping[str, str],
        readable: Iterable[Path],
        scratch: str,
        alone: bool,  # noqa: FBT001 (one of what was found out above)
    ) -> list[Rule] | None:
        version: int = self.facts["landlock"]
        if not version:
            return None
        everything = landlock.rights(version)
        shared = alone or confinement.shares_memory
        return [
            *rules_of(programs, environment, programs_in((confinement.interpreter,))),
            *((os.fsencode(path), landlock.READ) for path in readable if not is_too_wide(path)),
            (os.fsencode(scratch), everything),
            *([(SHARED_MEMORY, everything)] if shared else ()),
        ]

    def _filter(self, confinement: Confinement, *, as_root: bool) -> bytes | None:
        if not self.facts["filters"]:
            return None
        # Root may use every socket of this machine, the engine's among them.
        machine, network = self.facts["machine"], confinement.network
        asks = _port(confinement) is not None
        return seccomp.filter_of(machine, network=network, local=not as_root, asks=asks)

    def _shortcomings(
        self, user: int | None, closed: str | None, port: int | None
    ) -> Iterable[str]:
        if self.facts["system"] != "Linux":
            yield ELSEWHERE
            return
        if not self.facts["landlock"]:
            yield NO_LANDLOCK
        if not self.facts["filters"]:
            yield NO_FILTER
        elif port is not None and self.facts["landlock"] < landlock.PORTS_SINCE:
            yield ALL_PORTS
        shared = user is None or user == NOBODY
        if user is None and self.facts["root"]:
            yield AS_ROOT if self.facts["users"] is None else _as_root(closed)
        elif shared and self.facts["landlock"] < SIGNALS_SINCE:
            yield SIGNALS
        if shared and 0 < self.facts["landlock"] < EMPTYING_SINCE:
            yield EMPTYING


def _port(confinement: Confinement) -> int | None:
    """The only port that a program may connect to; None where that is not what holds it."""
    return None if confinement.network else confinement.port


def _as_root(closed: str | None) -> str:
    return f"evaluators' programs run as root: no other user can read {closed} (chmod o+rX)"


def _temporary(environment: Mapping[str, str]) -> str:
    """The folder for private folders; none is written to in order to find out."""
    named = [environment[name] for name in ("TMPDIR", "TEMP", "TMP") if environment.get(name)]
    usable = (each for each in (*named, *TEMPORARY) if os.access(each, os.W_OK | os.X_OK))
    return str(Path(next(usable, TEMPORARY[0])).absolute())


def _at_home(environment: Mapping[str, str], scratch: str) -> dict[str, str]:
    """The environment of a program that lives in ``scratch``."""
    own = {name: value for name, value in environment.items() if not name.startswith("XDG_")}
    home, temporary = (str(Path(scratch, name)) for name in ("home", "tmp"))
    moved = {"HOME": home, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary}
    user_packages = {"PYTHONUSERBASE": f"{environment.get('HOME', '')}/.local"}
    return NAMED | GIT | user_packages | own | moved
