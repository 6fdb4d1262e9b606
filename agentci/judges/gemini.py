"""Google's Gemini, by its own API."""

from typing import Annotated, Final
from urllib.parse import quote

from pydantic import Field

from agentci.evaluators.prompts.answer_schema import schema_of
from agentci.judges.json_body import JSON_HEADERS, Wire, body_of, parse
from agentci.judges.provider import Call, Format, Way
from agentci.model.json import Json, JsonObject
from agentci.model.judging import Ending, ModelReply, ModelSettings, Question

BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
FORMATS: tuple[Format, ...] = ("json_schema", "json_object", "prompt")
TAKES_EFFORT = False
ENDINGS: Final[dict[str, Ending]] = {
    "STOP": "complete",
    "MAX_TOKENS": "truncated",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
}


def first_way(settings: ModelSettings) -> Way:
    """The same for all models."""
    del settings
    return Way(format=FORMATS[0])


def call(question: Question, settings: ModelSettings, way: Way) -> Call:
    """Make the request."""
    generation: dict[str, Json] = {}
    if question.form is not None and way.format != "prompt":
        generation["responseMimeType"] = "application/json"
    if question.form is not None and way.format == "json_schema":
        generation["responseJsonSchema"] = schema_of(question.form)
    generation["maxOutputTokens"] = settings.output_tokens
    if settings.temperature is not None and way.sends_temperature:
        generation["temperature"] = settings.temperature
    system: JsonObject = {"systemInstruction": {"parts": [{"text": question.system}]}}
    base = (settings.base_url or BASE_URL).rstrip("/")
    model = quote(settings.model.removeprefix("models/"), safe="")
    return Call(
        url=f"{base}/models/{model}:generateContent",
        headers=JSON_HEADERS,
        body=body_of(
            {
                "contents": [{"role": "user", "parts": [{"text": question.user}]}],
                **(system if question.system else {}),
                "generationConfig": generation,
            }
        ),
    )


def key_header(key: str) -> tuple[str, str]:
    """The header that carries a key, and its value."""
    return "x-goog-api-key", key


def read(content: bytes) -> ModelReply:
    """Read the body of a success; a prompt that is blocked has no candidates."""
    answer = parse(_Answer, content)
    candidate = answer.candidates[0] if answer.candidates else _Candidate()
    reason, ending = candidate.finish_reason, ENDINGS.get(candidate.finish_reason, "unknown")
    if answer.feedback.block_reason:
        reason, ending = answer.feedback.block_reason, "refused"
    usage = answer.usage
    return ModelReply(
        text="".join(part.text for part in candidate.content.parts if not part.thought),
        ending=ending,
        finish_reason=reason,
        tokens_in=usage.prompt if usage else None,
        tokens_out=usage.candidates + usage.thoughts if usage else None,
    )


class _Part(Wire):
    text: str = ""
    thought: bool = False


class _Content(Wire):
    parts: tuple[_Part, ...] = ()


class _Candidate(Wire):
    content: _Content = _Content()
    finish_reason: str = Field(default="", alias="finishReason")


class _Feedback(Wire):
    block_reason: str = Field(default="", alias="blockReason")


class _Usage(Wire):
    prompt: Annotated[int, Field(ge=0, alias="promptTokenCount")]
    candidates: Annotated[int, Field(ge=0, alias="candidatesTokenCount")] = 0
    thoughts: Annotated[int, Field(ge=0, alias="thoughtsTokenCount")] = 0


class _Answer(Wire):
    candidates: tuple[_Candidate, ...] = ()
    feedback: _Feedback = Field(default=_Feedback(), alias="promptFeedback")
    usage: _Usage | None = Field(default=None, alias="usageMetadata")
