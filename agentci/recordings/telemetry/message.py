"""Messages between user, model and tools, and what the rules of conversion ask of them.

The rules are those of agentevals 0.11.0. What it overlooks although it is there (``tool_calls`` in
the style of OpenAI and LangChain, say) is kept apart in ``Message.overlooked``: it is consulted
only where the rules find nothing, so that it never changes what they find.
"""

from collections.abc import Callable, Iterator
from itertools import dropwhile, takewhile
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.model.json import Json

USER: Final = "user"
LANGCHAIN_USER: Final = "human"


class CallPart(Struct, frozen=True, kw_only=True):
    """A tool that the model asked for; ``overlooked`` by agentevals 0.11.0."""

    name: str
    id: str | None
    arguments: Json
    overlooked: bool = False


class ResponsePart(Struct, frozen=True, kw_only=True):
    """What a tool answered, as it was shown to the model."""

    name: str | None
    id: str | None
    value: Json


class Content(Struct, frozen=True, kw_only=True):
    """What is in a message.

    Attributes:
        text: its text parts in one piece; None where there is none but placeholders.
        has_more: it has parts of other kinds (reasoning, images).
        only_responds: it is made of tool responses alone.
    """

    text: str | None = None
    calls: tuple[CallPart, ...] = ()
    responses: tuple[ResponsePart, ...] = ()
    has_more: bool = False
    only_responds: bool = False

    @property
    def is_there(self) -> bool:
        """Whether anything is left of it once placeholders are gone."""
        return bool(self.text or self.calls or self.responses or self.has_more)


EMPTY: Final = Content()


class Message(Struct, frozen=True, kw_only=True):
    """One message, and what agentevals 0.11.0 would overlook in it."""

    role: str
    content: Content
    overlooked: Content = EMPTY

    @property
    def is_tool_response(self) -> bool:
        """Whether a tool speaks."""
        return self.role == "tool" or self.content.only_responds


Messages: TypeAlias = tuple[Message, ...]


def is_captured(messages: Messages) -> bool:
    """Whether any of the messages has content that agentevals 0.11.0 sees."""
    return any(message.content.is_there for message in messages)


def is_overlooked(messages: Messages) -> bool:
    """Whether there is content in any of the messages that agentevals 0.11.0 does not see."""
    return any(message.overlooked.is_there for message in messages)


def text(messages: Messages) -> str | None:
    """All text of the messages in one piece, None where there is none."""
    return "".join(message.content.text or "" for message in messages) or None


def overlooked_text(messages: Messages) -> str | None:
    """All text that agentevals 0.11.0 would not see, None where there is none."""
    return "".join(message.overlooked.text or "" for message in messages) or None


def calls(messages: Messages) -> Iterator[CallPart]:
    """The tools that are asked for."""
    for message in messages:
        yield from message.content.calls or message.overlooked.calls


def responses(messages: Messages) -> Iterator[ResponsePart]:
    """The answers of tools."""
    for message in messages:
        yield from message.content.responses or message.overlooked.responses


def user_turn(messages: Messages) -> Messages:
    """The last run of user messages with text: what was asked last; LangChain's role counts too."""
    return _last_run(messages, _says(USER)) or _last_run(messages, _says(LANGCHAIN_USER))


def overlooked_question(messages: Messages) -> str | None:
    """What was asked last, where agentevals 0.11.0 would not see it."""
    return overlooked_text(_last_run(messages, _says_overlooked))


def _says(role: str) -> Callable[[Message], bool]:
    return lambda message: message.role == role and message.content.text is not None


def _says_overlooked(message: Message) -> bool:
    return message.role in (USER, LANGCHAIN_USER) and message.overlooked.text is not None


def _last_run(messages: Messages, wanted: Callable[[Message], bool]) -> Messages:
    rest = dropwhile(lambda message: not wanted(message), reversed(messages))
    return tuple(takewhile(wanted, rest))[::-1]
