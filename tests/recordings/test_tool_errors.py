"""Results of tools that are errors, that look like errors, and that are empty."""

import pytest

from agentci.model.values import Json
from agentci.recordings.tool_errors import is_empty_result, is_tool_error, looks_like_error


@pytest.mark.parametrize(
    "result",
    [
        pytest.param({"isError": True, "content": []}, id="MCP"),
        pytest.param('{"is_error": true, "content": "x"}', id="text of an object"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601}}, id="JSON-RPC"),
        pytest.param("Error: \n Please fix your mistakes.", id="framework"),
    ],
)
def test_error_of_a_framework_or_protocol_is_recognised(result: Json) -> None:
    assert is_tool_error(result)
    assert looks_like_error(result)


@pytest.mark.parametrize(
    "result",
    [
        {"error": "not found"},
        '{"error": {"code": 4}}',
        {"id": 7, "error_message": "x"},
        {"success": False},
        {"status": "error"},
        {"statusCode": 404},
        {"result": {"error": "x"}},
        [{"type": "text", "text": "Error: no stock"}],
        "Error: no stock",
        "ERROR no stock: x",
        "Traceback (most recent call last):\n  x\nKeyError: 'a'",
        "requests.exceptions.ConnectionError: x",
        "ValueError",
        "Failed to connect",
        "An error occurred",
        "HTTP 503 Service Unavailable",
        "404 Not Found",
    ],
)
def test_what_looks_like_an_error_may_be_the_result_of_a_tool(result: Json) -> None:
    assert looks_like_error(result)
    assert not is_tool_error(result)


@pytest.mark.parametrize(
    "result",
    [
        {"error": None, "id": 7},
        {"errors": []},
        {"success": True},
        {"status": "sent"},
        {"status": 200},
        {"isError": False},
        "Errors: 0",
        "Error handling in Python: an introduction",
        "Failed: 0, passed: 5",
        "terror: a film",
        "500 Euro",
        "{not JSON",
        "[" * 10_000,
        "",
        None,
        7,
        [1, 2],
    ],
)
def test_other_results_are_no_errors(result: Json) -> None:
    assert not looks_like_error(result)


@pytest.mark.parametrize("result", ["", " ", "null", "None", "[]", None, [], {}])
def test_result_without_content_is_empty(result: Json) -> None:
    assert is_empty_result(result)
    assert not is_empty_result([result, 1])


@pytest.mark.parametrize("result", [0, False, "0", [0], "no"])
def test_values_are_not_empty(result: Json) -> None:
    assert not is_empty_result(result)
