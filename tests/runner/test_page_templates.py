"""What a template printed becomes a page."""

import json

import pytest

from agentci.reports.sections import BLOCKS
from agentci.runner.page_templates import PageTemplateError, decode_page

PAGE = {name: f"<{name}>" for name in BLOCKS}
START = "<verdict><reasons><policy>"


def _decode(text: str, *values: tuple[str, str]) -> str:
    return decode_page(json.dumps({"text": text, "values": values}).encode(), PAGE)


def test_blocks_are_inserted_unchanged_and_values_escaped() -> None:
    found = _decode("a \0000\0 b \0001\0", ("failures", "<b>"), ("", "<i>"))
    assert found == f"{START}a <b> b &lt;i&gt;"


def test_value_of_fixed_block_is_escaped() -> None:
    assert _decode("\0000\0", ("verdict", "<b>")) == f"{START}&lt;b&gt;"


@pytest.mark.parametrize("text", ["\0x\0", "\0001\0", "\000", "\000\0\0"])
def test_changed_placeholder_is_an_error(text: str) -> None:
    with pytest.raises(PageTemplateError, match="changes a value after it was printed"):
        _decode(text, ("", "v"))


def test_output_of_another_program_is_an_error() -> None:
    with pytest.raises(PageTemplateError):
        decode_page(b"[]", PAGE)
