"""Spooled chunks are read back unchanged, from memory or from a file."""

import resource
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.files import SpooledChunks
from agentci.errors import InputError


@given(st.lists(st.binary(max_size=50)), st.integers(0, 200))
def test_chunks_are_read_in_any_order(chunks: list[bytes], memory_bytes: int) -> None:
    spool = SpooledChunks(memory_bytes)
    numbers = [spool.append(chunk) for chunk in chunks]
    assert [spool.read(number) for number in reversed(numbers)] == chunks[::-1]


def test_chunks_are_read_between_appends() -> None:
    spool = SpooledChunks(memory_bytes=10)
    first = spool.append(b"first")
    second = spool.append(b"the second one")
    assert spool.read(first) == b"first"
    third = spool.append(b"third")
    assert [spool.read(each) for each in (third, second)] == [b"third", b"the second one"]


def test_chunks_are_read_by_several_threads() -> None:
    spool = SpooledChunks(memory_bytes=2_000)
    chunks = [bytes([number % 256]) * number for number in range(500)]
    numbers = [spool.append(chunk) for chunk in chunks]
    with ThreadPoolExecutor(max_workers=4) as pool:
        assert list(pool.map(spool.read, numbers)) == chunks


def test_append_works_again_after_full_disk() -> None:
    spool = SpooledChunks(memory_bytes=100)
    first = spool.append(b"1" * 100)
    now, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, most))
    try:
        with pytest.raises(InputError, match="File too large"):
            spool.append(b"2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (now, most))
    third = spool.append(b"3" * 100)
    assert (spool.read(first), spool.read(third)) == (b"1" * 100, b"3" * 100)


class TestNoTemporaryFolder:
    @pytest.fixture(autouse=True)
    def nowhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    def test_small_chunks_stay_in_memory(self) -> None:
        spool = SpooledChunks(memory_bytes=10)
        assert spool.read(spool.append(b"0123456789")) == b"0123456789"

    def test_chunks_over_memory_limit_are_rejected(self) -> None:
        spool = SpooledChunks(memory_bytes=10)
        spool.append(b"0123456789")
        with pytest.raises(InputError) as caught:
            spool.append(b"a")
        [problem] = caught.value.problems
        assert problem.message == (
            "not enough disk space for the traces: No such file or directory"
        )
        assert "TMPDIR" in str(problem.hint)
