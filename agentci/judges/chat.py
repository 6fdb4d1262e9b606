"""Request and response bodies of OpenAI's Chat Completions API, which most services support."""

from typing import Annotated, Final

from pydantic import Field

from agentci.evaluators.prompts.answer_schema import SCHEMA_NAME, make_answer_schema
from agentci.judges.provider import (
    ResponseFormat,
    ServiceCapabilities,
    ServiceModel,
    encode_body,
    parse_body,
)
from agentci.model.json import Json, JsonObject
from agentci.model.judges import FinishStatus, JudgePrompt, ModelResponse, ModelSettings

PATH: Final = "chat/completions"
FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "prompt")
ENDINGS: Final[dict[str, FinishStatus]] = {
    "stop": "complete",
    "length": "truncated",
    "content_filter": "refused",
}


def build_body(question: JudgePrompt, settings: ModelSettings, way: ServiceCapabilities) -> bytes:
    """Build the body of a request; sampling parameters are included only if set."""
    value: dict[str, Json] = {
        "model": settings.model,
        "messages": [
            *([{"role": "system", "content": question.system}] if question.system else ()),
            {"role": "user", "content": question.user},
        ],
    }
    response_format = _make_response_format(question, way)
    if response_format is not None:
        value["response_format"] = response_format
    value[way.limit_parameter] = settings.output_tokens
    if settings.effort and way.sends_effort:
        value["reasoning_effort"] = settings.effort
    if settings.temperature is not None and way.sends_temperature:
        value["temperature"] = settings.temperature
    return encode_body(value)


def parse_response(content: bytes) -> ModelResponse:
    """Parse a response."""
    answer = parse_body(_ChatCompletion, content)
    choice = answer.choices[0]
    reason = choice.finish_reason or ""
    return ModelResponse(
        text=choice.message.content or "",
        ending="refused" if choice.message.refusal else ENDINGS.get(reason, "unknown"),
        finish_reason="refusal" if choice.message.refusal else reason,
        tokens_in=answer.usage.prompt_tokens if answer.usage else None,
        tokens_out=answer.usage.completion_tokens if answer.usage else None,
    )


class _ChatMessage(ServiceModel):
    content: str | None = None
    refusal: str | None = None


class _ChatChoice(ServiceModel):
    message: _ChatMessage
    finish_reason: str | None = None


class _ChatUsage(ServiceModel):
    prompt_tokens: Annotated[int, Field(ge=0)]
    completion_tokens: Annotated[int, Field(ge=0)]


class _ChatCompletion(ServiceModel):
    choices: Annotated[list[_ChatChoice], Field(min_length=1)]
    usage: _ChatUsage | None = None


def _make_response_format(question: JudgePrompt, way: ServiceCapabilities) -> JsonObject | None:
    if question.schema is None or way.format == "prompt":
        return None
    if way.format == "json_object":
        return {"type": "json_object"}
    schema: JsonObject = {
        "name": SCHEMA_NAME,
        "strict": True,
        "schema": make_answer_schema(question.schema),
    }
    return {"type": "json_schema", "json_schema": schema}
