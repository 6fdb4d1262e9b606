"""The documents, and what stands in their blocks of code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.helpers.support import ROOT

DOCUMENTS: Final = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def snippets(document: Path, language: str = r"\w*") -> Iterator[str]:
    """The blocks of a language, or all."""
    for found in re.finditer(
        rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL
    ):
        yield found[1]


def name_of(value: object) -> str:
    """A document's name, for the names of tests."""
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else str(value)
