"""Call a grader function, ``grade(sample, item)``, and print its result as JSON.

Runs as a program: ``call_grader.py FILE`` for a function in a file, without ``FILE`` for one in
source text. Stdin is ``{"function", "sample", "item"}``, with ``source`` if there is no file.
Stdout is ``{"score": 0.7}``, with the other keys of a returned dict. The function's own output goes
to stderr. If the function raises or returns no finite number, the exit code is 1, and the reason is
on stderr.
"""

import json
import math
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

STDOUT, STDERR = 1, 2
SOURCE_NAME: Final = "<source>"
MAX_SHOWN_CHARS: Final = 200


class GraderFunctionError(Exception):
    """The function returned no score; the message has the reason."""


def main(files: list[str]) -> int:
    """Grade the sample from stdin, and return the exit code."""
    with open(os.dup(STDOUT), "wb") as out:
        os.dup2(STDERR, STDOUT)
        request = json.load(sys.stdin.buffer)
        try:
            result = json.dumps(_run_grader(request, *files), default=str)
        except GraderFunctionError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        except BaseException as error:  # noqa: BLE001 (sys.exit in a grader is an error too)
            _print_traceback(error)
            return 1
        out.write(result.encode())
    return 0


def _run_grader(request: dict[str, Any], file: str = "") -> dict[str, Any]:
    module = _load_module(file, request.get("source", ""))
    name = request["function"]
    function = getattr(module, name, None)
    if not callable(function):
        where = os.path.basename(file) if file else "the source"
        raise GraderFunctionError(f"no function `{name}` in {where}")
    return call_grader(function, request, name)


def call_grader(function: Callable[..., Any], request: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the result of ``function`` for the requested sample and item.

    Raises:
        GraderFunctionError: the result is not a score.
    """
    try:
        returned = function(request["sample"], request["item"])
    except Exception as error:
        for note in _list_missing_values(request["sample"]):
            error.add_note(note)
        raise
    if not isinstance(returned, dict):
        return {"score": _check_score(returned, name)}
    if "score" not in returned:
        raise GraderFunctionError(
            f"`{name}` returned a dict without the key `score`: {_format_value(returned)}"
        )
    return {**returned, "score": _check_score(returned["score"], name)}


def _list_missing_values(sample: dict[str, Any]) -> list[str]:
    """List the values that are None because they were not recorded."""
    calls = sample.get("tool_calls", ())
    if calls is None:
        return ["sample['tool_calls'] is None: the recording does not say which tools were called"]
    return [
        f"the arguments of a call of `{call['name']}` are None: they were not recorded"
        for call in calls
        if call.get("arguments", "") is None
    ]


def _load_module(file: str, source: str) -> ModuleType:
    """Run the user's code as if it were imported."""
    code: bytes | str = source
    if file:
        _put_folder_first(os.path.dirname(file))
        with open(file, "rb") as opened:
            code = opened.read()
    else:
        _register_source(source)
    module = ModuleType(os.path.basename(file).partition(".")[0] or "grader")
    module.__file__ = file or None
    sys.modules.setdefault(module.__name__, module)
    exec(compile(code, file or SOURCE_NAME, "exec"), vars(module))  # noqa: S102 (runs the user's grader by design)
    return module


def _put_folder_first(folder: str) -> None:
    """Find modules in the user's folder first, even if one of the same name is loaded."""
    sys.path[0] = folder
    own = {
        entry.partition(".")[0]
        for entry in os.listdir(folder)
        if entry.endswith(".py") or "." not in entry
    }
    for name, module in [*sys.modules.items()]:
        at_start = getattr(getattr(module, "__spec__", None), "origin", None) == "frozen"
        if name.partition(".")[0] in own and not at_start and name not in {"__main__", "sys"}:
            del sys.modules[name]


def _register_source(source: str) -> None:
    """Let tracebacks quote the source."""
    import linecache  # noqa: PLC0415 (not needed for files)

    linecache.cache[SOURCE_NAME] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        SOURCE_NAME,
    )


def _check_score(value: Any, name: str) -> float:
    if isinstance(value, str | bytes) or not hasattr(type(value), "__float__"):
        raise GraderFunctionError(f"`{name}` returned {_format_value(value)}; it must be a number")
    number = float(value)
    if not math.isfinite(number):
        raise GraderFunctionError(f"`{name}` returned {number}; it must be a finite number")
    return number


def _format_value(value: Any) -> str:
    text = repr(value)
    return (
        text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}\N{HORIZONTAL ELLIPSIS}"
    )


def _print_traceback(error: BaseException) -> None:
    """Print the traceback, starting at the user's first frame."""
    import traceback  # noqa: PLC0415 (rarely needed)

    frames = error.__traceback__
    ours = main.__code__.co_filename
    while frames is not None and frames.tb_frame.f_code.co_filename == ours:
        frames = frames.tb_next
    traceback.print_exception(error.with_traceback(frames))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
