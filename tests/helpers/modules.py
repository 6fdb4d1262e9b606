"""What is in the modules of agentci: each is parsed once, and its syntax tree is not kept."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.helpers.support import ROOT

PACKAGE: Final = ROOT / "agentci"
MODULES: Final = sorted(PACKAGE.rglob("*.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The parts of a module that tests look at.

    Attributes:
        imports: what ``import name`` and ``from name import member`` name; the former without
            a member.
        messages: lines and values of the string constants but docstrings.
        docstrings: lines and values of the strings that are statements.
    """

    has_docstring: bool
    imports: tuple[tuple[str, str | None], ...]
    messages: tuple[tuple[int, str], ...]
    docstrings: tuple[tuple[int, str], ...]


@cache
def read_module(path: Path) -> Content:
    """Parse a module of agentci."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: list[tuple[str, str | None]] = []
    strings: list[ast.Constant] = []
    statements: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                strings.append(node)
        elif isinstance(node, ast.Expr):
            statements.add(id(node.value))
        elif isinstance(node, ast.Import):
            imports += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports += [(node.module or "", alias.name) for alias in node.names]
    return Content(
        has_docstring=ast.get_docstring(tree) is not None,
        imports=tuple(imports),
        messages=tuple(_locate(each) for each in strings if id(each) not in statements),
        docstrings=tuple(_locate(each) for each in strings if id(each) in statements),
    )


def _locate(string: ast.Constant) -> tuple[int, str]:
    return string.lineno, str(string.value)
