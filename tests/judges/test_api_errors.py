"""Refusals are understood in whichever way a service writes them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.judges.service_errors import MAX_MESSAGE, parse_api_error


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
def test_a_refusal_says_of_what_kind_it_is(body: Any, codes: set[str], message: str) -> None:
    complaint = parse_api_error(400, json.dumps(body).encode())
    assert set(complaint.codes) == codes
    assert complaint.message == message


def test_the_parameter_is_named_that_it_is_about() -> None:
    assert parse_api_error(400, b'{"error": {"param": "temperature"}}').param == "temperature"


def test_a_page_is_no_message() -> None:
    long = json.dumps({"error": "x" * 10 * MAX_MESSAGE}).encode()
    assert len(parse_api_error(500, long).message) == MAX_MESSAGE


@given(content=st.binary())
def test_any_bytes_are_a_refusal(content: bytes) -> None:
    assert parse_api_error(500, content).status == 500


def test_what_is_nested_too_deeply_is_just_a_refusal() -> None:
    assert parse_api_error(500, b"[" * 100_000).message == ""
    assert parse_api_error(500, b'{"error":' * 900 + b"1" + b"}" * 900).message == ""
