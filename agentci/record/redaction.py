"""Keeps keys out of recordings: those of the environment, of headers, and of known shapes."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

from agentci._util.text.secrets import HIDDEN, REMOVED_KEY, Redactor
from agentci.errors import InputError

T = TypeVar("T")

MIN_KEY_CHARACTERS: Final = 8
_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT)\Z", re.IGNORECASE
)
# Keys of OpenAI and Anthropic, Google, GitHub, AWS and Slack.
_KEY_SHAPES: Final = (
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
)
_KEY: Final = re.compile("|".join(_KEY_SHAPES))
_KEY_HEADERS: Final = frozenset(
    {"authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"}
)
_SCHEME: Final = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)


class RecordingRedactor:
    """Removes keys from what is written.

    Args:
        known: the secrets of this run; keys that are found are added to them.
        patterns: regular expressions of the user for further text to remove.

    Raises:
        InputError: a pattern is not a regular expression.
    """

    def __init__(self, known: Redactor, patterns: Sequence[str] = ()) -> None:
        self._known = known
        for pattern in patterns:
            _check_pattern(pattern)
        self._patterns = tuple(map(re.compile, patterns))

    def learn_variables(self, environ: Mapping[str, str]) -> None:
        """Add the values of variables whose names mark them as keys."""
        for name, value in environ.items():
            if _SECRET_NAME.search(name):
                self._learn(value)

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Add the keys in the headers of a request."""
        for name, value in headers.items():
            if name.lower() in _KEY_HEADERS:
                self._learn(_SCHEME.sub("", value, count=1))

    def _learn(self, value: str) -> None:
        if len(value.strip()) >= MIN_KEY_CHARACTERS:
            self._known.add(value)

    def redact(self, value: T) -> T:
        """Return a JSON value with ``REMOVED_KEY`` for keys, and without what the user named."""
        return cast("T", self._redact_patterns(self._known.redact_value(value, REMOVED_KEY)))

    def _redact_patterns(self, value: object) -> object:
        match value:
            case str():
                return self._redact_text(value)
            case Mapping():
                return {
                    self._redact_text(name): self._redact_patterns(each)
                    for name, each in value.items()
                }
            case list() | tuple():
                return [self._redact_patterns(each) for each in value]
            case _:
                return value

    def _redact_text(self, text: str) -> str:
        text = _KEY.sub(REMOVED_KEY, text)
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text


def _check_pattern(pattern: str) -> None:
    try:
        is_empty = re.compile(pattern).match("") is not None
    except re.error as error:
        message = f"--redact `{pattern}` is not a regular expression: {error}"
        raise InputError.from_message(message) from None
    if is_empty:
        message = f"--redact `{pattern}` matches the empty text"
        raise InputError.from_message(message, hint="write what it must contain")
