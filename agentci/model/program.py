"""Programs of evaluators and agents, as a config names them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.problem import Place

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
