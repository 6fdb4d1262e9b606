"""Error responses are parsed in the format of every service."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.judges.transport import MAX_MESSAGE, parse_api_error


@pytest.mark.parametrize(
    ("body", "codes", "message"),
    [
        (
            {"error": {"message": "no", "type": "invalid", "param": None, "code": "unsupported"}},
            {"invalid", "unsupported"},
            "no",
        ),
        (
            {"type": "error", "error": {"type": "overloaded", "message": "no"}},
            {"error", "overloaded"},
            "no",
        ),
        ([{"error": {"code": 429, "message": "no", "status": "EXHAUSTED"}}], {"EXHAUSTED"}, "no"),
        ({"error": "no"}, set(), "no"),
        ({"object": "error", "message": "no", "code": 400}, set(), "no"),
        ({"detail": "no"}, set(), "no"),
        ([], set(), ""),
        ("no", set(), ""),
        (None, set(), ""),
    ],
    ids=["OpenAI", "Anthropic", "Gemini", "Ollama", "vLLM", "FastAPI", "list", "text", "null"],
)
def test_error_codes_and_message_are_parsed(body: Any, codes: set[str], message: str) -> None:
    complaint = parse_api_error(400, json.dumps(body).encode())
    assert set(complaint.codes) == codes
    assert complaint.message == message


def test_rejected_parameter_is_parsed() -> None:
    assert parse_api_error(400, b'{"error": {"param": "temperature"}}').param == "temperature"


def test_long_error_message_is_truncated() -> None:
    long = json.dumps({"error": "x" * 10 * MAX_MESSAGE}).encode()
    assert len(parse_api_error(500, long).message) == MAX_MESSAGE


@given(content=st.binary())
def test_any_bytes_are_parsed_as_error(content: bytes) -> None:
    assert parse_api_error(500, content).status == 500


def test_deeply_nested_error_body_has_no_message() -> None:
    assert parse_api_error(500, b"[" * 100_000).message == ""
    assert parse_api_error(500, b'{"error":' * 900 + b"1" + b"}" * 900).message == ""
