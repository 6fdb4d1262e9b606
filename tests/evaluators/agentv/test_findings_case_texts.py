"""The prompt of an agent."""

from typing import Any

import pytest

from agentci.evaluators.agentv.findings import format_agent_prompt
from agentci.model.case import AgentvCase
from agentci.model.values import Place

FILE = {"type": "file", "value": "notes.txt"}


def _prompt(*messages: dict[str, Any]) -> str:
    sample = AgentvCase(
        id="a",
        criteria="",
        input_messages=messages,
        expected_messages=(),
        place=Place(file="f.yaml"),
    )
    return format_agent_prompt(sample)


@pytest.mark.parametrize(
    ("content", "prompt"),
    [
        ("  Hello ", "Hello"),
        ({"order": 7}, '{\n  "order": 7\n}'),
        (
            [{"type": "text", "value": "Read"}, FILE, {"type": "text"}, "lost"],
            'Read\n\n<file: path="notes.txt">',
        ),
        (None, ""),
    ],
)
def test_single_user_message_is_plain_text(content: object, prompt: str) -> None:
    assert _prompt({"role": "user", "content": content}) == prompt


def test_several_messages_are_labelled_with_roles() -> None:
    messages = (
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "value": "Hi"}, FILE]},
        {"role": "assistant", "tool_calls": [{"tool": "t"}]},
    )
    assert _prompt(*messages) == '@[System]:\nBe kind.\n\n@[User]:\nHi\n<file: path="notes.txt">'


def test_single_assistant_message_is_labelled_with_role() -> None:
    assert _prompt({"role": "assistant", "content": "Done"}) == "@[Assistant]:\nDone"
