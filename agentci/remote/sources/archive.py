"""Archives, unpacked in memory: hostile ones are refused before anything touches the disk."""

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from tarfile import BLOCKSIZE, TarError, TarFile
from typing import Final

from msgspec import Struct

from agentci._util.zip_archive import FAULTS, MAX_MEMBERS, header_count, zip_members
from agentci.errors import RefusedError
from agentci.model.program import ProgramFile, Snapshot
from agentci.remote.sources.contents import MIB, Tally, below, missing, snapshot_of, split
from agentci.remote.sources.refs import shown, why_unusable
from agentci.remote.sources.source import MAX_FILE_BYTES

# Of the whole archive, of which a program's folder may be a small part.
MAX_UNPACKED_BYTES: Final = 64 * MIB

_ZIP: Final = ".zip"
_TAR: Final = (".tar.gz", ".tgz")

# Of what a tar says of one member: far more than a path and its times take.
MAX_HEADER_BYTES: Final = 8 * 1024

_RUNNABLE: Final = 0o111
_GZIP: Final = 16 + zlib.MAX_WBITS


class _Member(Struct, frozen=True, kw_only=True):
    """What an archive says of one of its members.

    Attributes:
        name: as it is written there.
        fault: why it may not be in an archive; empty where it may.
        read: its content, at most so many bytes of it.
    """

    name: str
    is_folder: bool
    fault: str
    executable: bool
    read: Callable[[int], bytes]


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked."""
    return name.lower().endswith((_ZIP, *_TAR))


def unpack(content: bytes, *, name: str, entry: str) -> Snapshot:
    """Unpack the folder of the program ``entry``.

    Args:
        name: the archive's file name, whose end says what it is.

    Raises:
        RefusedError: the program is not in it; or the archive is broken, encrypted or too large,
            or has a member that is no plain file inside of it, also outside of the folder.
    """
    members = (_zipped if name.lower().endswith(_ZIP) else _tarred)(content)
    try:
        files, names = _unpack(members, name, entry)
    except (*FAULTS, TarError) as error:
        message = f"{shown(name)} cannot be unpacked: {str(error) or 'it is broken'}"
        raise RefusedError(message, hint="pack it again, and take its sha256 again") from None
    own = split(entry)[1]
    if own not in files:
        raise missing(entry, shown(name), names)
    return snapshot_of(own, files)


def _unpack(
    members: Iterator[_Member], archive: str, entry: str
) -> tuple[dict[str, ProgramFile], list[str]]:
    """The files of the folder of ``entry``, and the names of all that there are."""
    tally = Tally()
    files: dict[str, ProgramFile] = {}
    names: dict[str, None] = {}
    for member in members:
        name = _plain(member.name)
        if fault := member.fault or _fault(name, names):
            message = f"{shown(member.name)} in {shown(archive)} {fault}"
            raise RefusedError(message, hint="pack plain files, each of them once")
        if member.is_folder:
            continue
        names[name] = None
        for path in below(entry, [name]):
            content = member.read(MAX_FILE_BYTES + 1)
            tally.add(path, len(content))
            files[path] = ProgramFile(content=content, executable=member.executable)
    return files, list(names)


def _plain(name: str) -> str:
    return name.removeprefix("./").removesuffix("/")


def _fault(name: str, before: dict[str, None]) -> str | None:
    if name in {"", "."}:  # the folder that was packed
        return None
    return "is there twice" if name in before else why_unusable(name)


def _zipped(content: bytes) -> Iterator[_Member]:
    _check_count(header_count(content))
    for member in zip_members(content):
        yield _Member(
            name=member.name,
            is_folder=member.is_folder,
            fault=member.fault,
            executable=bool(member.mode & _RUNNABLE),
            read=member.read,
        )


def _tarred(content: bytes) -> Iterator[_Member]:
    plain = _gunzip(content)
    with TarFile(fileobj=_Headers(plain), encoding="utf-8") as archive:
        for count, info in enumerate(archive, 1):
            _check_count(count)
            is_plain = info.isdir() or (info.isreg() and not info.issparse())
            yield _Member(
                name=info.name,
                is_folder=info.isdir(),
                fault="" if is_plain else "is neither a file nor a folder",
                executable=bool(info.mode & _RUNNABLE),
                read=partial(_slice, plain, info.offset_data, info.size),
            )
        # The reader takes a broken header for the end.
        if plain[archive.offset :][:BLOCKSIZE] != bytes(BLOCKSIZE):
            raise EOFError("it is cut off, or damaged")


class _Headers(BytesIO):
    """A tar of which the headers alone are read.

    The reader of Python before 3.11.10 and 3.12.6 looks through a header in the square of its size.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read what belongs to one header; raises ValueError where that is too much."""
        if size is None or not 0 <= size <= MAX_HEADER_BYTES:
            raise ValueError("it says too much of one of its members")
        return super().read(size)


def _slice(plain: bytes, begin: int, size: int, limit_bytes: int) -> bytes:
    return plain[begin : begin + max(0, min(size, limit_bytes))]


def _gunzip(content: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    plain = stream.decompress(content, MAX_UNPACKED_BYTES + 1)
    if len(plain) > MAX_UNPACKED_BYTES:
        raise RefusedError(
            f"the archive holds more than {MAX_UNPACKED_BYTES // MIB} MiB",
            hint="pack the folder of the evaluator alone",
        )
    if not stream.eof:
        raise EOFError("it is cut off")
    if stream.unused_data.strip(b"\0"):
        raise ValueError("something follows its end")
    return plain


def _check_count(members: int) -> None:
    if members > MAX_MEMBERS:
        raise RefusedError(
            f"the archive has more than {MAX_MEMBERS:,} members",
            hint="pack the folder of the evaluator alone",
        )
