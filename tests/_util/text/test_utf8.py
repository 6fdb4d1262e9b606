"""Files in any other encoding are refused, with what they seem to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.workspace import decode_utf8
from agentci.errors import InputError


def _complaint(data: bytes) -> str:
    with pytest.raises(InputError) as refusal:
        decode_utf8(data, file="f")
    return str(refusal.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")), st.booleans())
def test_any_text_is_read_with_or_without_a_byte_order_mark(text: str, marked: bool) -> None:
    assert decode_utf8(text.encode("utf-8-sig" if marked else "utf-8"), file="f") == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_named(encoding: str) -> None:
    assert _complaint("evaluators:\n".encode(encoding)) == (
        "f:1: the file is UTF-16 or UTF-32, not UTF-8 (save it as UTF-8)"
    )


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param(
            b"a\nb: \xe9t\xe9",
            "f:2:4: the byte 0xE9 is not UTF-8 (it looks like Latin-1; save it as UTF-8)",
            id="Latin-1",
        ),
        pytest.param(
            b"a: \x93x\x94", "f:1:4: the byte 0x93 is not UTF-8 (save it as UTF-8)", id="others"
        ),
        pytest.param(b"\x89PNG\r\n\x1a\n\0", "f:1:1: the file is binary, not text", id="a picture"),
        pytest.param(
            b"ab\n\0\1\2", "f:2:1: the file is binary, not text: it contains a NUL byte", id="a NUL"
        ),
    ],
)
def test_anything_else_is_told_with_its_place(data: bytes, complaint: str) -> None:
    assert _complaint(data) == complaint


@given(st.binary())
def test_any_bytes_are_text_or_refused_with_a_place(data: bytes) -> None:
    try:
        text = decode_utf8(data, file="f")
    except InputError:
        assert _complaint(data).startswith("f:")
    else:
        assert text.encode() == data.removeprefix(b"\xef\xbb\xbf")
