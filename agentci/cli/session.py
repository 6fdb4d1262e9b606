"""A command and what it uses of its process: services, signals, exit codes, the only catch-all."""

import atexit
import errno
import gc
import os
import platform
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Final, TextIO, TypeAlias

from msgspec import Struct

from agentci._util.files import redact_stream, write_to_stream
from agentci._util.http_client import HttpClient
from agentci._util.text.escape import escape_for_log, escape_for_log_line
from agentci._util.text.secrets import Redactor
from agentci._util.workspace import Workspace, enable_input_limits, find_workspace
from agentci.config.variables import ANY_NAME, RUN_VARIABLES, ConfigVariables, is_reserved
from agentci.errors import InputError, InterruptionError
from agentci.execution import environment_variables
from agentci.execution.registry import Executors, make_factories
from agentci.github.api_client import GitHubApi, read_api_access
from agentci.github.events import GitHubContext, Workflow, find_agent_refusal, read_github_context
from agentci.model.values import replace
from agentci.remote.programs import EVALUATORS_TOKEN_VARIABLE, Sources, read_source_context
from agentci.runner.services import Interruption, Services
from agentci.version import __version__

OTLP_HEADERS_VARIABLE: Final = "OTEL_EXPORTER_OTLP_HEADERS"


class Session(Struct, frozen=True, kw_only=True):
    """What one command gets from outside; it passes on only the parts that a function uses.

    Attributes:
        services: executors, judges, caches and clock, for running checks.
        workflow: the workflow run that this process is a step of.
        http: the HTTP client of the run.
        out: the stream that results are written to.
        colour: whether it is a terminal that shows colours.
        otlp_headers: headers for the OTLP endpoint, as ``OTLP_HEADERS_VARIABLE`` has them.
    """

    services: Services
    workflow: Workflow
    http: HttpClient
    out: TextIO
    colour: bool = False
    otlp_headers: str = ""


def allow_variables(session: Session, names: Sequence[str]) -> Session:
    """The session, in which configs may name only these variables; without names, the default."""
    if not names:
        return session
    services = session.services
    return replace(session, services=replace(services, variables=services.variables.allow(names)))


def restrict_agents(session: Session, *, allowed: bool) -> Session:
    """The session, in which agents run only in the sandbox unless the workflow ``allowed`` more.

    The event of the workflow is read before the first agent that has no sandbox.
    """
    find = cache(partial(find_agent_refusal, session.workflow.context, allowed=allowed))
    return replace(session, services=replace(session.services, find_agent_refusal=find))


def allow_caches(session: Session, folders: Mapping[str, str]) -> Session:
    """The session, in which configs may open these folders to evaluators, by their variables.

    Raises:
        InputError: a folder cannot be opened.
    """
    if not folders:
        return session
    from agentci.runner.prepare import open_evaluator_caches  # noqa: PLC0415 (seldom used)

    services = session.services
    caches = open_evaluator_caches(folders, services)
    return replace(session, services=replace(services, evaluator_caches=caches))


def find_default_cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the cache folder of the user, outside all checkouts.

    In a container action, ``HOME`` is ``_github_home`` in the runner's folder for temporary files,
    which steps with ``actions/cache`` can save and restore.
    """
    caches, home = (Path(environ.get(name, "")) for name in ("XDG_CACHE_HOME", "HOME"))
    # A relative path would depend on the working directory.
    if caches.is_absolute():
        return caches / "agentci"
    return (home if home.is_absolute() else Path("/")) / ".cache" / "agentci"


def identify_repository(github: GitHubContext, workspace: Workspace) -> str:
    """Identify the repository in the keys of cached responses and baselines.

    Outside of workflows by its path: a hostile copy of a repository chooses all else.
    """
    return (github.active and github.repository_url) or str(workspace.root)


EXIT_INVALID = 2
EXIT_BUG = 70
STDERR = 2
# A cancelled job, a stopped container, a closed terminal.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Errors that are caused by the machine.
NO_THREAD_MESSAGE: Final = "can't start new thread"
RESOURCE_ERROR_NUMBERS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)

# Little garbage is in reference cycles, and Python's default would spend a tenth of a short run on
# searching for it. Memory grows by at most this many objects, a few MB.
GC_THRESHOLD: Final = 100_000

# Inheritable and permitted capabilities of a process.
_NO_CAPABILITIES: Final = re.compile(rb"^CapInh:\s0+\nCapPrm:\s0+\n", re.MULTILINE)

Command: TypeAlias = Callable[[Session], int]


def run_in_process(command: Command, environ: Mapping[str, str]) -> int:
    """Run ``command`` in this process and return the process's exit code.

    Invalid input is reported with all problems (exit 2); any other exception is a bug (exit 70).
    """
    gc.set_threshold(GC_THRESHOLD)
    # Skips Python's search for cycles at exit; the process ends anyway.
    atexit.register(gc.freeze)
    _open_streams()
    _drop_unused_capabilities()
    err = sys.stderr
    try:
        enable_input_limits(environ)
        session = make_session(environ)
        err = session.services.err
        _install_signal_handlers(session.services)
        try:
            code = command(session)
        finally:
            session.services.interruption.is_immediate_allowed = False
            _stop_programs(session.services)
        sys.stdout.flush()
    except InterruptionError as interruption:
        code = 128 + interruption.signal_number
    except Exception as error:  # noqa: BLE001 (the last resort)
        code, message = _explain_error(error)
        write_to_stream(message, err)
        write_to_stream("", sys.stdout)
    return code


def _open_streams() -> None:
    """Open all three standard streams, even if the caller closed them, for any text.

    Otherwise the first opened files would get their descriptors, and with them what is printed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(descriptor)
    for number, name in enumerate(("stdout", "stderr"), start=1):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _drop_unused_capabilities() -> None:
    """Give up the capabilities that agentci does not use, if it has any."""
    with suppress(OSError):
        if not _NO_CAPABILITIES.search(Path("/proc/self/status").read_bytes()):
            # Imported only where needed, as it loads ctypes.
            from agentci.execution.child.kernel import drop_unused_capabilities  # noqa: PLC0415

            drop_unused_capabilities()


def _explain_error(error: Exception) -> tuple[int, str]:
    """Return the exit code of a command that ended with an exception, and the message to print."""
    if isinstance(error, InputError):
        from agentci.reports.problems import render_problems  # noqa: PLC0415 (only for errors)

        return EXIT_INVALID, render_problems(error.problems, "text")
    if isinstance(error, BrokenPipeError):
        return 128 + signal.SIGPIPE, ""
    if shortage := _find_resource_shortage(error):
        return EXIT_INVALID, f"error: {escape_for_log_line(shortage)}\n"
    return EXIT_BUG, f"{escape_for_log(_format_bug_report(error))}\n"


def _find_resource_shortage(error: Exception) -> str | None:
    """Return which resource of the machine is exhausted; None for other errors."""
    match error:
        case OSError() if error.errno in RESOURCE_ERROR_NUMBERS:
            return str(error)
        case MemoryError():
            return "not enough memory"
        case RuntimeError() if str(error) == NO_THREAD_MESSAGE:
            return f"{error}; run fewer checks in parallel with --jobs"
        case _:
            return None


def make_session(environ: Mapping[str, str]) -> Session:
    """Make the session of this process.

    Args:
        environ: environment variables of the process.

    Raises:
        InputError: there is no working directory.
    """
    github = read_github_context(environ)
    interruption = Interruption()
    workspace = find_workspace(_find_working_directory(), root=github.workspace)
    variables = make_config_variables(environ, github)
    outer = environment_variables.select_outer_folders(environ, workspace)
    err = redact_stream(sys.stderr, variables.redactor)
    http = HttpClient(
        report=lambda text: write_to_stream(f"{escape_for_log_line(text)}\n", err),
        stopped=interruption.is_requested,
    )
    services = Services(
        workspace=workspace,
        executors=Executors(
            make_factories(environment_variables.make_own_environment(environ, workspace))
        ),
        child_environment=environment_variables.make_child_environment(environ),
        installer_environment=environment_variables.make_installer_environment(outer),
        variables=variables,
        search_path=outer["PATH"],
        sources=Sources(read_source_context(environ, http=http, workspace=workspace.root)),
        cache_folder=find_default_cache_folder(environ),
        repository=identify_repository(github, workspace),
        err=err,
        clock=time.monotonic,
        processors=len(os.sched_getaffinity(0)),
        interruption=interruption,
    )
    workflow = Workflow(context=github, api=GitHubApi(read_api_access(environ), http))
    out = redact_stream(sys.stdout, variables.redactor)
    is_forced = environ.get("FORCE_COLOR", "") not in ("", "0")
    colour = (is_forced or out.isatty()) and not environ.get("NO_COLOR")
    return Session(
        services=services,
        workflow=workflow,
        http=http,
        out=out,
        colour=colour,
        otlp_headers=environ.get(OTLP_HEADERS_VARIABLE, ""),
    )


def make_config_variables(environ: Mapping[str, str], github: GitHubContext) -> ConfigVariables:
    """Make what configs see of the environment: in a workflow, only variables without secrets."""
    return ConfigVariables(
        environ,
        allowed=() if github.active else (ANY_NAME,),
        public={
            *RUN_VARIABLES,
            *(k for k, v in environ.items() if environment_variables.is_harmless(k, v)),
        },
        redactor=Redactor(value for name, value in environ.items() if _is_own_token(name)),
    )


def _is_own_token(name: str) -> bool:
    """Whether the variable holds a token that agentci itself uses, or could."""
    return name.endswith("TOKEN") and (is_reserved(name) or name == EVALUATORS_TOKEN_VARIABLE)


def _find_working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        message = f"the working directory is not accessible: {error.strerror}"
        raise InputError.from_message(message, hint="start agentci in an existing folder") from None


def _install_signal_handlers(services: Services) -> None:
    """On a signal, stop the evaluators' programs at once and let the run finish early."""

    def end(signal_number: int, _frame: FrameType | None) -> None:
        services.interruption.request_stop(signal_number)
        _stop_programs(services)
        services.interruption.raise_if_allowed()

    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, end)
    # If the parent process ignores it, exit codes of our children would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _stop_programs(services: Services) -> None:
    services.executors.stop()


def _format_bug_report(error: Exception) -> str:
    python = f"Python {platform.python_version()} on {platform.platform()}"
    return (
        f"{''.join(traceback.format_exception(error))}\n"
        f"This is a bug in agentci {__version__} ({python}), not in your evaluators.\n"
        "Please report it with the lines above as an issue of agentci's repository."
    )
