"""What an agent is asked: the input messages of a case as one text."""

from collections.abc import Iterator, Mapping

from agentci.dialects.agentv.derived import question_of
from agentci.model.json import Json, JsonObject
from agentci.model.sample import Sample
from agentci.text.javascript import stringify

ALONE = frozenset({"system", "user"})


def prompt_of(sample: Sample) -> str:
    """The text of a single message; of a conversation, every message below its role.

    Files are named, not copied: ``{FILES}`` says where they are.
    """
    told = [(str(each["role"]), [*_texts(each.get("content"))]) for each in sample.input_messages]
    visible = [(role, texts) for role, texts in told if texts]
    if len(visible) == 1 and visible[0][0] in ALONE:
        prompt = "\n\n".join(visible[0][1])
    else:
        blocks = (f"@[{role.capitalize()}]:\n" + "\n".join(texts) for role, texts in visible)
        prompt = "\n\n".join(blocks)
    return prompt or question_of(sample)


def _texts(content: Json) -> Iterator[str]:
    match content:
        case str(text):
            parts = [text]
        case list(items):
            parts = [_part(each) for each in items if isinstance(each, Mapping)]
        case Mapping():
            parts = [stringify(content, indent=2)]
        case _:
            parts = []
    yield from (part.strip() for part in parts if part.strip())


def _part(part: JsonObject) -> str:
    value = part.get("value")
    if not isinstance(value, str):
        return ""
    return f'<file: path="{value}">' if part.get("type") == "file" else value
