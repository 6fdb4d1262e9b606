"""Responses of the target proxy, equal to those of AgentV's proxy."""

import gc
import json
from http import HTTPStatus
from typing import Any

import pytest

from agentci.errors import EvaluatorError
from agentci.judges.target_proxy import ProxyRequest, ProxyTarget
from agentci.model.judges import JudgePrompt, ModelResponse

TOKEN = "0123456789abcdef" * 4
SENT = "which nobody wants"


class Model:
    """A model that echoes the question, or fails if ``fails`` is set."""

    def __init__(self, **response: Any) -> None:
        self.asked: list[JudgePrompt] = []
        self.fails = False
        self._reply = response

    def ask(self, question: JudgePrompt) -> ModelResponse:
        self.asked.append(question)
        if self.fails:
            raise EvaluatorError("it is down")
        return ModelResponse(text=f"to {question.user}", ending="complete", **self._reply)


class Program:
    """A client of the proxy, with the right token by default."""

    def __init__(self, model: Model, max_calls: int = 50) -> None:
        self.target = ProxyTarget(model.ask, name="m", token=TOKEN, max_calls=max_calls)

    def call(
        self, method: str, path: str, body: object = None, *, token: str = f"Bearer {TOKEN}"
    ) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        asked = ProxyRequest(method=method, path=path, authorization=token, body=content)
        answer = self.target.respond(asked)
        return answer.status.value, answer.content

    def invoke(self, **body: object) -> tuple[int, Any]:
        return self.call("POST", "/invoke", body)

    def batch(self, *requests: object) -> tuple[int, Any]:
        return self.call("POST", "/invokeBatch", {"requests": requests})


def error(status: HTTPStatus, why: str) -> tuple[int, Any]:
    return status.value, {"error": why}


def test_response_has_fields_of_all_agentv_versions() -> None:
    model = Model(tokens_in=3, tokens_out=0)
    messages = [{"role": "assistant", "content": "to Q"}]
    assert Program(model).invoke(question="Q", systemPrompt="S", evalCaseId="c", attempt=2) == (
        200,
        {
            "outputMessages": messages,
            "output": messages,
            "rawText": "to Q",
            "tokenUsage": {"input": 3, "output": 0},
        },
    )
    assert model.asked == [JudgePrompt(system="S", user="Q", schema=None)]


def test_incomplete_token_usage_is_omitted() -> None:
    assert "tokenUsage" not in Program(Model(tokens_in=3)).invoke(question="Q")[1]


def test_null_system_prompt_is_empty() -> None:
    model = Model()
    Program(model).invoke(question="Q", systemPrompt=None)
    assert model.asked[0].system == ""


def test_info_reports_target_and_call_count() -> None:
    program = Program(Model(), max_calls=3)
    program.invoke(question="Q")
    assert program.call("GET", "/info") == (
        200,
        {
            "targetName": "m",
            "provider": "m",
            "providerLabel": "m",
            "maxCalls": 3,
            "callCount": 1,
            "availableTargets": ["m"],
            "availableProviderLabels": ["m"],
        },
    )


@pytest.mark.parametrize(
    "token", ["", TOKEN, f"bearer {TOKEN}", f"Bearer {TOKEN[:-1]}", "Bearer é"]
)
def test_request_without_valid_token_is_unauthorized(token: str) -> None:
    model = Model()
    for method, path in (("GET", "/info"), ("POST", "/invoke"), ("PUT", "/nowhere")):
        received = Program(model).call(method, path, {"question": "Q"}, token=token)
        assert received == error(HTTPStatus.UNAUTHORIZED, "Unauthorized")
    assert model.asked == []


def test_options_request_needs_no_token() -> None:
    assert Program(Model()).call("OPTIONS", "/anything", token="") == (204, None)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/invoke"), ("POST", "/info"), ("GET", "/info?x=1"), ("HEAD", "/info")],
)
def test_unknown_route_is_not_found(method: str, path: str) -> None:
    assert Program(Model()).call(method, path) == error(HTTPStatus.NOT_FOUND, "Not found")


@pytest.mark.parametrize("body", [{}, {"question": ""}, {"question": 7}, [], "Q", None])
def test_missing_question_is_a_bad_request(body: object) -> None:
    program = Program(Model(), max_calls=1)
    why = "Missing required field: question"
    assert program.call("POST", "/invoke", body) == error(HTTPStatus.BAD_REQUEST, why)
    assert program.invoke(question="Q")[0] == 200, "it has not cost a call"


@pytest.mark.parametrize("body", [b"not json", b"", b'"\xff"', b"[" * 100_000, b'{"question":'])
def test_body_that_is_not_json_is_an_error(body: bytes) -> None:
    status, received = Program(Model()).call("POST", "/invoke", body)
    assert status == 500
    assert received["error"].startswith("the body is not JSON")


def test_unknown_target_is_a_bad_request() -> None:
    program = Program(Model())
    why = "Unknown target 'x'. Available: m"
    assert program.invoke(question="Q", target="x") == error(HTTPStatus.BAD_REQUEST, why)
    assert program.invoke(question="Q", provider="x") == error(HTTPStatus.BAD_REQUEST, why)
    assert program.invoke(question="Q", target="m")[0] == 200
    assert program.invoke(question="Q", provider="m", target=None)[0] == 200


def test_failed_model_call_counts_toward_limit() -> None:
    model = Model()
    program = Program(model, max_calls=1)
    model.fails = True
    assert program.invoke(question="Q") == error(HTTPStatus.INTERNAL_SERVER_ERROR, "it is down")
    why = "Max calls exceeded (limit: 1)"
    assert program.invoke(question="Q") == error(HTTPStatus.TOO_MANY_REQUESTS, why)
    assert program.call("POST", "/invoke", b"not json") == error(HTTPStatus.TOO_MANY_REQUESTS, why)


def test_max_calls_can_be_zero() -> None:
    why = "Max calls exceeded (limit: 0)"
    received = Program(Model(), max_calls=0).invoke(question="Q")
    assert received == error(HTTPStatus.TOO_MANY_REQUESTS, why)


class TestBatch:
    def test_invalid_question_does_not_fail_batch(self) -> None:
        status, received = Program(Model()).batch(
            {"question": "a"}, {}, {"question": "b", "target": "x"}, None, {"question": "c"}
        )
        assert status == 200
        assert [each["rawText"] for each in received["responses"]] == [
            "to a",
            "Error: Missing required field: question",
            "Error: Unknown target 'x'. Available: m",
            "Error: Missing required field: question",
            "to c",
        ]
        assert received["responses"][1]["outputMessages"] == []

    def test_model_error_is_reported_in_batch(self) -> None:
        model = Model()
        model.fails = True
        status, received = Program(model).batch({"question": "a"})
        assert (status, received["responses"][0]["rawText"]) == (200, "Error: it is down")

    def test_batch_over_limit_makes_no_call(self) -> None:
        model = Model()
        program = Program(model, max_calls=2)
        program.invoke(question="Q")
        why = "Batch would exceed max calls (current: 1, batch: 2, limit: 2)"
        received = program.batch({"question": "a"}, {"nope": 1})
        assert received == error(HTTPStatus.TOO_MANY_REQUESTS, why)
        assert len(model.asked) == 1

    @pytest.mark.parametrize("body", [{}, {"requests": {"question": "Q"}}, []])
    def test_batch_requests_must_be_a_list(self, body: object) -> None:
        why = "Missing required field: requests (array)"
        received = Program(Model()).call("POST", "/invokeBatch", body)
        assert received == error(HTTPStatus.BAD_REQUEST, why)


def test_closed_proxy_makes_no_calls() -> None:
    model = Model()
    program = Program(model)

    def ask(question: JudgePrompt) -> ModelResponse:
        program.target.close()
        return Model.ask(model, question)

    program.target = ProxyTarget(ask, name="m", token=TOKEN, max_calls=9)
    received = program.batch({"question": "a"}, {"question": "b"})[1]["responses"]
    assert [each["rawText"] for each in received] == ["to a", "Error: Proxy is shutting down"]
    why = "Proxy is shutting down"
    assert program.invoke(question="Q") == error(HTTPStatus.SERVICE_UNAVAILABLE, why)
    assert len(model.asked) == 1


@pytest.mark.parametrize("path", ["/invoke", "/invokeBatch"])
def test_request_body_is_released_during_model_call(path: str) -> None:
    kept: list[int] = []

    def ask(_: JudgePrompt) -> ModelResponse:
        # Other lists may hold objects that cannot be compared.
        lists = (each for each in gc.get_objects() if type(each) is list and len(each) == 1)
        kept.append(sum(type(each[0]) is str and each[0] == SENT for each in lists))
        return ModelResponse(text="", ending="complete")

    target = ProxyTarget(ask, name="m", token=TOKEN, max_calls=1)
    wish = {"question": "Q", "else": [[SENT]] * 100}
    body = json.dumps(wish if path == "/invoke" else {"requests": [wish]}).encode()
    target.respond(
        ProxyRequest(method="POST", path=path, authorization=f"Bearer {TOKEN}", body=body)
    )
    assert kept == [1]  # the list of this test
