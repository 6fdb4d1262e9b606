"""Requirements of an evaluator: parsed from its file, or pinned by a lock.

The grammar is narrower than the installers'. What is installed is written from what was parsed
here, so that no installer can read more into a file than we did. What would use something of the
machine (a path, another file, a variable) is refused: the files of evaluators come from elsewhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import EvaluatorError

MAX_SHOWN_CHARS: Final = 120

NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
EXTRAS: Final = r"(?:\s*\[[A-Za-z0-9._,\s-]*\])?"
MARKER: Final = r"(?:\s*;[A-Za-z0-9_\s.'\"<>=!~(),*+-]+)?"
VERSION: Final = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
VERSIONS: Final = rf"(?:\s*\(?\s*{VERSION}(?:\s*,\s*{VERSION})*\s*,?\s*\)?)?"

HTTPS_URL: Final = re.compile(r"https://[!-~]+")
NAMED_PACKAGE: Final = re.compile(rf"({NAME}){EXTRAS}{VERSIONS}{MARKER}")
DIRECT_PACKAGE: Final = re.compile(rf"(?:({NAME}){EXTRAS}\s*@\s*)?(?:git\+)?https://[!-~]+{MARKER}")
HASH: Final = re.compile(r"--hash[= ]sha(?:256|384|512):[0-9a-f]+")
COMMENT: Final = re.compile(r"(?:^| )#.*$")
# An installer takes such a name for a file, if there is one.
ARCHIVE: Final = re.compile(r".*\.(?:whl|zip|tar|tgz|tbz|txz|tlz|tar\.[a-z0-9]+)", re.IGNORECASE)

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

OTHER_FILE_REASON: Final = "reads another file; write its lines in place of it"
FOLDER_REASON: Final = "installs a folder of the machine; name a published package"
REFUSED_OPTIONS: Final = {
    "-r": OTHER_FILE_REASON,
    "--requirement": OTHER_FILE_REASON,
    "-c": OTHER_FILE_REASON,
    "--constraint": OTHER_FILE_REASON,
    "-e": FOLDER_REASON,
    "--editable": FOLDER_REASON,
    "--pre": "takes any version that is not finished; name the one that is meant, as in ==2.0rc1",
    "--trusted-host": "would take packages from a server that cannot show who it is",
}


class RequiredPackage(Struct, frozen=True, kw_only=True):
    """One package that is asked for.

    Attributes:
        name: normalised; empty where an address alone is given.
        line: as an installer reads it, on one line.
        direct: taken from an address of its own rather than from an index.
        hashed: only with a content that the line names.
    """

    name: str
    line: str
    direct: bool = False
    hashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementLines:
    """A whole file; ``options``, one each, are about where packages come from."""

    packages: tuple[RequiredPackage, ...] = ()
    options: tuple[str, ...] = field(default=(), repr=False)

    @property
    def hashed(self) -> bool:
        """Whether an installer takes only what has a hash."""
        return "--require-hashes" in self.options or any(each.hashed for each in self.packages)


def parse_requirements(text: str) -> RequirementLines:
    """Read a requirements file.

    Raises:
        EvaluatorError: a line is not for us to install; as the end of a sentence about the
            evaluator.
    """
    packages: list[RequiredPackage] = []
    options: list[str] = []
    for number, line in _join_lines(text):
        try:
            if "${" in line:
                raise EvaluatorError("reads a variable of the environment; write its value")
            if line.startswith("-"):
                options.extend(_parse_options(line))
            else:
                packages.append(_parse_package(line))
        except EvaluatorError as error:
            message = f"needs packages that are not installed: requirements.txt line {number}"
            shown = truncate.short(line, MAX_SHOWN_CHARS)
            raise EvaluatorError(f"{message}, {shown!r}, {error}") from None
    return RequirementLines(packages=tuple(packages), options=tuple(options))


def normalize_name(name: str) -> str:
    """A package's name as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, those that are continued put together, with the number of the last.

    Split wherever any installer splits: what one takes for the rest of a comment is a line to
    another.
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
            address = value if given else next(words, "")
            if not HTTPS_URL.fullmatch(address):
                raise EvaluatorError("names no https:// address")
            yield f"{URL_OPTIONS[option]} {address}"
        elif option in NAME_OPTIONS:
            names = value if given else next(words, "")
            if not PACKAGE_LIST.fullmatch(names):
                raise EvaluatorError("names no packages")
            yield f"{option} {names}"
        else:
            raise EvaluatorError(REFUSED_OPTIONS.get(option, f"has an unknown option, {option}"))


def _parse_package(line: str) -> RequiredPackage:
    wanted, *hashes = re.split(r" (?=--)", line)
    for each in hashes:
        if not HASH.fullmatch(each):
            raise EvaluatorError("has an option other than --hash")
    named = NAMED_PACKAGE.fullmatch(wanted)
    direct = DIRECT_PACKAGE.fullmatch(wanted)
    found = named or direct
    if found is None or (named and ARCHIVE.fullmatch(named[1])):
        raise EvaluatorError(
            "is no package of an index, nor an https:// or git+https:// address;"
            " name a published package"
        )
    return RequiredPackage(
        name=normalize_name(found[1] or ""),
        line=line,
        direct=named is None,
        hashed=bool(hashes),
    )


SDK_PACKAGE: Final = "agentevals-evaluator-sdk"
# Older ones speak another protocol.
SDK_LINE: Final = f"{SDK_PACKAGE}>=0.1.1"

LOCKED_LINE: Final = re.compile(
    rf"{NAME}{EXTRAS}==[A-Za-z0-9.!+_-]+{MARKER}(?: --hash=sha256:[0-9a-f]{{64}})+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The content of a ``requirements.txt``.

    A file may name indexes beside the usual one (``--extra-index-url https://...``). Then whoever
    can put a package on any of them decides what a name means: an installer may prefer a higher
    version from there to the one that its author meant (dependency confusion). A lock cures that:
    its hashes name contents, wherever they come from. A package that has no wheel is built on this
    machine, though, with tools that no lock of ours names.

    Attributes:
        text: as decoded.
        locked: all packages and theirs, ``name==1.2 --hash=sha256:...`` each; empty where nothing
            is locked.
    """

    text: str
    locked: tuple[str, ...] = field(default=(), repr=False)

    def parse_lines(self) -> RequirementLines:
        """What the text says.

        Raises:
            EvaluatorError: there is something in it, or in the lock, that is not to be installed.
        """
        lines = parse_requirements(self.text)
        if self.locked:
            check_lockable(lines)
        for line in self.locked:
            if not LOCKED_LINE.fullmatch(line):
                raise EvaluatorError(
                    f"needs a package that is not locked by its hash, {line!r};"
                    " run `agentci lock` again"
                )
        return lines

    def install_lines(self) -> tuple[str, ...]:
        """The lines that an installer is given: the lock where there is one.

        The SDK of agentevals is among them, but not where the text wants hashes of everything:
        then it is for the text to name it.

        Raises:
            EvaluatorError: as above.
        """
        lines = self.parse_lines()
        if self.locked:
            return (*lines.options, *sorted(set(self.locked)))
        strictly = ("--require-hashes",) if lines.hashed else ()  # uv knows no hint from one line
        return (*lines.options, *strictly, *list_wanted_lines(lines))


def decode_requirements(content: bytes, *, locked: tuple[str, ...] = ()) -> Requirements:
    """Read the content of a ``requirements.txt``, with or without a byte order mark.

    Raises:
        EvaluatorError: it is no text.
    """
    try:
        return Requirements(text=content.decode("utf-8-sig"), locked=locked)
    except UnicodeDecodeError:
        raise EvaluatorError(
            "needs packages that are not installed: requirements.txt is not UTF-8; save it as that"
        ) from None


def list_wanted_lines(lines: RequirementLines) -> tuple[str, ...]:
    """What is to be resolved together: the packages in any order, and the SDK of agentevals."""
    packages = {each.line for each in lines.packages}
    if not lines.hashed and all(each.name != SDK_PACKAGE for each in lines.packages):
        packages.add(SDK_LINE)
    return tuple(sorted(packages))


def check_lockable(lines: RequirementLines) -> None:
    """Nothing with an address of its own can be locked: no index knows its hash.

    Raises:
        EvaluatorError: there is one.
    """
    for each in lines.packages:
        if each.direct:
            raise EvaluatorError(
                f"needs a package that cannot be locked, {each.line!r}: it comes from an address"
                " of its own; name one of an index"
            )
