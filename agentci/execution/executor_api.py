"""The executor interface, and what an executor receives: a program's job and sandbox policy."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from agentci._util.workspace import ResolvedPath
from agentci.errors import EvaluatorError
from agentci.model.requests import DEFAULT_MEMORY_MB, DEFAULT_PROCESSES, ProgramOutput

MEBIBYTE: Final = 1024**2

FILE_MB: Final = 1024
FOLDER_MB: Final = 2048
OPEN_FILES: Final = 4096
# Disables core dumps: with 0, systems that pipe dumps to a program of their own still do so.
CORE_BYTES: Final = 1

# Too broad to allow as a whole, even where a setting names one of them.
BROAD_FOLDERS: Final = frozenset({"/", "/home", "/root", "/tmp", "/var", "/run", "/dev", "/etc"})  # noqa: S108 (names a folder only)
TMP_FOLDERS: Final = ("/tmp", "/var/tmp")  # noqa: S108 (each program gets its own folder there)

# Warnings for machines where a program can read and write every file that its user can.
NOT_LINUX_WARNING: Final = "evaluator programs run without a sandbox: sandboxes require Linux"
NO_LANDLOCK_WARNING: Final = (
    "evaluator programs can read and write every file that their user can:"
    " this kernel does not support Landlock, or forbids it"
)


class SandboxPolicy(Struct, frozen=True, kw_only=True):
    """The restrictions on a program, applied as far as this machine supports them.

    Attributes:
        network: whether the program may make sockets.
        port: the one TCP port on this machine that the program may connect to if ``network`` is
            false; None for no port.
        readable: files and folders the program may read, in addition to the system, its
            interpreter and its working directory.
        workspace: real path of the folder that a pull request can change, readable as a whole; its
            links make nothing else readable.
        writable: an existing folder that the program may change, and that belongs to the program's
            user afterwards; None for no folder.
        home_files: files to write into the program's private home, by relative path.
        interpreter: the program that runs it, readable together with the packages next to it.
        shares_memory: whether the program may use shared memory even where it cannot be cleared
            afterwards.
        memory_mb: memory limit of one process in MiB, without memory mapped from files.
        processes: maximum number of processes at a time, threads included.
        file_mb: size limit of one file in MiB.
        folder_mb: size limit of the program's private folder and ``writable`` in MiB.
        image: image to run in, for executors that run programs in images.
        imports: modules the program imports; ``python file`` may then be a fork of a Python that
            has imported them already. None if the program needs a new interpreter.
        untrusted_packages: whether the imported packages are untrusted; importing them runs their
            code.
        sandboxed: False for a program without any restriction.
    """

    network: bool = True
    port: int | None = None
    readable: tuple[ResolvedPath, ...] = ()
    workspace: Path | None = None
    writable: Path | None = None
    home_files: tuple[tuple[str, bytes], ...] = ()
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


# For programs that are trusted as much as agentci itself.
NO_SANDBOX: Final = SandboxPolicy(sandboxed=False)


def make_resource_limits(
    sandbox_policy: SandboxPolicy, *, timeout_seconds: float, processors: int, others: int
) -> dict[str, int]:
    """Return the system's resource limits, by their names in the module ``resource``.

    Args:
        others: number of unrelated processes that the system counts as the program's.
    """
    return {
        "RLIMIT_DATA": sandbox_policy.memory_mb * MEBIBYTE,
        "RLIMIT_NPROC": sandbox_policy.processes + others,
        # The timeout ends the program earlier, unless agentci itself has ended.
        "RLIMIT_CPU": int(timeout_seconds * processors) + 1,
        "RLIMIT_FSIZE": sandbox_policy.file_mb * MEBIBYTE,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": CORE_BYTES,
    }


INTERRUPTED: Final = "was interrupted"


class ProgramTimeoutError(EvaluatorError):
    """The program exceeded its timeout.

    Args:
        printed: its last line on stderr, after a semicolon; empty if there is none.
    """

    def __init__(self, message: str, *, printed: str = "") -> None:
        super().__init__(f"{message}{printed}")
        self._message, self._printed = message, printed

    def with_hint(self, hint: str) -> "ProgramTimeoutError":
        """Return the error with what to do about it."""
        return ProgramTimeoutError(f"{self._message}; {hint}", printed=self._printed)


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
        sandbox_policy: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        """Run ``command`` to its end, then end every process it started.

        Args:
            command: the program and its arguments; paths are those of this machine.
            timeout_seconds: limit on wall time, including the start of the process.
            environment: the complete environment of the program.
            sandbox_policy: the sandbox policy; None for a program trusted as much as agentci.

        Raises:
            EvaluatorError: the program could not be started, exceeded its timeout or an output
                limit, or ``stop`` was called. The message completes a sentence about the program.
        """
        ...

    def limitations(self) -> Collection[str]:
        """Return a sentence for each part of a sandbox policy that this machine cannot apply."""
        ...

    def stop(self) -> None:
        """End all programs at once, and refuse to run more.

        May be called from any thread, from a signal handler, and more than once; so it must not
        take a lock that ``run`` holds.
        """
        ...


@runtime_checkable
class HermeticExecutor(Protocol):
    """An executor whose programs can read only what it gives them."""

    def compute_input_digest(self, cwd: Path, sandbox_policy: SandboxPolicy) -> str:
        """Return a digest of everything a program can read, including its image.

        Raises:
            EvaluatorError: as ``Executor.run``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramJob:
    """The arguments of ``Executor.run``.

    Attributes:
        timeout_hint: what to do if the program exceeds its timeout.
    """

    command: tuple[str, ...]
    stdin: bytes = field(repr=False)
    timeout_seconds: float
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    sandbox_policy: SandboxPolicy
    timeout_hint: str = ""

    def run(self, executor: Executor) -> ProgramOutput:
        """Run the job with ``executor``.

        Raises:
            EvaluatorError: as ``Executor.run``.
        """
        try:
            return executor.run(
                self.command,
                stdin=self.stdin,
                timeout_seconds=self.timeout_seconds,
                cwd=self.cwd,
                environment=self.environment,
                sandbox_policy=self.sandbox_policy,
            )
        except ProgramTimeoutError as error:
            raise (error.with_hint(self.timeout_hint) if self.timeout_hint else error) from None
