"""Grading with the Evals API: all pages are read in order, and the eval is deleted."""

from collections.abc import Iterator
from typing import Any

import pytest

from agentci.config.variables import ConfigVariables
from agentci.errors import EvaluatorError
from agentci.judges.evals_api_client import EvalsApiClient, make_key_header
from agentci.judges.transport import Transport
from agentci.model.requests import EvalsService, GradeWithService, ServiceGrades
from tests._util.http.patience import Patience
from tests._util.http.servers import Answer, Server, serve
from tests.judges.evals_api.service import FakeEvals

KEY = "sk-secret-0123456789"
CRITERION = {"type": "string_check", "name": "g", "operation": "eq"}


class Bench:
    """A fake service and its client, with a fake clock."""

    def __init__(self, fake: FakeEvals, server: Server) -> None:
        self.fake = fake
        self.server = server
        self.patience = Patience()

    def grade(self, *texts: str, **others: Any) -> ServiceGrades:
        transport = Transport(
            report=self.patience.told.append,
            stopped=others.pop("stopped", lambda: False),
            sleep=self.patience.sleep,
            clock=self.patience.clock,
        )
        grading = EvalsApiClient(transport, variables=ConfigVariables({"KEY": KEY}))
        service = EvalsService(base_url=f"{self.server.url}/v1/", key_variable="KEY")
        request = {
            "service": service,
            "name": "agentci g",
            "criterion": CRITERION,
            "items": tuple({"text": text, "row": 1} for text in texts),
            "timeout_seconds": 60,
        }
        return grading.grade(GradeWithService(**{**request, **others}))


@pytest.fixture
def fake() -> FakeEvals:
    return FakeEvals(score=lambda item: float(item["text"]))


@pytest.fixture
def bench(fake: FakeEvals) -> Iterator[Bench]:
    with serve(fake) as server:
        yield Bench(fake, server)


def test_grades_of_all_pages_are_in_item_order(bench: Bench) -> None:
    bench.fake.page = 2
    found = bench.grade("0.5", "1", "0", "0.25", "1")
    assert [each.score for each in found.grades] == [0.5, 1, 0, 0.25, 1]
    assert [each.passed for each in found.grades] == [False, True, False, False, True]
    assert sum("output_items" in path for path in bench.server.paths) == 3
    assert bench.fake.evals == set()


def test_repeated_page_is_an_error(bench: Bench) -> None:
    bench.fake.page, bench.fake.repeats = 1, True
    with pytest.raises(EvaluatorError, match="did not grade each of the 2 items once"):
        bench.grade("1", "1", timeout_seconds=6)
    assert sum("output_items" in path for path in bench.server.paths) == 3
    assert bench.fake.evals == set()


def test_eval_and_run_contain_criterion_and_items(bench: Bench) -> None:
    bench.grade("1")
    assert bench.fake.created == [
        {
            "name": "agentci g",
            "data_source_config": {
                "type": "custom",
                "item_schema": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}, "row": {}},
                    "required": ["text", "row"],
                },
                "include_sample_schema": False,
            },
            "testing_criteria": [CRITERION],
        },
        {
            "name": "agentci g",
            "data_source": {
                "type": "jsonl",
                "source": {
                    "type": "file_content",
                    "content": [{"item": {"text": "1", "row": 1}}],
                },
            },
        },
    ]
    assert {each.headers["authorization"] for each in bench.server.asked} == {f"Bearer {KEY}"}


def test_no_key_is_sent_without_key_variable(bench: Bench) -> None:
    bench.grade("1", service=EvalsService(base_url=f"{bench.server.url}/v1"))
    assert [each for each in bench.server.asked if "authorization" in each.headers] == []


def test_run_is_polled_until_complete(bench: Bench) -> None:
    bench.fake.polls = 5
    assert bench.grade("1").grades[0].passed
    assert bench.patience.slept == pytest.approx(12)


def test_run_that_exceeds_timeout_is_an_error(bench: Bench) -> None:
    bench.fake.polls = 100
    with pytest.raises(EvaluatorError, match=r"^timed out after 60 s$"):
        bench.grade("1")
    assert bench.fake.evals == set()


def test_busy_service_is_retried(bench: Bench) -> None:
    bench.fake.refusals = [Answer(status=429, headers={"Retry-After": "7"})]
    assert bench.grade("1").grades[0].passed
    assert bench.patience.slept == pytest.approx(7 + 4, abs=1)


def test_response_without_json_is_retried(bench: Bench) -> None:
    bench.fake.refusals = [Answer(body=b"<html>")]
    assert bench.grade("1").grades[0].passed


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"status": "failed", "error": {"message": "no quota"}}, "service's run failed: no quota"),
        ({"status": "canceled"}, "service's run canceled: no reason given"),
        ({"result_counts": {"errored": 1}}, "the service could not grade 1 of 2"),
    ],
)
def test_incomplete_run_is_an_error(bench: Bench, run: dict[str, Any], why: str) -> None:
    bench.fake.run = {"status": "completed", **run}
    with pytest.raises(EvaluatorError, match=why):
        bench.grade("1", "1")
    assert bench.fake.evals == set()


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"datasource_item_id": 0}, "did not grade each of the 2 items once"),
        ({"datasource_item_id": "0"}, "returned no score for an item"),
        ({"results": []}, "returned no score for an item"),
        ({"results": None}, "returned no score for an item"),
        ({"results": [7, {"score": None, "passed": True}]}, "returned no score for an item"),
        ({"results": [{"score": True, "passed": True}]}, "returned no score for an item"),
        ({"results": [{"score": 1, "passed": "yes"}]}, "returned no score for an item"),
    ],
)
def test_item_without_grade_is_an_error(bench: Bench, item: dict[str, Any], why: str) -> None:
    bench.fake.item = item
    with pytest.raises(EvaluatorError, match=why):
        bench.grade("1", "1")


def test_label_and_reason_of_item_are_kept(bench: Bench) -> None:
    result = {"score": 1, "passed": True, "label": "good", "reason": "so", "sample": {"big": 1}}
    bench.fake.item = {"results": [result]}
    assert bench.grade("1").grades[0].details == {"label": "good", "reason": "so"}


def test_error_response_is_reported_without_key(bench: Bench) -> None:
    body = f'{{"error": {{"message": "{KEY} may not"}}}}'.encode()
    bench.fake.refusals = [Answer(status=400, body=body)]
    with pytest.raises(EvaluatorError, match=r"the service returned status 400 \(\*\*\* may not\)"):
        bench.grade("1")


def test_key_in_response_is_redacted(bench: Bench) -> None:
    bench.fake.item = {"results": [{"score": 1, "passed": True, "reason": f"by {KEY}"}]}
    assert bench.grade("1").grades[0].details == {"reason": "by ***"}
    bench.fake.run = {"status": "failed", "error": {"message": f"no {KEY}"}}
    with pytest.raises(EvaluatorError, match=r"failed: no \*\*\*$"):
        bench.grade("1")


def test_response_without_id_is_an_error(bench: Bench) -> None:
    bench.fake.refusals = [Answer(body=b"{}")]
    with pytest.raises(EvaluatorError, match="response has no id"):
        bench.grade("1")


def test_failed_deletion_is_reported_and_ignored(bench: Bench) -> None:
    bench.fake.keeps = True
    assert bench.grade("1").grades[0].passed
    [message] = bench.patience.told
    assert message.startswith(
        "could not delete /evals/eval%201 at 127.0.0.1: the service returned status 404"
    )


def test_interrupted_run_reports_undeleted_eval(bench: Bench) -> None:
    with pytest.raises(EvaluatorError, match="interrupted"):
        bench.grade("1", stopped=lambda: bool(bench.fake.evals))
    [message] = bench.patience.told
    assert message.startswith("could not delete /evals/eval%201 at 127.0.0.1: ")
    assert "interrupted" in message


def test_unencrypted_base_url_is_an_error(bench: Bench) -> None:
    with pytest.raises(EvaluatorError, match="http"):
        bench.grade("1", service=EvalsService(base_url="http://grader.example", key_variable="KEY"))


def test_azure_openai_key_uses_api_key_header() -> None:
    assert make_key_header("https://r.openai.azure.com/openai/v1", "k") == {"api-key": "k"}
    assert make_key_header("https://r.services.ai.azure.com/api/projects/p/openai/v1", "k") == {
        "Authorization": "Bearer k"
    }
    assert make_key_header("https://r.openai.azure.com/openai/v1", "") == {}
