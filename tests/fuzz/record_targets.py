"""What `agentci record` parses: requests and responses of models, telemetry, its own files."""

import json
from http import HTTPStatus
from itertools import chain
from typing import Final

from agentci.record.apis.registry import APIS
from agentci.record.case_file import read_cases
from agentci.record.conversations import rebuild_turns
from agentci.record.exchanges import RawExchange, parse_exchanges
from agentci.record.http_server import ServerRequest
from agentci.record.otlp_receiver import JSON_TYPE, PROTOBUF, OtlpReceiver
from agentci.record.recording_choice import summarize_lines
from agentci.record.request_file import format_requests, parse_requests, select_requests
from agentci.record.write_spans import CaseStamp, write_turns

BETWEEN: Final = b"\n\n\n"
STAMP: Final = CaseStamp(id="case")
RECEIVED: Final = frozenset(
    {
        *(HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    }
)
_CALL: Final = {"name": "f", "arguments": '{"a": 1}'}
_CHAT: Final = (
    {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    {
        "choices": [
            {
                "message": {"role": "assistant", "tool_calls": [{"id": "c", "function": _CALL}]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    },
    {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": _CALL}]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
    },
    {"choices": [{"message": {"role": "assistant", "content": "Ho"}, "finish_reason": "stop"}]},
)
# Calls as smolagents repeats them.
_TEXT_CALLS: Final = (
    *_CHAT[:2],
    {
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": "Calling tools:\n[{'id': 'c', 'function': {'name': 'f', 'arguments': "
                "{'a': 1, b'b': {2}}}}]",
            },
            {"role": "user", "content": "Observation:\n1"},
        ],
    },
    _CHAT[3],
)
_RESPONSES: Final = (
    {"model": "m", "input": "Hi"},
    {
        "id": "r1",
        "status": "completed",
        "output": [{"type": "function_call", "call_id": "c", **_CALL}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    {
        "previous_response_id": "r1",
        "input": [{"type": "function_call_output", "call_id": "c", "output": "1"}],
    },
    {
        "id": "r2",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "x"}]}],
    },
)
_ANTHROPIC: Final = (
    {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    {
        "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
)
_GEMINI: Final = (
    {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    {
        "candidates": [
            {
                "content": {"parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 1},
    },
)
_STREAM: Final = (
    b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}\n\n\n'
    b'event: content_block_delta\ndata: {"index": 0, "delta": {"type": "text_delta", "text": "a"},'
    b' "choices": [{"index": 0, "delta": {"content": "a", "tool_calls": [{"index": 0, "id": "c",'
    b' "function": {"name": "f", "arguments": "{}"}}]}}]}\n\n'
    b'data: {"type": "response.completed", "response": {"id": "r", "output": []}}\n\ndata: [DONE]\n'
)
EXCHANGE_SEEDS: Final = (
    *(
        BETWEEN.join(json.dumps(each).encode() for each in bodies)
        for bodies in (_CHAT, _TEXT_CALLS, _RESPONSES, _ANTHROPIC, _GEMINI)
    ),
    _STREAM,
)
REQUEST_FILE_SEEDS: Final = (
    (
        b'{"format": "agentci-requests", "version": 1, "exchanges": [{"method": "POST",'
        b' "path": "/p", "request": {"messages": [{"a": 1}], "b": 2}, "response": {}},'
        b' {"continues": 0, "request": {"messages": [2]}, "without": ["b"]}]}'
    ),
)
CASE_SEEDS: Final = (
    b'{"id": "a", "input": "Hi"}\n{"input": "Ho"}\n',
    b"cases:\n- {id: a, input: Hi}\n- {id: 7}\n",
)


def load_exchanges(data: bytes) -> None:
    """Rebuild turns from bodies of requests and responses in turn, in each API."""
    bodies = data.split(BETWEEN)
    pairs = list(zip(bodies[::2], bodies[1::2], strict=False))
    for api in APIS:
        raw = (
            RawExchange(
                case="",
                api=api,
                method="POST",
                path="/v1/models/m:generateContent",
                request=request,
                response=response,
                status=200,
                content_type="text/event-stream" if b"data: " in response else "application/json",
                encoding="",
                started=2 * number,
                answered=2 * number + 1,
                ended=2 * number + 1,
                finished=True,
            )
            for number, (request, response) in enumerate(pairs)
        )
        exchanges = list(parse_exchanges(raw))
        turns = rebuild_turns(exchanges, joins_unanswered=True, joins_answered=True)
        summarize_lines(write_turns(turns, STAMP, seed=b"", redact=lambda value: value))
        requests = select_requests(exchanges, lambda value: value)
        written = format_requests(requests).encode("utf-8", "replace")
        assert len(parse_requests(written, file="f").requests) == len(requests)


def load_export(data: bytes) -> None:
    """Receive an export as JSON and as protobuf, and read what was kept."""
    for kind, path in chain.from_iterable(
        [(kind, "/v1/traces"), (kind, "/v1/logs")] for kind in (JSON_TYPE, PROTOBUF)
    ):
        receiver = OtlpReceiver()
        request = ServerRequest(
            method="POST",
            case="case",
            route="otlp",
            path=path,
            query="",
            headers={"Content-Type": kind},
            body=data,
        )
        assert receiver.respond(request).status in RECEIVED
        summarize_lines(receiver.list_lines(STAMP, lambda value: value))


def load_request_file(data: bytes) -> None:
    """Read a file of requests."""
    parsed = parse_requests(data, file="f")
    format_requests(parsed.requests, parsed.printed)


def load_cases(data: bytes) -> None:
    """Read a file of cases."""
    read_cases(data, file="cases.yaml")
