"""Archives, unpacked in memory: good ones, and those that attack."""

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


class TestNames:
    @pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tgz", "A.ZIP"])
    def test_of_archives_are_known_by_their_ends(self, name: str) -> None:
        assert is_archive(name)

    @pytest.mark.parametrize("name", ["a.py", "zip", "a.gz", "a.tar", "a.tar.xz", ""])
    def test_of_other_files_are_not(self, name: str) -> None:
        assert not is_archive(name)


class TestZipArchives:
    def test_give_the_folder_of_the_program(self) -> None:
        snapshot = unzip(zipped(FILES))
        assert snapshot.entry == "q.py"
        assert set(snapshot.files) == OWN
        assert snapshot.files["q.py"] == ProgramFile(content=b"print('{}')")

    def test_keep_what_can_be_run(self) -> None:
        snapshot = unzip(zipped(FILES, modes={ENTRY: 0o100755}))
        assert snapshot.files["q.py"].executable

    def test_of_systems_without_modes_are_as_good(self) -> None:
        assert not unzip(zipped(FILES, modes={ENTRY: 0})).files["q.py"].executable

    def test_may_name_their_folders(self) -> None:
        folders = {"./": b"", "./e/": b"", "e/q/": b""}
        assert set(unzip(zipped({**folders, **FILES})).files) == OWN

    def test_give_what_belongs_to_a_program_in_their_root(self) -> None:
        content = zipped({"./q.py": b"1", "requirements.txt": b"a", "other.py": b"2"})
        assert set(unzip(content, "q.py").files) == {"q.py", "requirements.txt"}

    @pytest.mark.parametrize(("name", "reason"), HOSTILE.items(), ids=range(len(HOSTILE)))
    def test_that_reach_out_are_refused(self, name: str, reason: str) -> None:
        with pytest.raises(PermanentFetchError) as error:
            unzip(zipped({**FILES, name: b"evil"}))
        assert str(error.value) == f"{name!r} in 'e.zip' {reason}"
        assert error.value.hint == "pack only plain files, each once"

    def test_that_end_a_name_early_are_refused(self) -> None:
        content = zipped({**FILES, "e/q/x@.py": b"evil"}).replace(b"x@.py", b"x\0.py")
        with pytest.raises(
            PermanentFetchError, match=r"'e/q/x\\x00\.py' in 'e\.zip' has a character"
        ):
            unzip(content)

    @pytest.mark.parametrize(
        "kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK]
    )
    def test_with_links_and_devices_are_refused(self, kind: int) -> None:
        with pytest.raises(
            PermanentFetchError, match=r"'x' in 'e\.zip' is neither a file nor a folder"
        ):
            unzip(zipped({**FILES, "x": b"/etc/passwd"}, modes={"x": kind | 0o777}))

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_with_a_name_twice_are_refused(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(zip_info(ENTRY, 0), b"good")
            archive.writestr(zip_info(f"./{ENTRY}", 0), b"evil")
        with pytest.raises(PermanentFetchError, match=r"'\./e/q/q\.py' in 'e\.zip' occurs twice"):
            unzip(content.getvalue())

    def test_with_names_that_differ_in_case_alone_are_refused(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'q\.py' and 'Q\.py' are the same file"):
            unzip(zipped({ENTRY: b"1", "e/q/Q.py": b"2"}))

    def test_with_a_file_that_is_a_folder_too_are_refused(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'x' is both a file and a folder"):
            unzip(zipped({ENTRY: b"1", "e/q/x": b"2", "e/q/x/y": b"3"}))

    def test_that_are_encrypted_are_refused(self) -> None:
        content = bytearray(zipped({ENTRY: b"1"}))
        content[content.index(b"PK\x01\x02") + 8] |= 1
        with pytest.raises(PermanentFetchError, match=r"'e/q/q\.py' in 'e\.zip' is encrypted"):
            unzip(bytes(content))

    def test_that_are_compressed_otherwise_are_refused(self) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr(ENTRY, b"1")
        with pytest.raises(PermanentFetchError, match="uses an unsupported compression method"):
            unzip(content.getvalue())

    def test_that_grow_beyond_all_limits_are_refused(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'bomb' is larger than 5 MiB"):
            unzip(zipped({ENTRY: b"1", "e/q/bomb": bytes(8 * MAX_FILE_BYTES)}))

    def test_are_measured_by_what_is_in_them_not_by_what_they_say(self) -> None:
        content = zipped({ENTRY: b"x" * 1000})
        lie = content.replace(struct.pack("<I", 1000), struct.pack("<I", 10))
        assert lie != content
        with pytest.raises(PermanentFetchError, match=r"'e\.zip': the archive is "):
            unzip(lie)

    def test_are_unpacked_no_further_than_the_folder(self) -> None:
        assert set(unzip(zipped({**FILES, "bomb": bytes(20 * MAX_FILE_BYTES)})).files) == OWN

    def test_of_too_many_files_are_refused(self) -> None:
        many = {f"e/q/{index}": b"" for index in range(MAX_FILES)}
        with pytest.raises(PermanentFetchError, match="contains more than 200 files"):
            unzip(zipped({ENTRY: b"1", **many}))

    def test_of_too_many_members_are_refused_before_they_are_looked_at(self) -> None:
        with pytest.raises(PermanentFetchError, match="the archive has more than 10,000 members"):
            unzip(b"PK\x01\x02" * (MAX_MEMBERS + 1))

    @pytest.mark.parametrize("kept", [0, 10, 100, -1, -22, -30])
    def test_that_are_cut_off_are_refused(self, kept: int) -> None:
        with pytest.raises(PermanentFetchError, match=r"'e\.zip': the archive is "):
            unzip(zipped(FILES)[:kept])

    def test_without_the_program_are_refused_with_the_one_that_was_meant(self) -> None:
        with pytest.raises(
            PermanentFetchError, match=r"^'e/q/qq\.py' is not in 'e\.zip'$"
        ) as error:
            unzip(zipped(FILES), "e/q/qq.py")
        assert error.value.hint == "did you mean 'e/q/q.py'?"

    @given(st.integers(0, 700), st.integers(0, 255))
    @example(place=295, value=0)  # an empty name
    def test_that_are_damaged_give_the_same_or_nothing(self, place: int, value: int) -> None:
        content = bytearray(zipped(FILES))
        content[place % len(content)] = value
        _same_or_refused(bytes(content), "e.zip")


class TestTarArchives:
    def test_give_the_folder_of_the_program(self) -> None:
        snapshot = untar(tar_files(FILES))
        assert snapshot.entry == "q.py"
        assert set(snapshot.files) == OWN

    def test_may_be_called_tgz(self) -> None:
        assert set(unpack_program(tar_files(FILES), name="e.tgz", entry=ENTRY).files) == OWN

    def test_are_read_as_packers_write_them(self) -> None:
        members = [(tar_info("./", kind=tarfile.DIRTYPE), b"")]
        members += [(tar_info("./e/", kind=tarfile.DIRTYPE), b"")]
        members += [(tar_info(f"./{ENTRY}", size=1, mode=0o755), b"1")]
        assert untar(tarred(members)).files == {"q.py": ProgramFile(content=b"1", executable=True)}

    @pytest.mark.parametrize(("name", "reason"), HOSTILE.items(), ids=range(len(HOSTILE)))
    def test_that_reach_out_are_refused(self, name: str, reason: str) -> None:
        with pytest.raises(PermanentFetchError) as error:
            untar(tar_files({**FILES, name: b"evil"}))
        assert str(error.value) == f"{name!r} in 'e.tar.gz' {reason}"

    def test_that_make_folders_elsewhere_are_refused(self) -> None:
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
    def test_with_links_and_devices_are_refused(self, kind: bytes) -> None:
        link = (tar_info("e/q/x", kind=kind, link="/etc/passwd"), b"")
        if kind == tarfile.CONTTYPE:  # an old word for a plain file
            assert "x" in untar(tarred([(tar_info(ENTRY, size=1), b"1"), link])).files
            return
        with pytest.raises(PermanentFetchError) as error:
            untar(tarred([(tar_info(ENTRY, size=1), b"1"), link]))
        assert str(error.value) == "'e/q/x' in 'e.tar.gz' is neither a file nor a folder"

    def test_with_holes_are_refused(self) -> None:
        info = tar_info("e/q/x", size=512, kind=tarfile.GNUTYPE_SPARSE)
        content = bytearray(plain_tar([(info, bytes(512))]))
        with pytest.raises(PermanentFetchError):
            untar(gzip.compress(bytes(content)))

    def test_with_a_name_twice_are_refused(self) -> None:
        twice = [(tar_info(ENTRY, size=1), b"1"), (tar_info(ENTRY, size=1), b"2")]
        with pytest.raises(PermanentFetchError, match=r"'e/q/q\.py' in 'e\.tar\.gz' occurs twice"):
            untar(tarred(twice))

    def test_that_grow_beyond_all_limits_are_refused(self) -> None:
        bomb = gzip.compress(bytes(MAX_UNPACKED_BYTES + 1), compresslevel=1)
        with pytest.raises(PermanentFetchError, match="the archive unpacks to more than 64 MiB"):
            untar(bomb)

    def test_with_a_file_that_is_too_large_are_refused(self) -> None:
        with pytest.raises(PermanentFetchError, match=r"'large' is larger than 5 MiB"):
            untar(tar_files({ENTRY: b"1", "e/q/large": bytes(MAX_FILE_BYTES + 1)}))

    def test_that_say_too_much_of_a_member_are_refused(self) -> None:
        info = tar_info(ENTRY, size=1)
        info.pax_headers = {"comment": "1" * MAX_HEADER_BYTES}  # some square it
        with pytest.raises(PermanentFetchError, match="a header of more than 8,192 bytes"):
            untar(tarred([(info, b"1")]))
        info.pax_headers = {"comment": "1" * (MAX_HEADER_BYTES // 2)}
        assert untar(tarred([(info, b"1")])).files["q.py"].content == b"1"

    def test_of_too_many_members_are_refused(self) -> None:
        block = plain_tar([(tar_info("d", kind=tarfile.DIRTYPE), b"")])[:512]
        content = block * (MAX_MEMBERS + 1) + bytes(1024)
        with pytest.raises(PermanentFetchError, match="the archive has more than 10,000 members"):
            untar(gzip.compress(content))

    @pytest.mark.parametrize("kept", [0, 5, 40, -1, -9])
    def test_that_are_cut_off_are_refused(self, kept: int) -> None:
        with pytest.raises(PermanentFetchError, match=r"'e\.tar\.gz': the archive is "):
            untar(tar_files(FILES)[:kept])

    @pytest.mark.parametrize("kept", [0, 100, 512, 600, 1024, 1500, 2048])
    def test_that_were_cut_off_before_they_were_compressed_are_refused(self, kept: int) -> None:
        members = [(tar_info(name, size=9), b"x" * 9) for name in (ENTRY, "a", "b")]
        with pytest.raises(PermanentFetchError, match=r"'e\.tar\.gz': the archive is "):
            untar(gzip.compress(plain_tar(members)[:kept]))

    def test_with_a_broken_header_in_the_middle_are_refused(self) -> None:
        members = [(tar_info(name, size=9), b"x" * 9) for name in (ENTRY, "a", "b")]
        content = bytearray(plain_tar(members))
        content[1024 + 150] ^= 1
        with pytest.raises(PermanentFetchError, match="the archive is truncated or damaged"):
            untar(gzip.compress(bytes(content)))

    def test_with_something_after_their_end_are_refused(self) -> None:
        with pytest.raises(PermanentFetchError, match="it has data after its end"):
            untar(tar_files(FILES) + b"more")

    def test_may_be_padded(self) -> None:
        assert set(untar(tar_files(FILES) + bytes(512)).files) == OWN

    def test_that_are_something_else_are_refused(self) -> None:
        for content in (b"", b"<html>", zipped(FILES), zlib.compress(b"x"), gzip.compress(b"x")):
            with pytest.raises(PermanentFetchError, match=r"'e\.tar\.gz': the archive is "):
                untar(content)

    def test_with_headers_upon_headers_are_refused(self) -> None:
        header = plain_tar([(tar_info("x", size=0, kind=tarfile.XHDTYPE), b"")])[:512]
        with pytest.raises(PermanentFetchError):
            untar(gzip.compress(header * 5000 + bytes(1024)))

    @given(st.integers(0, 9000), st.integers(0, 255))
    def test_that_are_damaged_give_the_same_or_nothing(self, place: int, value: int) -> None:
        content = bytearray(gzip.decompress(tar_files(FILES)))
        content[place % len(content)] = value
        _same_or_refused(gzip.compress(bytes(content)), "e.tar.gz", by_content=False)


def _same_or_refused(content: bytes, name: str, *, by_content: bool = True) -> None:
    try:
        files = unpack_program(content, name=name, entry=ENTRY).files
    except PermanentFetchError:
        return
    assert "q.py" in files
    if by_content:  # a zip has checksums; damage to a name may hide or rename a file, no more
        assert {file.content for file in files.values()} <= set(FILES.values())
