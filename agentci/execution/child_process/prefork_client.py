"""Find the prefork interpreter for a program, and make the job that starts it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.workspace import trust_path
from agentci.execution.child import kernel
from agentci.execution.environment_variables import make_child_environment
from agentci.execution.executor_api import ProgramJob, SandboxPolicy
from agentci.model.values import replace

PACKAGE_FOLDER: Final = str(Path(__file__).resolve().parents[2])
# Imports agentci from its folder, without letting modules next to it replace the standard library.
BOOTSTRAP_CODE: Final = (
    "import sys; bare = tuple(sys.modules); sys.flags.safe_path or sys.path.pop(0);"
    " sys.modules['agentci'] = ours = type(sys)('agentci'); ours.__path__ = [sys.argv[1]];"
)
PREFORK_CODE: Final = (
    f"{BOOTSTRAP_CODE} from agentci.execution.child.prefork_server import main; main(bare)"
)

# Variables that Python or its libraries read only when they start.
STARTUP_PREFIXES: Final = ("GLIBC_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON", "TZ")
# Those of them that cannot make Python run code other than what agentci itself runs.
HARMLESS_VARIABLES: Final = frozenset(
    {
        "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
        "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHONUTF8",
        "TZ",
    }
)  # fmt: skip
LOCALE_PREFIX: Final = "LC_"
# Each program has its own values, which the prefork interpreter must not use.
PROGRAM_ONLY_VARIABLES: Final = frozenset({"PYTHONPATH", "PYTHONUSERBASE"})
# Disables user packages: sandboxed programs may be able to write to a user's home.
NO_USER_PACKAGES: Final = {"PYTHONUSERBASE": "/nonexistent"}
MAX_PARALLEL_PROGRAMS: Final = 8


class PreforkInterpreter(Struct, frozen=True):
    """A Python that has started and imported modules in advance.

    Attributes:
        python: path of the interpreter.
        environment: the part of a program's environment that it has used.
        sandbox_policy: its own sandbox policy, if it imports untrusted packages; otherwise None.
    """

    python: str
    environment: tuple[tuple[str, str], ...]
    sandbox_policy: SandboxPolicy | None = None

    @classmethod
    def for_program(
        cls, python: str, environment: Mapping[str, str], sandbox_policy: SandboxPolicy
    ) -> "PreforkInterpreter | None":
        """Return the one whose forks act as ``python`` in ``environment``; None if impossible."""
        names = {
            name for name in environment if name.startswith(STARTUP_PREFIXES)
        } - PROGRAM_ONLY_VARIABLES
        if any(
            name not in HARMLESS_VARIABLES and not name.startswith(LOCALE_PREFIX) for name in names
        ):
            return None
        seen = NO_USER_PACKAGES | {name: environment[name] for name in names}
        restrictions = (
            replace(sandbox_policy, imports=None) if sandbox_policy.untrusted_packages else None
        )
        return cls(python, tuple(sorted(seen.items())), restrictions)

    @staticmethod
    def make_policy(of_programs: SandboxPolicy) -> SandboxPolicy:
        """Make its own policy: that of its programs, with limits for several programs at a time."""
        return replace(
            of_programs,
            readable=(*of_programs.readable, trust_path(Path(PACKAGE_FOLDER))),
            processes=of_programs.processes * MAX_PARALLEL_PROGRAMS,
            folder_mb=of_programs.folder_mb * MAX_PARALLEL_PROGRAMS,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts it, with a channel as stdin and a terminal as stderr.

        Its stdout is a pipe that is never read; programs inherit its stream settings from it.
        """
        return (self.python, "-c", PREFORK_CODE, PACKAGE_FOLDER)


# Timeout of a prefork interpreter: longer than any run.
INTERPRETER_SECONDS: Final = 7 * 24 * 3600.0


def find_job_imports(job: ProgramJob) -> tuple[str, ...]:
    """Return the modules to preload for a program; none if it needs a new interpreter."""
    return job.sandbox_policy.imports or ()


def find_prefork_interpreter(job: ProgramJob) -> PreforkInterpreter | None:
    """Return the prefork interpreter for a program; None if it needs a new interpreter."""
    if job.sandbox_policy.imports is None or not kernel.IS_LINUX:
        return None
    return PreforkInterpreter.for_program(job.command[0], job.environment, job.sandbox_policy)


def make_interpreter_job(interpreter: PreforkInterpreter, job: ProgramJob) -> ProgramJob:
    """Make the job that starts a prefork interpreter in its own sandbox, for programs like ``job``.

    Its environment has nothing that only ``job`` may see, because forks have the interpreter's
    memory.
    """
    return replace(
        job,
        command=interpreter.command,
        stdin=b"",
        cwd=Path("/"),
        environment=make_child_environment(job.environment) | dict(interpreter.environment),
        timeout_seconds=INTERPRETER_SECONDS,
        sandbox_policy=interpreter.make_policy(job.sandbox_policy),
    )
