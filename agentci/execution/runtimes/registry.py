"""The runtimes; a new language needs a module and an entry here.

Plugins add runtimes as entry points of the group ``agentci.runtimes``, whose objects are each a
:class:`Runtime`. They are loaded only if no built-in runtime has a file's extension.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Protocol, cast

from agentci.errors import EvaluatorError, InputError
from agentci.execution.runtimes import command, node, python
from agentci.execution.runtimes.command import NOT_EXECUTABLE


class Runtime(Protocol):
    """Makes the command that runs a file of one language; a module can be a runtime.

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

RUNTIMES: Final[Mapping[str, Runtime]] = {"python": python, "node": node, "command": command}


def find_unsupported_reason(path: Path) -> str | None:
    """Return why the file cannot be an evaluator; None if it can, even if its runtime is missing.

    Raises:
        InputError: a plugin's runtime is broken and might be the one for this file.
    """
    # An executable file is one with any runtime, and finding plugins takes long.
    if os.access(path, os.X_OK) or _choose_runtime(path) is not command:
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
    return python.find_preloadable_imports(path) if _choose_runtime(path) is python else None


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
        return built_in or command
    return _find_by_extension(extension, _list_plugins()) or command


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
