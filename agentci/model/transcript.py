"""What an agent did, message by message, where a recording keeps it that way (AgentV's do)."""

from collections.abc import Iterator

from msgspec import Struct

from agentci.model.json import Json, JsonObject


class ToolUse(Struct, frozen=True, kw_only=True):
    """A tool that was used in a message.

    Attributes:
        input, output: as recorded; None where they are missing.
        timestamp, start_time, end_time: ISO 8601, as recorded.
    """

    tool: str
    input: Json = None
    output: Json = None
    id: str | None = None
    status: str | None = None
    timestamp: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    duration_ms: float | None = None


class Message(Struct, frozen=True, kw_only=True):
    """One message of a run.

    Attributes:
        content: text, or any other JSON value; None where there is none.
    """

    role: str
    content: Json = None
    name: str | None = None
    tool_calls: tuple[ToolUse, ...] = ()
    timestamp: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    duration_ms: float | None = None
    metadata: JsonObject | None = None


class TokenUsage(Struct, frozen=True, kw_only=True):
    """Tokens that a run took."""

    input: float
    output: float
    cached: float | None = None


class Transcript(Struct, frozen=True, kw_only=True):
    """One recorded run; None stands for what was not recorded.

    Attributes:
        answer: what is judged, where that is not the last thing that the agent said.
    """

    messages: tuple[Message, ...]
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    start_time: str | None = None
    end_time: str | None = None
    answer: str | None = None

    @property
    def tool_uses(self) -> Iterator[ToolUse]:
        """The tools of all messages, in order."""
        return (use for message in self.messages for use in message.tool_calls)
