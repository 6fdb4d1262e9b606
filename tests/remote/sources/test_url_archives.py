"""Archives unpacked in memory: valid, damaged and malicious ones."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentci._util.archives import MAX_HEADER_BYTES, MAX_MEMBERS
from agentci.errors import PermanentFetchError
from agentci.model.program import ProgramFile, ProgramSnapshot
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_FILES
from agentci.remote.sources.url import (
    MAX_UNPACKED_BYTES,
    is_archive,
    unpack_program,
)
from tests.remote.sources.archives import plain_tar, tar_files, tar_info, tarred, zip_info, zipped

ENTRY = "e/q/q.py"
FILES = {
    "README.md": b"read me",
    ENTRY: b"print('{}')",
    "e/q/words/a b.txt": b"good",
    "e/q/w\xf6rter/\u65e5.txt": b"bad",
    "e/q2/q2.py": b"2",
}
OWN = {"q.py", "words/a b.txt", "w\xf6rter/\u65e5.txt"}
HOSTILE = {
    "/etc/cron.d/x": "is absolute",
    "C:/x": "is absolute",
    "../x": "leaves its folder",
    "e/q/../../../x": "leaves its folder",
    "e\\..\\..\\x": "has a character that is not allowed",
    "e//x": "has an empty part",
    "e/./x": "has an empty part",
    "e/\x1b[31m": "has a character that is not allowed",
}


def unzip(content: bytes, entry: str = ENTRY) -> ProgramSnapshot:
    return unpack_program(content, name="e.zip", entry=entry)


def untar(content: bytes, entry: str = ENTRY) -> ProgramSnapshot:
    return unpack_program(content, name="e.tar.gz", entry=entry)


class TestArchiveNames:
    @pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tgz", "A.ZIP"])
    def test_archive_is_recognized_by_extension(self, name: str) -> None:
        assert is_archive(name)

    @pytest.mark.parametrize("name", ["a.py", "zip", "a.gz", "a.tar", "a.tar.xz", ""])
    def test_other_file_name_is_not_an_archive(self, name: str) -> None:
        assert not is_archive(name)


class TestZipArchive:
    def test_zip_gives_folder_of_program(self) -> None:
        snapshot = unzip(zipped(FILES))
        assert snapshot.entry == "q.py"
        assert set(snapshot.files) == OWN
        assert snapshot.files["q.py"] == ProgramFile(content=b"print('{}')")

    def test_executable_mode_in_zip_is_kept(self) -> None:
        snapshot = unzip(zipped(FILES, modes={ENTRY: 0o100755}))
        assert snapshot.files["q.py"].executable

    def test_zip_without_modes_is_accepted(self) -> None:
        assert not unzip(zipped(FILES, modes={ENTRY: 0})).files["q.py"].executable

    def test_zip_with_folder_members_is_accepted(self) -> None:
        folders = {"./": b"", "./e/": b"", "e/q/": b""}
        assert set(unzip(zipped({**folders, **FILES})).files) == OWN

    def test_program_in_zip_root_comes_with_companion_files(self) -> None:
        content = zipped({"./q.py": b"1", "requirements.txt": b"a", "other.py": b"2"})
        assert set(unzip(content, "q.py").files) == {"q.py", "requirements.txt"}

    @pytest.mark.parametrize(("name", "reason"), HOSTILE.items(), ids=range(len(HOSTILE)))
    def test_unsafe_member_name_in_zip_is_rejected(self, name: str, reason: str) -> None:
        with pytest.raises(PermanentFetchError) as error:
            unzip(zipped({**FILES, name: b"evil"}))
        assert str(error.value) == f"{name!r} in 'e.zip' {reason}"
        assert error.value.hint == "pack only plain files, each once"

    def test_null_byte_in_zip_member_name_is_rejected(self) -> None:
        content = zipped({**FILES, "e/q/x@.py": b"evil"}).replace(b"x@.py", b"x\0.py")
        with pytest.raises(
            PermanentFetchError, match=r"'e/q/x\\x00\.py' in 'e\.zip' has a character"
        ):
            unzip(content)

    @pytest.mark.parametrize(
        "kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK]
    )
    def test_link_or_device_in_zip_is_rejected(self, kind: int) -> None:
        with pytest.raises(
            PermanentFetchError, match=r"'x' in 'e\.zip' is neither a file nor a folder"
        ):
            unzip(zipped({**FILES, "x": b"/etc/passwd"}, modes={"x": kind | 0o777}))

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_duplicate_name_in_zip_is_rejected(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(zip_info(ENTRY, 0), b"good")
            archive.writestr(zip_info(f"./{ENTRY}", 0), b"evil")
        with pytest.raises(PermanentFetchError, match=r"'\./e/q/q\.py' in 'e\.zip' occurs twice"):
            unzip(content.getvalue())

    def test_zip_names_differing_only_in_case_are_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'q\.py' and 'Q\.py' are the same file"):
            unzip(zipped({ENTRY: b"1", "e/q/Q.py": b"2"}))

    def test_zip_path_used_as_file_and_folder_is_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'x' is both a file and a folder"):
            unzip(zipped({ENTRY: b"1", "e/q/x": b"2", "e/q/x/y": b"3"}))

    def test_encrypted_zip_is_rejected(self) -> None:
        content = bytearray(zipped({ENTRY: b"1"}))
        content[content.index(b"PK\x01\x02") + 8] |= 1
        with pytest.raises(PermanentFetchError, match=r"'e/q/q\.py' in 'e\.zip' is encrypted"):
            unzip(bytes(content))

    def test_zip_with_unsupported_compression_is_rejected(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr(ENTRY, b"1")
        with pytest.raises(PermanentFetchError, match="uses an unsupported compression method"):
            unzip(content.getvalue())

    def test_zip_member_over_size_limit_is_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'bomb' is larger than 5 MiB"):
            unzip(zipped({ENTRY: b"1", "e/q/bomb": bytes(8 * MAX_FILE_BYTES)}))

    def test_wrong_size_in_zip_header_is_rejected(self) -> None:
        content = zipped({ENTRY: b"x" * 1000})
        altered = content.replace(struct.pack("<I", 1000), struct.pack("<I", 10))
        assert altered != content
        with pytest.raises(PermanentFetchError, match=r"'e\.zip': the archive is "):
            unzip(altered)

    def test_zip_members_outside_folder_are_not_unpacked(self) -> None:
        assert set(unzip(zipped({**FILES, "bomb": bytes(20 * MAX_FILE_BYTES)})).files) == OWN

    def test_zip_with_too_many_files_is_rejected(self) -> None:
        many = {f"e/q/{index}": b"" for index in range(MAX_FILES)}
        with pytest.raises(PermanentFetchError, match="contains more than 200 files"):
            unzip(zipped({ENTRY: b"1", **many}))

    def test_zip_with_too_many_members_is_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match="the archive has more than 10,000 members"):
            unzip(b"PK\x01\x02" * (MAX_MEMBERS + 1))

    @pytest.mark.parametrize("length", [0, 10, 100, -1, -22, -30])
    def test_truncated_zip_is_rejected(self, length: int) -> None:
        with pytest.raises(PermanentFetchError, match=r"'e\.zip': the archive is "):
            unzip(zipped(FILES)[:length])

    def test_missing_program_in_zip_gets_suggestion(self) -> None:
        with pytest.raises(
            PermanentFetchError, match=r"^'e/q/qq\.py' is not in 'e\.zip'$"
        ) as error:
            unzip(zipped(FILES), "e/q/qq.py")
        assert error.value.hint == "did you mean 'e/q/q.py'?"

    @given(st.integers(0, 700), st.integers(0, 255))
    @example(place=295, value=0)  # an empty name
    def test_damaged_zip_never_gives_other_content(self, place: int, value: int) -> None:
        content = bytearray(zipped(FILES))
        content[place % len(content)] = value
        _check_unpacked_files(bytes(content), "e.zip")


class TestTarArchive:
    def test_tar_gives_folder_of_program(self) -> None:
        snapshot = untar(tar_files(FILES))
        assert snapshot.entry == "q.py"
        assert set(snapshot.files) == OWN

    def test_tgz_extension_is_accepted(self) -> None:
        assert set(unpack_program(tar_files(FILES), name="e.tgz", entry=ENTRY).files) == OWN

    def test_tar_with_leading_dot_names_is_accepted(self) -> None:
        members = [(tar_info("./", kind=tarfile.DIRTYPE), b"")]
        members += [(tar_info("./e/", kind=tarfile.DIRTYPE), b"")]
        members += [(tar_info(f"./{ENTRY}", size=1, mode=0o755), b"1")]
        assert untar(tarred(members)).files == {"q.py": ProgramFile(content=b"1", executable=True)}

    @pytest.mark.parametrize(("name", "reason"), HOSTILE.items(), ids=range(len(HOSTILE)))
    def test_unsafe_member_name_in_tar_is_rejected(self, name: str, reason: str) -> None:
        with pytest.raises(PermanentFetchError) as error:
            untar(tar_files({**FILES, name: b"evil"}))
        assert str(error.value) == f"{name!r} in 'e.tar.gz' {reason}"

    def test_tar_folder_outside_archive_is_rejected(self) -> None:
        members = [(tar_info("../x", kind=tarfile.DIRTYPE), b"")]
        with pytest.raises(PermanentFetchError, match="leaves its folder"):
            untar(tarred(members))

    @pytest.mark.parametrize(
        "kind",
        [
            *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE),
            *(tarfile.FIFOTYPE, tarfile.CONTTYPE),
        ],
    )
    def test_link_or_device_in_tar_is_rejected(self, kind: bytes) -> None:
        link = (tar_info("e/q/x", kind=kind, link="/etc/passwd"), b"")
        if kind == tarfile.CONTTYPE:  # an obsolete type of regular file
            assert "x" in untar(tarred([(tar_info(ENTRY, size=1), b"1"), link])).files
            return
        with pytest.raises(PermanentFetchError) as error:
            untar(tarred([(tar_info(ENTRY, size=1), b"1"), link]))
        assert str(error.value) == "'e/q/x' in 'e.tar.gz' is neither a file nor a folder"

    def test_sparse_file_in_tar_is_rejected(self) -> None:
        info = tar_info("e/q/x", size=512, kind=tarfile.GNUTYPE_SPARSE)
        content = bytearray(plain_tar([(info, bytes(512))]))
        with pytest.raises(PermanentFetchError):
            untar(gzip.compress(bytes(content)))

    def test_duplicate_name_in_tar_is_rejected(self) -> None:
        twice = [(tar_info(ENTRY, size=1), b"1"), (tar_info(ENTRY, size=1), b"2")]
        with pytest.raises(PermanentFetchError, match=r"'e/q/q\.py' in 'e\.tar\.gz' occurs twice"):
            untar(tarred(twice))

    def test_tar_over_unpacked_size_limit_is_rejected(self) -> None:
        bomb = gzip.compress(bytes(MAX_UNPACKED_BYTES + 1), compresslevel=1)
        with pytest.raises(PermanentFetchError, match="the archive unpacks to more than 64 MiB"):
            untar(bomb)

    def test_tar_member_over_size_limit_is_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'large' is larger than 5 MiB"):
            untar(tar_files({ENTRY: b"1", "e/q/large": bytes(MAX_FILE_BYTES + 1)}))

    def test_tar_with_large_member_header_is_rejected(self) -> None:
        info = tar_info(ENTRY, size=1)
        info.pax_headers = {"comment": "1" * MAX_HEADER_BYTES}  # some parsers need quadratic time
        with pytest.raises(PermanentFetchError, match="a header of more than 8,192 bytes"):
            untar(tarred([(info, b"1")]))
        info.pax_headers = {"comment": "1" * (MAX_HEADER_BYTES // 2)}
        assert untar(tarred([(info, b"1")])).files["q.py"].content == b"1"

    def test_tar_with_too_many_members_is_rejected(self) -> None:
        block = plain_tar([(tar_info("d", kind=tarfile.DIRTYPE), b"")])[:512]
        content = block * (MAX_MEMBERS + 1) + bytes(1024)
        with pytest.raises(PermanentFetchError, match="the archive has more than 10,000 members"):
            untar(gzip.compress(content))

    @pytest.mark.parametrize("length", [0, 5, 40, -1, -9])
    def test_truncated_gzip_is_rejected(self, length: int) -> None:
        with pytest.raises(PermanentFetchError, match=r"'e\.tar\.gz': the archive is "):
            untar(tar_files(FILES)[:length])

    @pytest.mark.parametrize("length", [0, 100, 512, 600, 1024, 1500, 2048])
    def test_truncated_tar_in_complete_gzip_is_rejected(self, length: int) -> None:
        members = [(tar_info(name, size=9), b"x" * 9) for name in (ENTRY, "a", "b")]
        with pytest.raises(PermanentFetchError, match=r"'e\.tar\.gz': the archive is "):
            untar(gzip.compress(plain_tar(members)[:length]))

    def test_damaged_tar_header_is_rejected(self) -> None:
        members = [(tar_info(name, size=9), b"x" * 9) for name in (ENTRY, "a", "b")]
        content = bytearray(plain_tar(members))
        content[1024 + 150] ^= 1
        with pytest.raises(PermanentFetchError, match="the archive is truncated or damaged"):
            untar(gzip.compress(bytes(content)))

    def test_data_after_end_of_tar_is_rejected(self) -> None:
        with pytest.raises(PermanentFetchError, match="it has data after its end"):
            untar(tar_files(FILES) + b"more")

    def test_padded_tar_is_accepted(self) -> None:
        assert set(untar(tar_files(FILES) + bytes(512)).files) == OWN

    def test_content_that_is_not_tar_is_rejected(self) -> None:
        for content in (b"", b"<html>", zipped(FILES), zlib.compress(b"x"), gzip.compress(b"x")):
            with pytest.raises(PermanentFetchError, match=r"'e\.tar\.gz': the archive is "):
                untar(content)

    def test_tar_with_nested_extended_headers_is_rejected(self) -> None:
        header = plain_tar([(tar_info("x", size=0, kind=tarfile.XHDTYPE), b"")])[:512]
        with pytest.raises(PermanentFetchError):
            untar(gzip.compress(header * 5000 + bytes(1024)))

    @given(st.integers(0, 9000), st.integers(0, 255))
    def test_damaged_tar_gives_program_or_error(self, place: int, value: int) -> None:
        content = bytearray(gzip.decompress(tar_files(FILES)))
        content[place % len(content)] = value
        _check_unpacked_files(gzip.compress(bytes(content)), "e.tar.gz", by_content=False)


def _check_unpacked_files(content: bytes, name: str, *, by_content: bool = True) -> None:
    try:
        files = unpack_program(content, name=name, entry=ENTRY).files
    except PermanentFetchError:
        return
    assert "q.py" in files
    if by_content:  # a zip has checksums, so damage can only hide or rename a file
        assert {file.content for file in files.values()} <= set(FILES.values())
