"""OpenAI's Chat Completions, which most services speak: what requests and answers look like."""

from typing import Annotated, Final

from pydantic import Field

from agentci.evaluators.prompts.answer_schema import NAME, schema_of
from agentci.judges.json_body import Wire, body_of, parse
from agentci.judges.provider import Format, Way
from agentci.model.json import Json, JsonObject
from agentci.model.judging import Ending, ModelReply, ModelSettings, Question

PATH: Final = "chat/completions"
FORMATS: tuple[Format, ...] = ("json_schema", "json_object", "prompt")
ENDINGS: Final[dict[str, Ending]] = {
    "stop": "complete",
    "length": "truncated",
    "content_filter": "refused",
}


def body(question: Question, settings: ModelSettings, way: Way) -> bytes:
    """The body of a request; no parameter of sampling is in it unless it was set."""
    value: dict[str, Json] = {
        "model": settings.model,
        "messages": [
            *([{"role": "system", "content": question.system}] if question.system else ()),
            {"role": "user", "content": question.user},
        ],
    }
    response_format = _response_format(question, way)
    if response_format is not None:
        value["response_format"] = response_format
    value[way.cap_name] = settings.output_tokens
    if settings.effort and way.sends_effort:
        value["reasoning_effort"] = settings.effort
    if settings.temperature is not None and way.sends_temperature:
        value["temperature"] = settings.temperature
    return body_of(value)


def read(content: bytes) -> ModelReply:
    """Read an answer."""
    answer = parse(_Completion, content)
    choice = answer.choices[0]
    reason = choice.finish_reason or ""
    return ModelReply(
        text=choice.message.content or "",
        ending="refused" if choice.message.refusal else ENDINGS.get(reason, "unknown"),
        finish_reason="refusal" if choice.message.refusal else reason,
        tokens_in=answer.usage.prompt_tokens if answer.usage else None,
        tokens_out=answer.usage.completion_tokens if answer.usage else None,
    )


class _Message(Wire):
    content: str | None = None
    refusal: str | None = None


class _Choice(Wire):
    message: _Message
    finish_reason: str | None = None


class _Usage(Wire):
    prompt_tokens: Annotated[int, Field(ge=0)]
    completion_tokens: Annotated[int, Field(ge=0)]


class _Completion(Wire):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None


def _response_format(question: Question, way: Way) -> JsonObject | None:
    if question.form is None or way.format == "prompt":
        return None
    if way.format == "json_object":
        return {"type": "json_object"}
    schema: JsonObject = {"name": NAME, "strict": True, "schema": schema_of(question.form)}
    return {"type": "json_schema", "json_schema": schema}
