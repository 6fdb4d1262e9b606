"""Requests to OpenAI's APIs and their responses, checked against the types of its client."""

import itertools
import json
from typing import Any, get_args

import pytest

from agentci.judges import client
from agentci.judges.providers import (
    OPENAI,
    PROVIDERS,
    ResponseFormat,
    ServiceCapabilities,
    TokenLimitName,
)
from agentci.model.judges import (
    ChecklistSchema,
    JudgePrompt,
    ModelResponse,
    ModelSettings,
    ScoreSchema,
    VerdictSchema,
)
from tests.helpers.openai_types import answered_as, sent_as, theirs

pytestmark = pytest.mark.slow

FORMS: tuple[VerdictSchema | None, ...] = (
    None,
    ScoreSchema(notes=("hits", "misses")),
    ScoreSchema(kind="boolean"),
    ScoreSchema(kind="label", labels=("a", "b")),
    ChecklistSchema(names=("a", "b")),
)


@pytest.mark.parametrize("provider", ["openai", "azure"])
@pytest.mark.parametrize("format_", OPENAI.FORMATS)
@pytest.mark.parametrize("cap_name", get_args(TokenLimitName))
def test_chat_request_matches_openai_types(
    provider: str, format_: ResponseFormat, cap_name: TokenLimitName
) -> None:
    kind = theirs("chat.completion_create_params", "CompletionCreateParamsNonStreaming")
    settings = ModelSettings(provider=provider, model="m", temperature=0.5, effort="low")
    for form, system in itertools.product(FORMS, ("s", "")):
        question = JudgePrompt(system=system, user="u", schema=form)
        call = PROVIDERS[provider].build_request(
            question, settings, ServiceCapabilities(format=format_, limit_parameter=cap_name)
        )
        body = json.loads(call.body)
        assert sent_as(kind, body) == body


def completion(**choice: Any) -> bytes:
    """A chat completion with every field that the API can set."""
    message = {
        "role": "assistant",
        "content": "yes",
        "annotations": [],
        **choice.pop("message", {}),
    }
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "service_tier": "default",
        "system_fingerprint": "fp_1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "logprobs": None, **choice, "message": message}
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }
    return json.dumps(answered_as(theirs("chat", "ChatCompletion"), answer)).encode()


def test_chat_response_is_parsed() -> None:
    assert OPENAI.parse_response(completion()) == ModelResponse(
        text="yes", ending="complete", finish_reason="stop", tokens_in=7, tokens_out=5
    )


def test_refusal_with_tool_calls_is_parsed() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "refusal": "I cannot", "tool_calls": [call]}
    response = OPENAI.parse_response(completion(message=message))
    assert (response.text, response.ending, response.finish_reason) == ("", "refused", "refusal")


def test_only_finish_reason_stop_is_complete() -> None:
    reasons = get_args(
        theirs("chat.chat_completion", "Choice").model_fields["finish_reason"].annotation
    )
    endings = {
        reason: OPENAI.parse_response(completion(finish_reason=reason)).ending for reason in reasons
    }
    assert endings == {
        "stop": "complete",
        "length": "truncated",
        "content_filter": "refused",
        "tool_calls": "unknown",
        "function_call": "unknown",
    }


@pytest.mark.parametrize("provider", ["openai", "azure"])
def test_embedding_request_matches_openai_types(provider: str) -> None:
    kind = theirs("embedding_create_params", "EmbeddingCreateParams")
    settings = ModelSettings(provider=provider, model="m")
    body = json.loads(client.build_request(("a", "b"), settings).body)
    assert sent_as(kind, body) == body


def test_embedding_response_is_parsed() -> None:
    answer = {
        "object": "list",
        "model": "m",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [1.0, 0.0]},
            {"object": "embedding", "index": 1, "embedding": [0.0, 2.0]},
        ],
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }
    kind = theirs("create_embedding_response", "CreateEmbeddingResponse")
    assert client.parse_response(json.dumps(answered_as(kind, answer)).encode()) == ModelResponse(
        text="0.0", ending="complete", tokens_in=4, tokens_out=0
    )
