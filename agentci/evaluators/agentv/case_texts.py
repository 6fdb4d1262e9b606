"""Texts of a case and its run: the question, the responses and the agent's prompt."""

from collections.abc import Iterator, Mapping
from itertools import takewhile

from agentci._util.text.javascript import stringify_json
from agentci.model.case import AgentvCase
from agentci.model.trace import Transcript
from agentci.model.values import Json, JsonObject

ASSISTANT = "assistant"


def extract_question(agentv_case: AgentvCase) -> str:
    """Join the texts of all input messages of any role, without files.

    AgentV's reference describes this as the "first user message", but its code joins all messages.
    """
    texts = (text.strip() for each in agentv_case.input_messages for text in _extract_texts(each))
    return " ".join(text for text in texts if text)


def extract_reference_answer(agentv_case: AgentvCase) -> str:
    """Return the content of the last expected message of any role, or else its tool calls."""
    if not agentv_case.expected_messages:
        return ""
    last = agentv_case.expected_messages[-1]
    content = last.get("content")
    answer = last.get("tool_calls") if content is None else content
    return "" if answer is None else _format_content(answer, indent=2)


def extract_candidate_answer(transcript: Transcript) -> str:
    """Return the last assistant message with content; messages without content may follow it."""
    return _format_content(find_last_content(transcript), indent=None)


def find_last_content(transcript: Transcript) -> Json:
    """Return the content of that message as recorded, or an empty text."""
    if transcript.answer is not None:
        return transcript.answer
    contents = (
        message.content
        for message in reversed(transcript.messages)
        if message.role == ASSISTANT and message.content is not None
    )
    return next(contents, "")


def _extract_texts(message: JsonObject) -> Iterator[str]:
    match message.get("content"):
        case str(text):
            yield text
        case list(parts):
            yield from (text for part in parts for text in _extract_part_text(part))
        case Mapping() as content:
            yield stringify_json(content, indent=2)
        case _:
            return


def _extract_part_text(part: Json) -> Iterator[str]:
    if isinstance(part, Mapping) and part.get("type") != "file":
        text = part.get("value")
        if isinstance(text, str):
            yield text


def _format_content(content: Json, *, indent: int | None) -> str:
    return content if isinstance(content, str) else stringify_json(content, indent=indent)


UNLABELED_ROLES = frozenset({"system", "user"})


def format_agent_prompt(agentv_case: AgentvCase) -> str:
    """Format the agent's prompt: a single message as its text, several under their roles.

    Files are named, not copied: ``{FILES}`` gives their paths.
    """
    messages = [
        (str(each["role"]), [*_format_message_texts(each, agentv_case)])
        for each in agentv_case.input_messages
    ]
    visible = [(role, texts) for role, texts in messages if texts]
    if len(visible) == 1 and visible[0][0] in UNLABELED_ROLES:
        prompt = "\n\n".join(visible[0][1])
    else:
        blocks = (f"@[{role.capitalize()}]:\n" + "\n".join(texts) for role, texts in visible)
        prompt = "\n\n".join(blocks)
    return prompt or extract_question(agentv_case)


def make_prompt_messages(agentv_case: AgentvCase) -> tuple[tuple[str, str], ...]:
    """The prompt as AgentV 4 records it: a role and a text for each message.

    Files are named by their absolute paths. Without an answer in it, a single message is from the
    user.
    """
    messages = [
        (str(each.get("role")), [*_format_prompt_parts(each, agentv_case)])
        for each in agentv_case.input_messages
    ]
    visible = [texts for _, texts in messages if any(map(str.strip, texts))]
    if len(visible) <= 1 and not any(role in (ASSISTANT, "tool") for role, _ in messages):
        stripped = (text.strip() for texts in visible for text in texts)
        return (("user", "\n\n".join(text for text in stripped if text)),)
    opening = [*takewhile(lambda each: each[0] == "system", messages)]
    blocks = ["\n".join(texts) for _, texts in opening if texts]
    prompt = [("system", "\n\n".join(blocks))] if blocks else []
    for role, texts in messages[len(opening) :]:
        label = [f"@[{role.capitalize()}]:"] if role in ("system", "tool") else []
        if label or texts:
            prompt.append((ASSISTANT if label else role, "\n".join([*label, *texts])))
    return tuple(prompt)


def iterate_messages_with_files(agentv_case: AgentvCase) -> Iterator[JsonObject]:
    """Yield the input messages; parts that name a file get its path and its text."""
    for message in agentv_case.input_messages:
        parts = message.get("content")
        if isinstance(parts, list):
            yield {**message, "content": [_complete_file_part(each, agentv_case) for each in parts]}
        else:
            yield message


def _complete_file_part(part: Json, agentv_case: AgentvCase) -> Json:
    named = _get_file_name(part) if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or named is None or named not in agentv_case.input_paths:
        return part
    found = {
        "text": agentv_case.input_texts[named],
        "resolved_path": agentv_case.input_paths[named],
    }
    return {**part, "path": named.lstrip("/\\"), **found}


def _format_prompt_parts(message: JsonObject, agentv_case: AgentvCase) -> Iterator[str]:
    for part in _list_content_parts(message):
        named = _get_file_name(part)
        if named is not None:
            yield f'<file: path="{agentv_case.input_paths.get(named, named)}">'
        elif isinstance(text := part.get("value"), str) and text:
            yield text


def iterate_prompt_segments(agentv_case: AgentvCase) -> Iterator[JsonObject]:
    """Yield the parts of all messages in order, with the text of files and without guidelines."""
    for part in (
        each for message in agentv_case.input_messages for each in _list_content_parts(message)
    ):
        named = _get_file_name(part)
        if named is None:
            yield part
        elif named in agentv_case.input_texts:
            yield {"type": "file", "path": named, "text": agentv_case.input_texts[named]}


def _format_message_texts(message: JsonObject, agentv_case: AgentvCase) -> Iterator[str]:
    for part in _list_content_parts(message):
        named = _get_file_name(part)
        if named is not None:
            is_guideline = agentv_case.guideline_files and named not in agentv_case.input_texts
            yield f"<Attached: {named}>" if is_guideline else f'<file: path="{named}">'
        elif isinstance(text := part.get("value"), str) and text.strip():
            yield text.strip()


def _list_content_parts(message: JsonObject) -> Iterator[JsonObject]:
    content: Json = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))
    elif content is not None:
        text = content if isinstance(content, str) else stringify_json(content, indent=2)
        yield {"type": "text", "value": text}


def _get_file_name(part: JsonObject) -> str | None:
    named = part.get("value")
    return named if part.get("type") == "file" and isinstance(named, str) else None
