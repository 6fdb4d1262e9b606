"""The lock file: pinned commits, file contents and packages of evaluators."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.program import RemoteProgram

LOCK_NAME: Final = "agentci.lock"

ProgramKey: TypeAlias = tuple[str, str, str, str]

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class LockedProgram(Struct, frozen=True, kw_only=True):
    """One remote evaluator.

    Attributes:
        source, repository, revision, ref: as in the config, completed by the source.
        commit: the commit of the revision when it was locked.
        files: sha256 in hexadecimal of every file, by path relative to the program's folder.
        executables: the files that are executable.
    """

    source: str
    repository: str
    revision: str
    ref: str
    commit: str
    files: Mapping[str, str]
    executables: tuple[str, ...] = ()

    @property
    def key(self) -> ProgramKey:
        """The lookup key."""
        return (self.source, self.repository, self.revision, self.ref)


class LockedRequirements(Struct, frozen=True, kw_only=True):
    """The resolved packages of one ``requirements.txt``.

    Attributes:
        file: its path when it was locked, for readers of the lock file.
        sha256: of its content, in hexadecimal.
        packages: hashes (``sha256:...``) by requirement (``numpy==2.3.1``).
    """

    file: str
    sha256: str
    packages: Mapping[str, tuple[str, ...]]

    @property
    def requirement_lines(self) -> tuple[str, ...]:
        """The packages in requirements format, one per line."""
        return tuple(
            " ".join((package, *(f"--hash={each}" for each in hashes)))
            for package, hashes in self.packages.items()
        )


class Lock(Struct, frozen=True, kw_only=True):
    """The content of ``agentci.lock``."""

    programs: tuple[LockedProgram, ...] = ()
    requirements: tuple[LockedRequirements, ...] = ()

    def find(self, program: RemoteProgram) -> LockedProgram | None:
        """Find the entry of a completed program; skip entries that differ from a pinned commit."""
        key, pinned = make_program_key(program), _extract_pinned_commit(program)
        return next(
            (each for each in self.programs if each.key == key and pinned in {"", each.commit}),
            None,
        )

    def find_requirements(self, sha256: str) -> LockedRequirements | None:
        """Find the entry of a requirements file with that content; entries need packages."""
        found = (each for each in self.requirements if each.sha256 == sha256 and each.packages)
        return next(found, None)


def make_program_key(program: RemoteProgram) -> ProgramKey:
    """Build the lookup key of a completed program."""
    return (program.source, program.repository, program.revision, program.ref)


def _extract_pinned_commit(program: RemoteProgram) -> str:
    """Return the commit that the config pins, in the source's notation; empty if it pins none."""
    if program.source == "url":
        return f"sha256:{program.sha256}"
    is_commit = program.source == "github" and _COMMIT.fullmatch(program.revision)
    return program.revision if is_commit else ""
