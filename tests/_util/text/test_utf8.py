"""Decoding of UTF-8, and rejection of other encodings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.workspace import decode_utf8
from agentci.errors import InputError


def _error(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        decode_utf8(data, file="f")
    return str(caught.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")), st.booleans())
def test_utf8_is_decoded_with_or_without_bom(text: str, marked: bool) -> None:
    assert decode_utf8(text.encode("utf-8-sig" if marked else "utf-8"), file="f") == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_and_utf32_are_named(encoding: str) -> None:
    assert _error("evaluators:\n".encode(encoding)) == (
        "f:1: the file is UTF-16 or UTF-32, not UTF-8 (save it as UTF-8)"
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            b"a\nb: \xe9t\xe9",
            "f:2:4: the byte 0xE9 is not UTF-8 (it looks like Latin-1; save it as UTF-8)",
            id="Latin-1",
        ),
        pytest.param(
            b"a: \x93x\x94",
            "f:1:4: the byte 0x93 is not UTF-8 (save it as UTF-8)",
            id="other encoding",
        ),
        pytest.param(b"\x89PNG\r\n\x1a\n\0", "f:1:1: the file is binary, not text", id="image"),
        pytest.param(
            b"ab\n\0\1\2",
            "f:2:1: the file is binary, not text: it contains a NUL byte",
            id="NUL byte",
        ),
    ],
)
def test_invalid_byte_is_reported_with_its_place(data: bytes, expected: str) -> None:
    assert _error(data) == expected


@given(st.binary())
def test_any_bytes_are_decoded_or_rejected(data: bytes) -> None:
    try:
        text = decode_utf8(data, file="f")
    except InputError:
        assert _error(data).startswith("f:")
    else:
        assert text.encode() == data.removeprefix(b"\xef\xbb\xbf")
