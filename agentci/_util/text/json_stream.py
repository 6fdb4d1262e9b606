"""Reads one large JSON object with only a part of its text in memory."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from agentci._util.text.json_document import BLANKS, STRICT_DECODER, has_lone_surrogate
from agentci.model.values import Json

_NUMBER_CHARACTERS: Final = re.compile(r"[-+.eE0-9]*")
_SURROGATES: Final = ("\\ud", "\\uD")


def read_large_object(
    chunks: Iterable[bytes], arrays: Mapping[str, Callable[[Json], object]]
) -> dict[str, Json]:
    """Read an object in UTF-8 as strictly as ``read_json``.

    Args:
        arrays: called with each item of the top-level arrays of these names, in file order; an
            array is then empty in the result.

    Raises:
        ValueError: the text is not such an object; ``read_json`` says why.
        RecursionError: it is nested too deeply.
    """
    text = _Text(chunks)
    members: dict[str, Json] = {}
    for key in text.iterate_items("{", "}"):
        if not isinstance(key, str) or key in members or text.next_character() != ":":
            raise ValueError
        text.skip()
        if key in arrays and text.next_character() == "[":
            members[key] = ()
            for item in text.iterate_items("[", "]"):
                arrays[key](item)
        else:
            members[key] = text.read_value()
    if text.next_character():
        raise ValueError
    return members


class _Text:
    """The text of a file, of which a window is in memory, and a position in it."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = _decode_chunks(chunks)
        self._window = ""
        self._position = 0

    def next_character(self) -> str:
        """Skip blanks and return the character there; empty at the end."""
        while True:
            blanks = BLANKS.match(self._window, self._position)
            self._position = blanks.end() if blanks else self._position
            if self._position < len(self._window):
                return self._window[self._position]
            if not self._extend():
                return ""

    def skip(self) -> None:
        """Skip one character."""
        self._position += 1

    def iterate_items(self, opening: str, closing: str) -> Iterator[Json]:
        """Yield the items of an array, or the keys of an object, whose values the caller reads."""
        if self.next_character() != opening:
            raise ValueError
        self.skip()
        if self.next_character() != closing:
            yield self.read_value()
            while self.next_character() == ",":
                self.skip()
                yield self.read_value()
        if self.next_character() != closing:
            raise ValueError
        self.skip()

    def read_value(self) -> Json:
        """Read the value at the position, which the window is extended for."""
        self.next_character()
        while True:
            value: Json
            try:
                value, end = STRICT_DECODER.raw_decode(self._window, self._position)
            except ValueError:
                if not self._extend():
                    raise
                continue
            # A number may go on in the next chunk: "1." and "1e-" are read as 1.
            may_go_on = isinstance(value, int | float) and self._is_number_at_end(end)
            if may_go_on and self._extend():
                continue
            start, self._position = self._position, end
            has_escape = any(self._window.find(each, start, end) >= 0 for each in _SURROGATES)
            if has_escape and has_lone_surrogate(self._window[start:end]):
                raise ValueError
            return value

    def _is_number_at_end(self, position: int) -> bool:
        rest = _NUMBER_CHARACTERS.match(self._window, position)
        return rest is not None and rest.end() == len(self._window)

    def _extend(self) -> bool:
        """Double the rest of the window, so that a long value is parsed a few times only."""
        rest = self._window[self._position :]
        parts, size = [rest], 0
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size and size >= len(rest):
                break
        self._window, self._position = "".join(parts), 0
        return size > 0


def _decode_chunks(chunks: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)
