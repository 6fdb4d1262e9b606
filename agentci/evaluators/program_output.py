"""What an evaluator's program printed: one JSON object, or a sentence on what it was instead."""

import codecs
import json
import math
import re
from typing import Final

from agentci._util.text import quick_json, truncate
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.recordings.telemetry.json_input import mended

EXAMPLE: Final = '{"score": 1.0}'
WAY_OUT: Final = "print the result alone on stdout and logs on stderr"

MAX_SHOWN: Final = 80
# An opening brace is looked behind for the result no more often than this.
MAX_BRACES: Final = 50

_KINDS: Final = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def parse_output(stdout: bytes) -> JsonObject:
    """Read the JSON object that is all of ``stdout``, white space around it aside.

    Raises:
        EvaluatorError: it is something else; the message says what, and where it starts.
    """
    text = mended(decoded(stdout).strip())
    try:
        value = quick_json.decoded(text, _DECODER)
    except RecursionError:
        raise EvaluatorError("it is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        raise EvaluatorError(_flaw(text, error)) from None
    except ValueError:  # what Python says of it is for programmers
        raise EvaluatorError("it holds a whole number of thousands of digits") from None
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "a number")
        raise EvaluatorError(f"it is {kind}, not an object such as {EXAMPLE}")
    return value


def decoded(stdout: bytes) -> str:
    """The text, a byte order mark of UTF-8 aside, which Windows shells like to put there.

    Raises:
        EvaluatorError: it is none, as the end of a sentence about it.
    """
    if stdout.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in stdout[:4]:
        raise EvaluatorError("it is UTF-16 or UTF-32; print UTF-8")
    try:
        return stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
        raise EvaluatorError(f"byte {at + 1}, {stdout[at]:#x}, is not UTF-8; print UTF-8") from None


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def _refuse(constant: str) -> float:
    raise EvaluatorError(f"it holds {constant}, which JSON has no number for; use null")


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


def _flaw(text: str, error: ValueError) -> str:
    result = _result_in(text)
    if result is not None:
        return _around(text, *result)
    hint = "; that is Python's way of writing it, use json.dumps" if text[:2] == "{'" else ""
    return f"{error}, in {_shown(text)}{hint}; {WAY_OUT}, such as {EXAMPLE}"


def _around(text: str, start: int, end: int) -> str:
    before, after = text[:start].strip(), text[end:].strip()
    if before:
        return f"printed text before its JSON: {_shown(before)}; {WAY_OUT}"
    line = text.count("\n", 0, text.index(after, end)) + 1
    return f"printed text after its JSON, on line {line}: {_shown(after)}; {WAY_OUT}"


def _result_in(text: str) -> tuple[int, int] | None:
    """Where in ``text`` the result seems to stand, None where there is none."""
    decoder = json.JSONDecoder()
    for brace, _ in zip(re.finditer(r"\{", text), range(MAX_BRACES), strict=False):
        start = brace.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if start == 0:
                return None  # the result itself is broken, what is inside of it is not another
            continue
        if "score" in value:
            return start, end
    return None


def _shown(text: str) -> str:
    return repr(truncate.short(text.partition("\n")[0].strip(), MAX_SHOWN))
