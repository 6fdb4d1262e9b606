"""What a program may reach and use up, whoever wrote it."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.model.requests import MEMORY_MB, PROCESSES

MEBIBYTE: Final = 1024**2

FILE_MB: Final = 1024
FOLDER_MB: Final = 2048
OPEN_FILES: Final = 4096
# None at all: with 0, systems that hand dumps to a program of theirs do so all the same.
CORE_BYTES: Final = 1

# Where a program can read and write all that its user can.
ELSEWHERE: Final = "evaluators' programs are not confined: only Linux has what it takes"
NO_LANDLOCK: Final = (
    "evaluators' programs can read and write whatever their user can:"
    " this kernel has no Landlock, or forbids it"
)


class Confinement(Struct, frozen=True, kw_only=True):
    """The walls around a program, as far as this machine can put them up.

    Attributes:
        network: whether it may make sockets.
        port: of TCP on this machine, the one that it may connect to where it may not otherwise use
            the network.
        readable: files and folders that it may read, beside the system, its interpreter and its
            working directory.
        interpreter: a program that runs it, and which it may read with the packages beside it.
        shares_memory: whether it may use shared memory where that cannot be cleared behind it.
        memory_mb: of a process, in MiB; what is mapped from files does not count.
        processes: how many it may have at a time, threads included.
        file_mb, folder_mb: of a file, and of all that it keeps in its private folder.
        image: what it runs in, where its executor runs programs in images.
        imports: modules that it is going to import, where ``python file`` may be a fork of a Python
            that has imported them already; None where it has to start by itself.
        jailed: False for what is not confined at all.
        own_packages: whether these are packages that nobody vouches for, whose code runs when they
            are imported.
    """

    network: bool = True
    port: int | None = None
    readable: tuple[Path, ...] = ()
    interpreter: str = ""
    shares_memory: bool = False
    memory_mb: int = MEMORY_MB
    processes: int = PROCESSES
    file_mb: int = FILE_MB
    folder_mb: int = FOLDER_MB
    image: str = ""
    imports: tuple[str, ...] | None = None
    own_packages: bool = False
    jailed: bool = True


# Of programs that are trusted as we are ourselves.
UNCONFINED: Final = Confinement(jailed=False)


def limits_of(
    confinement: Confinement, *, timeout_seconds: float, processors: int, others: int
) -> dict[str, int]:
    """The limits of the system, by their names in the module ``resource``.

    Args:
        others: how many processes count as the program's although they are not.
    """
    return {
        "RLIMIT_DATA": confinement.memory_mb * MEBIBYTE,
        "RLIMIT_NPROC": confinement.processes + others,
        # Wall time ends it earlier, unless we are gone.
        "RLIMIT_CPU": int(timeout_seconds * processors) + 1,
        "RLIMIT_FSIZE": confinement.file_mb * MEBIBYTE,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": CORE_BYTES,
    }
