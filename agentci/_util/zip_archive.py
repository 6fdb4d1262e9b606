"""Reads untrusted zip archives in memory, without unpacking them to disk; writes archives."""

import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from stat import S_IFDIR, S_IFMT, S_IFREG
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from msgspec import Struct

from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name

MAX_MEMBERS: Final = 10_000

# All errors that the standard library is known to raise for invalid archives.
ZIP_ERRORS: Final = (
    *(BadZipFile, zlib.error, struct.error),
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, ValueError),
)

_HEADER: Final = b"PK\x01\x02"
_ENCRYPTED: Final = 0x1
COMPRESSION_LEVEL: Final = 1
_EARLIEST_DATE: Final = (1980, 1, 1, 0, 0, 0)


class ArchiveError(Exception):
    """A file cannot be read from an archive; the message has the reason, without a full stop."""


class ZipMember(Struct, frozen=True, kw_only=True):
    """One member of an archive.

    Attributes:
        name: as written in the archive.
        mode: as in ``st_mode``; 0 if the archive is from a system without modes.
        problem: why the member is not allowed; empty if it is.
        read: returns the content up to a number of bytes; raises one of ``ZIP_ERRORS`` if it is
            damaged.
    """

    name: str
    is_folder: bool
    mode: int
    problem: str
    read: Callable[[int], bytes]


def count_headers(content: bytes) -> int:
    """Count the possible members, before reading them takes memory for each."""
    return content.count(_HEADER)


def iterate_zip_members(content: bytes) -> Iterator[ZipMember]:
    """List the members of an archive; raises one of ``ZIP_ERRORS`` if it is invalid."""
    archive = ZipFile(BytesIO(content))  # in memory: nothing needs closing
    for info in archive.infolist():
        mode = info.external_attr >> 16
        yield ZipMember(
            name=info.orig_filename,
            is_folder=info.is_dir(),
            mode=mode,
            problem=_find_problem(info, S_IFMT(mode)),
            read=partial(_read, archive, info),
        )


def read_zip_member(content: bytes, file_name: str, *, limit_bytes: int) -> bytes:
    """Read the only file called ``file_name``, in any folder of the archive.

    Raises:
        ArchiveError: there is none or more than one, or it is damaged, encrypted or too large.
    """
    if count_headers(content) > MAX_MEMBERS:
        raise ArchiveError(f"the archive has more than {MAX_MEMBERS:,} members")
    try:
        found = [each for each in iterate_zip_members(content) if _file_name(each) == file_name]
        if len(found) != 1:
            what = format_count(len(found), "file") if found else "no file"
            raise ArchiveError(f"the archive has {what} called {file_name}")
        [member] = found
        if member.problem:
            raise ArchiveError(f"{quote_name(member.name)} in the archive {member.problem}")
        data = member.read(limit_bytes + 1)
    except ZIP_ERRORS as error:
        raise ArchiveError(f"the archive is broken: {error}") from None
    if len(data) > limit_bytes:
        raise ArchiveError(f"{file_name} is larger than {limit_bytes // 1024**2} MiB")
    return data


def make_zip_archive(file_name: str, data: bytes) -> bytes:
    """Create an archive of one file; equal content gives equal bytes."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        archive.writestr(ZipInfo(file_name, _EARLIEST_DATE), data, ZIP_DEFLATED, COMPRESSION_LEVEL)
    return content.getvalue()


def _file_name(member: ZipMember) -> str:
    return member.name.rpartition("/")[2]


def _find_problem(info: ZipInfo, kind: int) -> str:
    # Archives from Windows have no modes.
    if kind not in {0, S_IFREG, S_IFDIR}:
        return "is neither a file nor a folder"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        return "is compressed in a way that is not known here"
    return ""


def _read(archive: ZipFile, info: ZipInfo, limit_bytes: int) -> bytes:
    with archive.open(info) as stream:
        return stream.read(limit_bytes)
