"""Programs of evaluators and agents, as a config names them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.problem import Place

# A line for the shell, or words that no shell reads.
CommandTemplate: TypeAlias = str | tuple[str, ...]


class Agent(Struct, frozen=True, kw_only=True):
    """What is run for a case that has no recorded output.

    Attributes:
        command: with placeholders for the case, such as ``{PROMPT}``.
        folder: absolute path of its working directory.
        home: absolute path of the repository that its file is from, where that is not the
            workspace.
        timeout_seconds: wall time of one run.
        variables: names of variables of ours that it may see beside the harmless ones.
        sandboxed: whether it runs in the jail of evaluators.
        network: whether it may use the network there.
        files_format: each file in ``{FILES}``, made of ``{path}`` and ``{basename}``.
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
# Beside a Python program: the packages that it needs.
REQUIREMENTS_NAME: Final = "requirements.txt"


class LocalProgram(Struct, frozen=True, kw_only=True):
    """A program on this machine.

    Attributes:
        path: absolute path of its file.
        requirements: absolute path of the requirements file that it needs installed, if any.
        home: absolute path of the repository that its config is from, where that is not the
            workspace.
    """

    path: str
    requirements: str | None = None
    home: str | None = None


class RemoteProgram(Struct, frozen=True, kw_only=True):
    """A program that is kept elsewhere, as a config names it; empty texts leave it to the source.

    Attributes:
        source: name in the table of sources.
        repository: where the source keeps programs: ``org/name`` on GitHub, a folder on disk.
        revision: branch, tag or commit.
        ref: the program's file in the repository, or its URL.
        sha256: of the file that ``ref`` names, in hexadecimal.
        installs_requirements: whether a ``requirements.txt`` beside it is installed.
    """

    source: str
    ref: str
    repository: str = ""
    revision: str = ""
    sha256: str = ""
    installs_requirements: bool = True

    @property
    def is_local(self) -> bool:
        """Whether it lies in the workspace: versioned with the config, it needs no lock."""
        return self.source == LOCAL_SOURCE


Program: TypeAlias = LocalProgram | RemoteProgram


class RequiredProgram(Struct, frozen=True, kw_only=True):
    """A program that has to be there before anything is judged by it.

    Attributes:
        name: of the evaluator, for messages.
        place: where a config names the program.
    """

    program: Program
    name: str
    place: Place


class ProgramFile(Struct, frozen=True, kw_only=True):
    """One file of a program, as it was fetched."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSnapshot:
    """A remote program and all that lies in its folder, at one commit.

    Attributes:
        entry: the program's own file, one of ``files``.
        files: by path relative to the folder, with ``/``; neither absolute nor with ``..``.
    """

    entry: str
    files: Mapping[str, ProgramFile] = field(repr=False)


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """What a catalogue says of one evaluator.

    Attributes:
        source: name in the table of sources; ``builtin`` for metrics.
        ref: how a config names it; its name for metrics.
        language: ``python``, ``javascript``, ``typescript``; empty where it is not said.
    """

    name: str
    source: str
    ref: str
    description: str = ""
    language: str = ""
    tags: tuple[str, ...] = ()
    author: str = ""
