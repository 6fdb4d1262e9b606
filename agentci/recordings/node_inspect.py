"""Parses objects as Node's ``util.inspect`` prints them: what its console exporters write.

Documented at https://nodejs.org/api/util.html#utilinspectobject-options. The text is not meant for
reading back: deep, long and many values are left out, which ``is_left_out`` finds.
"""

import re
import sys
from typing import Final, NoReturn

from agentci.model.values import Json
from agentci.recordings.telemetry.json_input import MAX_DEPTH

# What begins an object of an exporter for spans, log records or metrics.
NODE_OBJECT: Final = re.compile(r"\{\s*(?:resource: [{A-Z]|traceId: '|descriptor: \{)")

_SPACE: Final = re.compile(r"\s*")
# A class name, a reference or a prototype before an object or a list.
_PREFIX: Final = re.compile(
    r"(?:<ref \*\d+> )?"
    r"(?:(?:\[[A-Za-z]+(?:\(\d+\))?: null prototype\]|[A-Za-z_$][\w$]*(?:\(\d+\))?)"
    r"(?: \[[^\]\n]*\])? )?(?=[\[{])"
)
_KEY: Final = re.compile(r"[A-Za-z_$][\w$]*|\d+|\[[^\]\n]*\]")
_TEXT: Final = re.compile(
    r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`", re.DOTALL
)
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_CONTINUED: Final = re.compile(r"\s*\+\s*(?=['\"`])")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?n?(?![\w.])")
_WORDS: Final[dict[str, Json]] = {
    "true": True,
    "false": False,
    **dict.fromkeys(("null", "undefined", "NaN", "Infinity", "-Infinity")),
}
_WORD: Final = re.compile(r"-?[A-Za-z]+(?![\w:])")
_LEFT_OUT: Final = re.compile(
    r"\.\.\. \d+ more (?:items?|characters?)|\[(?:Circular[^\]]*|[A-Z]\w*)\]|<\d+ empty items?>"
)
_SURROGATES: Final = range(0xD800, 0xE000)
_MAX_INTEGER_DIGITS: Final = 300


# Stands in a value for what was left out. A private character: no text has it.
_LEFT_OUT_MARK: Final = "\U000f0a0e"


class NodeTextError(ValueError):
    """A text that is not an object of ``util.inspect``.

    Attributes:
        position: where in the text.
    """

    def __init__(self, message: str, position: int) -> None:
        self.position = position
        super().__init__(message)


def parse_node_object(text: str, start: int) -> tuple[Json, int]:
    """Return the object that starts at a position, and the position after it.

    Raises:
        NodeTextError: if it is cut off or nested too deeply.
    """
    parser = _InspectParser(text, start)
    return parser.read_value(0), parser.position


def is_left_out(value: Json) -> bool:
    """Return whether a parsed value is not complete."""
    if isinstance(value, list):
        return any(map(is_left_out, value))
    return isinstance(value, str) and _LEFT_OUT_MARK in value


class _InspectParser:
    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def read_value(self, depth: int) -> Json:
        if depth > MAX_DEPTH:
            self._fail("nested too deeply")
        self._skip(_SPACE)
        if self._skip(_LEFT_OUT):
            return _LEFT_OUT_MARK
        self._skip(_PREFIX)
        opening = self.text[self.position : self.position + 1]
        if opening == "{":
            return self._read_object(depth)
        if opening == "[":
            return self._read_list(depth)
        return self._read_text() if opening and opening in "'\"`" else self._read_word()

    def _read_object(self, depth: int) -> Json:
        found: dict[str, Json] = {}
        self.position += 1
        while not self._takes("}"):
            key = self._read_key()
            self._expect(":")
            found[key] = self.read_value(depth + 1)
            if not self._takes(","):
                self._expect("}")
                break
        return found

    def _read_list(self, depth: int) -> Json:
        found: list[Json] = []
        self.position += 1
        while not self._takes("]"):
            found.append(self.read_value(depth + 1))
            if not self._takes(","):
                self._expect("]")
                break
        return found

    def _read_key(self) -> str:
        self._skip(_SPACE)
        if (found := _KEY.match(self.text, self.position)) is None:
            return self._read_text()
        self.position = found.end()
        return found[0]

    def _read_text(self) -> str:
        parts: list[str] = []
        while True:
            found = _TEXT.match(self.text, self.position)
            if found is None:
                self._fail("expecting a value")
            parts.append(_ESCAPE.sub(_unescape, found[found.lastindex or 1]))
            self.position = found.end()
            if not self._skip(_CONTINUED):
                break
        if self._skip(_LEFT_OUT):
            parts.append(_LEFT_OUT_MARK)
        return "".join(parts)

    def _read_word(self) -> Json:
        for pattern in (_NUMBER, _WORD):
            if (found := pattern.match(self.text, self.position)) is not None:
                break
        else:
            self._fail("expecting a value")
        word = found[0]
        if pattern is _WORD and word not in _WORDS:
            self._fail("expecting a value")
        self.position = found.end()
        return _WORDS[word] if pattern is _WORD else _parse_number(word)

    def _takes(self, sign: str) -> bool:
        self._skip(_SPACE)
        if not self.text.startswith(sign, self.position):
            return False
        self.position += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            self._fail(f"expecting `{sign}`")

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self.text, self.position)
        if found is None or found.end() == self.position:
            return False
        self.position = found.end()
        return True

    def _fail(self, message: str) -> NoReturn:
        raise NodeTextError(message, self.position)


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _ESCAPED.get(found[4], found[4])
    number = int(code, 16)
    # Half of a surrogate pair is no text.
    return "\ufffd" if number in _SURROGATES or number > sys.maxunicode else chr(number)


def _parse_number(word: str) -> Json:
    digits = word.removesuffix("n")
    if digits.lstrip("-").isdigit():
        return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else None
    number = float(digits)
    return number if number - number == 0 else None
