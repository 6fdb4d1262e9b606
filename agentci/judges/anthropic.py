"""Anthropic's Messages."""

from typing import Annotated, Final

from pydantic import Field

from agentci.evaluators.prompts.answer_schema import schema_of
from agentci.judges.json_body import JSON_HEADERS, Wire, body_of, parse
from agentci.judges.provider import Call, Format, Way
from agentci.model.json import Json
from agentci.model.judging import Ending, ModelReply, ModelSettings, Question

BASE_URL = "https://api.anthropic.com"
API_VERSION: Final = "2026-10-21"
FORMATS: tuple[Format, ...] = ("json_schema", "prompt")
TAKES_EFFORT = True
ENDINGS: Final[dict[str, Ending]] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}


def first_way(settings: ModelSettings) -> Way:
    """The same for all models."""
    del settings
    return Way(format=FORMATS[0])


def call(question: Question, settings: ModelSettings, way: Way) -> Call:
    """Make the request."""
    value: dict[str, Json] = {
        "model": settings.model,
        "max_tokens": settings.output_tokens,
        **({"system": question.system} if question.system else {}),
        "messages": [{"role": "user", "content": question.user}],
    }
    output: dict[str, Json] = {}
    if question.form is not None and way.format == "json_schema":
        output["format"] = {"type": "json_schema", "schema": schema_of(question.form)}
    if settings.effort and way.sends_effort:
        output["effort"] = settings.effort
    if output:
        value["output_config"] = output
    if settings.temperature is not None and way.sends_temperature:
        value["temperature"] = settings.temperature
    base = (settings.base_url or BASE_URL).rstrip("/").removesuffix("/v1")
    version = settings.api_version or API_VERSION
    return Call(
        url=f"{base}/v1/messages",
        headers={**JSON_HEADERS, "anthropic-version": version},
        body=body_of(value),
    )


def key_header(key: str) -> tuple[str, str]:
    """The header that carries a key, and its value."""
    return "x-api-key", key


def read(content: bytes) -> ModelReply:
    """Read the body of a success."""
    answer = parse(_Answer, content)
    reason = answer.stop_reason or ""
    return ModelReply(
        text="".join(block.text for block in answer.content if block.type == "text"),
        ending=ENDINGS.get(reason, "unknown"),
        finish_reason=reason,
        tokens_in=answer.usage.input_tokens if answer.usage else None,
        tokens_out=answer.usage.output_tokens if answer.usage else None,
    )


class _Block(Wire):
    type: str
    text: str = ""


class _Usage(Wire):
    input_tokens: Annotated[int, Field(ge=0)]
    output_tokens: Annotated[int, Field(ge=0)]


class _Answer(Wire):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage | None = None
