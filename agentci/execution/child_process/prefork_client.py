"""Finds the prefork interpreter for a program, and makes the job that starts it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.execution.child import kernel
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.model.values import replace

PACKAGE_FOLDER: Final = str(Path(__file__).resolve().parents[2])
# Ours is found where it is, and nothing beside us in place of the standard library.
BOOTSTRAP_CODE: Final = (
    "import sys; bare = tuple(sys.modules); sys.flags.safe_path or sys.path.pop(0);"
    " sys.modules['agentci'] = ours = type(sys)('agentci'); ours.__path__ = [sys.argv[1]];"
)
PREFORK_CODE: Final = (
    f"{BOOTSTRAP_CODE} from agentci.execution.child.prefork_server import main; main(bare)"
)

# What a Python or its libraries look at when they start, and never again.
STARTUP_PREFIXES: Final = ("GLIBC_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
# Of these, what makes no code run that would not run in us as well.
HARMLESS_VARIABLES: Final = frozenset(
    {
        "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
        "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHONUTF8",
        "TZ",
    }
)  # fmt: skip
LOCALE_PREFIX: Final = "LC_"
# Each program has its own, and nothing of it is ours.
PROGRAM_ONLY_VARIABLES: Final = frozenset({"PYTHONPATH", "PYTHONUSERBASE"})
# Nobody's packages are here: the home of a user may be written to by those whom we jail.
NO_USER_PACKAGES: Final = {"PYTHONUSERBASE": "/nonexistent"}
MAX_PARALLEL_PROGRAMS: Final = 8


class PreforkInterpreter(Struct, frozen=True):
    """A Python that has started already.

    Attributes:
        python: its path.
        environment: what it has seen of a program's environment.
        confinement: the jail that it is in itself, where it imports what nobody vouches for.
    """

    python: str
    environment: tuple[tuple[str, str], ...]
    confinement: SandboxPolicy | None = None

    @classmethod
    def for_program(
        cls, python: str, environment: Mapping[str, str], confinement: SandboxPolicy
    ) -> "PreforkInterpreter | None":
        """The one whose forks are as ``python`` would be in ``environment``, if one may be."""
        names = {
            name for name in environment if name.startswith(STARTUP_PREFIXES)
        } - PROGRAM_ONLY_VARIABLES
        if any(
            name not in HARMLESS_VARIABLES and not name.startswith(LOCALE_PREFIX) for name in names
        ):
            return None
        seen = NO_USER_PACKAGES | {name: environment[name] for name in names}
        jail = replace(confinement, imports=None) if confinement.untrusted_packages else None
        return cls(python, tuple(sorted(seen.items())), jail)

    @staticmethod
    def make_policy(of_programs: SandboxPolicy) -> SandboxPolicy:
        """Its own jail: that of its programs, with room for several of them at a time."""
        return replace(
            of_programs,
            readable=(*of_programs.readable, Path(PACKAGE_FOLDER)),
            processes=of_programs.processes * MAX_PARALLEL_PROGRAMS,
            folder_mb=of_programs.folder_mb * MAX_PARALLEL_PROGRAMS,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """What starts it, with a channel for stdin and a terminal for stderr.

        Its stdout is a pipe that nobody reads; programs inherit from it how streams are used.
        """
        return (self.python, "-c", PREFORK_CODE, PACKAGE_FOLDER)


# Of a warm Python: longer than any run.
INTERPRETER_SECONDS: Final = 7 * 24 * 3600.0


def find_job_imports(job: ProgramJob) -> tuple[str, ...]:
    """What a program may find imported; nothing where it starts by itself."""
    return job.confinement.imports or ()


def find_prefork_interpreter(job: ProgramJob) -> PreforkInterpreter | None:
    """The Python that a program can be a fork of, where it may be one."""
    if job.confinement.imports is None or not kernel.IS_LINUX:
        return None
    return PreforkInterpreter.for_program(job.command[0], job.environment, job.confinement)


def make_interpreter_job(warmth: PreforkInterpreter, job: ProgramJob) -> ProgramJob:
    """What starts a warm Python in a jail of its own, for programs like that of ``job``.

    It sees nothing that ``job`` alone may see: its forks find all that it sees in their memory.
    """
    return replace(
        job,
        command=warmth.command,
        stdin=b"",
        cwd=Path("/"),
        environment=make_child_environment(job.environment) | dict(warmth.environment),
        timeout_seconds=INTERPRETER_SECONDS,
        confinement=warmth.make_policy(job.confinement),
    )
