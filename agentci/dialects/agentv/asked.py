"""What an agent was asked, as a judge reads it."""

from collections.abc import Iterator, Mapping

from agentci.dialects.agentv.derived import ASSISTANT, question_of
from agentci.model.json import Json, JsonObject
from agentci.model.sample import Sample
from agentci.text.javascript import stringify

# A conversation, in which it matters who says what.
_BOTH_SIDES = frozenset({ASSISTANT, "tool"})


def question_for_judges(sample: Sample) -> str:
    """The input messages: a single one as it is, several with who says them; files by name."""
    told = [
        (str(message.get("role")), text)
        for message in sample.input_messages
        if (text := "\n\n".join(_paragraphs(message, sample)))
    ]
    if not told:
        return question_of(sample)
    if len(told) == 1 and _BOTH_SIDES.isdisjoint(role for role, _ in told):
        return told[0][1]
    return "\n\n".join(f"@[{role.capitalize()}]:\n{text}" for role, text in told)


def segments(sample: Sample) -> Iterator[JsonObject]:
    """The parts of all input messages one after the other, with what files say; no guidelines."""
    for message in sample.input_messages:
        for part in _parts(message):
            named = file_in(part)
            if named is None:
                yield part
            elif named in sample.input_texts:
                yield {"type": "file", "path": named, "text": sample.input_texts[named]}


def file_in(part: JsonObject) -> str | None:
    """The name of the file that a part of a message refers to."""
    named = part.get("value")
    return named if part.get("type") == "file" and isinstance(named, str) else None


def _paragraphs(message: JsonObject, sample: Sample) -> Iterator[str]:
    for part in _parts(message):
        named = file_in(part)
        text = part.get("value")
        if named is not None:
            is_guideline = named not in sample.input_texts
            yield f"<Attached: {named}>" if is_guideline else f'<file: path="{named}">'
        elif isinstance(text, str) and text.strip():
            yield text.strip()


def _parts(message: JsonObject) -> Iterator[JsonObject]:
    content: Json = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))
    elif content is not None:
        text = content if isinstance(content, str) else stringify(content, indent=2)
        yield {"type": "text", "value": text}
