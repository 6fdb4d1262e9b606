"""The content of a result file, decoded as far as it takes to recognise its tool."""

import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agentci._util.text import truncate
from agentci.recordings.telemetry.json_input import find_repeated_key
from agentci.result_files.row import make_result_error

T = TypeVar("T")

ContentKind: TypeAlias = Literal["json", "lines", "xml", "text"]
_UTF8_BOM: Final = b"\xef\xbb\xbf"
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_JSON_STARTS: Final = (b"{", b"[", b'"')
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_MAX_MESSAGE_CHARACTERS: Final = 200
_NOT_FINITE: Final = (b"NaN", b"Infinity")
_NOT_FINITE_HINT: Final = "NaN and Infinity are not JSON numbers; use null"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_TEXT: Final = msgspec.json.Decoder(str)
_ITEMS: Final = msgspec.json.Decoder(list[Raw])
_NESTING: Final = "JSON nested too deeply"
_ENCODING_HINT: Final = "save it as UTF-8"


class ResultContent(Struct, frozen=True, kw_only=True):
    """The content of one file.

    Attributes:
        file: as shown to the user.
        data: UTF-8 without a byte order mark.
        kind: ``text`` for everything that is neither JSON nor XML.
        members: of the only JSON object, or of the first line; empty without one.
    """

    file: str
    data: bytes
    kind: ContentKind
    members: Mapping[str, Raw] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Whether the object, or the first line, has all of these keys."""
        return all(name in self.members for name in names)

    def member(self, *path: str) -> Any:
        """Decode a member of the object or the first line, or of an object in it.

        None without it, and if it is not JSON.
        """
        if not path or path[0] not in self.members:
            return None
        value = _decode_or_none(self.members[path[0]])
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def decode(self, kind: type[T]) -> T:
        """Decode the whole file.

        Raises:
            InputError: it is not of that type.
        """
        return _decode(self.data, kind, self.file)

    def decode_lines(self, kind: type[T]) -> Iterator[tuple[int, T]]:
        """Decode each line; yields its number and value.

        Raises:
            InputError: a line is not of that type.
        """
        decoder = msgspec.json.Decoder(kind)
        for number, line in _iterate_lines(self.data):
            yield number, _decode(line, kind, self.file, decoder=decoder, line=number)

    def check_keys(self) -> None:
        """Check that no key appears twice in one object, as parsers differ in what they read.

        Raises:
            InputError: one does.
        """
        if self.kind == "json":
            check_unique_keys(self.data, self.file, 1)
        elif self.kind == "lines":
            for number, line in _iterate_lines(self.data):
                check_unique_keys(line, self.file, number)


def read_content(data: bytes, *, file: str) -> ResultContent:
    """Decode a file as far as it takes to recognise its tool.

    Raises:
        InputError: it is empty, not UTF-8, or JSON with an error.
    """
    data = data.removeprefix(_UTF8_BOM)
    if data.startswith(_UTF16_BOMS) or b"\0" in data[:4]:
        message = "the file is UTF-16 or binary, not UTF-8"
        raise make_result_error(file, message, hint=_ENCODING_HINT)
    start = data[:4096].lstrip()[:1]
    if not start and not data.strip():
        hint = "check that the evaluation ran"
        raise make_result_error(file, "the file is empty", hint=hint)
    check_utf8(data, file)
    if start == b"<":
        return ResultContent(file=file, data=data, kind="xml")
    if start not in _JSON_STARTS:
        return ResultContent(file=file, data=data, kind="text")
    return _read_json_content(data, file)


def _read_json_content(data: bytes, file: str) -> ResultContent:
    members = _decode_or_none(data, _MEMBERS)
    if members is not None:
        return ResultContent(file=file, data=data, kind="json", members=members)
    line = next(_iterate_lines(data))[1]
    if len(line) < len(data.strip()):
        members = _decode_or_none(line, _MEMBERS)
        if members is not None:
            return ResultContent(file=file, data=data, kind="lines", members=members)
    start = data.lstrip()[:1]
    if start == b"{":
        _decode(data, dict[str, Raw], file, decoder=_MEMBERS)
    if start == b"[":
        _decode(data, list[Raw], file, decoder=_ITEMS)
        return ResultContent(file=file, data=data, kind="json")
    # A JSON text that holds JSON, as older versions of ADK write it.
    inner = _decode(data, str, file, decoder=_TEXT)
    if inner.lstrip()[:1] != "{":
        raise make_result_error(file, "the file is a JSON text, not an object")
    return _read_json_content(inner.encode("utf-8", "replace"), file)


def check_utf8(data: bytes, file: str) -> None:
    """Check the encoding.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise make_result_error(file, "not UTF-8", hint=_ENCODING_HINT, line=line) from None


def _iterate_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    start, number = 0, 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start:end].strip()
        if line:
            yield number, line
        start = end + 1


def check_unique_keys(data: bytes, file: str, number: int) -> None:
    """Check that no key appears twice in one object of JSON that starts at line ``number``.

    Raises:
        InputError: one does, or the JSON is nested too deeply.
    """
    try:
        name = find_repeated_key(data.decode(), _decode_or_none(data))
    except JSONDecodeError:
        return  # the reader of the tool reports it
    except ValueError:
        raise make_result_error(file, _NESTING, line=number) from None
    if name is not None:
        message = f"the key `{truncate.short(name, 80)}` appears twice in one object"
        hint = "keep one of the two values"
        raise make_result_error(file, message, hint=hint, line=number)


def _decode_or_none(data: bytes | Raw, decoder: Any = None) -> Any:
    try:
        return msgspec.json.decode(data) if decoder is None else decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _decode(
    data: bytes,
    kind: type[T],
    file: str,
    *,
    decoder: Any = None,
    line: int = 1,
) -> T:
    """Decode JSON that starts at ``line``."""
    try:
        found: T = (decoder or msgspec.json.Decoder(kind)).decode(data)
    except msgspec.ValidationError as error:
        message = truncate.short(f"unexpected content: {error}", _MAX_MESSAGE_CHARACTERS)
        hint = "this version of the tool may not be supported"
        raise make_result_error(file, message, hint=hint, line=line) from None
    except msgspec.DecodeError as error:
        raise _make_json_error(error, data, file, line) from None
    except RecursionError:
        raise make_result_error(file, _NESTING, line=line) from None
    return found


def _make_json_error(error: msgspec.DecodeError, data: bytes, file: str, line: int) -> Exception:
    text = str(error)
    found = _BYTE.search(text)
    text = _BYTE.sub("", text).removeprefix("JSON is malformed: ").strip()
    column, hint = None, "the file may be truncated"
    if found:
        at = int(found[1])
        if data[at - 1 : at + 8].lstrip(b" :-").startswith(_NOT_FINITE):
            hint = _NOT_FINITE_HINT
        line += data.count(b"\n", 0, at)
        column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    message = f"invalid JSON: {text[:1].lower()}{text[1:]}"
    return make_result_error(file, message, hint=hint, line=line, column=column)
