"""What AgentV derives from a case and its run."""

from collections.abc import Iterator, Mapping

from agentci._util.text.javascript import stringify
from agentci.model.json import Json, JsonObject
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript

ASSISTANT = "assistant"


def question_of(sample: Sample) -> str:
    """The texts of all input messages, whatever their role; files are left out.

    AgentV's reference says "first user message", its code joins all, and so do we.
    """
    texts = (text.strip() for message in sample.input_messages for text in _texts(message))
    return " ".join(text for text in texts if text)


def reference_answer_of(sample: Sample) -> str:
    """The last expected message, whatever its role: its content, else its tool calls."""
    if not sample.expected_messages:
        return ""
    last = sample.expected_messages[-1]
    content = last.get("content")
    told = last.get("tool_calls") if content is None else content
    return "" if told is None else _told(told, indent=2)


def candidate_answer_of(transcript: Transcript) -> str:
    """The last message of the assistant that has content, which need not be the last of all."""
    if transcript.answer is not None:
        return transcript.answer
    contents = (
        message.content
        for message in reversed(transcript.messages)
        if message.role == ASSISTANT and message.content is not None
    )
    return _told(next(contents, ""), indent=None)


def _texts(message: JsonObject) -> Iterator[str]:
    match message.get("content"):
        case str(text):
            yield text
        case list(parts):
            yield from (text for part in parts for text in _text_of_part(part))
        case Mapping() as content:
            yield stringify(content, indent=2)
        case _:
            return


def _text_of_part(part: Json) -> Iterator[str]:
    if isinstance(part, Mapping) and part.get("type") != "file":
        text = part.get("value")
        if isinstance(text, str):
            yield text


def _told(content: Json, *, indent: int | None) -> str:
    return content if isinstance(content, str) else stringify(content, indent=indent)
