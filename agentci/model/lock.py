"""What was agreed on: the commits, the contents and the packages of evaluators."""

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
        source, repository, revision, ref: as a config names it, completed by its source.
        commit: what the revision meant when it was locked.
        files: sha256 in hexadecimal of every file, by path relative to the program's folder.
        executables: those of the files that can be run.
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
        """What it is found by."""
        return (self.source, self.repository, self.revision, self.ref)


class LockedRequirements(Struct, frozen=True, kw_only=True):
    """What one ``requirements.txt`` comes to.

    Attributes:
        file: where it lay when it was locked; for people.
        sha256: of its content, in hexadecimal.
        packages: hashes (``sha256:...``) by requirement (``numpy==2.3.1``).
    """

    file: str
    sha256: str
    packages: Mapping[str, tuple[str, ...]]

    @property
    def requirement_lines(self) -> tuple[str, ...]:
        """As installers read them, a package a line."""
        return tuple(
            " ".join((package, *(f"--hash={each}" for each in hashes)))
            for package, hashes in self.packages.items()
        )


class Lock(Struct, frozen=True, kw_only=True):
    """The content of ``agentci.lock``."""

    programs: tuple[LockedProgram, ...] = ()
    requirements: tuple[LockedRequirements, ...] = ()

    def find(self, program: RemoteProgram) -> LockedProgram | None:
        """What a completed program is locked to; no lock speaks against what its config pins."""
        wanted, pinned = make_program_key(program), _extract_pinned_commit(program)
        return next(
            (each for each in self.programs if each.key == wanted and pinned in {"", each.commit}),
            None,
        )

    def find_requirements(self, sha256: str) -> LockedRequirements | None:
        """What a requirements file of that content is locked to; no packages are no lock."""
        found = (each for each in self.requirements if each.sha256 == sha256 and each.packages)
        return next(found, None)


def make_program_key(program: RemoteProgram) -> ProgramKey:
    """What a completed program is found by in a lock."""
    return (program.source, program.repository, program.revision, program.ref)


def _extract_pinned_commit(program: RemoteProgram) -> str:
    """The commit that the config itself says, as its source names it; empty where it says none."""
    if program.source == "url":
        return f"sha256:{program.sha256}"
    is_commit = program.source == "github" and _COMMIT.fullmatch(program.revision)
    return program.revision if is_commit else ""
