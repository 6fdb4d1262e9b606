"""Run Python files with the interpreter that runs agentci, and so with its packages."""

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

EXTENSIONS: tuple[str, ...] = (".py",)
IMAGE_COMMAND: tuple[str, ...] = ("python3",)

# Modules that evaluators and agentci's child programs import: the SDKs, Jinja2, and the slowest of
# the standard library. Importing them starts no thread and has no other side effect.
PRELOADABLE: Final = frozenset(
    {
        "agentci.sdk", "agentevals_evaluator_sdk", "jinja2", "jinja2.sandbox", "pydantic",
        "argparse", "ast", "asyncio", "base64", "collections", "copy", "csv", "dataclasses",
        "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "html",
        "inspect", "itertools", "json", "logging", "math", "operator", "pathlib", "pprint",
        "random", "re", "shlex", "shutil", "statistics", "string", "subprocess", "tempfile",
        "textwrap", "threading", "traceback", "types", "typing", "unicodedata", "urllib.parse",
        "urllib.request", "uuid", "warnings",
    }
)  # fmt: skip
IMPORT: Final = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)|import[ \t]+([^#;\n]+))", re.MULTILINE)
NAME: Final = re.compile(r"[\w.]+")
MAX_SOURCE_BYTES: Final = 1024**2


def command_for(path: Path, *, search_path: str) -> tuple[str, ...]:
    """Return ``python file``; the file's folder then comes first on the module path."""
    del search_path  # another Python would lack the packages
    return (sys.executable, str(path))


@lru_cache(maxsize=1024)
def find_preloadable_imports(path: Path) -> tuple[str, ...]:
    """Return the modules that the file imports and that can be imported before it runs.

    The file is only read, never run. The program itself imports any module missed here.
    """
    return tuple(dict.fromkeys(_parse_imports(path)))


def _parse_imports(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_SOURCE_BYTES)
    except OSError:
        return
    for package, modules in IMPORT.findall(text):
        for name in NAME.findall((package or modules).decode("utf-8", "replace")):
            yield from (each for each in (name, name.partition(".")[0]) if each in PRELOADABLE)
