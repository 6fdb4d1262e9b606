"""Reads untrusted zip and tar archives in memory, without unpacking them to disk; writes zips.

Members of zip archives may be compressed with Zstandard.
"""

import importlib
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from stat import S_IFDIR, S_IFMT, S_IFREG
from tarfile import BLOCKSIZE, TarError, TarFile, TarInfo
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name

MAX_MEMBERS: Final = 10_000
# Limit of one tar header: far more than a path and its times need.
MAX_HEADER_BYTES: Final = 8 * 1024
COMPRESSION_LEVEL: Final = 1

# All errors that the standard library is known to raise for invalid archives.
_ERRORS: Final = (
    *(BadZipFile, TarError, zlib.error, struct.error),
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, ValueError),
)
_MIB: Final = 1024**2
_RUNNABLE: Final = 0o111
_ENCRYPTED: Final = 0x1
_ZIP_HEADER: Final = b"PK\x01\x02"
_GZIP: Final = 16 + zlib.MAX_WBITS
_EARLIEST_DATE: Final = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """An archive cannot be read; the message is a clause about it, without a full stop."""


class ArchiveTooLargeError(ArchiveError):
    """An archive has too many members, or is too large when unpacked."""


class ArchiveMember(Struct, frozen=True, kw_only=True):
    """One member of an archive.

    Attributes:
        name: as written in the archive.
        problem: why the member is not allowed; empty if it is.
        read: returns the content, up to a number of bytes; raises ArchiveError if it is damaged.
    """

    name: str
    is_folder: bool
    is_executable: bool
    problem: str
    read: Callable[[int], bytes]


def iterate_zip_members(content: bytes) -> Iterator[ArchiveMember]:
    """List the members of a zip archive.

    Raises:
        ArchiveError: it is invalid, or has too many members.
    """
    # Counted before parsing, which takes memory for each member.
    _check_count(content.count(_ZIP_HEADER))
    with _convert_errors():
        archive = ZipFile(BytesIO(content))  # in memory: nothing needs closing
        members = [_make_zip_member(archive, info) for info in archive.infolist()]
    yield from members


def open_zip(
    content: bytes, *, max_members: int
) -> tuple[list[ZipInfo], Callable[[ZipInfo, int], bytes]]:
    """Return the entries of a zip archive, and a function that reads one up to a number of bytes.

    Raises:
        ArchiveError: it is invalid, or has too many members; also of the function, for members
            that are damaged, encrypted or compressed with another method than deflate.
    """
    _check_count(content.count(_ZIP_HEADER), max_members)
    with _convert_errors():
        archive = ZipFile(BytesIO(content))
        return archive.infolist(), partial(_read_from_zip, archive)


def iterate_tar_members(content: bytes, *, limit_bytes: int) -> Iterator[ArchiveMember]:
    """List the members of a tar archive that is compressed with gzip.

    Args:
        limit_bytes: maximum size of the unpacked archive.

    Raises:
        ArchiveError: it is invalid or too large, or has too many members.
    """
    with _convert_errors():
        plain = _gunzip(content, limit_bytes)
        archive = TarFile(fileobj=_TarHeaders(plain), encoding="utf-8")
    count = 0
    while (info := _read_next_header(archive)) is not None:
        count += 1
        _check_count(count)
        is_plain = info.isdir() or (info.isreg() and not info.issparse())
        yield ArchiveMember(
            name=info.name,
            is_folder=info.isdir(),
            is_executable=bool(info.mode & _RUNNABLE),
            problem="" if is_plain else "is neither a file nor a folder",
            read=partial(_slice, plain, info.offset_data, info.size),
        )
    # ``TarFile`` stops at a broken header as if it were the end.
    if plain[archive.offset :][:BLOCKSIZE] != bytes(BLOCKSIZE):
        raise ArchiveError("the archive is truncated or damaged")


def read_zip_member(content: bytes, file_name: str, *, limit_bytes: int) -> bytes:
    """Read the only file called ``file_name``, in any folder of a zip archive.

    Raises:
        ArchiveError: there is none or more than one, or it is damaged, encrypted or too large.
    """
    found = [each for each in iterate_zip_members(content) if _file_name(each) == file_name]
    if len(found) != 1:
        what = format_count(len(found), "file") if found else "no file"
        raise ArchiveError(f"the archive has {what} called {file_name}")
    [member] = found
    if member.problem:
        raise ArchiveError(f"{quote_name(member.name)} in the archive {member.problem}")
    data = member.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise ArchiveError(f"{file_name} is larger than {limit_bytes // _MIB} MiB")
    return data


def make_zip_archive(file_name: str, data: bytes) -> bytes:
    """Create a zip archive of one file; equal content gives equal bytes."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        archive.writestr(ZipInfo(file_name, _EARLIEST_DATE), data, ZIP_DEFLATED, COMPRESSION_LEVEL)
    return content.getvalue()


@contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise ArchiveError(f"the archive is broken: {str(error) or type(error).__name__}") from None


def _check_count(members: int, limit: int = MAX_MEMBERS) -> None:
    if members > limit:
        raise ArchiveTooLargeError(f"the archive has more than {limit:,} members")


def _file_name(member: ArchiveMember) -> str:
    return member.name.rpartition("/")[2]


def _make_zip_member(archive: ZipFile, info: ZipInfo) -> ArchiveMember:
    mode = info.external_attr >> 16
    return ArchiveMember(
        name=info.orig_filename,
        is_folder=info.is_dir(),
        is_executable=bool(mode & _RUNNABLE),
        problem=_find_zip_problem(info, S_IFMT(mode)),
        read=partial(_read_from_zip, archive, info),
    )


def _find_zip_problem(info: ZipInfo, kind: int) -> str:
    # Archives from Windows have no modes.
    if kind not in {0, S_IFREG, S_IFDIR}:
        return "is neither a file nor a folder"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        return "uses an unsupported compression method"
    return ""


def _read_from_zip(archive: ZipFile, info: ZipInfo, limit_bytes: int) -> bytes:
    with _convert_errors(), archive.open(info) as stream:
        return stream.read(limit_bytes)


def _slice(plain: bytes, begin: int, size: int, limit_bytes: int) -> bytes:
    return plain[begin : begin + max(0, min(size, limit_bytes))]


class _TarHeaders(BytesIO):
    """A tar file; only its headers are read.

    The size of a header is limited because Python before 3.11.10 and 3.12.6 parses headers in
    quadratic time.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read part of a header; raises ValueError if it is too large."""
        if size is None or not 0 <= size <= MAX_HEADER_BYTES:
            raise ValueError(f"a member has a header of more than {MAX_HEADER_BYTES:,} bytes")
        return super().read(size)


def _read_next_header(archive: TarFile) -> TarInfo | None:
    with _convert_errors():
        return archive.next()


def _gunzip(content: bytes, limit_bytes: int) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    plain = stream.decompress(content, limit_bytes + 1)
    if len(plain) > limit_bytes:
        raise ArchiveTooLargeError(f"the archive unpacks to more than {limit_bytes // _MIB} MiB")
    if not stream.eof:
        raise EOFError("it is truncated")
    if stream.unused_data.strip(b"\0"):
        raise ValueError("it has data after its end")
    return plain


MAX_ZSTANDARD_MEMBERS: Final = 200_000
ZSTANDARD_METHOD: Final = 93
# Of the standard library from Python 3.14 on, and of the extra `inspect` before.
_MODULES: Final = ("compression.zstd", "backports.zstd")
_LOCAL_HEADER: Final = struct.Struct("<4s22sHH")
_LOCAL_MAGIC: Final = b"PK\x03\x04"


class NoZstandardError(ArchiveError):
    """This Python cannot decompress Zstandard."""


def iterate_members(
    content: bytes, is_wanted: Callable[[str], bool], *, member_bytes: int, total_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the wanted members.

    Args:
        is_wanted: by name; other members are not decompressed.
        member_bytes, total_bytes: limits of one content, and of all together.

    Raises:
        NoZstandardError: a member is compressed with Zstandard.
        ArchiveError: the archive is damaged, encrypted or too large.
    """
    archive, read = open_zip(content, max_members=MAX_ZSTANDARD_MEMBERS)
    total = 0
    for info in archive:
        if info.is_dir() or not is_wanted(info.filename):
            continue
        limit = min(member_bytes, total_bytes - total) + 1
        data = (
            _read_zstandard(content, info, limit)
            if info.compress_type == ZSTANDARD_METHOD
            else read(info, limit)
        )
        total += len(data)
        if len(data) > member_bytes or total > total_bytes:
            largest = member_bytes if len(data) > member_bytes else total_bytes
            message = f"the archive unpacks to more than {largest // _MIB} MiB"
            raise ArchiveTooLargeError(message)
        yield info.filename, data


def _read_zstandard(content: bytes, info: ZipInfo, limit_bytes: int) -> bytes:
    module = _load_zstandard()
    packed = _find_packed(content, info)
    stream = module.ZstdDecompressor()
    try:
        data: bytes = stream.decompress(packed, max_length=limit_bytes)
    except module.ZstdError as error:
        raise ArchiveError(f"the archive is broken: {error}") from None
    if not stream.eof and len(data) < limit_bytes:
        raise ArchiveError("the archive is broken: a member is truncated")
    return data


def _find_packed(content: bytes, info: ZipInfo) -> memoryview:
    """The compressed bytes of a member, after its local header."""
    header = content[info.header_offset : info.header_offset + _LOCAL_HEADER.size]
    if info.header_offset < 0 or len(header) < _LOCAL_HEADER.size:
        raise ArchiveError("the archive is broken: a member has no header")
    magic, _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    start = info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
    if magic != _LOCAL_MAGIC or start + info.compress_size > len(content):
        raise ArchiveError("the archive is broken: a member is truncated")
    return memoryview(content)[start : start + info.compress_size]


def _load_zstandard() -> Any:
    for name in _MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise NoZstandardError(
        "the archive is compressed with Zstandard, which needs Python 3.14 or the extra `inspect`"
    )
