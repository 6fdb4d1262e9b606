"""Programs of evaluators and agents, as a config names them and as the lock file pins them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.values import Place

# A shell command line, or arguments that are passed without a shell.
CommandTemplate: TypeAlias = str | tuple[str, ...]


class Agent(Struct, frozen=True, kw_only=True):
    """The program to run for a case without a recorded run.

    Attributes:
        command: with placeholders for the case, such as ``{PROMPT}``.
        folder: absolute path of its working directory.
        home: absolute path of the repository that its file is from, if that is not the workspace.
        timeout_seconds: wall time of one run.
        variables: names of environment variables that it may see besides the harmless ones.
        sandboxed: whether it runs in the sandbox of evaluators.
        network: whether it may use the network in the sandbox.
        files_format: format of each file in ``{FILES}``, with ``{path}`` and ``{basename}``.
    """

    command: CommandTemplate
    folder: str
    timeout_seconds: float
    place: Place
    home: str | None = None
    variables: tuple[str, ...] = ()
    sandboxed: bool = False
    network: bool = True
    files_format: str = "{path}"


# The source of evaluators in a folder of the workspace.
LOCAL_SOURCE: Final = "local"
# The file next to a Python program that lists the packages it needs.
REQUIREMENTS_NAME: Final = "requirements.txt"


class LocalProgram(Struct, frozen=True, kw_only=True):
    """A program on this machine.

    Attributes:
        path: absolute path of its file.
        requirements: absolute path of the requirements file to install, if any.
        allow_source: whether packages without a wheel may be built.
        home: absolute path of the repository that its config is from, if that is not the workspace.
    """

    path: str
    requirements: str | None = None
    allow_source: bool = False
    home: str | None = None


class RemoteProgram(Struct, frozen=True, kw_only=True):
    """A program from a remote source, as a config names it; empty values are set by the source.

    Attributes:
        source: name in the table of sources.
        repository: where the source keeps programs: ``org/name`` on GitHub, a folder on disk.
        revision: branch, tag or commit.
        ref: the program's file in the repository, or its URL.
        sha256: of the file that ``ref`` names, in hexadecimal.
        installs_requirements: whether a ``requirements.txt`` next to it is installed.
        allow_source: whether packages without a wheel may be built.
    """

    source: str
    ref: str
    repository: str = ""
    revision: str = ""
    sha256: str = ""
    installs_requirements: bool = True
    allow_source: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is in the workspace: versioned with the config, it needs no lock."""
        return self.source == LOCAL_SOURCE


Program: TypeAlias = LocalProgram | RemoteProgram


class RequiredProgram(Struct, frozen=True, kw_only=True):
    """A program that has to be available before any evaluation starts.

    Attributes:
        name: of the evaluator, for messages.
        place: where the config names the program.
    """

    program: Program
    name: str
    place: Place


class ProgramFile(Struct, frozen=True, kw_only=True):
    """One fetched file of a program."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSnapshot:
    """A remote program and all files in its folder, at one commit.

    Attributes:
        entry: the program's own file, one of ``files``.
        files: by path relative to the folder, with ``/``; neither absolute nor with ``..``.
    """

    entry: str
    files: Mapping[str, ProgramFile] = field(repr=False)


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """The entry of one evaluator in a catalogue.

    Attributes:
        source: name in the table of sources; ``builtin`` for metrics.
        ref: how a config names it; its name for metrics.
        language: ``python``, ``javascript``, ``typescript``; empty if unknown.
    """

    name: str
    source: str
    ref: str
    description: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    author: str = ""


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
