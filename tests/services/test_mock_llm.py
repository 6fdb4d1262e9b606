"""`backend: remote` against mock-llm, a third-party server with configurable responses."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import requests

from tests.helpers.recordings import otlp
from tests.helpers.support import Ran, run_agentci
from tests.judges.evals_api.answers import DELETED, EVAL, RUN, a_page, a_run, an_eval, an_item
from tests.services.servers import MODULES, free_port, running

CLI = MODULES / "@dwmkerr" / "mock-llm" / "dist" / "main.js"
KEY = "sk-test-0123456789"
EVALS = "/v1/evals"
ONE = f"{EVALS}/{EVAL}"
RUNS = f"{ONE}/runs"
ITEMS = f"{RUNS}/{RUN}/output_items"
SCORES = (0.9, 0.4, 0.8)
GRADED = [an_item(number, score, passed=score > 0.7) for number, score in enumerate(SCORES)]
Rule: TypeAlias = dict[str, Any]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CLI.is_file(), reason="mock-llm is not installed by npm"),
]


def rule(method: str, path: str, content: object, status: int = 200, **others: Any) -> Rule:
    """The response to a request; if several rules match, the last one applies."""
    text = re.sub(r'"(\{\{jmes .*?\}\})"', r"\1", json.dumps(content))
    response = {"status": status, "content": text}
    return {"method": method, "path": f"^{path}$", "response": response, **others}


# Matches requests with the key and with a criterion that has a threshold.
MADE = rule(
    "POST",
    EVALS,
    an_eval(
        criterion="{{jmes request body.testing_criteria[0]}}",
        item_schema="{{jmes request body.data_source_config.item_schema}}",
    ),
    201,
    match=f"headers.authorization == 'Bearer {KEY}' && body.testing_criteria[0].pass_threshold",
)


def make_rules(*statuses: str) -> list[Rule]:
    """The rules for an eval from creation to deletion; the run goes through ``statuses``."""
    return [
        MADE,
        rule("POST", RUNS, a_run("queued"), 201, match="length(body.data_source.source.content)"),
        *(
            rule("GET", f"{RUNS}/{RUN}", a_run(status, len(SCORES)), sequence=number)
            for number, status in enumerate(statuses)
        ),
        rule("GET", ITEMS, a_page(*GRADED[:2], more=True), match="query.limit == '100'"),
        rule("GET", ITEMS, a_page(GRADED[2]), match="query.after == 'item_1'"),
        rule("DELETE", ONE, DELETED),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MockLlm:
    """A server; its address has no path."""

    url: str
    log: Path

    def configure(self, rules: list[Rule]) -> None:
        requests.delete(f"{self.url}/config", timeout=5)  # resets its counters
        requests.post(f"{self.url}/config", json={"rules": rules}, timeout=5)
        self.log.write_text("")

    @property
    def asked(self) -> list[str]:
        """The methods and paths of the requests, in order."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if f" {EVALS}" in line]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockLlm]:
    folder = tmp_path_factory.mktemp("mock-llm")
    port = free_port()
    environ = {"HOST": "127.0.0.1", "PORT": str(port)}
    url = f"http://127.0.0.1:{port}"
    with running(CLI, ready=f"{url}/health", folder=folder, environ=environ):
        yield MockLlm(url=url, log=folder / "out")


def grade(folder: Path, url: str) -> Ran:
    """Grade a conversation of three turns."""
    entry = {
        "name": "g",
        "type": "openai_eval",
        "threshold": 0.7,
        "grader": {"type": "text_similarity", "evaluation_metric": "cosine", "reference": "x"},
        "backend": "remote",
        "base_url": f"{url}/v1",
        "api_key_env": "KEY",
    }
    turns = [otlp(answer=f"answer {turn}", turn=turn) for turn in range(len(SCORES))]
    (folder / "trace.jsonl").write_text("\n".join(turns))
    config = {"traces": "trace.jsonl", "evaluators": [entry]}
    (folder / "agentci.yaml").write_text(json.dumps(config))
    return run_agentci(["run"], cwd=folder, environ={"KEY": KEY})


def test_run_is_polled_read_in_pages_and_deleted(tmp_path: Path, server: MockLlm) -> None:
    server.configure(make_rules("in_progress", "completed"))
    ran = grade(tmp_path, server.url)
    [result] = ran.results["results"]
    assert (ran.code, result["status"]) == (1, "failed"), result
    assert result["turn_scores"] == [*SCORES]
    assert result["misses"] == ["turn 2: the service returned score 0.4"]
    assert server.asked == [
        f"POST {EVALS}",
        f"POST {RUNS}",
        *[f"GET {RUNS}/{RUN}"] * 2,
        *[f"GET {ITEMS}"] * 2,
        f"DELETE {ONE}",
    ]


ENDED = a_run("completed", len(SCORES))
REFUSED = {"error": {"message": "no such thing", "type": "invalid_request_error", "code": None}}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (rule("POST", RUNS, REFUSED, 400), "the service returned status 400 (no such thing)"),
        (
            rule("POST", RUNS, a_run("failed", error={"code": "x", "message": "no quota"}), 201),
            "the service's run failed: no quota",
        ),
        (
            rule("POST", RUNS, {**ENDED, "result_counts": {"errored": 2}}, 201),
            "the service could not grade 2 of 3",
        ),
        (rule("GET", ITEMS, REFUSED, 404), "the service returned status 404 (no such thing)"),
        (
            rule("GET", ITEMS, a_page(*GRADED[:2])),
            "the service did not grade each of the 3 items once",
        ),
    ],
)
def test_failed_run_is_errored_and_eval_deleted(
    tmp_path: Path, server: MockLlm, answer: Rule, reason: str
) -> None:
    server.configure([*make_rules(), rule("POST", RUNS, ENDED, 201), answer])
    ran = grade(tmp_path, server.url)
    [result] = ran.results["results"]
    assert (ran.code, result["status"], result["score"]) == (3, "errored", None)
    assert result["reason"].startswith(reason)
    assert server.asked[-1] == f"DELETE {ONE}"


def test_eval_that_was_not_created_is_not_deleted(tmp_path: Path, server: MockLlm) -> None:
    server.configure([rule("POST", EVALS, REFUSED, 401)])
    [result] = grade(tmp_path, server.url).results["results"]
    assert result["reason"].startswith("the service returned status 401")
    assert server.asked == [f"POST {EVALS}"]
