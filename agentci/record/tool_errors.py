"""Recognises the texts that frameworks send to a model in place of the result of a failed tool."""

import re
from collections.abc import Mapping
from typing import Final

from agentci.model.values import Json

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


def is_tool_error(result: Json) -> bool:
    """Return whether the result of a tool is a framework's own text about a failure."""
    if isinstance(result, Mapping):
        return result.keys() == {"error"} and _is_pydantic_ai_error(result["error"])
    if not isinstance(result, str):
        return False
    text = result.strip()
    return any(pattern.fullmatch(text) for pattern in _ERROR_TEXTS.values())


def _is_pydantic_ai_error(error: Json) -> bool:
    if isinstance(error, str):
        return _UNKNOWN_TOOL.fullmatch(error) is not None
    return (
        isinstance(error, list)
        and bool(error)
        and all(isinstance(each, Mapping) and each.keys() >= _VALIDATION_KEYS for each in error)
    )
