"""Reading one file from an untrusted ZIP archive."""

import io
import struct
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.archives import MAX_MEMBERS, ArchiveError, make_zip_archive, read_zip_member
from tests.remote.sources.archives import zip_info, zipped

NAME = "results.json"
LIMIT = 1024**2


def read(content: bytes) -> bytes:
    return read_zip_member(content, NAME, limit_bytes=LIMIT)


def rejection(content: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        read(content)
    return str(caught.value)


@given(data=st.binary(max_size=2000))
def test_packed_file_is_read_unchanged(data: bytes) -> None:
    assert read(make_zip_archive(NAME, data)) == data
    assert make_zip_archive(NAME, data) == make_zip_archive(NAME, data)


@pytest.mark.parametrize("folder", ["", "agentci-results/", "/etc/", "../../"])
def test_file_is_found_in_any_folder(folder: str) -> None:
    assert read(zipped({f"{folder}{NAME}": b"{}", "report.html": b"<p>", "a/b.json": b""})) == b"{}"


def test_other_members_are_not_checked() -> None:
    modes = {"link": 0o120777}
    assert read(zipped({NAME: b"{}", "bomb": bytes(8 * LIMIT), "link": "/etc"}, modes=modes))


class TestRejectedArchive:
    def test_missing_file_is_rejected(self) -> None:
        message = rejection(zipped({"results.json.txt": b"", "results.json/x": b""}))
        assert message == "the archive has no file called results.json"

    def test_duplicate_file_is_rejected(self) -> None:
        assert rejection(zipped({f"a/{NAME}": b"1", f"b/{NAME}": b"2"})) == (
            "the archive has 2 files called results.json"
        )
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(zip_info(NAME, 0), b"good")
            archive.writestr(zip_info(f"./{NAME}", 0), b"evil")
        assert rejection(content.getvalue()) == "the archive has 2 files called results.json"

    def test_symlink_is_rejected(self) -> None:
        message = rejection(zipped({NAME: b"/etc/passwd"}, modes={NAME: 0o120777}))
        assert message == "'results.json' in the archive is neither a file nor a folder"

    def test_encrypted_file_is_rejected(self) -> None:
        content = bytearray(make_zip_archive(NAME, b"{}"))
        content[content.index(b"PK\x01\x02") + 8] |= 1
        assert rejection(bytes(content)) == "'results.json' in the archive is encrypted"

    def test_unsupported_compression_is_rejected(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr(NAME, b"{}")
        assert rejection(content.getvalue()).endswith("uses an unsupported compression method")

    def test_file_over_size_limit_is_rejected(self) -> None:
        assert (
            rejection(make_zip_archive(NAME, bytes(LIMIT + 1)))
            == "results.json is larger than 1 MiB"
        )
        assert len(read(make_zip_archive(NAME, bytes(LIMIT)))) == LIMIT

    def test_understated_file_size_is_rejected(self) -> None:
        content = make_zip_archive(NAME, b"x" * 1000)
        lie = content.replace(struct.pack("<I", 1000), struct.pack("<I", 10))
        assert lie != content
        assert rejection(lie).startswith("the archive is broken: ")

    def test_wrong_checksum_is_rejected(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(NAME, b'{"score": 0.1}')
        changed = content.getvalue().replace(b"0.1", b"0.9")
        assert rejection(changed).startswith("the archive is broken: Bad CRC-32")

    def test_too_many_members_are_rejected(self) -> None:
        message = rejection(b"PK\x01\x02" * (MAX_MEMBERS + 1))
        assert message == "the archive has more than 10,000 members"

    @pytest.mark.parametrize("length", [0, 10, 60, -1, -22, -30])
    def test_truncated_archive_is_rejected(self, length: int) -> None:
        assert rejection(make_zip_archive(NAME, b"{}" * 100)[:length]).startswith(
            "the archive is broken: "
        )

    @given(data=st.binary(max_size=300), position=st.integers(0, 200), bits=st.integers(1, 255))
    def test_changed_byte_never_changes_file_content(
        self, data: bytes, position: int, bits: int
    ) -> None:
        content = bytearray(make_zip_archive(NAME, data))
        content[position % len(content)] ^= bits
        with suppress(ArchiveError):
            assert read(bytes(content)) == data
