"""Zip archives with members that are compressed with Zstandard."""

import sys
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pytest

from agentci._util.archives import (
    ArchiveError,
    ArchiveTooLargeError,
    NoZstandardError,
    iterate_members,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 2**20
LOCAL_HEADER_BYTES = 30


def make_archive(members: Mapping[str, bytes], frames: Mapping[str, bytes] | None = None) -> bytes:
    """An archive of stored members, whose headers then state method 93.

    Args:
        frames: compressed contents, instead of those of ``members``.
    """
    content = BytesIO()
    packed = {name: zstd.compress(data) for name, data in members.items()} | dict(frames or {})
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in packed.items():
            archive.writestr(name, data)
    changed = bytearray(content.getvalue())
    for magic, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = changed.find(magic)
        while start >= 0:
            changed[start + at] = 93
            start = changed.find(magic, start + 4)
    return bytes(changed)


def read(content: bytes, **limits: Any) -> dict[str, bytes]:
    limits = {"member_bytes": MIB, "total_bytes": 4 * MIB, **limits}
    return dict(iterate_members(content, lambda name: name != "unwanted", **limits))


def test_members_are_read_and_unwanted_ones_are_not() -> None:
    members = {"a": b"text", "unwanted": b"x" * 2 * MIB, "empty": b"", "large": b"y" * MIB}
    found = read(make_archive(members))
    assert found == {"a": b"text", "empty": b"", "large": b"y" * MIB}


def test_other_methods_and_folders() -> None:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        archive.writestr("a", "text")
    assert read(content.getvalue()) == {"a": b"text"}


def test_bombs_are_refused() -> None:
    bomb = {"a": bytes(64 * MIB)}
    with pytest.raises(ArchiveTooLargeError, match="unpacks to more than 1 MiB"):
        read(make_archive(bomb))
    many = {str(number): bytes(MIB) for number in range(10)}
    with pytest.raises(ArchiveTooLargeError, match="unpacks to more than 4 MiB"):
        read(make_archive(many))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:40],
        lambda data: data.replace(b"\x28\xb5\x2f\xfd", b"\0\0\0\0", 1),
        lambda data: data.replace(b"PK\x03\x04", b"PKxx", 1),
        lambda _: b"PK\x03\x04",
    ],
)
def test_broken_archive_is_refused(change: Any) -> None:
    with pytest.raises(ArchiveError, match="the archive is broken"):
        read(change(make_archive({"a": b"text" * 100})))


def test_truncated_member_is_refused() -> None:
    data = make_archive({"a": bytes(range(256)) * 4})
    packed = zstd.compress(bytes(range(256)) * 4)
    start = data.index(packed)
    for size in (len(packed) - 4, 0):
        # Both headers state a shorter member than was compressed.
        cut = data.replace(len(packed).to_bytes(4, "little"), size.to_bytes(4, "little"))
        with pytest.raises(ArchiveError, match="a member is truncated"):
            read(cut)
    assert start > LOCAL_HEADER_BYTES


def test_members_beyond_the_file_are_refused() -> None:
    data = make_archive({"a": b"text" * 100})
    directory = data.index(b"PK\x01\x02")
    for offset in (2**31, len(data) - 1):
        changed = bytearray(data)
        changed[directory + 42 : directory + 46] = offset.to_bytes(4, "little")
        with pytest.raises(ArchiveError, match="the archive is broken"):
            read(bytes(changed))
    changed = bytearray(data)
    changed[directory + 20 : directory + 24] = (2**30).to_bytes(4, "little")
    with pytest.raises(ArchiveError, match="the archive is broken"):
        read(bytes(changed))


def test_missing_zstandard_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoZstandardError, match=r"Python 3\.14 or the extra `inspect`"):
        read(make_archive({"a": b"text"}))
