"""What repositories, revisions and paths may look like: nothing that leads elsewhere."""

import re
from typing import Final

from agentci._util.text import truncate
from agentci.errors import RefusedError

MAX_REF: Final = 512
MAX_SEGMENTS: Final = 16
MAX_REVISION: Final = 250
# No file system that matters takes longer names.
MAX_NAME_BYTES: Final = 255
# Of a path in a message; most are shown in full.
MAX_SHOWN: Final = 120

COMMIT: Final = re.compile(r"[0-9a-f]{40}")

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_ON_GITHUB: Final = re.compile(r"(?:https?://|git@)[^/:]+[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?")
_NOT_IN_REVISIONS: Final = re.compile(
    r"[\x00-\x20\x7f-\xa0\s~^:?*\[\\\ud800-\udfff]|\.\.|@\{|//|^[-/.]|/\.|[/.]$|\.lock(?:$|/)|^@$"
)
_NOT_IN_PATHS: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def shown(path: str) -> str:
    """``path`` in a message: quoted, on one line, cut where it is long."""
    return repr(truncate.short(path, MAX_SHOWN))


def check_repository(repository: str) -> None:
    """Refuse what is no ``owner/name`` as GitHub has them.

    Raises:
        RefusedError: it is not.
    """
    if _REPOSITORY.fullmatch(repository):
        return
    meant = _ON_GITHUB.fullmatch(repository)
    raise RefusedError(
        f"{shown(repository)} is no repository on GitHub",
        hint=f"write {meant[1]!r}" if meant else "write `owner/name`",
    )


def check_revision(revision: str) -> None:
    """Refuse what git would not take for the name of a branch or a tag, nor for a commit.

    Raises:
        RefusedError: it is not.
    """
    if not revision or len(revision) > MAX_REVISION or _NOT_IN_REVISIONS.search(revision):
        raise RefusedError(
            f"{shown(revision)} is no name of a branch, a tag or a commit",
            hint="write `branch: main`, or `rev:` with the 40 digits of a commit",
        )


def check_ref(ref: str) -> None:
    """Refuse what is no plain path in a repository, by the rules of agentevals 0.11.0.

    Raises:
        RefusedError: it is not.
    """
    reason = why_refused(ref)
    if reason is not None:
        raise RefusedError(
            f"the ref {shown(ref)} {reason}",
            hint="write the path of the program from the root of the repository,"
            " like evaluators/NAME/NAME.py",
        )


def why_refused(ref: str) -> str | None:
    """Say what keeps ``ref`` from being a path in a repository, None where nothing does."""
    segments = ref.split("/")
    if not 1 <= len(ref) <= MAX_REF:
        return f"must have 1 to {MAX_REF} characters, not {len(ref):,}"
    if len(segments) > MAX_SEGMENTS:
        return f"has {len(segments)} parts, and {MAX_SEGMENTS} are the most"
    if ref.startswith("/"):
        return "is absolute"
    wrong = next((each for each in segments if not _SEGMENT.fullmatch(each)), None)
    if wrong is None:
        return None
    return f"has the part {shown(wrong)}, which is not allowed" if wrong else "has an empty part"


def why_unusable(path: str) -> str | None:
    """Say what keeps ``path`` from being kept in a folder, None where nothing does.

    Looser than :func:`why_refused`: names with spaces and of any script are fine beside a program.
    """
    parts = path.split("/")
    reasons = {
        "is absolute": path.startswith("/") or _DRIVE.match(path) is not None,
        f"must have 1 to {MAX_REF} characters": not 1 <= len(path) <= MAX_REF,
        "has a character that is not allowed": _NOT_IN_PATHS.search(path) is not None,
        "leads out of its folder": ".." in parts,
        "has an empty part": not {"", "."}.isdisjoint(parts),
        f"has a part of more than {MAX_NAME_BYTES} bytes": any(
            len(part.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES for part in parts
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def normal_sha256(text: str) -> str:
    """``text`` as all sha256 are written: 64 hexadecimal digits in lower case.

    Raises:
        RefusedError: it is none.
    """
    digest = text.strip().lower().removeprefix("sha256:")
    if not _SHA256.fullmatch(digest):
        raise RefusedError(
            f"{shown(text)} is no sha256",
            hint="it has 64 hexadecimal digits; `sha256sum FILE` prints it",
        )
    return digest
