"""What AgentV's target proxy answers: to whom, how often, and in which words.

The same is said in the words of all generations of AgentV at once: ``outputMessages`` and
``output``, ``target`` and ``provider``.
"""

import hmac
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from agentci.errors import EvaluatorError
from agentci.model.json import Json, JsonObject
from agentci.model.judging import ModelReply, Question

NO_QUESTION: Final = "Missing required field: question"
NO_REQUESTS: Final = "Missing required field: requests (array)"
SHUTTING_DOWN: Final = "Proxy is shutting down"
# What JSON says takes up to thirty times its own size. Nobody has two bodies in memory at a time,
# nor one for as long as a model answers.
READING: Final = threading.Lock()


class Asked(Struct, frozen=True, kw_only=True):
    """A request as it came.

    Attributes:
        path: with its query.
        authorization: the header of that name; empty where there is none.
    """

    method: str
    path: str
    authorization: str = ""
    body: bytes = b""


class Answer(Struct, frozen=True, kw_only=True):
    """What is answered.

    Attributes:
        content: an object of JSON; None for no body at all.
    """

    status: HTTPStatus
    content: JsonObject | None


class _Wish(Struct, frozen=True, kw_only=True):
    """One question; a text is empty where there is none that is a text."""

    question: str
    system: str
    target: str


class RefusalError(Exception):
    """A request that is not carried out, and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        self.status = status
        super().__init__(why)


class Target:
    """A model that one program may ask, from any number of threads.

    Args:
        ask: has the model answer; raises EvaluatorError where there is no answer.
        name: of the model.
        token: that only the program knows.
        max_calls: how often the model may be asked; failures count.
    """

    def __init__(
        self, ask: Callable[[Question], ModelReply], *, name: str, token: str, max_calls: int
    ) -> None:
        self._ask = ask
        self._name = name
        self._authorization = f"Bearer {token}".encode()
        self._max_calls = max_calls
        self._calls = 0
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Have the model asked no more."""
        self._closed = True

    def answer(self, asked: Asked) -> Answer:
        """Do what is asked for."""
        if asked.method == "OPTIONS":
            return Answer(status=HTTPStatus.NO_CONTENT, content=None)
        try:
            return Answer(status=HTTPStatus.OK, content=self._content(asked))
        except RefusalError as refusal:
            return refused(refusal)

    def _content(self, asked: Asked) -> JsonObject:
        authorization = asked.authorization.encode("utf-8", "replace")
        if not hmac.compare_digest(authorization, self._authorization):
            raise RefusalError(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if self._closed:
            raise RefusalError(HTTPStatus.SERVICE_UNAVAILABLE, SHUTTING_DOWN)
        match asked.method, asked.path:
            case "GET", "/info":
                return self._info()
            case "POST", "/invoke":
                self._leave_room_for(1, f"Max calls exceeded (limit: {self._max_calls})")
                with READING:
                    wish = _wish(_object_in(asked.body))
                return self._invoked(wish)
            case "POST", "/invokeBatch":
                with READING:
                    wishes = self._wishes(_object_in(asked.body))
                return {"responses": [self._response(each) for each in wishes]}
            case _:
                raise RefusalError(HTTPStatus.NOT_FOUND, "Not found")

    def _info(self) -> JsonObject:
        return {
            "targetName": self._name,
            "provider": self._name,
            "providerLabel": self._name,
            "maxCalls": self._max_calls,
            "callCount": self._calls,
            "availableTargets": [self._name],
            "availableProviderLabels": [self._name],
        }

    def _wishes(self, body: Mapping[str, Json]) -> Sequence[_Wish]:
        requests = body.get("requests")
        if not isinstance(requests, list):
            raise RefusalError(HTTPStatus.BAD_REQUEST, NO_REQUESTS)
        told = f"current: {self._calls}, batch: {len(requests)}, limit: {self._max_calls}"
        self._leave_room_for(len(requests), f"Batch would exceed max calls ({told})")
        return [_wish(_mapping(each)) for each in requests]

    def _response(self, wish: _Wish) -> JsonObject:
        try:
            return self._invoked(wish)
        except RefusalError as refusal:
            return {"outputMessages": [], "output": [], "rawText": f"Error: {refusal}"}

    def _invoked(self, wish: _Wish) -> JsonObject:
        if not wish.question:
            raise RefusalError(HTTPStatus.BAD_REQUEST, NO_QUESTION)
        if wish.target not in {"", self._name}:
            why = f"Unknown target '{wish.target}'. Available: {self._name}"
            raise RefusalError(HTTPStatus.BAD_REQUEST, why)
        self._count()
        posed = Question(system=wish.system, user=wish.question, form=None)
        try:
            return _told(self._ask(posed))
        except EvaluatorError as error:
            raise RefusalError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from None

    def _leave_room_for(self, calls: int, why: str) -> None:
        if self._calls + calls > self._max_calls:
            raise RefusalError(HTTPStatus.TOO_MANY_REQUESTS, why)

    def _count(self) -> None:
        """Count a call; others may have been counted since there was room for it."""
        if self._closed:
            raise RefusalError(HTTPStatus.SERVICE_UNAVAILABLE, SHUTTING_DOWN)
        with self._lock:
            self._leave_room_for(1, f"Max calls exceeded (limit: {self._max_calls})")
            self._calls += 1


def refused(refusal: RefusalError) -> Answer:
    """The answer to what is not carried out."""
    return Answer(status=refusal.status, content={"error": str(refusal)})


def _object_in(body: bytes) -> Mapping[str, Json]:
    """What a body says; nothing where it is no object."""
    try:
        return _mapping(json.loads(body.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        why = f"the body is not JSON: {error}"
        raise RefusalError(HTTPStatus.INTERNAL_SERVER_ERROR, why) from None


def _wish(body: Mapping[str, Json]) -> _Wish:
    question, system = body.get("question"), body.get("systemPrompt")
    return _Wish(
        question=question if isinstance(question, str) else "",
        system=system if isinstance(system, str) else "",
        target=str(body.get("target") or body.get("provider") or ""),
    )


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _told(reply: ModelReply) -> JsonObject:
    messages: list[Json] = [{"role": "assistant", "content": reply.text}]
    told: dict[str, Json] = {
        "outputMessages": messages,
        "output": messages,
        "rawText": reply.text,
    }
    if reply.tokens_in is not None and reply.tokens_out is not None:
        told["tokenUsage"] = {"input": reply.tokens_in, "output": reply.tokens_out}
    return told
