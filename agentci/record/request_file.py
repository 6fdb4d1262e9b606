"""The requests and responses of a recording as files: one per case, with readable diffs.

A request that continues an earlier one has only what is new: ``continues`` is the number of the
earlier one, ``request`` the fields that differ (of the messages, only those added), and ``without``
the names of fields that it lacks. There are no headers, times or addresses.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from agentci._util.files import make_folder, remove_path, write_file_atomically
from agentci._util.text.json_document import JsonDocument, read_json
from agentci._util.workspace import ResolvedPath, Workspace
from agentci.errors import InputError
from agentci.model.values import Json, JsonObject, Place, replace
from agentci.record.apis.model_api import get_object, get_text
from agentci.record.exchanges import Exchange

FORMAT: Final = "agentci-requests"
VERSION: Final = 1
UNNAMED: Final = "run"
SUFFIX: Final = ".json"
# Limit for all requests of a file, in full: more than a long conversation has.
MAX_WHOLE_BYTES: Final = 1024**3
MAX_NAME: Final = 200
# More than people read of what a command prints.
MAX_PRINTED: Final = 64 * 1024
# Windows has no files of these names, whatever their suffix.
_RESERVED_NAMES: Final = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)
LIST_FIELDS: Final = ("messages", "input", "contents")
_HINT: Final = "restore the file, or record it again"
# Of an exchange, with the types of their values.
_FIELDS: Final[Mapping[str, type]] = {
    "method": str,
    "path": str,
    "request": Mapping,
    "response": Mapping,
}
# Lists of numbers, such as embeddings, on one line.
_NUMBERS: Final = re.compile(r"\[\n\s*(-?\d[\d.eE+-]*(?:,\n\s*-?\d[\d.eE+-]*)*)\n\s*\]")
_LINE_ENDS: Final = re.compile(r"\n\s*")


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """A request, and the response to it in a replay.

    Attributes:
        path: of the API, without the base URL.
        body: empty if the request has none.
    """

    method: str
    path: str
    body: JsonObject
    response: JsonObject


class RecordedRequests(Struct, frozen=True, kw_only=True):
    """The file of a case.

    Attributes:
        printed: what the command printed to stdout; None if that is not known.
    """

    requests: tuple[RecordedRequest, ...]
    printed: str | None = None


def make_file_name(case: str) -> str:
    """Return the file name of a case: unique, and allowed on all systems."""
    name = quote(case, safe=" ()+,=@") or UNNAMED
    if len(name) > MAX_NAME:
        digest = blake2b(case.encode("utf-8", "replace"), digest_size=8).hexdigest()
        name = f"{name[: MAX_NAME - len(digest) - 1]}-{digest}"
    if name.partition(".")[0].casefold() in _RESERVED_NAMES:
        name = f"%{ord(name[0]):02X}{name[1:]}"
    return f"{name}{SUFFIX}"


def select_requests(
    exchanges: Iterable[Exchange], redact: Callable[[JsonObject], JsonObject]
) -> tuple[RecordedRequest, ...]:
    """Return the requests with a complete response, in their order.

    Args:
        redact: removes keys.
    """
    return tuple(
        RecordedRequest(
            method=each.method,
            path=each.path,
            body=redact(each.body),
            response=redact(each.response),
        )
        for each in sorted(exchanges, key=lambda one: one.started)
        if not each.failed
    )


def format_requests(found: Sequence[RecordedRequest], printed: str | None = None) -> str:
    """Format the file of a case.

    Args:
        printed: what its command printed; left out if it is long.
    """
    listed: list[Json] = []
    for number, each in enumerate(found):
        base = _find_base(found[:number], each)
        entry: dict[str, Json] = {"method": each.method, "path": each.path}
        if base is None:
            entry["request"] = each.body
        else:
            entry |= {"continues": base, **_make_difference(found[base].body, each.body)}
        listed.append({**entry, "response": each.response})
    content: dict[str, Json] = {"format": FORMAT, "version": VERSION}
    if printed is not None and len(printed) <= MAX_PRINTED:
        content["printed"] = printed
    content["exchanges"] = listed
    text = json.dumps(content, indent=1, ensure_ascii=False)
    return _NUMBERS.sub(lambda found: f"[{_LINE_ENDS.sub(' ', found[1])}]", text) + "\n"


def _find_base(earlier: Sequence[RecordedRequest], request: RecordedRequest) -> int | None:
    """Return the number of the last request with whose messages this one's start."""
    field = _find_list_field(request.body)
    if field is None:
        return None
    own = request.body[field]
    for number in reversed(range(len(earlier))):
        before = earlier[number].body.get(field)
        if (
            isinstance(before, list)
            and isinstance(own, list)
            and before
            and earlier[number].path == request.path
            and own[: len(before)] == before
        ):
            return number
    return None


def _find_list_field(body: JsonObject) -> str | None:
    return next((name for name in LIST_FIELDS if isinstance(body.get(name), list)), None)


def _make_difference(before: JsonObject, body: JsonObject) -> dict[str, Json]:
    field = _find_list_field(body)
    changed = {k: v for k, v in body.items() if k not in before or before[k] != v}
    if field is not None:
        own, known = body[field], before[field]
        changed[field] = (
            own[len(known) :] if isinstance(own, list) and isinstance(known, list) else own
        )
    missing: list[Json] = [name for name in before if name not in body]
    return {"request": changed} | ({"without": missing} if missing else {})


def parse_requests(data: bytes, *, file: str) -> RecordedRequests:
    """Parse the file of a case.

    Raises:
        InputError: it is not such a file.
    """
    try:
        document = read_json(data, file=file)
    except InputError as error:
        raise InputError([replace(each, hint=_HINT) for each in error.problems]) from None
    content = document.value
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        message = f"not a file of recorded requests: `format` is not `{FORMAT}`"
        raise InputError.from_message(message, place=Place(file=file), hint=_HINT)
    if content.get("version") != VERSION:
        message = f"`version` is not {VERSION}"
        raise InputError.from_message(message, place=document.find_place(["version"]), hint=_HINT)
    found: list[RecordedRequest] = []
    sizes: list[int] = []
    whole = 0
    for number, entry in enumerate(_list_entries(document, content)):
        base = entry.get("continues")
        if base is not None and not (isinstance(base, int) and 0 <= base < number):
            place = document.find_place(["exchanges", number, "continues"])
            message = "`continues` is not the number of an earlier exchange"
            raise InputError.from_message(message, place=place, hint=_HINT)
        found.append(_parse_entry(entry, found[base].body if base is not None else {}))
        sizes.append(len(json.dumps(entry)) + (sizes[base] if base is not None else 0))
        whole += sizes[-1]
        if whole > MAX_WHOLE_BYTES:
            place = document.find_place(["exchanges", number])
            message = f"the requests are larger than {MAX_WHOLE_BYTES // 1024**2} MiB"
            hint = "each one counts with all that it continues; record fewer or shorter runs"
            raise InputError.from_message(message, place=place, hint=hint)
    printed = content.get("printed")
    return RecordedRequests(
        requests=tuple(found), printed=printed if isinstance(printed, str) else None
    )


def _list_entries(document: JsonDocument, content: JsonObject) -> Iterator[JsonObject]:
    """Yield the exchanges of a file.

    Raises:
        InputError: one lacks a field, or has another value in it.
    """
    listed = content.get("exchanges")
    if not isinstance(listed, list):
        place, message = document.find_place(["exchanges"]), "`exchanges` is not an array"
        raise InputError.from_message(message, place=place, hint=_HINT)
    for number, entry in enumerate(listed):
        fields = entry if isinstance(entry, Mapping) else {}
        for name, kind in _FIELDS.items():
            value = fields.get(name)
            if not isinstance(value, kind) or (not value and name != "request"):
                place = document.find_place(["exchanges", number, name])
                message = f"exchange {number} has no valid `{name}`"
                raise InputError.from_message(message, place=place, hint=_HINT)
        yield fields


def _parse_entry(entry: JsonObject, before: JsonObject) -> RecordedRequest:
    changed, without = get_object(entry, "request"), entry.get("without")
    dropped = without if isinstance(without, list) else []
    body = {k: v for k, v in before.items() if k not in dropped} | dict(changed)
    field = _find_list_field(body)
    if field is not None and isinstance(known := before.get(field), list):
        added = changed.get(field)
        body[field] = [*known, *(added if isinstance(added, list) else [])]
    return RecordedRequest(
        method=get_text(entry, "method"),
        path=get_text(entry, "path"),
        body=body,
        response=get_object(entry, "response"),
    )


def write_requests(
    folder: ResolvedPath, case: str, text: str, workspace: Workspace, *, keeps_older: bool = False
) -> None:
    """Write the file of a case.

    Args:
        keeps_older: whether an existing file is kept.

    Raises:
        InputError: it cannot be written.
    """
    path = folder.path / make_file_name(case)
    if keeps_older and path.exists():
        return
    try:
        make_folder(folder.path, workspace.root)
        write_file_atomically(path, text.encode("utf-8", "replace"), owner=workspace.root)
    except OSError as error:
        message = f"{workspace.display_path(path)} cannot be written: {error.strerror}"
        raise InputError.from_message(message) from None


def remove_other_cases(folder: ResolvedPath, cases: Iterable[str]) -> None:
    """Remove the files of cases that are no longer recorded."""
    names = {make_file_name(case) for case in cases}
    for path in list_request_files(folder):
        if path.name not in names and _is_requests_file(path):
            remove_path(path)


def _is_requests_file(path: Path) -> bool:
    """Return whether agentci wrote a file; links are not followed: a device may never end."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"format": "agentci-requests"' in file.read(200)


def list_request_files(folder: ResolvedPath) -> Sequence[Path]:
    """List the files of a folder that may have requests; none if the folder does not exist."""
    return sorted(folder.path.glob(f"*{SUFFIX}")) if folder.path.is_dir() else ()
