"""Build the sandbox for one run of one program: a policy as this machine can apply it.

That includes the paths that the program may read: the system, its interpreter, the tools on PATH.
"""

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from agentci._util.workspace import ResolvedPath, find_link_out, restore_path
from agentci.execution.child import apply_sandbox, seccomp
from agentci.execution.child.apply_sandbox import NOBODY_USER, SHARED_MEMORY, PathRule
from agentci.execution.child.socket_messages import Message
from agentci.execution.executor_api import (
    BROAD_FOLDERS,
    MEBIBYTE,
    NO_LANDLOCK_WARNING,
    NOT_LINUX_WARNING,
    TMP_FOLDERS,
    SandboxPolicy,
    make_resource_limits,
)


def find_unreadable(paths: Iterable[str | ResolvedPath]) -> str | None:
    """Return the first of ``paths`` that not every user can read; None if all are readable.

    A missing path counts as readable: starting the program reports it.
    """
    return next((str(path) for path in paths if not _is_open(str(path))), None)


@lru_cache(maxsize=1024)
def _is_open(path: str) -> bool:
    # Check a link's own folders as well as its target's: a user of the link passes through both.
    named = Path(path).absolute()
    try:
        ways = {named, named.resolve()}
        return all(_is_readable(way) and all(map(_is_enterable, way.parents)) for way in ways)
    except (OSError, RuntimeError):  # RuntimeError: a symlink loop, up to Python 3.12
        return True


def _is_readable(path: Path) -> bool:
    mode = path.stat().st_mode
    return bool(mode & stat.S_IROTH) and (not stat.S_ISDIR(mode) or bool(mode & stat.S_IXOTH))


@lru_cache(maxsize=1024)
def _is_enterable(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)


SYSTEM_FOLDERS: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/gnu", "/snap", "/home/linuxbrew",
    "/proc", "/sys/bus", "/sys/class", "/sys/devices", "/sys/fs/cgroup", "/sys/kernel/mm",
    "/run/systemd/resolve", "/run/current-system",
)  # fmt: skip
OPT_FOLDER: Final = Path("/opt")
# A GitHub runner's folder holds one of these, next to the credentials of the runner and of the job.
RUNNER_MARKERS: Final = (".runner", "*/.runner")
# Listed one by one: root could read all of /etc, including shadow and the keys of the host and of
# its services.
ETC_FILES: Final = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
    "fonts", "gai.conf", "group", "host.conf", "hostname", "hosts", "inputrc", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release",
    "machine-id", "magic", "mime.types", "networks", "nsswitch.conf", "openssl", "os-release",
    "passwd", "perl", "pki/ca-trust", "pki/java", "pki/nssdb", "pki/tls/cert.pem", "pki/tls/certs",
    "pki/tls/openssl.cnf", "pki/trust", "profile", "protocols", "resolv.conf", "services", "shells",
    "ssl/ca-bundle.pem", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
# Folders below /etc where distributions keep interpreter settings, one per version.
INTERPRETER_SETTINGS: Final = ("java*", "python3*", "R")
DEVICE_NAMES: Final = ("null", "zero", "full", "random", "urandom", "tty")

# Folders below a home where version managers keep interpreters.
VERSION_MANAGERS: Final = frozenset(
    {".asdf", ".bun", ".deno", ".fnm", ".nodenv", ".nvm", ".pyenv", ".rye", ".volta"}
)
DOT_LOCAL_FOLDERS: Final = ("bin", "lib", "share/mise", "share/pnpm", "share/uv")
BIN_SIBLINGS: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
INTERPRETER: Final = re.compile(
    r"(bun|deno|java|julia|lua|node|nodejs|perl|php|pypy|python|R|Rscript|ruby)[0-9.]*t?"
)
# How many files and folders are checked before a folder counts as closed to other users.
MAX_ENTRIES: Final = 10_000

PATH_VARIABLES: Final = ("PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
CERTIFICATE_VARIABLES: Final = (
    "SSL_CERT_DIR", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
)  # fmt: skip


def find_program(named: str) -> str:
    """Return ``named`` if it is the absolute path of an executable file, else an empty string."""
    is_program = Path(named).is_absolute() and Path(named).is_file() and os.access(named, os.X_OK)
    return named if is_program else ""


def make_read_rules(
    programs: tuple[str, ...],
    environment: Mapping[str, str],
    readable: Iterable[ResolvedPath] = (),
    *,
    workspace: Path | None = None,
    privileged: bool = False,
) -> tuple[PathRule, ...]:
    """Make the read rules for a program run with ``environment``.

    Args:
        programs: the program, and the interpreter that it names itself, as in a shebang line.
        readable: more files and folders to allow.
        workspace: real path of the folder that a pull request can change, readable as a whole. A
            path that a link in it leads elsewhere gives no rule.
        privileged: whether only the rules keep the program from files that are closed to others.
            Then ``programs`` and ``environment`` add what every user can read, and the interpreters
            of agentci, of PATH and of version managers.
    """
    known = (*PATH_VARIABLES, *CERTIFICATE_VARIABLES, "PATH", "HOME")
    seen = tuple((name, environment[name]) for name in known if name in environment)
    rules = _make_rules(programs, seen, tuple(sys.path), workspace, privileged)
    covered = set() if workspace is None else {str(workspace)} - BROAD_FOLDERS
    more = {str(path) for path in readable} - BROAD_FOLDERS
    return (
        *rules,
        *(
            (os.fsencode(path), apply_sandbox.READ_RIGHTS)
            for path in sorted(more)
            if not _is_below(path, covered)
        ),
    )


def list_without_runners(folder: Path) -> list[str]:
    """Return the folder; where it contains a GitHub runner, its entries except the runner's."""
    runners = {path for name in RUNNER_MARKERS for path in folder.glob(f"*/{name}")}
    if not runners:
        return [str(folder)]
    homes = {each for path in runners for each in path.parents}
    return sorted(str(path) for path in folder.iterdir() if path not in homes)


@lru_cache(maxsize=256)
def _make_rules(
    programs: tuple[str, ...],
    seen: tuple[tuple[str, str], ...],
    of_our_python: tuple[str, ...],
    workspace: Path | None,
    privileged: bool,  # noqa: FBT001 (private; passed by its only caller)
) -> tuple[PathRule, ...]:
    environment = dict(seen)
    folders = _split_paths(environment.get("PATH", ""))
    home = environment.get("HOME", "")
    homes = (home, os.path.realpath(home)) if len(home) > 1 else ()
    system = (
        *SYSTEM_FOLDERS,
        *list_without_runners(OPT_FOLDER),
        *(f"/etc/{name}" for name in ETC_FILES),
        *(str(path) for name in INTERPRETER_SETTINGS for path in Path("/etc").glob(name)),
        *(of_our_python if sys.executable in programs else ()),
        *(path for each in programs for path in _list_trusted(each, folders, homes, workspace)),
    )
    named = (
        *(path for folder in folders for path in _list_siblings(folder, homes)),
        *(path for name in PATH_VARIABLES for path in _split_paths(environment.get(name, ""))),
        *(environment[name] for name in CERTIFICATE_VARIABLES if name in environment),
        *(path for each in programs for path in _list_program(each, homes, workspace)),
    )
    trusted, others = (
        {real for path in paths if (real := resolve_named_path(path, workspace))}
        for paths in (system, named)
    )
    if privileged:
        top = (*_drop_nested(trusted), *_list_managed(home, workspace))
        others = {each for each in others if _is_below(each, top) or not _holds_closed(each)}
    paths = {*trusted, *others} - {*BROAD_FOLDERS, *homes}
    if workspace is not None:
        paths |= {str(workspace)} - BROAD_FOLDERS
    return (
        *((os.fsencode(path), apply_sandbox.READ_RIGHTS) for path in _drop_nested(paths)),
        *((f"/dev/{name}".encode(), apply_sandbox.DEVICE_RIGHTS) for name in DEVICE_NAMES),
    )


def _list_trusted(
    program: str, folders: Sequence[str], homes: Sequence[str], workspace: Path | None
) -> Iterable[str]:
    """List what a program needs that agentci or the user chose, not a pull request."""
    ours = os.path.realpath(sys.executable)
    if os.path.realpath(program) == ours:
        chosen = {ours, program} if program == sys.executable else {ours}
        return [path for each in chosen for path in _list_siblings(str(Path(each).parent), homes)]
    if str(Path(program).parent) in folders and not _is_inside(program, workspace):
        return _list_program(program, homes, workspace)
    return ()


def _list_program(program: str, homes: Sequence[str], workspace: Path | None) -> Iterator[str]:
    """List the real file of a program, and the folders next to an interpreter.

    A pull request chooses its programs, also by links. So folders are listed only next to programs
    that are interpreters by their name, outside the workspace.
    """
    real = os.path.realpath(program)
    yield real
    linked = str(Path(os.path.realpath(Path(program).parent), Path(program).name))
    for each in {linked, real}:
        folder, name = Path(each).parent, Path(each).name
        is_interpreter = folder.name == "bin" and INTERPRETER.fullmatch(name)
        if is_interpreter and not _is_inside(each, workspace):
            yield from _list_siblings(str(folder), homes)


def _is_inside(program: str, workspace: Path | None) -> bool:
    folder = Path(os.path.realpath(Path(program).parent))
    return workspace is not None and folder.is_relative_to(workspace)


@lru_cache(maxsize=1024)
def resolve_named_path(path: str, workspace: Path | None) -> str:
    """Resolve an absolute path; empty if it is relative, or a link in ``workspace`` leads out."""
    if not path.startswith("/"):
        return ""
    real = os.path.realpath(path)
    if real == path or workspace is None:
        return real
    return "" if find_link_out(Path(path), Path(real), workspace) else real


def _list_siblings(folder: str, homes: Iterable[str]) -> Iterable[str]:
    """Return the paths that programs in ``folder`` are likely to need."""
    for home in homes:
        if folder.startswith(f"{home}/"):
            first = folder.removeprefix(f"{home}/").partition("/")[0]
            if first in VERSION_MANAGERS:
                return [f"{home}/{first}"]
            if first == ".local":
                return [f"{home}/.local/{name}" for name in DOT_LOCAL_FOLDERS]
    if Path(folder).name != "bin":
        return [folder]
    return [folder, *(str(Path(folder).with_name(name)) for name in BIN_SIBLINGS)]


def _list_managed(home: str, workspace: Path | None) -> Iterator[str]:
    """List the folders that hold only what version managers have installed."""
    names = (*VERSION_MANAGERS, *(f".local/{each}" for each in DOT_LOCAL_FOLDERS if "/" in each))
    found = (resolve_named_path(f"{home}/{name}", workspace) for name in names if len(home) > 1)
    return filter(None, found)


@lru_cache(maxsize=1024)
def _holds_closed(path: str) -> bool:
    """Whether a path is missing, or it or an entry below it is closed to others.

    True also for too many entries to check.
    """
    if not (Path(path).exists() and _is_open(path)):
        return True
    entries = Path(path).rglob("*") if Path(path).is_dir() else iter(())
    try:
        return any(
            count >= MAX_ENTRIES or not (entry.is_symlink() or _is_readable(entry))
            for count, entry in enumerate(entries)
        )
    except OSError:
        return True


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _drop_nested(paths: Iterable[str]) -> list[str]:
    """Drop paths below another of ``paths``: each rule adds to every program's start time."""
    found: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not found or not path.startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def _split_paths(paths: str) -> list[str]:
    return [path for path in paths.split(os.pathsep) if path]


PROCESSORS: Final = os.cpu_count() or 1
# How many programs at a time can each have a user id of their own.
USER_COUNT: Final = 1024
RUN_COUNT: Final = 1 << 18
# First Landlock version that keeps signals inside the sandbox.
SIGNALS_SINCE: Final = 6
# First Landlock version that keeps files from being truncated.
TRUNCATE_SINCE: Final = 3
# Spare processes per processor, for other checks and the user's own work. The fewer there are, the
# sooner a fork bomb ends where agentci lacks the privilege to give it a user of its own.
SPARE_PROCESSES: Final = 128

# For programs that ask for a user name: the system has no name for a program's own user id.
USER_VARIABLES: Final = {"USER": "agentci", "LOGNAME": "agentci"}
# Disables git's system settings, which may hold tokens, and marks checkouts of any owner as safe: a
# program never owns them, and has no settings of its own that could say so.
GIT_VARIABLES: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}

NO_SECCOMP_WARNING: Final = (
    "evaluator programs can use the network even with `network: false`:"
    " this kernel does not support seccomp filters on its processor, or forbids them"
)
ALL_PORTS_WARNING: Final = (
    "evaluator programs with `target` can connect to every TCP port of this machine even with"
    " `network: false`: this kernel's Landlock cannot restrict ports (Linux 6.7 or later)"
)
ROOT_WARNING: Final = (
    "evaluator programs run as root: agentci is not permitted to start them as another user"
)
SIGNALS_WARNING: Final = (
    "evaluator programs can send signals to agentci and to each other:"
    " they share a user, and this kernel's Landlock cannot restrict signals"
)
TRUNCATE_WARNING: Final = (
    "evaluator programs can truncate files that their user can write:"
    " they share a user, and this kernel's Landlock cannot restrict truncation"
)


class Sandbox(Struct, frozen=True, kw_only=True):
    """The sandbox of one program.

    Attributes:
        restrictions: argument of ``agentci.execution.child.apply_sandbox.enter_sandbox``; None for
            no sandbox.
        environment: the program's environment variables.
        scratch: the program's private folder, to be made and removed; None for no folder.
        folder_bytes: size limit of that folder and ``writable`` in bytes.
        home_files: files to write into the program's home, by relative path.
        writable: the folder that the program may change, besides its private folder.
        has_own_user: whether only this program runs as its user.
        limitations: a sentence for each part of the policy that this machine cannot apply.
    """

    restrictions: Message | None
    environment: Mapping[str, str]
    scratch: str | None = None
    folder_bytes: int = 0
    home_files: tuple[tuple[str, bytes], ...] = ()
    writable: Path | None = None
    has_own_user: bool = False
    limitations: tuple[str, ...] = ()

    def make_start_request(self, command: Sequence[str], cwd: Path) -> Message:
        """Make the request to a supervisor to run ``command`` in this sandbox."""
        return {
            "command": [os.fsencode(part) for part in command],
            "cwd": os.fsencode(cwd),
            "environment": {os.fsencode(k): os.fsencode(v) for k, v in self.environment.items()},
            "sandbox": self.restrictions,
            "has_own_user": self.has_own_user,
            "scratch": None if self.scratch is None else os.fsencode(self.scratch),
            "folder_bytes": self.folder_bytes,
            "home_files": [(os.fsencode(path), content) for path, content in self.home_files],
            "writable": None if self.writable is None else os.fsencode(self.writable),
        }


class SandboxBuilder(Struct, frozen=True, kw_only=True):
    """Builds sandboxes for the programs of one executor.

    Attributes:
        capabilities: what a sandbox can do here; see
            ``agentci.execution.child.apply_sandbox.find_capabilities``.
        run: a random number that other runs on this machine are unlikely to have.
    """

    capabilities: Mapping[str, Any]
    run: int = field(default_factory=lambda: secrets.randbelow(RUN_COUNT))

    def build(
        self,
        sandbox_policy: SandboxPolicy,
        *,
        command: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        timeout_seconds: float,
        number: int,
    ) -> Sandbox:
        """Build a sandbox that applies as much of the policy as this machine supports.

        Args:
            number: unique among the programs that run now.
        """
        readable = (restore_path(str(cwd)), *sandbox_policy.readable)
        temporary = _choose_tmp_folder(environment, sandbox_policy.workspace)
        named = (command[0], sandbox_policy.interpreter, *_find_own_python(command))
        programs = tuple(each for each in map(find_program, named) if each)
        writable = [each for each in (sandbox_policy.writable,) if each is not None]
        closed = find_unreadable((*programs, *readable, *map(str, writable), temporary))
        user = self._user(number, closed)
        keeps_read_search = self.capabilities["has_read_search"] or (
            user is not None and closed is not None
        )
        scratch = f"{temporary}/agentci-{secrets.token_hex(8)}"
        has_own_user = user is not None and user != NOBODY_USER
        shares_memory = has_own_user or sandbox_policy.shares_memory
        restrictions = {
            "user": user,
            "keeps_read_search": keeps_read_search,
            # In a namespace of its own, it could not search the folders of other users.
            "private_memory": shares_memory
            and user is None
            and not keeps_read_search
            and self.capabilities["private_memory"],
            "limits": make_resource_limits(
                sandbox_policy,
                timeout_seconds=timeout_seconds,
                processors=PROCESSORS,
                others=0
                if has_own_user
                else SPARE_PROCESSES * PROCESSORS + self.capabilities["tasks"],
            ),
            "landlock": self.capabilities["landlock"],
            "rules": self._rules(
                make_read_rules(
                    programs,
                    environment,
                    readable,
                    workspace=sandbox_policy.workspace,
                    privileged=keeps_read_search or (user is None and self.capabilities["root"]),
                ),
                [Path(scratch), *writable],
                shares_memory=shares_memory,
            )
            if self.capabilities["landlock"]
            else None,
            "port": _find_port(sandbox_policy),
            "filter": self._filter(
                sandbox_policy, as_root=user is None and self.capabilities["root"]
            ),
        }
        return Sandbox(
            restrictions=restrictions,
            environment=_make_environment(environment, scratch),
            scratch=scratch,
            folder_bytes=sandbox_policy.folder_mb * MEBIBYTE,
            home_files=sandbox_policy.home_files,
            writable=sandbox_policy.writable,
            has_own_user=has_own_user,
            limitations=tuple(self._limitations(user, closed, _find_port(sandbox_policy))),
        )

    def _user(self, number: int, closed: str | None) -> int | None:
        first: int | None = self.capabilities["first_user"]
        if (
            first is None
            or first == NOBODY_USER
            or (closed is not None and not self._can_open_closed_folders)
        ):
            return first if closed is None or self._can_open_closed_folders else None
        return first + self.run * USER_COUNT + number % USER_COUNT

    @property
    def _can_open_closed_folders(self) -> bool:
        """Whether another user can enter closed folders with only Landlock limiting access."""
        return bool(self.capabilities["grants_read_search"] and self.capabilities["landlock"])

    def _rules(
        self, read_rules: Iterable[PathRule], writable: Iterable[Path], *, shares_memory: bool
    ) -> list[PathRule]:
        everything = apply_sandbox.compute_rights(self.capabilities["landlock"])
        return [
            *read_rules,
            *((os.fsencode(path), everything) for path in writable),
            *([(SHARED_MEMORY, apply_sandbox.PLAIN_FILE_RIGHTS)] if shares_memory else ()),
        ]

    def _filter(self, sandbox_policy: SandboxPolicy, *, as_root: bool) -> bytes | None:
        if not self.capabilities["filters"]:
            return None
        # Root may use every local socket of this machine, including the container engine's.
        machine, network = self.capabilities["machine"], sandbox_policy.network
        notify = _find_port(sandbox_policy) is not None
        return seccomp.make_filter(machine, network=network, local=not as_root, notify=notify)

    def _limitations(self, user: int | None, closed: str | None, port: int | None) -> Iterable[str]:
        if self.capabilities["system"] != "Linux":
            yield NOT_LINUX_WARNING
            return
        if not self.capabilities["landlock"]:
            yield NO_LANDLOCK_WARNING
        if not self.capabilities["filters"]:
            yield NO_SECCOMP_WARNING
        elif port is not None and self.capabilities["landlock"] < apply_sandbox.PORTS_SINCE:
            yield ALL_PORTS_WARNING
        shared = user is None or user == NOBODY_USER
        if user is None and self.capabilities["root"]:
            yield (
                ROOT_WARNING
                if self.capabilities["first_user"] is None
                else _format_root_warning(closed)
            )
        elif shared and self.capabilities["landlock"] < SIGNALS_SINCE:
            yield SIGNALS_WARNING
        if shared and 0 < self.capabilities["landlock"] < TRUNCATE_SINCE:
            yield TRUNCATE_WARNING


def _find_port(sandbox_policy: SandboxPolicy) -> int | None:
    """Return the only port that a program may connect to; None if no such limit applies."""
    return None if sandbox_policy.network else sandbox_policy.port


def _find_own_python(command: Sequence[str]) -> tuple[str, ...]:
    """Return our Python if the command has it as an argument, as in ``env python file``."""
    return (sys.executable,) if sys.executable in command[1:] else ()


def _format_root_warning(closed: str | None) -> str:
    return (
        f"evaluator programs run as root: no other user can read {closed}; run `chmod o+rX` on it"
    )


def _choose_tmp_folder(environment: Mapping[str, str], workspace: Path | None) -> str:
    """Choose the folder for private folders, without writing to any candidate.

    A link in the workspace must not lead to it: programs may write there.
    """
    named = [environment[name] for name in ("TMPDIR", "TEMP", "TMP") if environment.get(name)]
    folders = (str(Path(each).absolute()) for each in (*named, *TMP_FOLDERS))
    real = (each for each in (resolve_named_path(each, workspace) for each in folders) if each)
    return next((each for each in real if os.access(each, os.W_OK | os.X_OK)), TMP_FOLDERS[0])


def _make_environment(environment: Mapping[str, str], scratch: str) -> dict[str, str]:
    """Make the environment of a program whose private folder is ``scratch``."""
    own = {name: value for name, value in environment.items() if not name.startswith("XDG_")}
    home, temporary = (str(Path(scratch, name)) for name in ("home", "tmp"))
    moved = {"HOME": home, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary}
    user_packages = {"PYTHONUSERBASE": f"{environment.get('HOME', '')}/.local"}
    return USER_VARIABLES | GIT_VARIABLES | user_packages | own | moved
