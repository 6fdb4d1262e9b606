"""What an evaluator wants installed: as its author wrote it, and as a lock pins it."""

import re
from dataclasses import dataclass, field
from typing import Final

from agentci.errors import EvaluatorError
from agentci.execution.environments.requirement_lines import EXTRAS, MARKER, NAME, Lines, parse

SDK: Final = "agentevals-evaluator-sdk"
# Older ones speak another protocol.
SDK_LINE: Final = f"{SDK}>=0.1.1"

LOCKED: Final = re.compile(
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

    def lines(self) -> Lines:
        """What the text says.

        Raises:
            EvaluatorError: there is something in it, or in the lock, that is not to be installed.
        """
        lines = parse(self.text)
        if self.locked:
            refuse_direct(lines)
        for line in self.locked:
            if not LOCKED.fullmatch(line):
                raise EvaluatorError(
                    f"needs a package that is not locked by its hash, {line!r};"
                    " run `agentci lock` again"
                )
        return lines

    def installed(self) -> tuple[str, ...]:
        """The lines that an installer is given: the lock where there is one.

        The SDK of agentevals is among them, but not where the text wants hashes of everything:
        then it is for the text to name it.

        Raises:
            EvaluatorError: as above.
        """
        lines = self.lines()
        if self.locked:
            return (*lines.options, *sorted(set(self.locked)))
        strictly = ("--require-hashes",) if lines.hashed else ()  # uv knows no hint from one line
        return (*lines.options, *strictly, *wanted(lines))


def requirements_of(content: bytes, *, locked: tuple[str, ...] = ()) -> Requirements:
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


def wanted(lines: Lines) -> tuple[str, ...]:
    """What is to be resolved together: the packages in any order, and the SDK of agentevals."""
    packages = {each.line for each in lines.packages}
    if not lines.hashed and all(each.name != SDK for each in lines.packages):
        packages.add(SDK_LINE)
    return tuple(sorted(packages))


def refuse_direct(lines: Lines) -> None:
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
