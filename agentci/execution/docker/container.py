"""The parts of a new container: sandbox options, owner label and the program's folder.

An engine may serve several machines, and containers with their own process ids. A process id
identifies an owner only within the same boot and PID namespace.
"""

import io
import os
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.environment_variables import PROXY_VARIABLES
from agentci.execution.executor_api import CORE_BYTES, MEBIBYTE, OPEN_FILES, SandboxPolicy

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
