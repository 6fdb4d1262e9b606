"""Output of evaluator programs: the JSON result they print, and messages about failed runs."""

import codecs
import json
import re
import signal
from contextlib import suppress
from typing import Final

from agentci._util.text import truncate
from agentci._util.text.json_text import StrictJsonError, decode_strict_json, describe_json_error
from agentci.errors import EvaluatorError
from agentci.model.requests import ProgramOutput
from agentci.model.values import JsonObject
from agentci.recordings.telemetry.json_input import replace_lone_surrogates

NO_NETWORK: Final = "\n(the sandbox has no network access; to allow it, set `network: true`)"
FILES_RESTRICTED: Final = (
    "\n(the sandbox allows writing only to TMPDIR, and reading only the workspace, the program's"
    " folder and system files)"
)
FILES_RESTRICTED_IN_IMAGE: Final = (
    "\n(the container allows writing only to /tmp, and files there cannot be executed)"
)
MISSING_IN_IMAGE: Final = (
    "\n(the container has only the image with its packages and a copy of the program's folder)"
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
    log = stderr.lower()
    if not network and any(each in log for each in NETWORK_ERRORS):
        return NO_NETWORK
    if any(each in log for each in PERMISSION_ERRORS):
        return FILES_RESTRICTED_IN_IMAGE if in_image else FILES_RESTRICTED
    return MISSING_IN_IMAGE if in_image and any(each in log for each in NOT_FOUND_ERRORS) else ""


MAX_LOG_LINES: Final = 20
MAX_LOG_CHARACTERS: Final = 2_000
SDK_MODULE: Final = "agentevals_evaluator_sdk"


def describe_exit(
    response: ProgramOutput, *, network: bool, in_image: bool, sandboxed: bool = True
) -> str:
    """Describe the exit of a program with an exit code other than 0, with a hint.

    Args:
        network: whether it had network access.
        in_image: whether it ran in an image.
        sandboxed: whether it ran in a sandbox.
    """
    how = f"exited with code {response.exit_code}"
    if response.exit_code < 0:
        how = f"was killed by {_format_signal(-response.exit_code)}"
    log = format_log_tail(response.stderr)
    hint = (
        format_sandbox_hint(response.stderr, network=network, in_image=in_image)
        if sandboxed
        else ""
    )
    return f"{how}{': ' if log else ''}{log}{_explain_exit_code(response, in_image=in_image)}{hint}"


def describe_missing_output(response: ProgramOutput, example: str) -> str:
    """Describe a program that printed nothing, with an example of a result."""
    log = format_log_tail(response.stderr)
    stderr = f"\nstderr:\n{log}" if log else ""
    return f"printed nothing on stdout; print a result such as {example}{stderr}"


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
            f"\n(install {SDK_MODULE.replace('_', '-')} in agentci's environment; the action's"
            " image includes it)"
        )
    if response.exit_code == -signal.SIGKILL:
        return " (possible cause: out of memory)"
    if response.exit_code == 127:  # noqa: PLR2004 (the convention of shells)
        return " (127 usually means: command not found)"
    with suppress(ValueError):
        # Shells and container engines report signal N as 128 + N.
        received = signal.Signals(response.exit_code - 128)
        return f" ({response.exit_code} usually means: signal {received.value}, {received.name})"
    return ""


EXAMPLE_RESULT: Final = '{"score": 1.0}'
OUTPUT_HINT: Final = "print only the result on stdout, and logs on stderr"

MAX_EXCERPT: Final = 80
# Limits how many opening braces are tried as the start of the result.
MAX_BRACES: Final = 50

_TYPE_NAMES: Final = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def parse_output(stdout: bytes) -> JsonObject:
    """Parse ``stdout`` as one JSON object, ignoring surrounding white space.

    An object with a key twice is refused: text of the agent in a result that was put together
    without a JSON library could otherwise set the score.

    Raises:
        EvaluatorError: if it is anything else; the message completes "printed an invalid result:".
    """
    text = replace_lone_surrogates(decode_output(stdout).strip())
    try:
        value = decode_strict_json(text)
    except json.JSONDecodeError as error:
        raise EvaluatorError(_describe_json_error(text, error)) from None
    except StrictJsonError as error:
        raise EvaluatorError(str(error)) from None
    if not isinstance(value, dict):
        kind = _TYPE_NAMES.get(type(value), "a number")
        raise EvaluatorError(f"found {kind}; expected an object such as {EXAMPLE_RESULT}")
    return value


def decode_output(stdout: bytes) -> str:
    """Decode UTF-8 text, dropping a byte order mark, which Windows shells often write.

    Raises:
        EvaluatorError: if it is not UTF-8.
    """
    if stdout.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in stdout[:4]:
        raise EvaluatorError("the encoding is UTF-16 or UTF-32; print UTF-8")
    try:
        return stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
        message = f"byte {at + 1} ({stdout[at]:#x}) is not valid UTF-8; print UTF-8"
        raise EvaluatorError(message) from None


def _describe_json_error(text: str, error: ValueError) -> str:
    result = _find_result(text)
    if result is not None:
        return _describe_text_around(text, *result)
    hint = "; this is Python syntax, use `json.dumps`" if text[:2] == "{'" else ""
    what = f"{describe_json_error(error)} in {_format_excerpt(text)}"
    return f"{what}{hint}; {OUTPUT_HINT}, such as {EXAMPLE_RESULT}"


def _describe_text_around(text: str, start: int, end: int) -> str:
    before, after = text[:start].strip(), text[end:].strip()
    if before:
        return f"text before the JSON: {_format_excerpt(before)}; {OUTPUT_HINT}"
    line = text.count("\n", 0, text.index(after, end)) + 1
    return f"text after the JSON on line {line}: {_format_excerpt(after)}; {OUTPUT_HINT}"


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
