"""The requirements of an evaluator, parsed from its file or pinned by a lock.

They make up the key of its environment: evaluators with equal keys share one environment.

Fewer lines are allowed than installers read. An installer gets a file written from the parsed
lines, so that it cannot interpret the original differently. Lines that refer to the machine (a
path, another file, a variable) are refused, because evaluators may come from elsewhere.
"""

import hashlib
import json
import py_compile
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.files import FILE_MODE, give_to_owner, make_folder, remove_path, set_mode
from agentci._util.text import truncate
from agentci.errors import EvaluatorError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

MAX_SHOWN_CHARS: Final = 120

HTTPS_URL: Final = re.compile(r"https://[!-~]+")
PACKAGE_URL: Final = re.compile(r"(?:git\+)?https://[!-~]+")
# Characters of a package from an index, before its marker: an installer may take others for a path.
INDEX_PACKAGE: Final = re.compile(r"[A-Za-z0-9 \[\]()._,*+!<>=~-]+")
HASH: Final = re.compile(r"--hash[= ]sha(?:256|384|512):[0-9a-f]+")
COMMENT: Final = re.compile(r"(?:^| )#.*$")
# An installer treats such a name as a file if one exists.
ARCHIVE: Final = re.compile(r".*\.(?:whl|zip|tar|tgz|tbz|txz|tlz|tar\.[a-z0-9]+)", re.IGNORECASE)
# Longer requirements are refused without parsing.
MAX_PACKAGE_CHARS: Final = 10_000
# Stands for the missing name of a URL.
UNNAMED: Final = "unnamed-url"

URL_OPTIONS: Final = {
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "-f": "--find-links",
    "--find-links": "--find-links",
}
NAME_OPTIONS: Final = frozenset({"--only-binary", "--no-binary"})
PACKAGE_LIST: Final = re.compile(r"[A-Za-z0-9._,:-]+")
FLAG_OPTIONS: Final = frozenset({"--no-index", "--prefer-binary", "--require-hashes"})

OTHER_FILE_REASON: Final = "includes another file; copy its lines instead"
FOLDER_REASON: Final = "installs a local folder; name a published package"
REFUSED_OPTIONS: Final = {
    "-r": OTHER_FILE_REASON,
    "--requirement": OTHER_FILE_REASON,
    "-c": OTHER_FILE_REASON,
    "--constraint": OTHER_FILE_REASON,
    "-e": FOLDER_REASON,
    "--editable": FOLDER_REASON,
    "--pre": "allows all pre-releases; name the version instead, as in ==2.0rc1",
    "--trusted-host": "disables the TLS check of a server; use a server with a valid certificate",
}


class RequiredPackage(Struct, frozen=True, kw_only=True):
    """One required package.

    Attributes:
        name: normalized name; empty if the line is only a URL.
        line: the requirement on one line, as an installer reads it.
        direct: whether the package comes from a URL and not from an index.
        hashed: whether the line has hashes of the allowed content.
    """

    name: str
    line: str
    direct: bool = False
    hashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementLines:
    """The parsed lines of a requirements file.

    Attributes:
        packages: the required packages.
        options: the options on package sources and hashes, one per entry.
    """

    packages: tuple[RequiredPackage, ...] = ()
    options: tuple[str, ...] = field(default=(), repr=False)

    @property
    def hashed(self) -> bool:
        """Whether an installer requires a hash for every package."""
        return "--require-hashes" in self.options or any(each.hashed for each in self.packages)


def parse_requirements(text: str) -> RequirementLines:
    """Parse the text of a requirements file.

    Raises:
        EvaluatorError: a line is not allowed; the message completes a sentence about the
            evaluator.
    """
    packages: list[RequiredPackage] = []
    options: list[str] = []
    for number, line in _join_lines(text):
        try:
            if "${" in line:
                raise EvaluatorError("uses an environment variable; write its value")
            if line.startswith("-"):
                options.extend(_parse_options(line))
            else:
                packages.append(_parse_package(line))
        except EvaluatorError as error:
            shown = truncate.short(line, MAX_SHOWN_CHARS)
            raise _make_error(f"line {number}: {shown!r} {error}") from None
    return RequirementLines(packages=tuple(packages), options=tuple(options))


def normalize_name(name: str) -> str:
    """Normalize a package name, so that all its spellings compare equal."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415 (few runs install packages)

    return canonicalize_name(name)


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments and with continuations joined, with the last line's number.

    Splits at every character that any installer treats as a line end: the rest of a comment for one
    installer may be a line for another.
    """
    parts: list[str] = []
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = re.sub(r"\s+", " ", raw)
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            parts.append(line[:-1])
            continue
        whole = COMMENT.sub("", re.sub(" +", " ", "".join([*parts, line]))).strip()
        parts.clear()
        if whole:
            yield number, whole


def _parse_options(line: str) -> Iterator[str]:
    words = iter(line.split())
    for word in words:
        option, given, value = word.partition("=")
        if word in FLAG_OPTIONS:
            yield word
        elif option in URL_OPTIONS:
            url = value if given else next(words, "")
            if not HTTPS_URL.fullmatch(url):
                raise EvaluatorError("needs an https:// URL")
            yield f"{URL_OPTIONS[option]} {url}"
        elif option in NAME_OPTIONS:
            names = value if given else next(words, "")
            if not PACKAGE_LIST.fullmatch(names):
                raise EvaluatorError("needs package names")
            yield f"{option} {names}"
        else:
            raise EvaluatorError(REFUSED_OPTIONS.get(option, f"has an unknown option, {option}"))


def _parse_package(line: str) -> RequiredPackage:
    specification, *hashes = _split_hashes(line)
    if not all(map(HASH.fullmatch, hashes)):
        raise EvaluatorError("has an option other than --hash")
    requirement = _parse_requirement(specification)
    if requirement is None:
        raise EvaluatorError(
            "is not a valid requirement; name a published package, or an https:// or git+https://"
            " URL"
        )
    is_named = requirement.name != UNNAMED
    return RequiredPackage(
        name=normalize_name(requirement.name) if is_named else "",
        line=line,
        direct=requirement.url is not None,
        hashed=bool(hashes),
    )


def _is_wheel(line: str) -> bool:
    """Whether a line with a URL names a wheel; an installer decides by the same ending."""
    requirement = _parse_requirement(_split_hashes(line)[0])
    path = re.split(r"[?#]", (requirement and requirement.url) or "")[0]
    return path.startswith("https://") and path.endswith(".whl")


def _split_hashes(line: str) -> list[str]:
    """Split a line into the requirement and its options."""
    return re.split(r" (?=--)", line)


def _parse_requirement(specification: str) -> "Requirement | None":
    """Parse a requirement, a URL without a name as ``UNNAMED``; None if it is not allowed."""
    # Few runs install packages.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 (see above)

    is_line = specification.isascii() and specification.isprintable()
    if not is_line or len(specification) > MAX_PACKAGE_CHARS:
        return None
    has_name = not PACKAGE_URL.match(specification)
    try:
        requirement = Requirement(specification if has_name else f"{UNNAMED} @ {specification}")
    except (InvalidRequirement, RecursionError):  # markers can be nested
        return None
    if requirement.url is not None:
        return requirement if PACKAGE_URL.fullmatch(requirement.url) else None
    package = specification.partition(";")[0].strip()
    is_path = not INDEX_PACKAGE.fullmatch(package) or ARCHIVE.fullmatch(package)
    return None if is_path else requirement


SDK_PACKAGE: Final = "agentevals-evaluator-sdk"
# Older versions use another protocol.
SDK_LINE: Final = f"{SDK_PACKAGE}>=0.1.1"

LOCK_HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def is_locked_line(line: str) -> bool:
    """Whether a line has the form ``name==1.2 --hash=sha256:...``, with or without a marker."""
    specification, *hashes = _split_hashes(line)
    requirement = _parse_requirement(specification)
    if requirement is None or requirement.url is not None or not hashes:
        return False
    versions = [(each.operator, each.version) for each in requirement.specifier]
    return (
        len(versions) == 1
        and versions[0][0] == "=="
        and not versions[0][1].endswith("*")
        and all(map(LOCK_HASH.fullmatch, hashes))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The content of a ``requirements.txt``.

    A file may name additional indexes (``--extra-index-url https://...``). Then anyone who can
    publish to one of them decides what a name means: an installer may prefer a higher version from
    there to the intended one (dependency confusion). A lock prevents that, because its hashes
    identify contents from any source. With ``allow_source``, a package without a wheel is still
    built on this machine, with build tools that the lock does not pin.

    Attributes:
        text: the decoded text.
        locked: all packages with their dependencies, each as ``name==1.2 --hash=sha256:...``;
            empty without a lock.
        allow_source: whether packages may be built here, which runs their build scripts.
    """

    text: str
    locked: tuple[str, ...] = field(default=(), repr=False)
    allow_source: bool = False

    def parse_lines(self) -> RequirementLines:
        """Parse the text, and check the lock.

        Raises:
            EvaluatorError: a line of the text or of the lock is not allowed.
        """
        lines = parse_requirements(self.text)
        if not self.allow_source:
            _check_wheels(lines)
        if self.locked:
            check_lockable(lines)
        for line in self.locked:
            if not is_locked_line(line):
                raise EvaluatorError(
                    f"has an invalid line in agentci.lock: {line!r} needs an exact version and a"
                    " sha256; run `agentci lock` again"
                )
        return lines

    def install_lines(self) -> tuple[str, ...]:
        """Return the lines for an installer, with the locked packages if there is a lock.

        The lines include the SDK of agentevals, unless the text requires hashes; then the text has
        to name the SDK itself.

        Raises:
            EvaluatorError: as in ``parse_lines``.
        """
        lines = self.parse_lines()
        if self.locked:
            return (*lines.options, *sorted(set(self.locked)))
        # uv needs the option; pip infers it from one hash.
        strict_options = ("--require-hashes",) if lines.hashed else ()
        return (*lines.options, *strict_options, *list_wanted_lines(lines))


def decode_requirements(
    content: bytes, *, locked: tuple[str, ...] = (), allow_source: bool = False
) -> Requirements:
    """Decode the content of a ``requirements.txt``, with or without a byte order mark.

    Raises:
        EvaluatorError: the content is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
        return Requirements(text=text, locked=locked, allow_source=allow_source)
    except UnicodeDecodeError:
        raise _make_error("not UTF-8; save it as UTF-8") from None


def _check_wheels(lines: RequirementLines) -> None:
    """Check that no line asks for a package that has to be built.

    Raises:
        EvaluatorError: a line does.
    """
    built = [each.line for each in lines.packages if each.direct and not _is_wheel(each.line)]
    built += [each for each in lines.options if each.startswith("--no-binary")]
    for line in built:
        shown = truncate.short(line, MAX_SHOWN_CHARS)
        raise _make_error(
            f"{shown!r} builds a package from source; name a wheel, or set `allow_source: true` in"
            " the entry to build it in the sandbox"
        )


def _make_error(reason: str) -> EvaluatorError:
    return EvaluatorError(f"has a requirements.txt that cannot be used: {reason}")


def list_wanted_lines(lines: RequirementLines) -> tuple[str, ...]:
    """Return the lines to resolve together, sorted: the packages and the SDK of agentevals."""
    packages = {each.line for each in lines.packages}
    if not lines.hashed and all(each.name != SDK_PACKAGE for each in lines.packages):
        packages.add(SDK_LINE)
    return tuple(sorted(packages))


def check_lockable(lines: RequirementLines) -> None:
    """Check that no package comes from a URL: no index has its hash, so it cannot be locked.

    Raises:
        EvaluatorError: a package comes from a URL.
    """
    for each in lines.packages:
        if each.direct:
            raise EvaluatorError(
                f"needs a package that cannot be locked: {each.line!r} is a URL; name a package of"
                " an index"
            )


PACKAGE_FOLDER: Final = Path(__file__).resolve().parents[1]
SDK_FILES: Final = ("__init__.py", "py.typed", "sdk.py")


@cache
def read_sdk_files() -> dict[str, bytes]:
    """Read the files of agentci's evaluator SDK, by path below site-packages."""
    return {
        f"{PACKAGE_FOLDER.name}/{name}": (PACKAGE_FOLDER / name).read_bytes() for name in SDK_FILES
    }


def install_sdk(environment: Path, owner: Path | None) -> None:
    """Write the evaluator SDK into a virtual environment of the Python that runs agentci.

    A package may have left anything in its place.

    Args:
        environment: the environment.
        owner: a path whose owner gets the files.

    Raises:
        OSError: a file cannot be written.
    """
    base = {"base": str(environment), "platbase": str(environment)}
    package = Path(sysconfig.get_path("purelib", "venv", base), PACKAGE_FOLDER.name)
    for folder in (package, package / "__pycache__"):
        if folder.is_symlink() or not folder.is_dir():
            remove_path(folder)
            make_folder(folder, owner)
    for name, content in read_sdk_files().items():
        file = package / Path(name).name
        compiled = Path(cache_from_source(str(file)))
        for path in (file, compiled):
            remove_path(path)
        file.write_bytes(content)
        made = [file]
        if file.suffix == ".py":
            py_compile.compile(str(file), cfile=str(compiled))
            made.append(compiled)
        for path in made:
            set_mode(path, FILE_MODE)
            give_to_owner(path, owner)


# Version of an environment's content other than its packages; raise it to rebuild all environments.
KEY_FORMAT: Final = 2


def compute_environment_key(requirements: Requirements) -> str:
    """Return the hexadecimal key of the environment for ``requirements`` on this machine.

    Comments, blanks and the order of lines do not change the key.

    Raises:
        EvaluatorError: the requirements contain a line that is not allowed.
    """
    facts = {
        "format": KEY_FORMAT,
        "python": find_base_python(),
        "lines": sorted(set(requirements.install_lines())),
        "locked": bool(requirements.locked),
        "source": requirements.allow_source,
        "shipped": {
            name: hashlib.sha256(data).hexdigest() for name, data in read_sdk_files().items()
        },
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def find_base_python() -> tuple[str, ...]:
    """Identify the Python that an environment depends on; a change makes the environment invalid.

    Returns:
        Its version, ABI, platform and executable.
    """
    import sysconfig  # noqa: PLC0415 (needed only if something is installed)

    base = str(getattr(sys, "_base_executable", sys.executable))  # Python has no public name for it
    return (sys.version, str(sysconfig.get_config_var("SOABI")), sysconfig.get_platform(), base)
