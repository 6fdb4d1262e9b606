"""What a requirements file asks for, by a grammar of ours that is narrower than the installers'.

What is installed is written anew from what was understood here, so that no installer can read
more into a file than we did. What would take something of the machine's (a path, another file, a
variable) is refused: the files of evaluators come from elsewhere.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import EvaluatorError

MAX_SHOWN: Final = 120

NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
EXTRAS: Final = r"(?:\s*\[[A-Za-z0-9._,\s-]*\])?"
MARKER: Final = r"(?:\s*;[A-Za-z0-9_\s.'\"<>=!~(),*+-]+)?"
VERSION: Final = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
VERSIONS: Final = rf"(?:\s*\(?\s*{VERSION}(?:\s*,\s*{VERSION})*\s*,?\s*\)?)?"

HTTPS: Final = re.compile(r"https://[!-~]+")
NAMED: Final = re.compile(rf"({NAME}){EXTRAS}{VERSIONS}{MARKER}")
DIRECT: Final = re.compile(rf"(?:({NAME}){EXTRAS}\s*@\s*)?(?:git\+)?https://[!-~]+{MARKER}")
HASH: Final = re.compile(r"--hash[= ]sha(?:256|384|512):[0-9a-f]+")
COMMENT: Final = re.compile(r"(?:^| )#.*$")
# An installer takes such a name for a file, if there is one.
ARCHIVE: Final = re.compile(r".*\.(?:whl|zip|tar|tgz|tbz|txz|tlz|tar\.[a-z0-9]+)", re.IGNORECASE)

WITH_ADDRESS: Final = {
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "-f": "--find-links",
    "--find-links": "--find-links",
}
WITH_NAMES: Final = frozenset({"--only-binary", "--no-binary"})
NAMES: Final = re.compile(r"[A-Za-z0-9._,:-]+")
FLAGS: Final = frozenset({"--no-index", "--prefer-binary", "--require-hashes"})

OTHER_FILE: Final = "reads another file; write its lines in place of it"
FOLDER: Final = "installs a folder of the machine; name a published package"
REASONS: Final = {
    "-r": OTHER_FILE,
    "--requirement": OTHER_FILE,
    "-c": OTHER_FILE,
    "--constraint": OTHER_FILE,
    "-e": FOLDER,
    "--editable": FOLDER,
    "--pre": "takes any version that is not finished; name the one that is meant, as in ==2.0rc1",
    "--trusted-host": "would take packages from a server that cannot show who it is",
}


class Package(Struct, frozen=True, kw_only=True):
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
class Lines:
    """A whole file; ``options``, one each, are about where packages come from."""

    packages: tuple[Package, ...] = ()
    options: tuple[str, ...] = field(default=(), repr=False)

    @property
    def hashed(self) -> bool:
        """Whether an installer takes only what has a hash."""
        return "--require-hashes" in self.options or any(each.hashed for each in self.packages)


def parse(text: str) -> Lines:
    """Read a requirements file.

    Raises:
        EvaluatorError: a line is not for us to install; as the end of a sentence about the
            evaluator.
    """
    packages: list[Package] = []
    options: list[str] = []
    for number, line in _logical(text):
        try:
            if "${" in line:
                raise EvaluatorError("reads a variable of the environment; write its value")
            if line.startswith("-"):
                options.extend(_options(line))
            else:
                packages.append(_package(line))
        except EvaluatorError as error:
            message = f"needs packages that are not installed: requirements.txt line {number}"
            shown = truncate.short(line, MAX_SHOWN)
            raise EvaluatorError(f"{message}, {shown!r}, {error}") from None
    return Lines(packages=tuple(packages), options=tuple(options))


def canonical(name: str) -> str:
    """A package's name as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _logical(text: str) -> Iterator[tuple[int, str]]:
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


def _options(line: str) -> Iterator[str]:
    words = iter(line.split())
    for word in words:
        option, given, value = word.partition("=")
        if word in FLAGS:
            yield word
        elif option in WITH_ADDRESS:
            address = value if given else next(words, "")
            if not HTTPS.fullmatch(address):
                raise EvaluatorError("names no https:// address")
            yield f"{WITH_ADDRESS[option]} {address}"
        elif option in WITH_NAMES:
            names = value if given else next(words, "")
            if not NAMES.fullmatch(names):
                raise EvaluatorError("names no packages")
            yield f"{option} {names}"
        else:
            raise EvaluatorError(REASONS.get(option, f"has an unknown option, {option}"))


def _package(line: str) -> Package:
    wanted, *hashes = re.split(r" (?=--)", line)
    for each in hashes:
        if not HASH.fullmatch(each):
            raise EvaluatorError("has an option other than --hash")
    named = NAMED.fullmatch(wanted)
    direct = DIRECT.fullmatch(wanted)
    found = named or direct
    if found is None or (named and ARCHIVE.fullmatch(named[1])):
        raise EvaluatorError(
            "is no package of an index, nor an https:// or git+https:// address;"
            " name a published package"
        )
    return Package(
        name=canonical(found[1] or ""),
        line=line,
        direct=named is None,
        hashed=bool(hashes),
    )
