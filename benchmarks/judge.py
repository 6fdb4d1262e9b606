"""A model that takes its time: a hundred answers, eight asked at a time, and then none at all."""

import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from benchmarks.processes import run

CASES: Final = 100
JOBS: Final = 8
ANSWER_SECONDS: Final = 0.2
IDEAL_SECONDS: Final = CASES * ANSWER_SECONDS / JOBS
# Of the ideal, that the judging may take longer.
MAX_MORE: Final = 0.15

VERDICT: Final = json.dumps({"reasoning": "so", "hits": [], "misses": [], "score": 0.9})


class Model(ThreadingHTTPServer):
    """A service of OpenAI's kind, on this machine."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.moments: list[tuple[float, float]] = []

    @property
    def asked(self) -> int:
        """How many questions were answered."""
        return len(self.moments)

    @property
    def seconds(self) -> float:
        """From the first question to the last answer."""
        return max(end for _, end in self.moments) - min(start for start, _ in self.moments)


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model  # type: ignore[mutable-override]

    def do_POST(self) -> None:
        started = time.perf_counter()
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(ANSWER_SECONDS)
        choice = {"message": {"content": VERDICT}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice]}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)
        self.server.moments.append((started, time.perf_counter()))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def measure() -> bool:
    """Print what judging takes, from the first question on; tell whether that is within its limit.

    Before it a run starts, as any other: what that takes is measured elsewhere.
    """
    print(f"{CASES} answers judged by a model that takes {ANSWER_SECONDS} s, {JOBS} at a time")
    with tempfile.TemporaryDirectory() as temporary, Model() as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        folder = Path(temporary) / "workspace"
        folder.mkdir()
        _write(folder, f"http://127.0.0.1:{model.server_port}")
        first = run(_command(), cwd=folder)
        asked, seconds = model.asked, model.seconds
        again = run(_command(), cwd=folder)
        model.shutdown()
    most = IDEAL_SECONDS * (1 + MAX_MORE)
    print(f"  first   {first.seconds:6.3f} s  {asked} calls")
    print(f"  again   {again.seconds:6.3f} s  {model.asked - asked} calls (at most 0)")
    print(f"  judging {seconds:6.3f} s  (ideally {IDEAL_SECONDS}, at most {most})")
    return seconds <= most and asked == CASES == model.asked


def _write(folder: Path, url: str) -> None:
    evaluators = [{"name": "j", "type": "llm_judge"}]
    cases = [
        {"id": f"c{i}", "criteria": "says Paris", "input": "Capital?", "evaluators": evaluators}
        for i in range(CASES)
    ]
    outputs = [
        {"id": f"c{i}", "output_messages": [{"role": "assistant", "content": f"Paris {i}"}]}
        for i in range(CASES)
    ]
    judge = {"provider": "openai", "model": "m", "base_url": url}
    file = {"outputs": "out.jsonl", "judge": judge, "cases": cases}
    (folder / "e.yaml").write_text(json.dumps(file))
    (folder / "out.jsonl").write_text("\n".join(map(json.dumps, outputs)))


def _command() -> Sequence[str]:
    command = [sys.executable, "-m", "agentci", "run", "e.yaml", "--quiet"]
    return [*command, "--jobs", str(JOBS), "--cache-dir", "../cache"]
