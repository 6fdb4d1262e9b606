"""Removes secrets from text."""

import json
import re
from binascii import b2a_base64
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, ForwardRef, Literal, TypeVar, cast, get_args, get_origin
from urllib.parse import quote

import msgspec
from msgspec import Struct

from agentci._util.text.escape import remove_control
from agentci._util.text.truncate import ELLIPSIS

HIDDEN: Final = "***"
# What `agentci record` writes for a key, so that `no_secrets` still finds that there was one.
REMOVED_KEY: Final = "[key removed]"
# Shorter values, and shorter lines of a value, are common words and numbers.
MIN_SECRET_CHARACTERS: Final = 6
# Characters of a line of Base64 in mail and from `base64`.
BASE64_LINE: Final = 76
# How many levels of JSON may surround JSON with a secret, besides the JSON that programs print.
NESTED_JSON: Final = 2
# A shorter part of a truncated secret stays readable.
MIN_PART_CHARACTERS: Final = 4

T = TypeVar("T")


class Redactor:
    """The secrets of a run, added as it reads them; safe to share between threads.

    A value shorter than ``MIN_SECRET_CHARACTERS`` is not a secret: it is a common word or a number.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.secrets: tuple[str, ...] = ()
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Redact ``value`` from now on."""
        secret = value.strip()
        if len(secret) >= MIN_SECRET_CHARACTERS and secret not in self.secrets:
            self.secrets = (*self.secrets, secret)

    def redact(self, text: str) -> str:
        """Replace each secret in ``text``; see the function."""
        return redact(text, self.secrets) if self.secrets else text

    def redact_value(self, value: T, mark: str = HIDDEN) -> T:
        """A copy of structs, sequences and mappings with ``mark`` for the secrets in their texts.

        Fields of structs that can only have certain values keep them, as do digests.
        """
        return cast("T", _redact_any(value, self.secrets, mark)) if self.secrets else value


def redact(text: str, secrets: tuple[str, ...], mark: str = HIDDEN) -> str:
    """Write ``mark`` for each of ``secrets`` in ``text``; none of them may be empty.

    Finds a secret as it is, line by line, truncated with an ellipsis, and as JSON, Python, URLs,
    XML, hexadecimal digits and Base64 write it, also as a part of a longer Base64 text, and with
    control characters inside. Others are not found.
    """
    if not secrets:
        return text
    spellings = _list_spellings(secrets)
    text = spellings.pattern.sub(mark, text)
    # Reports remove control characters, which may stand between the characters of a secret.
    shown = remove_control(text)
    if shown != text and spellings.pattern.search(shown):
        text = spellings.pattern.sub(mark, shown)
    if ELLIPSIS not in text:
        return text
    first, *others = text.split(ELLIPSIS)
    forms, backwards = spellings.forms, spellings.backwards
    begun = [*(_redact_truncated(each, forms, mark) for each in (first, *others[:-1])), others[-1]]
    ended = (_redact_truncated(each[::-1], backwards, mark[::-1])[::-1] for each in begun[1:])
    return ELLIPSIS.join([begun[0], *ended])


def _redact_any(value: object, secrets: tuple[str, ...], mark: str) -> object:
    result = value
    match value:
        case str():
            result = redact(value, secrets, mark)
        case Struct():
            texts = {name: getattr(value, name) for name in _list_text_fields(type(value))}
            changes = {name: _redact_any(old, secrets, mark) for name, old in texts.items() if old}
            result = msgspec.structs.replace(value, **changes)
        case Mapping():
            result = {
                _redact_any(name, secrets, mark): _redact_any(each, secrets, mark)
                for name, each in value.items()
            }
        case list() | tuple():
            result = type(value)(_redact_any(each, secrets, mark) for each in value)
        case int() | float() if str(value) in secrets and not isinstance(value, bool):
            result = mark
        case _:
            pass
    return result


def _redact_truncated(text: str, forms: tuple[str, ...], mark: str) -> str:
    """Replace the beginning of a secret at the end of ``text``."""
    last = text[-MIN_PART_CHARACTERS:]
    if len(last) < MIN_PART_CHARACTERS:
        return text
    for form in forms:
        at = form.rfind(last)
        while at >= 0:
            begun = form[: at + MIN_PART_CHARACTERS]
            if text.endswith(begun):
                return text.removesuffix(begun) + mark
            at = form.rfind(last, 0, at + MIN_PART_CHARACTERS - 1)
    return text


# Fields that join parts of a report: digests, and numbers as JSON. None of them can show a secret.
_LINKING_FIELDS: Final = {
    "CaseSummary": ("performance",),
    "CheckResult": ("id", "fingerprint"),
    "Comparison": ("commit",),
    "Provenance": ("commit", "digest"),
    "Report": ("commit", "shard_info", "evaluator_calls", "contents", "baseline"),
}


@lru_cache
def _list_text_fields(kind: type[Struct]) -> tuple[str, ...]:
    """List the fields of a struct that can hold any text, also in parts."""
    linking = _LINKING_FIELDS.get(kind.__name__, ())
    hints = ChainMap(*(vars(each).get("__annotations__", {}) for each in kind.__mro__))
    return tuple(
        name
        for name in kind.__struct_fields__
        if name not in linking and _can_hold_text(hints[name])
    )


def _can_hold_text(hint: object) -> bool:
    if hint is Any:
        return True
    if isinstance(hint, type) and not get_args(hint):
        return issubclass(hint, str | Struct)
    # A name stands for a type of another module, or for the JSON type in itself.
    return isinstance(hint, str | ForwardRef) or (
        get_origin(hint) is not Literal and any(map(_can_hold_text, get_args(hint)))
    )


class _Spellings(Struct, frozen=True):
    """All spellings of some secrets, longest first, as shorter ones may be parts of others.

    Attributes:
        backwards: each spelling reversed.
    """

    forms: tuple[str, ...]
    backwards: tuple[str, ...]
    pattern: re.Pattern[str]


@lru_cache(maxsize=16)
def _list_spellings(secrets: tuple[str, ...]) -> _Spellings:
    spelled = {form for secret in secrets for form in _iterate_spellings(secret)}
    # Programs print JSON, which may contain any of them.
    spelled |= _escape_as_json(spelled)
    # A short form would be found in ordinary text.
    found = {form for form in spelled if form in secrets or len(form) >= MIN_SECRET_CHARACTERS}
    forms = tuple(sorted(found, key=lambda form: (-len(form), form)))
    return _Spellings(forms, tuple(form[::-1] for form in forms), _compile_pattern(forms))


def _compile_pattern(forms: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern of texts, in two levels: most positions are settled by one character."""
    by_start: dict[str, list[str]] = {}
    for form in forms:
        by_start.setdefault(form[0], []).append(re.escape(form[1:]))
    return re.compile(
        "|".join(f"{re.escape(start)}(?:{'|'.join(ends)})" for start, ends in by_start.items())
    )


def _iterate_spellings(secret: str) -> Iterator[str]:
    yield secret
    written = _escape_as_json([secret])
    yield from written
    # JSON in JSON, and JSON as PHP and Go write it.
    nested = written
    for _ in range(NESTED_JSON):
        nested = _escape_as_json(nested)
        yield from nested
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    yield from (_escape_as_go(each) for each in written)
    # Python uses double quotes only for text with single but no double quotes, else it escapes.
    python = repr(f"{secret}'\"")[1:-4]
    yield from (python, python.replace("\\'", "'"))
    yield secret.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    text = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield text
    for double in ("&quot;", "&#34;"):
        attribute = text.replace('"', double)
        yield from (attribute.replace("'", each) for each in ("'", "&#x27;", "&#39;", "&apos;"))
    # Workflow commands of GitHub Actions, and the file names in them.
    command = secret.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    yield from (command, command.replace(":", "%3A").replace(",", "%2C"))
    yield from _iterate_url_spellings(secret)
    data = secret.encode("utf-8", "surrogateescape")
    yield from (data.hex(), data.hex().upper())
    yield from _iterate_base64_spellings(data)
    for line in map(str.strip, secret.splitlines()):
        if len(line) >= MIN_SECRET_CHARACTERS:
            yield line


def _escape_as_json(texts: Iterable[str]) -> set[str]:
    """Return texts as JSON writes them in quotes, with and without other characters than ASCII."""
    return {json.dumps(each, ensure_ascii=plain)[1:-1] for each in texts for plain in (True, False)}


def _escape_as_go(text: str) -> str:
    return text.translate({ord(each): f"\\u{ord(each):04x}" for each in "<>&"})


def _iterate_url_spellings(secret: str) -> Iterator[str]:
    for safe in ("", "/", "!'()*~", "/!'()*~"):
        upper = quote(secret, safe=safe, errors="backslashreplace")
        lower = re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), upper)
        for encoded in (upper, lower):
            yield from (encoded, encoded.replace("%20", "+"))
    data = secret.encode("utf-8", "surrogateescape")
    for digits in (data.hex(), data.hex().upper()):  # each character, also where none needs it
        yield "".join(f"%{digits[at : at + 2]}" for at in range(0, len(digits), 2))


def _iterate_base64_spellings(data: bytes) -> Iterator[str]:
    """Spell ``data`` in Base64, alone and at each position that it can have in a longer text."""
    whole = _encode_base64(data)
    # A character at the start or the end that also depends on other bytes is not part of it.
    shifted = (
        _encode_base64(bytes(shift) + data)[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
        for shift in range(3)
    )
    # `base64` and mail wrap lines.
    lines = (whole[start : start + BASE64_LINE] for start in range(0, len(whole), BASE64_LINE))
    wrapped = (each for each in lines if len(each) >= MIN_SECRET_CHARACTERS)
    for each in (whole, whole.rstrip(b"="), *shifted, *wrapped):
        yield from (each.decode(), each.translate(_URL_SAFE).decode())


def _encode_base64(data: bytes) -> bytes:
    return b2a_base64(data, newline=False)


_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
