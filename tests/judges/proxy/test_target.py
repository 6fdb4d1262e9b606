"""What is answered for a model, as AgentV's target proxy answers it."""

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
    """Answers what it is asked with the question, unless it was told to fail."""

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
    """Asks, with the right token unless it is told another."""

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


def test_an_answer_is_told_in_the_words_of_all_generations() -> None:
    model = Model(tokens_in=3, tokens_out=0)
    said = [{"role": "assistant", "content": "to Q"}]
    assert Program(model).invoke(question="Q", systemPrompt="S", evalCaseId="c", attempt=2) == (
        200,
        {
            "outputMessages": said,
            "output": said,
            "rawText": "to Q",
            "tokenUsage": {"input": 3, "output": 0},
        },
    )
    assert model.asked == [JudgePrompt(system="S", user="Q", schema=None)]


def test_what_tokens_it_took_is_told_where_the_service_said_so() -> None:
    assert "tokenUsage" not in Program(Model(tokens_in=3)).invoke(question="Q")[1]


def test_a_system_prompt_that_is_no_text_is_none() -> None:
    model = Model()
    Program(model).invoke(question="Q", systemPrompt=None)
    assert model.asked[0].system == ""


def test_who_answers_and_how_often_is_told() -> None:
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
def test_nobody_is_answered_without_the_token(token: str) -> None:
    model = Model()
    for method, path in (("GET", "/info"), ("POST", "/invoke"), ("PUT", "/nowhere")):
        told = Program(model).call(method, path, {"question": "Q"}, token=token)
        assert told == error(HTTPStatus.UNAUTHORIZED, "Unauthorized")
    assert model.asked == []


def test_browsers_may_ask_first_without_it() -> None:
    assert Program(Model()).call("OPTIONS", "/anything", token="") == (204, None)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/invoke"), ("POST", "/info"), ("GET", "/info?x=1"), ("HEAD", "/info")],
)
def test_there_is_nothing_else(method: str, path: str) -> None:
    assert Program(Model()).call(method, path) == error(HTTPStatus.NOT_FOUND, "Not found")


@pytest.mark.parametrize("body", [{}, {"question": ""}, {"question": 7}, [], "Q", None])
def test_a_question_has_to_be_there(body: object) -> None:
    program = Program(Model(), max_calls=1)
    why = "Missing required field: question"
    assert program.call("POST", "/invoke", body) == error(HTTPStatus.BAD_REQUEST, why)
    assert program.invoke(question="Q")[0] == 200, "it has not cost a call"


@pytest.mark.parametrize("body", [b"not json", b"", b'"\xff"', b"[" * 100_000, b'{"question":'])
def test_what_is_no_json_is_told_so(body: bytes) -> None:
    status, told = Program(Model()).call("POST", "/invoke", body)
    assert status == 500
    assert told["error"].startswith("the body is not JSON")


def test_another_model_than_that_of_the_config_cannot_be_had() -> None:
    program = Program(Model())
    why = "Unknown target 'x'. Available: m"
    assert program.invoke(question="Q", target="x") == error(HTTPStatus.BAD_REQUEST, why)
    assert program.invoke(question="Q", provider="x") == error(HTTPStatus.BAD_REQUEST, why)
    assert program.invoke(question="Q", target="m")[0] == 200
    assert program.invoke(question="Q", provider="m", target=None)[0] == 200


def test_a_model_that_fails_says_why_and_has_cost_a_call() -> None:
    model = Model()
    program = Program(model, max_calls=1)
    model.fails = True
    assert program.invoke(question="Q") == error(HTTPStatus.INTERNAL_SERVER_ERROR, "it is down")
    why = "Max calls exceeded (limit: 1)"
    assert program.invoke(question="Q") == error(HTTPStatus.TOO_MANY_REQUESTS, why)
    assert program.call("POST", "/invoke", b"not json") == error(HTTPStatus.TOO_MANY_REQUESTS, why)


def test_no_call_at_all_may_be_allowed() -> None:
    why = "Max calls exceeded (limit: 0)"
    told = Program(Model(), max_calls=0).invoke(question="Q")
    assert told == error(HTTPStatus.TOO_MANY_REQUESTS, why)


class TestABatch:
    def test_is_answered_in_order_and_one_question_cannot_spoil_it(self) -> None:
        status, told = Program(Model()).batch(
            {"question": "a"}, {}, {"question": "b", "target": "x"}, None, {"question": "c"}
        )
        assert status == 200
        assert [each["rawText"] for each in told["responses"]] == [
            "to a",
            "Error: Missing required field: question",
            "Error: Unknown target 'x'. Available: m",
            "Error: Missing required field: question",
            "to c",
        ]
        assert told["responses"][1]["outputMessages"] == []

    def test_says_where_the_model_failed(self) -> None:
        model = Model()
        model.fails = True
        status, told = Program(model).batch({"question": "a"})
        assert (status, told["responses"][0]["rawText"]) == (200, "Error: it is down")

    def test_is_asked_whole_or_not_at_all(self) -> None:
        model = Model()
        program = Program(model, max_calls=2)
        program.invoke(question="Q")
        why = "Batch would exceed max calls (current: 1, batch: 2, limit: 2)"
        told = program.batch({"question": "a"}, {"nope": 1})
        assert told == error(HTTPStatus.TOO_MANY_REQUESTS, why)
        assert len(model.asked) == 1

    @pytest.mark.parametrize("body", [{}, {"requests": {"question": "Q"}}, []])
    def test_is_a_list(self, body: object) -> None:
        why = "Missing required field: requests (array)"
        told = Program(Model()).call("POST", "/invokeBatch", body)
        assert told == error(HTTPStatus.BAD_REQUEST, why)


def test_a_program_that_has_ended_asks_no_more() -> None:
    model = Model()
    program = Program(model)

    def ask(question: JudgePrompt) -> ModelResponse:
        program.target.close()
        return Model.ask(model, question)

    program.target = ProxyTarget(ask, name="m", token=TOKEN, max_calls=9)
    told = program.batch({"question": "a"}, {"question": "b"})[1]["responses"]
    assert [each["rawText"] for each in told] == ["to a", "Error: Proxy is shutting down"]
    why = "Proxy is shutting down"
    assert program.invoke(question="Q") == error(HTTPStatus.SERVICE_UNAVAILABLE, why)
    assert len(model.asked) == 1


@pytest.mark.parametrize("path", ["/invoke", "/invokeBatch"])
def test_what_else_a_program_sends_is_gone_while_a_model_answers(path: str) -> None:
    kept: list[int] = []

    def ask(_: JudgePrompt) -> ModelResponse:
        # Lists of others may hold anything, which need not bear to be compared.
        lists = (each for each in gc.get_objects() if type(each) is list and len(each) == 1)
        kept.append(sum(type(each[0]) is str and each[0] == SENT for each in lists))
        return ModelResponse(text="", ending="complete")

    target = ProxyTarget(ask, name="m", token=TOKEN, max_calls=1)
    wish = {"question": "Q", "else": [[SENT]] * 100}
    body = json.dumps(wish if path == "/invoke" else {"requests": [wish]}).encode()
    target.respond(
        ProxyRequest(method="POST", path=path, authorization=f"Bearer {TOKEN}", body=body)
    )
    assert kept == [1]  # ours
