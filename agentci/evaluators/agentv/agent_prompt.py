"""What an agent is asked: the input messages of a case as one text, or part by part."""

from collections.abc import Iterator, Mapping

from agentci._util.text.javascript import stringify
from agentci.evaluators.agentv.helpers import question_of
from agentci.model.json import Json, JsonObject
from agentci.model.sample import Sample

ALONE = frozenset({"system", "user"})


def prompt_of(sample: Sample) -> str:
    """The text of a single message; of a conversation, every message below its role.

    Files are named, not copied: ``{FILES}`` says where they are.
    """
    told = [(str(each["role"]), [*_texts(each, sample)]) for each in sample.input_messages]
    visible = [(role, texts) for role, texts in told if texts]
    if len(visible) == 1 and visible[0][0] in ALONE:
        prompt = "\n\n".join(visible[0][1])
    else:
        blocks = (f"@[{role.capitalize()}]:\n" + "\n".join(texts) for role, texts in visible)
        prompt = "\n\n".join(blocks)
    return prompt or question_of(sample)


def segments(sample: Sample) -> Iterator[JsonObject]:
    """The parts of all messages one after the other, with what files say; without guidelines."""
    for part in (each for message in sample.input_messages for each in _parts(message)):
        named = _file_in(part)
        if named is None:
            yield part
        elif named in sample.input_texts:
            yield {"type": "file", "path": named, "text": sample.input_texts[named]}


def _texts(message: JsonObject, sample: Sample) -> Iterator[str]:
    for part in _parts(message):
        named = _file_in(part)
        if named is not None:
            is_guideline = sample.guideline_files and named not in sample.input_texts
            yield f"<Attached: {named}>" if is_guideline else f'<file: path="{named}">'
        elif isinstance(text := part.get("value"), str) and text.strip():
            yield text.strip()


def _parts(message: JsonObject) -> Iterator[JsonObject]:
    content: Json = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))
    elif content is not None:
        text = content if isinstance(content, str) else stringify(content, indent=2)
        yield {"type": "text", "value": text}


def _file_in(part: JsonObject) -> str | None:
    named = part.get("value")
    return named if part.get("type") == "file" and isinstance(named, str) else None
