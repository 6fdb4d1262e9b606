"""500 cases with a judge service that fails for about every fifth request."""

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from tests._util.http.servers import Answer, Asked, Raw, head, serve
from tests.e2e.judged import at, judge, scored
from tests.helpers.support import ROOT
from tests.judges.bench import refused, said

pytestmark = pytest.mark.slow

CASES = 500
# The service never answers one case out of this many.
DOOMED = 50
SOON = {"retry-after-ms": "5"}
FAULTS: tuple[Answer | Raw, ...] = (
    refused(429, SOON),
    refused(503, SOON),
    refused(500, SOON),
    Answer(body=b"<html>busy</html>"),
    Raw(pieces=[], resets=True),
    Raw(pieces=[head(200, "Content-Length: 900"), b'{"choices"']),
)
GONE = refused(503, {"x-should-retry": "false"})


class Service:
    """Scores a case by its number; about every fifth response is a fault.

    Attributes:
        judged: the number of verdicts given for each case.
    """

    def __init__(self) -> None:
        self.judged: Counter[int] = Counter()
        self._asked: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Answer | Raw:
        found = re.search(r"Paris (\d+)\.", asked.body.decode())
        assert found
        case = int(found[1])
        with self._lock:
            self._asked[case] += 1
            chance = sha256(f"{case} {self._asked[case]}".encode()).digest()
            if case % DOOMED == 0:
                return GONE
            if chance[0] % 5 == 0:
                return FAULTS[chance[1] % len(FAULTS)]
            self.judged[case] += 1
        return scored(score_of(case))  # type: ignore[no-any-return]


def score_of(case: int) -> float:
    return (case % 10 + 1) / 10


def test_faulty_service_causes_no_wrong_or_duplicate_verdict(tmp_path: Path) -> None:
    service = Service()
    with serve(service) as server:
        first = judge(tmp_path, at(server.url), "--jobs", "16", cases=CASES)
        asked = len(server.asked)
        second = judge(tmp_path, at(server.url), "--jobs", "16", cases=CASES)
    results = first.report["results"]
    assert [each["case"] for each in results] == [f"c{case}" for case in range(CASES)]
    for case, result in enumerate(results):
        if case % DOOMED == 0:
            assert (result["status"], result["score"]) == ("errored", None)
        elif result["status"] != "errored":
            assert result["score"] == score_of(case)
    judged = {case for case, each in enumerate(results) if each["status"] != "errored"}
    assert len(judged) >= CASES * 0.97
    assert {case: times for case, times in service.judged.items() if times > 1} == {}
    assert asked > CASES * 1.15
    assert [each["cached"] for each in second.report["results"]] == [
        case in judged for case in range(CASES)
    ]


def test_vendor_sdks_are_not_imported(tmp_path: Path) -> None:
    with serve(lambda _: said(json.dumps({"reasoning": "so", "score": 1}))) as server:
        judge(tmp_path, at(server.url))
        code = (
            "import sys; from agentci.cli.main import main; main(['run', 'e.yaml', '--no-cache']);"
            "print(*{name.partition('.')[0] for name in sys.modules})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "KEY": "k"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert len(server.asked) == 2
    imported = set(done.stdout.splitlines()[-1].split())
    assert "requests" in imported
    sdks = {"openai", "anthropic", "google", "azure", "litellm", "httpx", "aiohttp", "tiktoken"}
    assert imported & sdks == set()
