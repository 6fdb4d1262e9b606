"""What is wrong with a file that is no YAML, in words that help more than PyYAML's."""

import re
from typing import Final

import yaml

from agentci._util.text.utf8 import place_after
from agentci.model.place import Place
from agentci.model.problem import Problem

_HINTS: Final = {
    "mapping values are not allowed": (
        "put a value that holds a colon in quotes; keys of one mapping begin in one column"
    ),
    "cannot start any token": "put a value that begins with @, ` or % in quotes",
    "unexpected end of stream": "a quote or bracket is not closed",
    "did not find expected ',' or": "a bracket is not closed, or a comma is missing",
    "did not find expected key": "keys of one mapping begin in one column",
    "did not find expected '-'": "items of one list begin with - in one column",
    "could not find expected ':'": "write `key: value`, with a space after the colon",
    "<document start>": "remove what follows the end of the document",
}

# All that YAML 1.1 leaves out of its printable characters.
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def unprintable(text: str, *, file: str) -> Problem | None:
    """Say that ``text`` holds a character that YAML refuses, and where; None where it does not."""
    found = _UNPRINTABLE.search(text)
    if found is None:
        return None
    return Problem(
        message=f"the character U+{ord(found[0]):04X} is not allowed in a YAML file",
        place=place_after(text[: found.start()], file=file),
        hint="write it as an escape in double quotes, or remove it",
    )


def syntax_problem(error: yaml.YAMLError, text: str, *, file: str) -> Problem:
    """Say what is wrong with ``text``, and where."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Problem(message="the file is not YAML", place=Place(file=file))
    what = error.problem or "it cannot be read"
    mark = error.problem_mark
    if "unexpected end of stream" in what and error.context_mark is not None:
        # The quote that is not closed helps more than the end of the file.
        mark = error.context_mark
    if tab := _tab_in_indentation(text, mark.line):
        return Problem(
            message="the line is indented with a tab, which YAML does not allow",
            place=Place(file=file, line=mark.line + 1, column=tab),
            hint="use spaces",
        )
    return Problem(
        message=f"the file is not YAML: {what}{_context(error, mark)}",
        place=Place(file=file, line=mark.line + 1, column=mark.column + 1),
        hint=next((hint for words, hint in _HINTS.items() if words in what), None),
    )


def _tab_in_indentation(text: str, line: int) -> int:
    """The column of a tab before the first word of a line counted from 0; 0 where there is none."""
    lines = text.splitlines()
    if line >= len(lines):
        return 0
    blanks = lines[line][: len(lines[line]) - len(lines[line].lstrip(" \t-"))]
    return blanks.find("\t") + 1


def _context(error: yaml.MarkedYAMLError, shown: yaml.Mark) -> str:
    """Where that began which was being read, unless that is shown already."""
    begin = error.context_mark
    if error.context is None or begin is None or begin.line == shown.line:
        return ""
    return f" ({error.context} from line {begin.line + 1})"
