"""A model on this machine that speaks four APIs: it asks for the weather, and answers the rest.

A question "weather in X and Y" makes one call of ``get_weather`` per city, "ask the expert: Q" one
of ``ask_expert``; the results of tools are repeated as the answer, and other questions are echoed.
Streams are sent in small pieces. ``python mock_model.py COMMAND...`` runs a command with it.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

CITIES = re.compile(r"weather in (\w+)(?: and (\w+))?")
EXPERT = re.compile(r"ask the expert: (.+)")


@dataclass
class MockModel:
    """The running mock.

    Attributes:
        url: base URL, without the version that an API appends.
        requests: path, headers and body of each request.
        fail_next: statuses to answer the next requests with.
        without_ids: whether Gemini's tool calls have no ids, as Google's have none.
    """

    url: str = ""
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    fail_next: list[int] = field(default_factory=list)
    barrier: threading.Barrier | None = None
    same_ids: bool = False
    numbers: Iterator[int] = field(default_factory=lambda: count(1))


@contextmanager
def mock_model() -> Iterator[MockModel]:
    """Serve the mock while the block runs."""
    model = MockModel()

    class Handler(_Handler):
        mock = model

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()


def decide(question: str, results: list[str]) -> tuple[str, list[tuple[str, dict[str, str]]]]:
    """Return the model's text and its tool calls."""
    if results:
        return " ".join(results), []
    if found := EXPERT.search(question):
        return "", [("ask_expert", {"question": found[1]})]
    if found := CITIES.search(question):
        return "", [("get_weather", {"city": city}) for city in found.groups() if city]
    return f"You asked: {question}", []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    mock: MockModel

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.mock.requests.append((self.path, dict(self.headers), None))
        self._send_json({"object": "list", "data": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.mock.requests.append((self.path, dict(self.headers), body))
        if self.mock.barrier is not None:
            self.mock.barrier.wait(20)
        if self.mock.fail_next:
            status = self.mock.fail_next.pop(0)
            self._send_json({"error": {"message": f"failure {status}"}}, status)
            return
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            self._chat(body)
        elif path.endswith("/responses"):
            self._responses(body)
        elif path.endswith("/messages"):
            self._anthropic(body)
        elif path.endswith("/embeddings"):
            data = [{"object": "embedding", "index": 0, "embedding": [0.5, -1.25]}]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self._send_json({"object": "list", "model": "e", "data": data, "usage": usage})
        else:
            self._gemini(body, path)

    def _number(self) -> int:
        return 1 if self.mock.same_ids else next(self.mock.numbers)

    def _chat(self, body: Any) -> None:
        question, results = "", list[str]()
        for message in body["messages"]:
            if message["role"] == "user":
                question, results = _split_prompt(_text(message["content"]), question)
            elif message["role"] == "tool":
                results.append(_text(message["content"]))
        text, calls = decide(question, results)
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        if text and "final_answer" in tools:
            text, calls = "", [("final_answer", {"answer": text})]
        number = self._number()
        listed = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        head = {"id": f"chatcmpl-{number}", "created": 1, "model": "mock-1"}
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text or None}
            if listed:
                message["tool_calls"] = listed
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._send_json(
                {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            )
            return
        deltas: list[Any] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(text)]
        for index, call in enumerate(listed):
            function: Any = call["function"]
            start = {"name": function["name"], "arguments": ""}
            deltas.append({"tool_calls": [{**call, "index": index, "function": start}]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in _pieces(function["arguments"])
            ]
        chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        chunks.append({"index": 0, "delta": {}, "finish_reason": reason})
        events = [{**head, "object": "chat.completion.chunk", "choices": [one]} for one in chunks]
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append(
                {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            )
        self._send_events([f"data: {json.dumps(one)}\n\n" for one in events] + ["data: [DONE]\n\n"])

    def _responses(self, body: Any) -> None:
        question, results = "", list[str]()
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        for item in items:
            if item.get("type") == "function_call_output":
                results.append(item["output"])
            elif item.get("role") == "user":
                content = item["content"]
                question = content if isinstance(content, str) else content[0]["text"]
                results = []
        text, calls = decide(question, results)
        number = self._number()
        output: list[Any] = [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "xx"}
        ]
        output += [
            {
                "type": "function_call",
                "id": f"fc_{number}_{index}",
                "call_id": f"call_{number}_{index}",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        if text:
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{number}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": "mock-1",
            "status": "completed",
            "output": output,
            "usage": usage,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
        }
        if not body.get("stream"):
            self._send_json(response)
            return
        empty = {**response, "status": "in_progress", "output": [], "usage": None}
        events: list[Any] = [{"type": "response.created", "response": empty}]
        for index, item in enumerate(output):
            events.append(
                {"type": "response.output_item.added", "output_index": index, "item": item}
            )
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        events.append({"type": "response.completed", "response": response})
        self._send_events(
            f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': number})}\n\n"
            for number, one in enumerate(events)
        )

    def _anthropic(self, body: Any) -> None:
        question, results = "", list[str]()
        for message in body["messages"]:
            content = message["content"]
            if message["role"] != "user":
                continue
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            found = [block for block in blocks if block["type"] == "tool_result"]
            if found:
                results += [_text(block["content"]) for block in found]
            else:
                question, results = blocks[0]["text"], []
        text, calls = decide(question, results)
        number = self._number()
        blocks = [{"type": "text", "text": text}] if text else []
        blocks += [
            {"type": "tool_use", "id": f"toolu_{number}_{i}", "name": name, "input": arguments}
            for i, (name, arguments) in enumerate(calls)
        ]
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "mock-1",
            "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        if body.get("stream"):
            self._stream_anthropic(message, text)
        else:
            self._send_json(message)

    def _stream_anthropic(self, message: Any, text: str) -> None:
        blocks = message["content"]
        start = {**message, "content": [], "stop_reason": None}
        events: list[Any] = [{"type": "message_start", "message": start}, {"type": "ping"}]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                first: Any = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": one} for one in _pieces(text)]
            else:
                first = {**block, "input": {}}
                deltas = [
                    {"type": "input_json_delta", "partial_json": one}
                    for one in _pieces(json.dumps(block["input"]))
                ]
            events.append({"type": "content_block_start", "index": index, "content_block": first})
            events += [
                {"type": "content_block_delta", "index": index, "delta": one} for one in deltas
            ]
            events.append({"type": "content_block_stop", "index": index})
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
        events.append({"type": "message_stop"})
        self._send_events(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)

    def _gemini(self, body: Any, path: str) -> None:
        question, results = "", list[str]()
        for content in body["contents"]:
            for part in content["parts"]:
                response = part.get("functionResponse") or part.get("function_response")
                if response:
                    results.append(str(response["response"].get("result")))
                elif content.get("role", "user") == "user" and "text" in part:
                    question, results = part["text"], []
        text, calls = decide(question, results)
        parts: list[Any] = [
            {"functionCall": {"name": name, "args": arguments}} for name, arguments in calls
        ]
        texts = [{"text": one} for one in _pieces(text)]
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        head = {
            "modelVersion": "mock-1",
            "usageMetadata": usage,
            "responseId": f"r{self._number()}",
        }

        def candidate(given: list[Any], reason: str | None) -> Any:
            one = {"index": 0, "content": {"role": "model", "parts": given}}
            return {**head, "candidates": [{**one, **({"finishReason": reason} if reason else {})}]}

        if path.endswith(":generateContent"):
            whole = [{"text": text}] if text else []
            self._send_json(candidate([*whole, *parts], "STOP"))
            return
        answers = [candidate([one], None) for one in (*texts, *parts)]
        answers[-1]["candidates"][0]["finishReason"] = "STOP"
        if "alt=sse" in self.path:
            self._send_events(f"data: {json.dumps(one)}\r\n\r\n" for one in answers)
        else:
            self._send_json(answers)

    def _send_json(self, content: Any, status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Request-Id", "req_1")
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, events: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = event.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")


def _pieces(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


def _split_prompt(text: str, question: str) -> tuple[str, list[str]]:
    """Return the question and the results in the prompts of smolagents and CrewAI."""
    if found := re.search(r"(?:New task:\n|Current Task: )(.+)", text):
        return found[1], []
    if text.startswith("Observation:\n"):
        return question, text.splitlines()[1:]
    return text, []


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def main(command: list[str]) -> int:
    """Run a command whose model calls this mock answers."""
    with mock_model() as model:
        found = {
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_BASE": f"{model.url}/v1",
            "ANTHROPIC_BASE_URL": model.url,
            "GOOGLE_GEMINI_BASE_URL": model.url,
        }
        keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
        environ = {**os.environ, **found, **dict.fromkeys(keys, "mock-key")}
        try:
            return subprocess.run(command, env=environ, check=False).returncode  # noqa: S603
        except OSError as error:
            print(f"cannot start {command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
            return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
