"""Requests match the API of each provider byte for byte, and its responses are parsed."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.errors import EvaluatorError
from agentci.judges.providers import (
    PROVIDERS,
    InvalidJsonError,
    ResponseFormat,
    ServiceCapabilities,
)
from agentci.model.judges import (
    FinishStatus,
    JudgePrompt,
    ModelResponse,
    ModelSettings,
    ScoreSchema,
)

QUESTION = JudgePrompt(system="Judge.", user="Höflich?", schema=ScoreSchema())
SCHEMA = (
    '{"type":"object","properties":{"reasoning":{"type":"string"},"score":{"type":"number"}},'
    '"required":["reasoning","score"],"additionalProperties":false}'
)
CHAT = (
    '{"model":"m","messages":[{"role":"system","content":"Judge."},'
    '{"role":"user","content":"Höflich?"}]'
)
STRICT = (
    ',"response_format":{"type":"json_schema","json_schema":'
    '{"name":"verdict","strict":true,"schema":' + SCHEMA + "}}"
)
JSON_HEADERS = {"Accept": "application/json", "Content-Type": "application/json"}


def settings(provider: str, **others: Any) -> ModelSettings:
    return ModelSettings(**{"provider": provider, "model": "m", **others})


def asked(given: ModelSettings, question: JudgePrompt = QUESTION, **way: Any) -> tuple[str, str]:
    """The URL and the body of a request."""
    provider = PROVIDERS[given.provider]
    first = provider.initial_capabilities(given)
    names = (
        "format",
        "limit_parameter",
        "has_switched_token_limit",
        "sends_effort",
        "sends_temperature",
    )
    call = provider.build_request(
        question,
        given,
        ServiceCapabilities(**{**{name: getattr(first, name) for name in names}, **way}),
    )
    return call.url, call.body.decode()


def test_openai_request_matches_its_api() -> None:
    url, body = asked(settings("openai"))
    assert url == "https://api.openai.com/v1/chat/completions"
    assert body == CHAT + STRICT + ',"max_completion_tokens":1024}'


def test_custom_base_url_uses_max_tokens() -> None:
    url, body = asked(settings("openai", base_url="http://127.0.0.1:11434/v1/"))
    assert url == "http://127.0.0.1:11434/v1/chat/completions"
    assert body == CHAT + STRICT + ',"max_tokens":1024}'


@pytest.mark.parametrize(
    ("format_", "sent"),
    [("json_object", ',"response_format":{"type":"json_object"}'), ("prompt", "")],
)
def test_openai_fallback_format_is_sent(format_: ResponseFormat, sent: str) -> None:
    assert (
        asked(settings("openai"), format=format_)[1]
        == CHAT + sent + ',"max_completion_tokens":1024}'
    )


@pytest.mark.parametrize(
    "base", ["https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/"]
)
def test_azure_v1_request_uses_deployment_as_model(base: str) -> None:
    url, body = asked(settings("azure", base_url=base))
    assert url == "https://r.openai.azure.com/openai/v1/chat/completions"
    assert body == CHAT + STRICT + ',"max_completion_tokens":1024}'


def test_dated_azure_api_uses_deployment_url() -> None:
    given = settings(
        "azure", base_url="https://r.openai.azure.com/", api_version="2024-10-21", model="a/b"
    )
    assert asked(given)[0] == (
        "https://r.openai.azure.com/openai/deployments/a%2Fb/chat/completions?api-version=2024-10-21"
    )


def test_anthropic_request_matches_its_api() -> None:
    given = settings("anthropic")
    url, body = asked(given)
    assert url == "https://api.anthropic.com/v1/messages"
    assert body == (
        '{"model":"m","max_tokens":1024,"system":"Judge.",'
        '"messages":[{"role":"user","content":"Höflich?"}],'
        '"output_config":{"format":{"type":"json_schema","schema":' + SCHEMA + "}}}"
    )
    call = PROVIDERS["anthropic"].build_request(
        QUESTION, given, PROVIDERS["anthropic"].initial_capabilities(given)
    )
    assert call.headers == {**JSON_HEADERS, "anthropic-version": "2026-10-21"}


def test_anthropic_request_without_schema_has_no_output_config() -> None:
    assert asked(settings("anthropic"), format="prompt")[1] == (
        '{"model":"m","max_tokens":1024,"system":"Judge.",'
        '"messages":[{"role":"user","content":"Höflich?"}]}'
    )


def test_gemini_request_matches_its_api() -> None:
    url, body = asked(settings("gemini", model="models/g"))
    assert url == "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
    assert body == (
        '{"contents":[{"role":"user","parts":[{"text":"Höflich?"}]}],'
        '"systemInstruction":{"parts":[{"text":"Judge."}]},'
        '"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":'
        + SCHEMA
        + ',"maxOutputTokens":1024}}'
    )


@pytest.mark.parametrize(
    ("format_", "sent"),
    [("json_object", '"responseMimeType":"application/json",'), ("prompt", "")],
)
def test_gemini_fallback_format_is_sent(format_: ResponseFormat, sent: str) -> None:
    body = asked(settings("gemini"), format=format_)[1]
    assert body.endswith('"generationConfig":{' + sent + '"maxOutputTokens":1024}}')


@pytest.mark.parametrize("provider", PROVIDERS)
class TestEveryProvider:
    def test_sampling_parameters_are_sent_only_if_set(self, provider: str) -> None:
        bare = asked(settings(provider))[1]
        for name in ("temperature", "top_p", "topP", "top_k", "topK", "seed"):
            assert name not in bare
        assert json.loads(asked(settings(provider, temperature=0.5))[1]) != json.loads(bare)
        assert asked(settings(provider, temperature=0.5), sends_temperature=False)[1] == bare

    def test_empty_system_prompt_is_not_sent(self, provider: str) -> None:
        body = asked(settings(provider), JudgePrompt(system="", user="u", schema=None))[1]
        assert "system" not in body
        assert '"u"' in body

    def test_lone_surrogate_is_replaced(self, provider: str) -> None:
        question = JudgePrompt(system="s", user="\ud800", schema=ScoreSchema())
        assert "\N{REPLACEMENT CHARACTER}" in asked(settings(provider), question)[1]

    def test_boolean_schema_is_sent(self, provider: str) -> None:
        form = ScoreSchema(kind="boolean", value_name="result", reason_name="why")
        body = asked(settings(provider), JudgePrompt(system="s", user="u", schema=form))[1]
        assert '{"why":{"type":"string"},"result":{"type":"boolean"}}' in body

    @given(content=st.binary())
    def test_random_bytes_are_never_a_complete_response(
        self, provider: str, content: bytes
    ) -> None:
        with suppress(InvalidJsonError, EvaluatorError):
            assert PROVIDERS[provider].parse_response(content).ending != "complete"

    @pytest.mark.parametrize("content", [b"", b"<html>", b'{"a":', b"\xff"])
    def test_invalid_json_is_a_transient_error(self, provider: str, content: bytes) -> None:
        with pytest.raises(InvalidJsonError):
            PROVIDERS[provider].parse_response(content)

    def test_response_of_another_api_is_an_error(self, provider: str) -> None:
        with pytest.raises(EvaluatorError, match="did not return a response of its provider's API"):
            PROVIDERS[provider].parse_response(b'["hello"]')


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", '"max_completion_tokens":1024,"reasoning_effort":"low"}'),
        ("azure", '"max_completion_tokens":1024,"reasoning_effort":"low"}'),
        ("anthropic", '"additionalProperties":false}},"effort":"low"}}'),
    ],
)
def test_effort_is_sent_if_set_and_supported(provider: str, body: str) -> None:
    given = settings(provider, effort="low")
    assert asked(given)[1].endswith(body)
    assert "effort" not in asked(given, sends_effort=False)[1]


@pytest.mark.parametrize(
    ("provider", "header"),
    [
        ("openai", ("Authorization", "Bearer k")),
        ("azure", ("api-key", "k")),
        ("anthropic", ("x-api-key", "k")),
        ("gemini", ("x-goog-api-key", "k")),
    ],
)
def test_key_is_sent_in_provider_header(provider: str, header: tuple[str, str]) -> None:
    assert PROVIDERS[provider].make_key_header("k") == header


def chat(reason: str | None, **message: Any) -> Mapping[str, Any]:
    return {
        "choices": [{"message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5},
    }


def anthropic(reason: str | None, *blocks: Mapping[str, Any]) -> Mapping[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 5}
    return {"content": blocks, "stop_reason": reason, "usage": usage}


def gemini(reason: str, *parts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "candidates": [{"content": {"parts": parts}, "finishReason": reason}],
        "usageMetadata": {
            "promptTokenCount": 7,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 3,
        },
    }


@pytest.mark.parametrize(
    ("provider", "answer", "ending", "text"),
    [
        ("openai", chat("stop", content="yes"), "complete", "yes"),
        ("azure", chat("length", content="ye"), "truncated", "ye"),
        ("openai", chat("content_filter", content=None), "refused", ""),
        ("openai", chat("stop", content=None, refusal="I cannot"), "refused", ""),
        ("openai", chat("tool_calls", content=None), "unknown", ""),
        ("openai", chat(None, content="yes"), "unknown", "yes"),
        (
            "anthropic",
            anthropic(
                "end_turn", {"type": "thinking", "thinking": "?"}, {"type": "text", "text": "a"}
            ),
            "complete",
            "a",
        ),
        ("anthropic", anthropic("stop_sequence", {"type": "text", "text": "a"}), "complete", "a"),
        ("anthropic", anthropic("max_tokens"), "truncated", ""),
        ("anthropic", anthropic("model_context_window_exceeded"), "truncated", ""),
        ("anthropic", anthropic("refusal"), "refused", ""),
        ("anthropic", anthropic("pause_turn"), "unknown", ""),
        ("gemini", gemini("STOP", {"text": "no", "thought": True}, {"text": "y"}), "complete", "y"),
        ("gemini", gemini("MAX_TOKENS"), "truncated", ""),
        ("gemini", gemini("SAFETY"), "refused", ""),
        ("gemini", gemini("OTHER"), "unknown", ""),
    ],
)
def test_finish_reason_sets_response_ending(
    provider: str, answer: Mapping[str, Any], ending: FinishStatus, text: str
) -> None:
    response = PROVIDERS[provider].parse_response(json.dumps(answer).encode())
    assert (response.ending, response.text) == (ending, text)
    assert (response.tokens_in, response.tokens_out) == (7, 5)


def test_prompt_blocked_by_gemini_is_a_refusal() -> None:
    response = PROVIDERS["gemini"].parse_response(b'{"promptFeedback":{"blockReason":"SAFETY"}}')
    assert response == ModelResponse(text="", ending="refused", finish_reason="SAFETY")


@pytest.mark.parametrize(
    ("provider", "answer"),
    [
        ("openai", {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}),
        ("anthropic", {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}),
        (
            "gemini",
            {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]},
        ),
    ],
)
def test_unreported_token_counts_are_none(provider: str, answer: Mapping[str, Any]) -> None:
    response = PROVIDERS[provider].parse_response(json.dumps(answer).encode())
    assert response.ending == "complete"
    assert (response.tokens_in, response.tokens_out) == (None, None)
