"""The walls of a container, as arguments of `docker create`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from agentci.execution.environment_variables import PROXIES
from agentci.execution.limits import CORE_BYTES, OPEN_FILES, Confinement

# Where the program's folder is in the container.
FOLDER: Final = PurePosixPath("/evaluator")
NOBODY: Final = "65534:65534"

# What tells of this machine is of no use in another file system, and might mislead there.
OF_THIS_MACHINE: Final = frozenset(
    {
        "PATH", "LD_LIBRARY_PATH", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV",
        "HOME", "LOGNAME", "TEMP", "TMP", "TMPDIR", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)  # fmt: skip
OWN: Final = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108 (the container's)
# The command line adds those of its own configuration, passwords and all, unless they are given.
PROXIES_OF_DOCKER: Final = PROXIES | {"FTP_PROXY"}

# The same for every program. The folder is a volume, because an engine copies nothing into a file
# system that is read-only; root owns what is in it.
WALLS: Final = (
    "--interactive",
    "--pull=never",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    f"--user={NOBODY}",
    "--hostname=evaluator",
    "--log-driver=none",
    "--no-healthcheck",
    "--restart=no",
    f"--mount=type=volume,destination={FOLDER},volume-nocopy",
    f"--workdir={FOLDER}",
    f"--ulimit=core={CORE_BYTES}:{CORE_BYTES}",
    f"--ulimit=nofile={OPEN_FILES}:{OPEN_FILES}",
)


def options_of(
    confinement: Confinement, *, variables: Iterable[str], of_docker: Iterable[str]
) -> tuple[str, ...]:
    """The options that put up the walls.

    Args:
        variables: names of what the program sees of our environment. Their values are left to the
            environment of `docker`: arguments can be read by every process of a machine.
        of_docker: names of what is in that environment for `docker` itself.
    """
    seen = set(variables)
    unseen = {spelled for name in PROXIES_OF_DOCKER for spelled in (name, name.lower())} - seen
    # A name alone hands on a value that is there, and removes one that is not.
    blank = unseen & set(of_docker)
    space = min(confinement.memory_mb, confinement.folder_mb)
    return (
        *WALLS,
        f"--network={'bridge' if confinement.network else 'none'}",
        f"--memory={confinement.memory_mb}m",
        f"--memory-swap={confinement.memory_mb}m",
        f"--pids-limit={confinement.processes}",
        f"--tmpfs=/tmp:rw,nosuid,nodev,noexec,mode=1777,size={space}m",
        *(f"--env={name}={value}" for name, value in OWN.items()),
        *(f"--env={name}=" for name in sorted(blank)),
        *(f"--env={name}" for name in sorted(seen | unseen - blank)),
    )


def variables_for(environment: Mapping[str, str]) -> dict[str, str]:
    """What of ``environment`` is of use in a container."""
    return {name: value for name, value in environment.items() if name not in OF_THIS_MACHINE}


def command_within(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command, with the files of ``folder`` where they are in the container."""
    return tuple(_within(word, folder) for word in command)


def _within(word: str, folder: Path) -> str:
    path = Path(word)
    if path.is_absolute() and path.is_relative_to(folder):
        return str(FOLDER / path.relative_to(folder))
    return word
