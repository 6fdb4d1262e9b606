"""The agent of an eval file, as a command that answers one case at a time."""

from typing import TypeAlias

from msgspec import Struct

from agentci.model.place import Place

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
        jailed: whether it runs in the jail of evaluators.
        network: whether it may use the network there.
        files_format: each file in ``{FILES}``, made of ``{path}`` and ``{basename}``.
    """

    command: CommandTemplate
    folder: str
    timeout_seconds: float
    place: Place
    home: str | None = None
    variables: tuple[str, ...] = ()
    jailed: bool = False
    network: bool = True
    files_format: str = "{path}"
