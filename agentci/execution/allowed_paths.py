"""List the paths a sandboxed program may read: the system, its interpreter, the tools on PATH."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from agentci.execution.child import landlock
from agentci.execution.child.landlock import PathRule


def find_unreadable(paths: Iterable[str | Path]) -> str | None:
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

PATH_VARIABLES: Final = ("PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
CERTIFICATE_VARIABLES: Final = (
    "SSL_CERT_DIR", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
)  # fmt: skip

# Too broad to allow as a whole, even where a setting names one of them.
BROAD_FOLDERS: Final = frozenset({"/", "/home", "/root", "/tmp", "/var", "/run", "/dev", "/etc"})  # noqa: S108 (names a folder only)


def find_programs(command: Sequence[str]) -> tuple[str, ...]:
    """Return the executable files named by absolute path in a command; one may start another."""
    files = (part for part in command if Path(part).is_absolute() and Path(part).is_file())
    return tuple(part for part in files if os.access(part, os.X_OK))


def make_read_rules(
    programs: tuple[str, ...],
    environment: Mapping[str, str],
    interpreters: tuple[str, ...] = (),
) -> tuple[PathRule, ...]:
    """Make the read rules for ``programs`` run with ``environment``.

    Args:
        interpreters: interpreters that the programs name themselves, as in a shebang line.
    """
    known = (*PATH_VARIABLES, *CERTIFICATE_VARIABLES, "PATH", "HOME")
    seen = tuple((name, environment[name]) for name in known if name in environment)
    return _make_rules(programs, interpreters, seen, tuple(sys.path))


def list_without_runners(folder: Path) -> list[str]:
    """Return the folder; where it contains a GitHub runner, its entries except the runner's."""
    runners = {path for name in RUNNER_MARKERS for path in folder.glob(f"*/{name}")}
    if not runners:
        return [str(folder)]
    homes = {each for path in runners for each in path.parents}
    return sorted(str(path) for path in folder.iterdir() if path not in homes)


def is_too_broad(path: Path) -> bool:
    """Whether a folder holds far more than a program that works in it needs."""
    return os.path.realpath(path) in BROAD_FOLDERS


@lru_cache(maxsize=256)
def _make_rules(
    programs: tuple[str, ...],
    interpreters: tuple[str, ...],
    seen: tuple[tuple[str, str], ...],
    of_our_python: tuple[str, ...],
) -> tuple[PathRule, ...]:
    environment = dict(seen)
    home = environment.get("HOME", "")
    paths = dict.fromkeys(
        [
            *SYSTEM_FOLDERS,
            *list_without_runners(OPT_FOLDER),
            *(f"/etc/{name}" for name in ETC_FILES),
            *(str(path) for name in INTERPRETER_SETTINGS for path in Path("/etc").glob(name)),
            *_list_tools(programs, environment, home),
            *_list_interpreter_files(interpreters, home),
            *(path for name in PATH_VARIABLES for path in _split_paths(environment.get(name, ""))),
            *(environment[name] for name in CERTIFICATE_VARIABLES if name in environment),
            *(of_our_python if sys.executable in programs else ()),
        ]
    )
    real = {os.path.realpath(path) for path in paths if Path(path).is_absolute()}
    return (
        *(
            (os.fsencode(path), landlock.READ_RIGHTS)
            for path in _drop_nested(real - {*BROAD_FOLDERS, home})
        ),
        *((f"/dev/{name}".encode(), landlock.DEVICE_RIGHTS) for name in DEVICE_NAMES),
    )


def _drop_nested(paths: Iterable[str]) -> list[str]:
    """Drop paths below another of ``paths``: each rule adds to every program's start time."""
    found: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not found or not path.startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def _list_tools(
    programs: Sequence[str], environment: Mapping[str, str], home: str
) -> Iterator[str]:
    for program in programs:
        yield program
        for each in (program, os.path.realpath(program)):
            yield from _list_siblings(str(Path(each).parent), home)
    for folder in _split_paths(environment.get("PATH", "")):
        yield from _list_siblings(folder, home)


def _list_interpreter_files(interpreters: Sequence[str], home: str) -> Iterator[str]:
    """List interpreters, with their sibling folders for those in a ``bin`` folder.

    A program chooses its own interpreter. If that is a script among other files, the program must
    not gain access to those files.
    """
    for interpreter in interpreters:
        for each in (interpreter, os.path.realpath(interpreter)):
            yield each
            folder = Path(each).parent
            if folder.name == "bin":
                yield from _list_siblings(str(folder), home)


def _list_siblings(folder: str, home: str) -> Iterable[str]:
    """Return the paths that programs in ``folder`` are likely to need."""
    if len(home) > 1 and folder.startswith(f"{home}/"):
        first = folder.removeprefix(f"{home}/").partition("/")[0]
        if first in VERSION_MANAGERS:
            return [f"{home}/{first}"]
        if first == ".local":
            return [f"{home}/.local/{name}" for name in DOT_LOCAL_FOLDERS]
    if Path(folder).name != "bin":
        return [folder]
    return [folder, *(str(Path(folder).with_name(name)) for name in BIN_SIBLINGS)]


def _split_paths(paths: str) -> list[str]:
    return [path for path in paths.split(os.pathsep) if path]
