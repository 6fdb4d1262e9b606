"""What a release takes from the repository: its version, its words in the changelog, its image.

``check TAG`` says whether TAG may be released, ``notes TAG IMAGE`` prints the text of its page, and
``pin IMAGE`` has action.yml run IMAGE instead of building the Dockerfile. Exit 1 with the reason.
Standard library only, so that a runner needs no virtual environment for it.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
IMAGE = re.compile(r"[a-z0-9.-]+(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}")
BUILT_ANEW = "  image: Dockerfile\n"


def main(arguments: list[str]) -> int:
    """Do one of these in the repository that is the working directory."""
    name, *rest = arguments or [""]
    command, wanted = COMMANDS.get(name, (_usage, 0))
    if len(rest) != wanted:
        command, rest = _usage, []
    try:
        command(*rest)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def check(tag: str) -> None:
    """Refuse a tag that is not the version of the code, or of which the changelog knows nothing."""
    version = _version_of_the_code()
    if not VERSION.fullmatch(version):
        raise ValueError(f"agentci/version.py: {version} is no version to release")
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, but agentci/version.py says {version}")
    if re.search(r"^- ", _changes("Unreleased", dated=False), re.MULTILINE):
        raise ValueError("CHANGELOG.md: lines under [Unreleased] belong under the version")
    if not _changes(version):
        raise ValueError(f"CHANGELOG.md says nothing under ## [{version}] - YYYY-MM-DD")


def notes(tag: str, image: str) -> None:
    """Print what the page of the release says."""
    print(f"{_changes(tag.removeprefix('v'))}\n\n### Image\n`{image}`")


def pin(image: str) -> None:
    """Write ``image`` into action.yml."""
    if not IMAGE.fullmatch(image):
        raise ValueError(f"{image} is no image with its digest, as NAME@sha256:...")
    path = Path("action.yml")
    text = path.read_text("utf-8")
    if text.count(BUILT_ANEW) != 1:
        raise ValueError(f"action.yml has no line {BUILT_ANEW.strip()!r} to pin")
    path.write_text(text.replace(BUILT_ANEW, f"  image: docker://{image}\n"), "utf-8")


def _version_of_the_code() -> str:
    text = Path("agentci/version.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else "nothing"


def _changes(version: str, *, dated: bool = True) -> str:
    """What the changelog has under the heading of ``version``."""
    date = r" - \d{4}-\d\d-\d\d" if dated else ""
    part = rf"^## \[{re.escape(version)}\]{date}\n(.*?)(?=^## |\Z)"
    text = Path("CHANGELOG.md").read_text("utf-8")
    found = re.search(part, text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def _usage() -> None:
    raise ValueError("usage: python -m scripts.release check TAG | notes TAG IMAGE | pin IMAGE")


COMMANDS: Mapping[str, tuple[Callable[..., None], int]] = {
    "check": (check, 1),
    "notes": (notes, 2),
    "pin": (pin, 1),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
