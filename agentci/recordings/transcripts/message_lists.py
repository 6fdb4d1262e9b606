"""Reads files that are message lists, or objects with one, whichever library wrote them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts import adk, autogen, library_messages, provider_messages
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    as_object,
    as_text,
    check_message,
)
from agentci.recordings.transcripts.turn_builder import MessageListBuilder

CHAT_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class MessageFormat(Struct, frozen=True, kw_only=True):
    """One kind of messages.

    Attributes:
        is_marked: whether a message can only be of this kind.
        add: adds a message to a run.
        has_common_parts: whether its parts are of types that other kinds use as well; if not,
            ``add`` rejects parts that it does not know.
        prepare: adds to the messages what only the whole list tells; their number stays the same.
    """

    is_marked: Callable[[JsonObject], bool]
    add: Callable[[MessageListBuilder, JsonObject], None]
    has_common_parts: bool = True
    prepare: Callable[[Sequence[JsonObject]], Sequence[JsonObject]] = tuple


# A list is of the first kind that one of its messages can only be of.
MESSAGE_FORMATS: Final[Mapping[str, MessageFormat]] = {
    "autogen-messages": MessageFormat(
        is_marked=autogen.is_marked,
        add=autogen.add_message,
        prepare=autogen.prepare,
        has_common_parts=False,
    ),
    "autogen-chat-history": MessageFormat(
        is_marked=autogen.is_history, add=autogen.add_history_message, prepare=autogen.find_persons
    ),
    "llama-index-messages": MessageFormat(
        is_marked=library_messages.is_llama_message,
        add=library_messages.add_llama_message,
        has_common_parts=False,
    ),
    "haystack-messages": MessageFormat(
        is_marked=library_messages.is_haystack_message,
        add=library_messages.add_haystack_message,
        has_common_parts=False,
    ),
    "semantic-kernel-messages": MessageFormat(
        is_marked=library_messages.is_kernel_message,
        add=library_messages.add_kernel_message,
        has_common_parts=False,
    ),
    "langchain-messages": MessageFormat(
        is_marked=library_messages.is_langchain_message, add=library_messages.add_langchain_message
    ),
    "pydantic-ai-messages": MessageFormat(
        is_marked=library_messages.is_pydantic_message,
        add=library_messages.add_pydantic_message,
        has_common_parts=False,
    ),
    "google-genai-contents": MessageFormat(is_marked=adk.is_content, add=adk.add_content),
    "ai-sdk-ui-messages": MessageFormat(
        is_marked=library_messages.is_ui_message,
        add=library_messages.add_ui_message,
        has_common_parts=False,
    ),
    "ai-sdk-messages": MessageFormat(
        is_marked=library_messages.is_model_message, add=library_messages.add_model_message
    ),
    "openai-responses": MessageFormat(
        is_marked=provider_messages.is_response_item, add=provider_messages.add_response_item
    ),
    "anthropic-messages": MessageFormat(
        is_marked=provider_messages.is_anthropic_message,
        add=provider_messages.add_anthropic_message,
    ),
    "bedrock-converse": MessageFormat(
        is_marked=provider_messages.is_converse, add=provider_messages.add_converse_message
    ),
    "openai-chat": MessageFormat(
        is_marked=provider_messages.is_openai_message, add=provider_messages.add_openai_message
    ),
}
# Text without tool calls has this form in most of them.
FALLBACK: Final = "openai-chat"
# Keys of what a model returned, in logs of requests and responses.
ANSWER_KEYS: Final = ("choices", "response", "output", "outputs", "completion", "answer")
_AMBIGUOUS_ROLES: Final = (
    "the roles do not tell the person from the agent, as in a `chat_history` of AutoGen 0.2; save "
    "the whole `ChatResult`, or the list with the person's messages as those of `user`"
)
_GRAPH_FORMAT: Final = "langchain-messages"


def make_reader(name: str) -> TranscriptReader:
    """Return the reader of one kind of messages."""
    return TranscriptReader(
        recognises=lambda document: find_format(document) == name,
        read=lambda documents: _read_runs(documents, name),
    )


def find_format(document: Json) -> str | None:
    """Return the kind of messages that a document holds; None if it holds none."""
    if provider_messages.is_response(document):
        return "openai-responses"
    for messages in find_message_lists(document):
        if found := find_list_format(messages):
            return found
    return None


def find_list_format(messages: Sequence[Json]) -> str | None:
    """Return the kind of a list of messages; None if it is none."""
    objects = [message for message in messages if isinstance(message, dict)]
    if not objects or len(objects) != len(messages):
        return None
    for name, one in MESSAGE_FORMATS.items():
        if any(map(one.is_marked, objects)):
            return name
    return FALLBACK if all(map(_is_plain_message, objects)) else None


def _is_plain_message(message: JsonObject) -> bool:
    role = message.get("role")
    return isinstance(role, str) and role in CHAT_ROLES and "content" in message


def find_message_lists(document: Json) -> Iterator[Sequence[Json]]:
    """Yield the message lists of a document."""
    if isinstance(document, list):
        wrapped = [each for each in document if isinstance(each, list) or _is_wrapper(each)]
        if wrapped and len(wrapped) == len(document):
            for each in wrapped:
                yield from find_message_lists(each)
        else:
            yield document
    elif isinstance(document, dict):
        if found := _find_wrapped_lists(document):
            yield from found
        elif (updated := library_messages.find_updated_messages(document)) is not None:
            yield updated
        elif _is_message(document):
            yield [document]


def _is_wrapper(value: Json) -> bool:
    return isinstance(value, dict) and "role" not in value and _find_wrapped(value) is not None


def _find_wrapped_lists(fields: JsonObject) -> list[Sequence[Json]]:
    """Return the message lists of an object that holds any: a request, a state or a chat store."""
    found = autogen.find_messages(fields)
    if found is None:
        found = _find_wrapped(fields)
    return [*library_messages.find_llama_lists(fields)] if found is None else [found]


def _find_wrapped(fields: JsonObject) -> Sequence[Json] | None:
    """Return the messages of a request, a graph's state or its snapshot."""
    for holder in (fields, as_object(fields.get("values"))):
        messages = holder.get("messages")
        if isinstance(messages, list):
            return [*messages, *_find_answer_beside(holder, messages)]
    return None


def _find_answer_beside(fields: JsonObject, messages: Sequence[Json]) -> Iterator[Json]:
    """Yield the model's answer in a log that holds it apart from the request's messages."""
    for key in ANSWER_KEYS:
        answer = fields.get(key)
        choices = answer if key == "choices" else as_object(answer).get("choices")
        ended: JsonObject = {}
        if isinstance(choices, list) and choices:
            ended = as_object(choices[0])
            answer = ended.get("message")
        if as_object(answer).get("role") == "assistant":
            if answer != (messages[-1] if messages else None):
                yield {**as_object(answer), "finish_reason": ended.get("finish_reason")}
            return


def _check_answers(document: Json, line: int) -> None:
    """Check that no answer outside a list of messages is left out.

    Raises:
        DocumentFormatError: there may be one.
    """
    for fields in iterate_objects(document if isinstance(document, list) else [document]):
        messages = _find_wrapped(fields)
        answers = {key: fields[key] for key in ANSWER_KEYS if fields.get(key)}
        if not messages or not answers or _is_graph_state(messages):
            continue
        for key, answer in answers.items():
            choices = answer if key == "choices" else as_object(answer).get("choices")
            if isinstance(choices, list) and len(choices) > 1:
                message = f"`{key}` holds {len(choices)} answers; keep one"
                raise DocumentFormatError(message, line=line)
        if as_object(messages[-1]).get("role") != "assistant":
            message = f"`{next(iter(answers))}` next to `messages` may hold the answer"
            raise DocumentFormatError(f"{message}; append it to `messages`", line=line)


def _is_graph_state(messages: Sequence[Json]) -> bool:
    return any(
        library_messages.is_langchain_message(one) for one in messages if isinstance(one, dict)
    )


def _is_message(value: JsonObject) -> bool:
    """Return whether a line is one message of a list with one message per line."""
    return _is_plain_message(value) or any(one.is_marked(value) for one in MESSAGE_FORMATS.values())


def _read_runs(documents: Iterable[Document], name: str) -> Iterator[TranscriptRun]:
    """Read the runs of a file; single messages, one per line, are one run."""
    single: list[Json] = []
    first_line = 0
    previous: tuple[Sequence[Json], int] | None = None
    for document in documents:
        value, line = document.value, document.line
        if provider_messages.is_response(value):
            yield _read_response(as_object(value), line)
            continue
        if not _holds_list(value):
            single += _read_single(value, name, line)
            first_line = first_line or line
            continue
        _check_answers(value, line)
        for messages in find_message_lists(value):
            single = [] if _is_next_state(single[:1], messages) else single
            if previous is not None and not _is_next_state(previous[0], messages):
                yield read_messages(previous[0], name, previous[1])
            previous = messages, line
    if previous is not None:
        yield read_messages(previous[0], name, previous[1])
    if single:
        yield read_messages(single, name, first_line)


def _holds_list(value: Json) -> bool:
    return isinstance(value, list) or bool(_find_wrapped_lists(as_object(value)))


def _read_single(value: Json, name: str, line: int) -> Sequence[Json]:
    """Return the messages of a line with one message, or with what changed in a graph."""
    found = next(find_message_lists(value), None)
    if found is not None:
        return found
    if name == _GRAPH_FORMAT and library_messages.is_update(value):
        return ()
    raise DocumentFormatError("neither a message nor a list of messages", line=line)


def _is_next_state(earlier: Sequence[Json], later: Sequence[Json]) -> bool:
    """Return whether a list is a later state of the same graph, so that it repeats the earlier."""
    ids = [_find_first_id(messages) for messages in (earlier, later)]
    return ids[0] is not None and ids[0] == ids[1] and len(later) >= len(earlier)


def _find_first_id(messages: Sequence[Json]) -> str | None:
    first = as_object(messages[0]) if messages else {}
    return (
        as_text(first.get("id"))
        if autogen.is_marked(first)
        else library_messages.find_message_id(first)
    )


def read_messages(messages: Sequence[Json], name: str, line: int) -> TranscriptRun:
    """Read one message list.

    Raises:
        DocumentFormatError: a message is not of this kind.
    """
    own = find_list_format(messages)
    # Lists of one file may be of different kinds; one with only texts may be of any.
    kind = MESSAGE_FORMATS[name if own in (None, FALLBACK) else own]
    run = MessageListBuilder()
    objects = [message for message in messages if isinstance(message, dict)]
    if len(objects) != len(messages):
        number = next(i for i, one in enumerate(messages, start=1) if not isinstance(one, dict))
        raise DocumentFormatError(f"message {number} is not an object", line=line)
    if kind is MESSAGE_FORMATS[FALLBACK] and autogen.may_be_history(objects):
        raise DocumentFormatError(_AMBIGUOUS_ROLES, line=line)
    for number, message in enumerate(kind.prepare(objects), start=1):
        try:
            kind.add(run, message)
            if kind.has_common_parts:
                check_message(message, run.turns.call_names)
        except DocumentFormatError as error:
            raise DocumentFormatError(f"message {number}: {error}", line=line) from None
    return run.build(line)


def _read_response(response: JsonObject, line: int) -> TranscriptRun:
    run = MessageListBuilder()
    try:
        provider_messages.add_response(run, response)
    except DocumentFormatError as error:
        raise DocumentFormatError(str(error), line=line) from None
    response_id = response.get("id")
    return run.build(line, response_id if isinstance(response_id, str) else None)
