"""Recognises errors in the results of tools: those of frameworks, and what looks like an error."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from agentci._util.text import escape, json_text, truncate
from agentci.model.values import Json, JsonObject

# By framework, what its fixed texts are, as a whole. A tool may return other words of failure as
# its result, which only the tool can tell.
_ERROR_TEXTS: Final[Mapping[str, re.Pattern[str]]] = {
    "OpenAI Agents SDK": re.compile(
        r"An error occurred while running the tool\. Please try again\.(?: Error: .*)?"
        r"|Tool '[^'\n]*' timed out after [0-9.e+-]+ seconds\.",
        re.DOTALL,
    ),
    "Pydantic AI 1": re.compile(r".*\n\nFix the errors and try again\.", re.DOTALL),
    "LangChain": re.compile(
        r"Error: \S+ is not a valid tool, try one of \[.*\]\."
        r"|Error: .*\n Please fix your mistakes\."
        r"|Error (?:executing|invoking) tool '[^'\n]*' with kwargs .* with error:\n.*",
        re.DOTALL,
    ),
}


# Pydantic AI 2 sends `{"error": ...}`, which tools return themselves, too, so that it counts only
# with this text about an unknown tool or with validation errors of arguments.
_UNKNOWN_TOOL: Final = re.compile(
    r"Unknown tool name: '.*'\. (?:Available tools: .*|No tools available\.)", re.DOTALL
)
_VALIDATION_KEYS: Final = frozenset({"type", "loc", "msg", "input"})
# What MCP and the Messages API call a result of a tool that failed.
_ERROR_FLAGS: Final = ("isError", "is_error")

# How tools of their own report errors: keys of an object with a value, flags that are false, states
# and statuses of HTTP, and how a text starts.
_ERROR_KEYS: Final = frozenset(
    ("error", "errors", "exception", "traceback", "stacktrace", "errormessage", "errorcode")
)
_SUCCESS_KEYS: Final = frozenset({"success", "ok", "succeeded"})
_STATUS_KEYS: Final = frozenset({"status", "statuscode", "httpstatus"})
_FAILED_STATES: Final = frozenset({"error", "failed", "failure"})
_HTTP_ERRORS: Final = range(400, 600)
_ERROR_START: Final = re.compile(
    r"(?:(?:fatal |unexpected |internal )?errors?|exception|failed|failure"
    r"|(?-i:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)))\b"
    r"(?: [^\s:]{1,40}){0,2}(?::(?!\s*(?:0|no|none|false|null)\s*(?:[,.;\n]|\Z))|\Z)"
    r"|error (?:executing|calling|invoking|while|in|during)\b|failed to\b|an error occurred"
    r"|Traceback \(most recent call last\)|Internal Server Error|Not Found\Z"
    r"|(?:HTTP(?:/[0-9.]+)? |status(?: code)?:? )?[45][0-9]{2}[ :]+(?:Bad (?:Request|Gateway)"
    r"|Unauthorized|Forbidden|Not Found|Conflict|Gone|Too Many|Internal|Service|Gateway|Client)\b",
    re.IGNORECASE,
)
# What contains the result of a tool, as its only member.
_WRAPPERS: Final = frozenset({"result", "output", "content", "response"})
MAX_WRAPPERS: Final = 4
# What the results of failed tools have their error in, from the outside to the inside, and the
# characters of it that are shown.
_TEXT_KEYS: Final = ("error", "message", "detail", "content", "text")
MAX_ERROR: Final = 160


def is_tool_error(result: Json) -> bool:
    """Return whether the result of a tool is a framework's or a protocol's own for a failure."""
    result = parse_result(result)
    if isinstance(result, Mapping):
        return _has_error_flag(result) or (
            result.keys() == {"error"} and _is_pydantic_ai_error(result["error"])
        )
    if not isinstance(result, str):
        return False
    text = result.strip()
    return any(pattern.fullmatch(text) for pattern in _ERROR_TEXTS.values())


def _has_error_flag(result: JsonObject) -> bool:
    """Return whether it is a result of MCP or an answer of JSON-RPC with an error."""
    is_rpc = result.get("jsonrpc") == "2.0" and isinstance(result.get("error"), Mapping)
    return is_rpc or any(result.get(each) is True for each in _ERROR_FLAGS)


def looks_like_error(result: Json) -> bool:
    """Return whether the result of a tool is, by its keys or first words, probably an error."""
    result = _unwrap(result)
    if isinstance(result, Mapping):
        return is_tool_error(result) or any(_is_error_member(*each) for each in result.items())
    return isinstance(result, str) and _ERROR_START.match(result.lstrip()) is not None


def format_error(output: Json) -> str:
    """Format the error in the result of a failed tool on one line; empty if it has none."""
    while not isinstance(output, str):
        if isinstance(output, Mapping):
            inner = next((output[key] for key in _TEXT_KEYS if _has_text(output.get(key))), None)
        else:
            inner = output[0] if isinstance(output, list | tuple) and len(output) == 1 else None
        if inner is None:
            output = json_text.dumps_readable(output) if _has_text(output) else ""
        else:
            output = inner
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    is_traceback = bool(lines) and lines[0].startswith("Traceback (")
    text = truncate.join_first_and_last(lines[-1:] if is_traceback else lines)
    return truncate.ends(escape.flatten_line(text), MAX_ERROR)


def _has_text(value: Json) -> bool:
    return bool(value) and value is not True


def is_empty_result(result: Json) -> bool:
    """Return whether the result of a tool says nothing."""
    if isinstance(result, str):
        return result.strip() in ("", "null", "None", "[]", "{}")
    return result is None or (isinstance(result, Mapping | list | tuple) and not result)


def parse_result(result: Json) -> Json:
    """Parse a result that is the text of a JSON object or list; else return it as it is."""
    if isinstance(result, str) and result.lstrip()[:1] in ("{", "["):
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            parsed: Json = msgspec.json.decode(result)
            return parsed
    return result


def _unwrap(result: Json) -> Json:
    """Return what a tool returned from the blocks and objects around it."""
    for _ in range(MAX_WRAPPERS):
        result = parse_result(result)
        if isinstance(result, list | tuple) and len(result) == 1:
            result = result[0]
        elif isinstance(result, Mapping) and len(result) == 1 and result.keys() <= _WRAPPERS:
            [result] = result.values()
        elif (
            isinstance(result, Mapping)
            and result.get("type") == "text"
            and isinstance(text := result.get("text"), str)
        ):
            result = text
        else:
            break
    return result


def _is_error_member(key: str, value: Json) -> bool:
    name = key.replace("_", "").replace("-", "").casefold()
    if name in _ERROR_KEYS:
        return bool(value)
    if name in _SUCCESS_KEYS:
        return value is False
    if name not in _STATUS_KEYS:
        return False
    if isinstance(value, str):
        return value.casefold() in _FAILED_STATES
    return isinstance(value, int) and value in _HTTP_ERRORS


def _is_pydantic_ai_error(error: Json) -> bool:
    if isinstance(error, str):
        return _UNKNOWN_TOOL.fullmatch(error) is not None
    return (
        isinstance(error, list)
        and bool(error)
        and all(isinstance(each, Mapping) and each.keys() >= _VALIDATION_KEYS for each in error)
    )
