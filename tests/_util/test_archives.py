"""One file out of an archive that anybody may have made."""

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


def refused(content: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        read(content)
    return str(caught.value)


@given(data=st.binary(max_size=2000))
def test_what_is_packed_is_read(data: bytes) -> None:
    assert read(make_zip_archive(NAME, data)) == data
    assert make_zip_archive(NAME, data) == make_zip_archive(NAME, data)


@pytest.mark.parametrize("folder", ["", "agentci-results/", "/etc/", "../../"])
def test_it_is_found_in_any_folder_for_nothing_is_written(folder: str) -> None:
    assert read(zipped({f"{folder}{NAME}": b"{}", "report.html": b"<p>", "a/b.json": b""})) == b"{}"


def test_what_is_not_asked_for_may_be_as_large_and_odd_as_it_likes() -> None:
    modes = {"link": 0o120777}
    assert read(zipped({NAME: b"{}", "bomb": bytes(8 * LIMIT), "link": "/etc"}, modes=modes))


class TestIsRefused:
    def test_where_it_is_not_there(self) -> None:
        said = refused(zipped({"results.json.txt": b"", "results.json/x": b""}))
        assert said == "the archive has no file called results.json"

    def test_where_nobody_can_tell_which_one_is_meant(self) -> None:
        assert refused(zipped({f"a/{NAME}": b"1", f"b/{NAME}": b"2"})) == (
            "the archive has 2 files called results.json"
        )
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(zip_info(NAME, 0), b"good")
            archive.writestr(zip_info(f"./{NAME}", 0), b"evil")
        assert refused(content.getvalue()) == "the archive has 2 files called results.json"

    def test_where_it_is_a_link(self) -> None:
        said = refused(zipped({NAME: b"/etc/passwd"}, modes={NAME: 0o120777}))
        assert said == "'results.json' in the archive is neither a file nor a folder"

    def test_where_it_is_encrypted(self) -> None:
        content = bytearray(make_zip_archive(NAME, b"{}"))
        content[content.index(b"PK\x01\x02") + 8] |= 1
        assert refused(bytes(content)) == "'results.json' in the archive is encrypted"

    def test_where_it_is_compressed_in_another_way(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr(NAME, b"{}")
        assert refused(content.getvalue()).endswith("uses an unsupported compression method")

    def test_where_it_grows_beyond_all_limits(self) -> None:
        assert (
            refused(make_zip_archive(NAME, bytes(LIMIT + 1))) == "results.json is larger than 1 MiB"
        )
        assert len(read(make_zip_archive(NAME, bytes(LIMIT)))) == LIMIT

    def test_where_it_says_that_it_is_smaller(self) -> None:
        content = make_zip_archive(NAME, b"x" * 1000)
        lie = content.replace(struct.pack("<I", 1000), struct.pack("<I", 10))
        assert lie != content
        assert refused(lie).startswith("the archive is broken: ")

    def test_where_it_is_not_what_was_written(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(NAME, b'{"score": 0.1}')
        changed = content.getvalue().replace(b"0.1", b"0.9")
        assert refused(changed).startswith("the archive is broken: Bad CRC-32")

    def test_among_too_many_before_they_are_looked_at(self) -> None:
        said = refused(b"PK\x01\x02" * (MAX_MEMBERS + 1))
        assert said == "the archive has more than 10,000 members"

    @pytest.mark.parametrize("kept", [0, 10, 60, -1, -22, -30])
    def test_where_it_is_cut_off(self, kept: int) -> None:
        assert refused(make_zip_archive(NAME, b"{}" * 100)[:kept]).startswith(
            "the archive is broken: "
        )

    @given(data=st.binary(max_size=300), where=st.integers(0, 200), bits=st.integers(1, 255))
    def test_or_read_as_it_was_whatever_happens_to_it(
        self, data: bytes, where: int, bits: int
    ) -> None:
        content = bytearray(make_zip_archive(NAME, data))
        content[where % len(content)] ^= bits
        with suppress(ArchiveError):
            assert read(bytes(content)) == data
