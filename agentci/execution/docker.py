"""Run each program in its own container, on the engine that the user's environment names.

The program's folder is copied, not mounted. So this works with an engine on another machine, and
from inside a container whose files the engine cannot see. An engine may serve several machines, and
containers with their own process ids. A process id identifies an owner only within the same boot
and PID namespace.
"""

import io
import json
import os
import secrets
import shutil
import tarfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import PROXY_VARIABLES
from agentci.execution.executor_api import (
    CORE_BYTES,
    INTERRUPTED,
    MEBIBYTE,
    OPEN_FILES,
    ProgramTimeoutError,
    SandboxPolicy,
)
from agentci.execution.local import LocalExecutor
from agentci.model.requests import ProgramOutput

# Timeout for commands that take milliseconds on an idle machine.
ENGINE_SECONDS: Final = 60.0

# Variables for the `docker` program: the engine's address, credentials, and what its helper
# programs need. Programs of evaluators get none of them.
DOCKER_VARIABLES: Final = frozenset(
    {
        "HOME", "LD_LIBRARY_PATH", "PATH", "SSH_AUTH_SOCK", "SSL_CERT_DIR", "SSL_CERT_FILE",
        "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
DOCKER_PREFIX: Final = "DOCKER_"

MAX_ERROR_CHARS: Final = 500
ERROR_PREFIX: Final = "could not be run in a container: "
NO_CLI: Final = (
    f"{ERROR_PREFIX}`docker` not found on PATH outside the workspace; install the Docker CLI,"
    " or run agentci on a machine that has it (the image of the action does not)"
)
NO_RESPONSE: Final = (
    f"{ERROR_PREFIX}the engine did not respond within {ENGINE_SECONDS:g} s;"
    " check that it is not overloaded"
)


class DockerClient:
    """Runs short `docker` commands for one engine, from any number of threads.

    The commands also work after a run is interrupted, so that containers can be removed.

    Args:
        variables: the user's environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._search_path = variables.get("PATH", os.defpath)
        self._environment = {
            name: value for name, value in variables.items() if _is_docker_variable(name)
        }
        self._executor = LocalExecutor()

    def command(self, *arguments: str) -> tuple[str, ...]:
        """Return the `docker` command with these arguments.

        Raises:
            EvaluatorError: `docker` is not on PATH.
        """
        program = shutil.which("docker", path=self._search_path)
        if program is None:
            raise EvaluatorError(NO_CLI)
        return (program, *arguments)

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the `docker` program."""
        return self._environment

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        seconds: float = ENGINE_SECONDS,
    ) -> ProgramOutput:
        """Run a command and return its output, whatever its exit code.

        Args:
            arguments: the arguments of `docker`.
            stdin: the input of `docker`.
            variables: additional environment variables of `docker`.
            seconds: timeout in seconds.

        Raises:
            EvaluatorError: `docker` could not be run, or did not finish in time.
        """
        command = self.command(*arguments)
        try:
            return self._executor.run(
                command,
                stdin=stdin,
                timeout_seconds=seconds,
                cwd=Path("/"),
                environment={**self._environment, **(variables or {})},
            )
        except ProgramTimeoutError:
            raise EvaluatorError(NO_RESPONSE) from None
        except EvaluatorError as error:
            raise EvaluatorError(f"{ERROR_PREFIX}{error}") from None

    def run_checked(
        self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> ProgramOutput:
        """Run a command that has to succeed; see ``run``.

        Raises:
            EvaluatorError: the command failed.
        """
        response = self.run(*arguments, stdin=stdin, variables=variables)
        if response.exit_code != 0:
            raise EvaluatorError(f"{ERROR_PREFIX}{extract_error(response)}")
        return response


def extract_error(response: ProgramOutput) -> str:
    """Extract the error message of `docker` as one line, without its prefixes."""
    lines: Sequence[str] = [line for line in response.stderr.splitlines() if line.strip()]
    text = next((line for line in lines if "rror" in line or "annot" in line), " ".join(lines))
    for start in ("docker: ", "Error response from daemon: ", "error during connect: "):
        text = text.removeprefix(start)
    return text[:MAX_ERROR_CHARS].rstrip(" .") or f"`docker` exited with code {response.exit_code}"


def _is_docker_variable(name: str) -> bool:
    return (
        name in DOCKER_VARIABLES
        or name.startswith(DOCKER_PREFIX)
        or name.upper() in PROXY_VARIABLES
    )


PULL_SECONDS: Final = 900.0
NO_SUCH_IMAGE: Final = "no such image"


class ImageResolver:
    """Resolves image names to digests; each name keeps its first result.

    Args:
        client: runs short commands.
        programs: runs pulls, which take long, so that ``stop`` can end them.
    """

    def __init__(self, client: DockerClient, programs: LocalExecutor) -> None:
        self._client = client
        self._programs = programs
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}
        self._errors: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the engine's digest of the image ``name``; pull the image if it is missing.

        Raises:
            EvaluatorError: the image or the engine is not found; later calls raise the same error.
        """
        with self._lock:
            if name in self._errors:
                raise EvaluatorError(self._errors[name])
            if name not in self._found:
                try:
                    self._found[name] = self._look_up(name) or self._pull(name)
                except EvaluatorError as error:
                    if str(error) != INTERRUPTED:
                        self._errors[name] = str(error)
                    raise
            return self._found[name]

    def _look_up(self, name: str) -> str | None:
        response = self._client.run("image", "inspect", "--format", "{{.Id}}", "--", name)
        if response.exit_code == 0:
            return response.stdout.decode("utf-8", "replace").strip()
        if NO_SUCH_IMAGE in response.stderr.lower():
            return None
        raise EvaluatorError(
            f"{ERROR_PREFIX}{extract_error(response)}; start the engine, or check "
            "DOCKER_HOST and the Docker context"
        )

    def _pull(self, name: str) -> str:
        try:
            response = self._programs.run(
                self._client.command("pull", "--quiet", "--", name),
                stdin=b"",
                timeout_seconds=PULL_SECONDS,
                cwd=Path("/"),
                environment=self._client.environment(),
            )
        except EvaluatorError as error:
            if str(error) == INTERRUPTED:
                raise
            raise EvaluatorError(f"{ERROR_PREFIX}`docker pull {name}` {error}") from None
        found = self._look_up(name) if response.exit_code == 0 else None
        if found is None:
            raise EvaluatorError(
                f"{ERROR_PREFIX}the image `{name}` was not found and could not be pulled:"
                f" {extract_error(response)}; check its name, or build it, pull it or log in in an"
                " earlier step"
            )
        return found


# Where the program's folder is in the container.
CONTAINER_FOLDER: Final = PurePosixPath("/evaluator")
CONTAINER_USER: Final = "65534:65534"

# Variables that describe this machine's file system, and would be wrong in a container.
HOST_VARIABLES: Final = frozenset(
    {
        "PATH", "LD_LIBRARY_PATH", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV",
        "HOME", "LOGNAME", "TEMP", "TMP", "TMPDIR", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)  # fmt: skip
CONTAINER_VARIABLES: Final = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108 (inside the container)
# The `docker` program adds proxies from its own configuration, including passwords, unless they are
# given as options.
DOCKER_PROXIES: Final = PROXY_VARIABLES | {"FTP_PROXY"}

# Options of every container. The folder is a volume, because an engine cannot copy files into a
# read-only file system; root owns its files.
SANDBOX_OPTIONS: Final = (
    "--interactive",
    "--pull=never",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    f"--user={CONTAINER_USER}",
    "--hostname=evaluator",
    "--log-driver=none",
    "--no-healthcheck",
    "--restart=no",
    f"--mount=type=volume,destination={CONTAINER_FOLDER},volume-nocopy",
    f"--workdir={CONTAINER_FOLDER}",
    f"--ulimit=core={CORE_BYTES}:{CORE_BYTES}",
    f"--ulimit=nofile={OPEN_FILES}:{OPEN_FILES}",
)


def make_sandbox_options(
    sandbox_policy: SandboxPolicy, *, variables: Iterable[str], docker_variables: Iterable[str]
) -> tuple[str, ...]:
    """Make the options that apply a sandbox policy to a container.

    Args:
        sandbox_policy: the policy.
        variables: names of the program's environment variables. `docker` takes their values from
            its own environment, because every process on a machine can read arguments.
        docker_variables: names of the variables in that environment that are for `docker` itself.
    """
    seen = set(variables)
    unseen = {spelled for name in DOCKER_PROXIES for spelled in (name, name.lower())} - seen
    # `--env=NAME` without a value passes the variable on if it is set, and removes it otherwise.
    blank = unseen & set(docker_variables)
    space = min(sandbox_policy.memory_mb, sandbox_policy.folder_mb)
    return (
        *SANDBOX_OPTIONS,
        f"--network={'bridge' if sandbox_policy.network else 'none'}",
        f"--memory={sandbox_policy.memory_mb}m",
        f"--memory-swap={sandbox_policy.memory_mb}m",
        f"--pids-limit={sandbox_policy.processes}",
        f"--tmpfs=/tmp:rw,nosuid,nodev,noexec,mode=1777,size={space}m",
        *(f"--env={name}={value}" for name, value in CONTAINER_VARIABLES.items()),
        *(f"--env={name}=" for name in sorted(blank)),
        *(f"--env={name}" for name in sorted(seen | unseen - blank)),
    )


def select_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Select the variables that are valid in a container."""
    return {name: value for name, value in environment.items() if name not in HOST_VARIABLES}


def translate_command(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Replace paths in ``folder`` with their paths in the container."""
    return tuple(_translate_word(word, folder) for word in command)


def _translate_word(word: str, folder: Path) -> str:
    path = Path(word)
    if path.is_absolute() and path.is_relative_to(folder):
        return str(CONTAINER_FOLDER / path.relative_to(folder))
    return word


OWNER_LABEL: Final = "agentci.owner"

BOOT_ID_FILE: Final = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE: Final = "/proc/self/ns/pid"
# Index of the start time among the fields of /proc/PID/stat after the name.
START_FIELD: Final = 19
UNKNOWN_OWNER: Final = "unknown"


def make_owner_label() -> str:
    """Make the label that marks containers of this process; identifies it only on Linux."""
    start = _read_start_time(os.getpid())
    machine = _find_machine()
    return f"{machine} {os.getpid()} {start}" if machine and start else UNKNOWN_OWNER


def has_owner_ended(label: str) -> bool:
    """Whether the process that wrote ``label`` has certainly ended."""
    machine, _, process = label.rpartition(" ")[0].rpartition(" ")
    if not machine or machine != _find_machine() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    start = _read_start_time(int(process))
    return bool(start) and start != label.rpartition(" ")[2]


def _find_machine() -> str:
    with suppress(OSError):
        return f"{BOOT_ID_FILE.read_text('ascii').strip()} {os.readlink(PID_NAMESPACE)}"  # noqa: PTH115 (the target is not a path)
    return ""


def _read_start_time(process: int) -> str:
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
        return stat.rpartition(")")[2].split()[START_FIELD]
    return ""


# Enough for a program with its data, but not for a whole repository.
MAX_ARCHIVE_BYTES: Final = 64 * MEBIBYTE
MAX_ARCHIVE_FILES: Final = 10_000

EXCLUDED_NAMES: Final = frozenset({"__pycache__"})
FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o644
OWN_FOLDER_HINT: Final = "move the program to a folder of its own"


class FolderArchives:
    """Archives of the programs' folders, each made once per run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._packed: dict[Path, bytes] = {}

    def pack(self, folder: Path) -> bytes:
        """Return a tar archive of ``folder`` without hidden files; links are kept as links.

        Equal files give equal bytes. In the archive, all files belong to root, and every user can
        read them.

        Raises:
            EvaluatorError: the folder exceeds 64 MiB or 10,000 entries, or cannot be read.
        """
        with self._lock:
            if folder not in self._packed:
                try:
                    self._packed[folder] = _make_archive(folder)
                except OSError as error:
                    problem = f"could not be copied into a container: {error}"
                    raise EvaluatorError(problem) from error
            return self._packed[folder]


def _make_archive(folder: Path) -> bytes:
    buffer = io.BytesIO()
    size = 0
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for count, path in enumerate(_list_paths(folder), start=1):
            entry = _make_entry(path, folder)
            size += entry.size
            if size > MAX_ARCHIVE_BYTES or count > MAX_ARCHIVE_FILES:
                raise EvaluatorError(
                    f"could not be copied into a container: {folder} exceeds"
                    f" {MAX_ARCHIVE_BYTES // MEBIBYTE} MiB or {MAX_ARCHIVE_FILES:,} files;"
                    f" {OWN_FOLDER_HINT}"
                )
            if entry.isreg():
                content = path.read_bytes()
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                archive.addfile(entry)
    return buffer.getvalue()


def _list_paths(folder: Path) -> Iterator[Path]:
    """List the paths to pack, folders before their entries, in the same order on every machine."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.name in EXCLUDED_NAMES:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield path
            yield from _list_paths(path)
        elif entry.is_symlink() or entry.is_file():
            yield path


def _make_entry(path: Path, folder: Path) -> tarfile.TarInfo:
    status = path.lstat()
    entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
    if path.is_symlink():
        entry.type = tarfile.SYMTYPE
        entry.linkname = os.fsdecode(path.readlink())
    elif path.is_dir():
        entry.type = tarfile.DIRTYPE
        entry.mode = FOLDER_MODE
    else:
        entry.size = status.st_size
        entry.mode = FOLDER_MODE if status.st_mode & 0o111 else FILE_MODE
    return entry


NO_IMAGE: Final = "has no container image; set one in its entry, such as `image: python:3.12-slim`"
LIST_OPTIONS: Final = ("--all", "--no-trunc", "--filter", f"label={OWNER_LABEL}")
LIST_FORMAT: Final = f'{{{{.ID}}}} {{{{.Label "{OWNER_LABEL}"}}}}'
WARNING_PREFIX: Final = "WARNING: "


class DockerExecutor:
    """An executor whose programs can reach only their image's files and a copy of their folder.

    A container is removed when its program has ended, exceeded its timeout or printed too much, and
    on ``stop``. If this process is killed, the next run on this machine removes it.

    Args:
        variables: the user's environment, with the engine's address and credentials.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._client = DockerClient(variables)
        # Runs commands that ``stop`` may end; the client still works then, to remove containers.
        self._programs = LocalExecutor()
        self._images = ImageResolver(self._client, self._programs)
        self._archives = FolderArchives()
        self._label = make_owner_label()
        self._lock = threading.Lock()
        self._has_removed_abandoned = False
        # Without a lock, because a signal handler reads these.
        self._names: set[str] = set()
        self._limitations: dict[str, None] = {}
        self._stopped = False

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
        """Run ``command``, given with paths of this machine, on a copy of ``cwd`` in a container.

        See ``Executor.run``; ``timeout_seconds`` counts from the container's start, because pulling
        the image and copying the folder may take long.
        """
        if sandbox_policy is None or not sandbox_policy.image:
            raise EvaluatorError(NO_IMAGE)
        self._check_stopped()
        image = self._images.find(sandbox_policy.image)
        self._remove_abandoned()
        archive = self._archives.pack(cwd)
        name = f"agentci-{secrets.token_hex(8)}"
        self._names.add(name)
        try:
            variables = select_variables(environment)
            options = (f"--name={name}", f"--label={OWNER_LABEL}={self._label}")
            docker_variables = self._client.environment()
            sandbox_options = make_sandbox_options(
                sandbox_policy, variables=variables, docker_variables=docker_variables
            )
            program, *arguments = translate_command(command, cwd)
            made = self._client.run_checked(
                *(
                    "create",
                    *options,
                    *sandbox_options,
                    f"--entrypoint={program}",
                    image,
                    *arguments,
                ),
                variables=variables,
            )
            self._record_warnings(made.stderr)
            self._client.run_checked(
                "cp", "--quiet", "-", f"{name}:{CONTAINER_FOLDER}", stdin=archive
            )
            self._check_stopped()
            response = self._programs.run(
                self._client.command("start", "--attach", "--interactive", name),
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                cwd=Path("/"),
                environment=docker_variables,
            )
            if response.exit_code != 0:
                self._check_end(response, name, sandbox_policy)
        except EvaluatorError:
            self._check_stopped()  # stop() removes the container, which causes other errors
            raise
        else:
            return response
        finally:
            self._remove([name])

    def compute_input_digest(self, cwd: Path, sandbox_policy: SandboxPolicy) -> str:
        """Return a digest of the image and of the copied files; both are found once per run."""
        if not sandbox_policy.image:
            raise EvaluatorError(NO_IMAGE)
        self._check_stopped()
        image = self._images.find(sandbox_policy.image)
        return sha256(image.encode() + self._archives.pack(cwd)).hexdigest()

    def limitations(self) -> Collection[str]:
        """Return the engine's warnings about options that it does not support."""
        return tuple(self._limitations)

    def stop(self) -> None:
        """End all programs at once, and refuse to run more."""
        self._stopped = True
        self._programs.stop()
        if names := tuple(self._names):
            self._remove(names)

    def _check_stopped(self) -> None:
        if self._stopped:
            raise EvaluatorError(INTERRUPTED)

    def _remove_abandoned(self) -> None:
        """Remove, once per run, the containers of agentci processes that were killed."""
        with self._lock:
            if self._has_removed_abandoned or self._label == UNKNOWN_OWNER:
                return
            listed = self._client.run_checked("ps", *LIST_OPTIONS, "--format", LIST_FORMAT)
            lines = listed.stdout.decode("utf-8", "replace").splitlines()
            owners = dict(line.partition(" ")[::2] for line in lines)
            abandoned = [container for container, label in owners.items() if has_owner_ended(label)]
            if abandoned:
                self._remove(abandoned)
            self._has_removed_abandoned = True

    def _remove(self, names: Iterable[str]) -> None:
        """Kill and remove containers; those that fail are tried again on ``stop``."""
        names = tuple(names)
        with suppress(EvaluatorError):
            response = self._client.run("rm", "--force", "--volumes", *names)
            self._names.difference_update(names if response.exit_code == 0 else ())

    def _record_warnings(self, warnings: str) -> None:
        for line in warnings.splitlines():
            if line.startswith(WARNING_PREFIX):
                text = f"container engine: {line.removeprefix(WARNING_PREFIX)}"
                self._limitations[text] = None

    def _check_end(self, response: ProgramOutput, name: str, sandbox_policy: SandboxPolicy) -> None:
        """Check that the program itself caused its exit code.

        Raises:
            EvaluatorError: the engine was lost, memory ran out, or the program did not start.
        """
        state = self._inspect_state(name)
        if state is None or state.get("Running"):
            raise EvaluatorError(
                f"{ERROR_PREFIX}lost the connection to the engine: {extract_error(response)}"
            )
        if state.get("OOMKilled"):
            raise EvaluatorError(
                f"used more than its {sandbox_policy.memory_mb} MiB of memory and was killed;"
                " raise `memory_mb` if it needs more"
            )
        if state.get("Error") or state.get("Status") == "created":
            raise EvaluatorError(
                f"could not be started in a container: {extract_error(response)};"
                f" check that the image `{sandbox_policy.image}` contains what the program needs"
            )

    def _inspect_state(self, name: str) -> Mapping[str, Any] | None:
        answer = self._client.run("inspect", "--format", "{{json .State}}", "--", name)
        if answer.exit_code != 0:
            return None
        state: Mapping[str, Any] = json.loads(answer.stdout)
        return state
