"""A key that appears twice in one object is refused, as only the last value would be read."""

from pathlib import Path
from typing import Any

import pytest

from agentci.errors import RecordingError
from agentci.recordings.json_documents import read_documents
from agentci.recordings.telemetry.json_input import (
    find_repeated_key,
    parse_argument_text,
    parse_nested_json,
)
from tests.recordings.telemetry.recorder import HI, chat, trace
from tests.recordings.transcripts.transcript_files import read_text

DOCUMENT = '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "a"}]'


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 1}',
        '{"a" : 1, "a" :2}',
        '{"a"\n: 1, "a":2}',
        '{"a"\t: 1, "a":2}',
        '{"a"\r: 1, "a":2}',
        '{"a"  : 1, "a":2}',
        '{"b": [{"a": {}, "a": []}]}',
        r'{"a": "x\u0022:", "a": 1}',
        '{"a": 1, "\\u0061": 1}',
    ],
)
def test_repeated_key_is_found(text: str) -> None:
    with pytest.raises(ValueError, match="key 'a' appears twice"):
        parse_nested_json(text)
    assert parse_argument_text(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}',
        r'{"a": "\":", "b": "x\" :", "c": "\u0022:"}',
        '{"a": 1e999, "b": NaN, "c": -0.0}',
        f'{{"a": {"9" * 200}}}',
        '{"é": "😀", "\\ud83d": 1, "\\ud83e": 2}',
        '"a"',
    ],
)
def test_json_without_repeated_keys_is_read(text: str) -> None:
    parse_nested_json(text)


def test_malformed_arguments_are_none_unless_they_were_cut_off() -> None:
    assert parse_argument_text('{"a": }') == {}
    assert parse_argument_text('{"a": "x') is None


def test_arguments_that_are_nested_too_deeply_are_unknown() -> None:
    assert parse_argument_text("[" * 100_000 + "]" * 100_000) is None


def test_text_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = None
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        find_repeated_key("[" * 100_000, deep)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (DOCUMENT.replace('"a"}', '"a", "content": "b"}'), 1),
        (DOCUMENT.replace('"a"}', '"a", "content": "b"}').replace("}, {", "},\n{"), 1),
        ('{"role": "user", "content": "Hi"}\n{"role": "user", "content": "a", "content": "b"}', 2),
    ],
)
def test_recording_with_repeated_key_is_refused(text: str, line: int) -> None:
    with pytest.raises(RecordingError) as caught:
        read_text(text)
    assert caught.value.problem.message == "the key 'content' appears twice in one object"
    assert caught.value.problem.place is not None
    assert caught.value.problem.place.line == line


def test_messages_with_repeated_key_are_an_error() -> None:
    output = '[{"role": "assistant", "content": "a", "content": "b"}]'
    found = trace(chat("c", [HI], (), {"gen_ai.output.messages": output}))
    assert "gen_ai.output.messages of span c holds no messages" in found.not_captured


def test_recorded_files_have_no_repeated_keys() -> None:
    for path in sorted(Path(__file__).parent.glob("transcripts/files/*/*/*.json")):
        if path.name != "expected.json":
            parse_nested_json(path.read_text())


def test_text_on_the_verge_of_too_deep_is_one_clear_message() -> None:
    # The check of the keys nests as deep as the decoder, from a deeper stack.
    messages = set()
    for depth in range(700, 1000):
        text = "[" * depth + '{"a": 1, "a": 2}' + "]" * depth
        with pytest.raises(RecordingError) as caught:
            list(read_documents(iter([text.encode(), b"\n"]), file="x"))
        messages.add(caught.value.problem.message)
    assert messages == {"the key 'a' appears twice in one object", "JSON nested too deeply"}
