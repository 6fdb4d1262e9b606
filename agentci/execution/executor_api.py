"""What an executor is, and what it is asked for: a program, its job and its sandbox policy."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from agentci.model.requests import DEFAULT_MEMORY_MB, DEFAULT_PROCESSES, ProgramOutput

MEBIBYTE: Final = 1024**2

FILE_MB: Final = 1024
FOLDER_MB: Final = 2048
OPEN_FILES: Final = 4096
# None at all: with 0, systems that hand dumps to a program of theirs do so all the same.
CORE_BYTES: Final = 1

# Where a program can read and write all that its user can.
NOT_LINUX_WARNING: Final = "evaluators' programs are not confined: only Linux has what it takes"
NO_LANDLOCK_WARNING: Final = (
    "evaluators' programs can read and write whatever their user can:"
    " this kernel has no Landlock, or forbids it"
)


class SandboxPolicy(Struct, frozen=True, kw_only=True):
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
        sandboxed: False for what is not confined at all.
        untrusted_packages: whether these packages are untrusted: importing them runs their code.
    """

    network: bool = True
    port: int | None = None
    readable: tuple[Path, ...] = ()
    interpreter: str = ""
    shares_memory: bool = False
    memory_mb: int = DEFAULT_MEMORY_MB
    processes: int = DEFAULT_PROCESSES
    file_mb: int = FILE_MB
    folder_mb: int = FOLDER_MB
    image: str = ""
    imports: tuple[str, ...] | None = None
    untrusted_packages: bool = False
    sandboxed: bool = True


# Of programs that are trusted as we are ourselves.
NO_SANDBOX: Final = SandboxPolicy(sandboxed=False)


def make_resource_limits(
    confinement: SandboxPolicy, *, timeout_seconds: float, processors: int, others: int
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


INTERRUPTED = "was interrupted"


class Executor(Protocol):
    """Runs programs, from any number of threads at once."""

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        confinement: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        """Run ``command`` to its end; whatever it started ends with it.

        Args:
            timeout_seconds: wall time, start of the process included.
            environment: all that the program sees of ours.
            confinement: what it may reach; None for a program that we trust as ourselves.

        Raises:
            EvaluatorError: it could not be started, took too long, printed too much, or ``stop``
                was called; as the end of a sentence about the program.
        """
        ...

    def shortcomings(self) -> Collection[str]:
        """What confinements asked for and this machine could not give, a sentence each."""
        ...

    def stop(self) -> None:
        """End all programs at once, and refuse to run any more.

        May be called from any thread, from a signal handler, and more than once.
        """
        ...


@runtime_checkable
class HermeticExecutor(Protocol):
    """An executor whose programs can read nothing but what it hands them."""

    def compute_input_digest(self, cwd: Path, confinement: SandboxPolicy) -> str:
        """A digest of all that a program there can read, with what it runs in.

        Raises:
            EvaluatorError: as ``Executor.run``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramJob:
    """What an executor is asked for; see ``Executor.run``."""

    command: tuple[str, ...]
    stdin: bytes = field(repr=False)
    timeout_seconds: float
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    confinement: SandboxPolicy

    def run(self, executor: Executor) -> ProgramOutput:
        """Have ``executor`` run it.

        Raises:
            EvaluatorError: as ``Executor.run``.
        """
        return executor.run(
            self.command,
            stdin=self.stdin,
            timeout_seconds=self.timeout_seconds,
            cwd=self.cwd,
            environment=self.environment,
            confinement=self.confinement,
        )
