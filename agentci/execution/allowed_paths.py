"""What every jailed program may read: the system, its interpreter, and the tools on its path."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from agentci.execution.child import landlock
from agentci.execution.child.landlock import Rule

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/gnu", "/snap", "/home/linuxbrew",
    "/proc", "/sys/bus", "/sys/class", "/sys/devices", "/sys/fs/cgroup", "/sys/kernel/mm",
    "/run/systemd/resolve", "/run/current-system",
)  # fmt: skip
OPTIONAL: Final = Path("/opt")
# What a runner of GitHub has in its folder, beside its credentials and those of the job.
OF_RUNNERS: Final = (".runner", "*/.runner")
# One by one, because root reads all of the folder: shadow, keys of the host and of its services.
SETTINGS: Final = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
    "fonts", "gai.conf", "group", "host.conf", "hostname", "hosts", "inputrc", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "lsb-release",
    "machine-id", "magic", "mime.types", "networks", "nsswitch.conf", "openssl", "os-release",
    "passwd", "perl", "pki/ca-trust", "pki/java", "pki/nssdb", "pki/tls/cert.pem", "pki/tls/certs",
    "pki/tls/openssl.cnf", "pki/trust", "profile", "protocols", "resolv.conf", "services", "shells",
    "ssl/ca-bundle.pem", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
# Where distributions keep what belongs to an interpreter, in folders by its version.
OF_INTERPRETERS: Final = ("java*", "python3*", "R")
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")

# Where version managers keep interpreters below a home.
MANAGERS: Final = frozenset(
    {".asdf", ".bun", ".deno", ".fnm", ".nodenv", ".nvm", ".pyenv", ".rye", ".volta"}
)
OF_DOT_LOCAL: Final = ("bin", "lib", "share/mise", "share/pnpm", "share/uv")
BESIDE_BIN: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")

SEARCHED: Final = ("PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
CERTIFICATES: Final = (
    "SSL_CERT_DIR", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
)  # fmt: skip

# No one means the whole of these when he names them.
TOO_WIDE: Final = frozenset({"/", "/home", "/root", "/tmp", "/var", "/run", "/dev", "/etc"})  # noqa: S108 (likewise)


def programs_in(command: Sequence[str]) -> tuple[str, ...]:
    """The programs of a command: one may start the other."""
    files = (part for part in command if Path(part).is_absolute() and Path(part).is_file())
    return tuple(part for part in files if os.access(part, os.X_OK))


def rules_of(
    programs: tuple[str, ...],
    environment: Mapping[str, str],
    interpreters: tuple[str, ...] = (),
) -> tuple[Rule, ...]:
    """The rules for ``programs`` that see ``environment``.

    Args:
        interpreters: what a program itself says that it is run by.
    """
    known = (*SEARCHED, *CERTIFICATES, "PATH", "HOME")
    seen = tuple((name, environment[name]) for name in known if name in environment)
    return _rules(programs, interpreters, seen, tuple(sys.path))


def without_runners(folder: Path) -> list[str]:
    """A folder of the system, or what is in it where a runner of the workflow is."""
    runners = {path for name in OF_RUNNERS for path in folder.glob(f"*/{name}")}
    if not runners:
        return [str(folder)]
    homes = {each for path in runners for each in path.parents}
    return sorted(str(path) for path in folder.iterdir() if path not in homes)


def is_too_wide(path: Path) -> bool:
    """Whether much lies in a folder that nobody means who works in it."""
    return os.path.realpath(path) in TOO_WIDE


@lru_cache(maxsize=256)
def _rules(
    programs: tuple[str, ...],
    interpreters: tuple[str, ...],
    seen: tuple[tuple[str, str], ...],
    of_our_python: tuple[str, ...],
) -> tuple[Rule, ...]:
    environment = dict(seen)
    home = environment.get("HOME", "")
    paths = dict.fromkeys(
        [
            *SYSTEM,
            *without_runners(OPTIONAL),
            *(f"/etc/{name}" for name in SETTINGS),
            *(str(path) for name in OF_INTERPRETERS for path in Path("/etc").glob(name)),
            *_tools(programs, environment, home),
            *_packages(interpreters, home),
            *(path for name in SEARCHED for path in _split(environment.get(name, ""))),
            *(environment[name] for name in CERTIFICATES if name in environment),
            *(of_our_python if sys.executable in programs else ()),
        ]
    )
    real = {os.path.realpath(path) for path in paths if Path(path).is_absolute()}
    return (
        *((os.fsencode(path), landlock.READ) for path in _outermost(real - {*TOO_WIDE, home})),
        *((f"/dev/{name}".encode(), landlock.DEVICE) for name in DEVICES),
    )


def _outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie in no other of them: each rule costs every program time."""
    found: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not found or not path.startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def _tools(programs: Sequence[str], environment: Mapping[str, str], home: str) -> Iterator[str]:
    for program in programs:
        yield program
        for each in (program, os.path.realpath(program)):
            yield from _around(str(Path(each).parent), home)
    for folder in _split(environment.get("PATH", "")):
        yield from _around(folder, home)


def _packages(interpreters: Sequence[str], home: str) -> Iterator[str]:
    """Interpreters with what is beside them, if they lie where interpreters do.

    A program chooses its own: with a script in the midst of other files, those are not meant.
    """
    for interpreter in interpreters:
        for each in (interpreter, os.path.realpath(interpreter)):
            yield each
            folder = Path(each).parent
            if folder.name == "bin":
                yield from _around(str(folder), home)


def _around(folder: str, home: str) -> Iterable[str]:
    """What the programs of ``folder`` are likely to need."""
    if len(home) > 1 and folder.startswith(f"{home}/"):
        first = folder.removeprefix(f"{home}/").partition("/")[0]
        if first in MANAGERS:
            return [f"{home}/{first}"]
        if first == ".local":
            return [f"{home}/.local/{name}" for name in OF_DOT_LOCAL]
    if Path(folder).name != "bin":
        return [folder]
    return [folder, *(str(Path(folder).with_name(name)) for name in BESIDE_BIN)]


def _split(paths: str) -> list[str]:
    return [path for path in paths.split(os.pathsep) if path]
