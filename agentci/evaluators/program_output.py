"""Output of evaluator programs: the JSON result they print, and messages about failed runs."""

import codecs
import json
import math
import re
import signal
from contextlib import suppress
from typing import Final

from agentci._util.text import json_text, truncate
from agentci.errors import EvaluatorError
from agentci.model.json import JsonObject
from agentci.model.requests import ProgramOutput
from agentci.recordings.telemetry.json_input import replace_lone_surrogates

NO_NETWORK: Final = "\n(it has no network: `network: true` in its entry gives it one)"
FILES_RESTRICTED: Final = (
    "\n(it may write to its TMPDIR alone, and read no more than the workspace, its own folder and"
    " the system)"
)
FILES_RESTRICTED_IN_IMAGE: Final = (
    "\n(in its container it may write to /tmp alone, and run nothing there)"
)
MISSING_IN_IMAGE: Final = (
    "\n(in its container there are its image, with the packages of that, and a copy of its own"
    " folder, and no more)"
)

# Messages of Python, Node.js and system tools, in lower case.
NETWORK_ERRORS: Final = (
    "name resolution", "getaddrinfo", "eai_again", "could not resolve", "urlopen error",
    "connectionerror", "connecterror", "socket.py", "fetch failed",
)  # fmt: skip
PERMISSION_ERRORS: Final = ("permission denied", "eacces", "read-only file system")
NOT_FOUND_ERRORS: Final = (
    "no such file or directory", "enoent", "no module named", "cannot find module",
    "cannot find package",
)  # fmt: skip


def format_sandbox_hint(stderr: str, *, network: bool, in_image: bool) -> str:
    """Return a hint if ``stderr`` suggests that the sandbox made a program fail, else ""."""
    said = stderr.lower()
    if not network and any(words in said for words in NETWORK_ERRORS):
        return NO_NETWORK
    if any(words in said for words in PERMISSION_ERRORS):
        return FILES_RESTRICTED_IN_IMAGE if in_image else FILES_RESTRICTED
    return MISSING_IN_IMAGE if in_image and any(words in said for words in NOT_FOUND_ERRORS) else ""


MAX_LOG_LINES: Final = 20
MAX_LOG_CHARACTERS: Final = 2_000
SDK_MODULE: Final = "agentevals_evaluator_sdk"


def describe_exit(
    response: ProgramOutput, *, network: bool, in_image: bool, jailed: bool = True
) -> str:
    """Describe the exit of a program with an exit code other than 0, with a hint.

    Args:
        network: whether it had network access.
        in_image: whether it ran in an image.
        jailed: whether it ran in a sandbox.
    """
    how = f"exited with code {response.exit_code}"
    if response.exit_code < 0:
        how = f"was killed by {_format_signal(-response.exit_code)}"
    said = format_log_tail(response.stderr)
    hint = (
        format_sandbox_hint(response.stderr, network=network, in_image=in_image) if jailed else ""
    )
    return (
        f"{how}{': ' if said else ''}{said}{_explain_exit_code(response, in_image=in_image)}{hint}"
    )


def describe_missing_output(response: ProgramOutput, example: str) -> str:
    """Describe a program that printed nothing, with an example of a result."""
    said = format_log_tail(response.stderr)
    log = f"\nEvaluator stderr:\n{said}" if said else ""
    return f"produced no output on stdout; print a result such as {example}{log}"


def format_log_tail(log: str) -> str:
    """Return the end of a program's stderr."""
    return truncate.end("\n".join(log.strip().splitlines()[-MAX_LOG_LINES:]), MAX_LOG_CHARACTERS)


def _format_signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _explain_exit_code(response: ProgramOutput, *, in_image: bool) -> str:
    if not in_image and f"No module named '{SDK_MODULE}'" in response.stderr:
        return (
            f"\n(install {SDK_MODULE.replace('_', '-')} beside agentci; the action's image has it)"
        )
    if response.exit_code == -signal.SIGKILL:
        return " (the machine may have run out of memory)"
    if response.exit_code == 127:  # noqa: PLR2004 (every shell's word for it)
        return " (127: a command that it calls is not there)"
    with suppress(ValueError):
        # Shells and container engines report signal N as 128 + N.
        passed_on = signal.Signals(response.exit_code - 128)
        return f" ({response.exit_code}: as after signal {passed_on.value}, {passed_on.name})"
    return ""


EXAMPLE_RESULT: Final = '{"score": 1.0}'
OUTPUT_HINT: Final = "print the result alone on stdout and logs on stderr"

MAX_EXCERPT: Final = 80
# Limits how many opening braces are tried as the start of the result.
MAX_BRACES: Final = 50

_TYPE_NAMES: Final = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def parse_output(stdout: bytes) -> JsonObject:
    """Parse ``stdout`` as one JSON object, ignoring surrounding white space.

    Raises:
        EvaluatorError: if it is anything else; the message names what was found and where it
            starts.
    """
    text = replace_lone_surrogates(decode_output(stdout).strip())
    try:
        value = json_text.decode_json(text, _DECODER)
    except RecursionError:
        raise EvaluatorError("it is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        raise EvaluatorError(_describe_json_error(text, error)) from None
    except ValueError:  # Python's message is not meant for users
        raise EvaluatorError("it holds a whole number of thousands of digits") from None
    if not isinstance(value, dict):
        kind = _TYPE_NAMES.get(type(value), "a number")
        raise EvaluatorError(f"it is {kind}, not an object such as {EXAMPLE_RESULT}")
    return value


def decode_output(stdout: bytes) -> str:
    """Decode UTF-8 text, dropping a byte order mark, which Windows shells often write.

    Raises:
        EvaluatorError: if it is not UTF-8; the message completes a sentence about the output.
    """
    if stdout.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in stdout[:4]:
        raise EvaluatorError("it is UTF-16 or UTF-32; print UTF-8")
    try:
        return stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
        raise EvaluatorError(f"byte {at + 1}, {stdout[at]:#x}, is not UTF-8; print UTF-8") from None


def _parse_finite_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _reject_constant(digits)


def _reject_constant(constant: str) -> float:
    raise EvaluatorError(f"it holds {constant}, which JSON has no number for; use null")


_DECODER: Final = json.JSONDecoder(parse_float=_parse_finite_float, parse_constant=_reject_constant)


def _describe_json_error(text: str, error: ValueError) -> str:
    result = _find_result(text)
    if result is not None:
        return _describe_text_around(text, *result)
    hint = "; that is Python's way of writing it, use json.dumps" if text[:2] == "{'" else ""
    return f"{error}, in {_format_excerpt(text)}{hint}; {OUTPUT_HINT}, such as {EXAMPLE_RESULT}"


def _describe_text_around(text: str, start: int, end: int) -> str:
    before, after = text[:start].strip(), text[end:].strip()
    if before:
        return f"printed text before its JSON: {_format_excerpt(before)}; {OUTPUT_HINT}"
    line = text.count("\n", 0, text.index(after, end)) + 1
    return f"printed text after its JSON, on line {line}: {_format_excerpt(after)}; {OUTPUT_HINT}"


def _find_result(text: str) -> tuple[int, int] | None:
    """Find the start and end of a probable result in ``text``; None if there is none."""
    decoder = json.JSONDecoder()
    for brace, _ in zip(re.finditer(r"\{", text), range(MAX_BRACES), strict=False):
        start = brace.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if start == 0:
                return None  # the result itself is broken; an object inside it is not the result
            continue
        if "score" in value:
            return start, end
    return None


def _format_excerpt(text: str) -> str:
    return repr(truncate.short(text.partition("\n")[0].strip(), MAX_EXCERPT))
