"""The runtimes: a new language is a file and a line here.

Packages of others add theirs as entry points of the group ``agentci.runtimes``, whose objects are
each a :class:`Runtime`. They are looked for only where none of ours knows a file's extension.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, cast

from agentci.errors import EvaluatorError, InputError
from agentci.execution.runtimes import command, node, python
from agentci.execution.runtimes.command import NOT_EXECUTABLE
from agentci.execution.runtimes.runtime import Runtime
from agentci.execution.runtimes.runtime_plugin import ForeignRuntime

GROUP: Final = "agentci.runtimes"

RUNTIMES: Final[Mapping[str, Runtime]] = {"python": python, "node": node, "command": command}


def why_unsupported(path: Path) -> str | None:
    """Say why the file cannot be an evaluator, None where it can, whatever is installed here.

    Raises:
        InputError: another package brings a runtime that is broken, and that may be the file's.
    """
    if _runtime_for(path) is not command or os.access(path, os.X_OK):
        return None
    runtimes = (*RUNTIMES.values(), *_theirs())
    extensions = dict.fromkeys(extension for each in runtimes for extension in each.EXTENSIONS)
    known = ", ".join(extensions)
    return f"{path.name!r} is none of {known}, nor executable (chmod +x, and a #! line)"


def command_for(path: Path, *, search_path: str, python: str | None = None) -> tuple[str, ...]:
    """Make the command that runs ``path``.

    Args:
        search_path: folders with programs, as in ``PATH``.
        python: the interpreter that has the packages of a Python program; None for ours.

    Raises:
        EvaluatorError: the file is gone, or cannot run on this machine.
    """
    command = _found(path).command_for(path, search_path=search_path)
    return command if python is None else (python, *command[1:])


def imports_of(path: Path) -> tuple[str, ...] | None:
    """What can be imported before a Python program begins; None where it is no such program."""
    return python.imports_of(path) if _runtime_for(path) is python else None


def command_elsewhere(path: Path) -> tuple[str, ...]:
    """Make the command that runs ``path`` where we know no more than the names of interpreters.

    Raises:
        EvaluatorError: the file is gone, or its runtime does not say how.
    """
    runtime = _found(path)
    before = runtime.ELSEWHERE
    if isinstance(runtime, ForeignRuntime) and not before:
        raise EvaluatorError(
            f"{runtime.title} does not say what runs {path.suffix} files in an image;"
            " use `executor: local`"
        )
    if not before and not os.access(path, os.X_OK):
        raise EvaluatorError(NOT_EXECUTABLE.format(path))
    return (*before, str(path))


def _found(path: Path) -> Runtime:
    if not path.is_file():
        raise EvaluatorError(f"Evaluator file not found: {path}")
    try:
        return _runtime_for(path)
    except InputError as error:  # only now is it known what a remote program's file is
        raise EvaluatorError(str(error)) from None


def _runtime_for(path: Path) -> Runtime:
    extension = path.suffix.lower()
    ours = _with(extension, RUNTIMES.values())
    if ours is not None or not extension:
        return ours or command
    return _with(extension, _theirs()) or command


def _with(extension: str, runtimes: Iterable[Runtime]) -> Runtime | None:
    return next((each for each in runtimes if extension in each.EXTENSIONS), None)


def _theirs() -> tuple[Runtime, ...]:
    return _brought(tuple(sys.path))


@cache
def _brought(_search_path: tuple[str, ...]) -> tuple[Runtime, ...]:
    """The runtimes of other packages; finding them takes as long as many an evaluator runs."""
    from agentci._util.plugins import all_of  # noqa: PLC0415 (most runs need none of theirs)

    found = {name: each for name, each in all_of(GROUP).items() if name not in RUNTIMES}
    runtimes = [_checked(name, each) for name, each in found.items()]
    first: dict[str, ForeignRuntime] = {}
    for each in runtimes:
        for extension in each.EXTENSIONS:
            other = first.setdefault(extension, each)
            if other is not each and _with(extension, RUNTIMES.values()) is None:
                message = f"{other.title} and {each.title} both run {extension} files"
                raise InputError.of(message, hint="uninstall one of them")
    return tuple(runtimes)


def _checked(name: str, found: object) -> ForeignRuntime:
    from agentci._util.plugins import misfit, package_of  # noqa: PLC0415 (likewise)

    if isinstance(found, type) or not _is_runtime(found):
        raise misfit(GROUP, name, wanted='a runtime: `EXTENSIONS = (".go",)` and `command_for`')
    title = f"the runtime {name!r} of {package_of(GROUP, name)}"
    return ForeignRuntime(cast(Runtime, found), title=title)


def _is_runtime(found: object) -> bool:
    extensions = getattr(found, "EXTENSIONS", None)
    return (
        isinstance(extensions, tuple)
        and all(isinstance(each, str) and _is_extension(each) for each in extensions)
        and callable(getattr(found, "command_for", None))
        and _are_words(getattr(found, "ELSEWHERE", ()))
    )


def _are_words(found: object) -> bool:
    return isinstance(found, tuple) and all(isinstance(each, str) and each for each in found)


def _is_extension(text: str) -> bool:
    """Whether a file's name can end in it, as we look at names."""
    return bool(text) and Path(f"x{text}").suffix.lower() == text
