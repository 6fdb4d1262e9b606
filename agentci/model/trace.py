"""Recorded runs of an agent: as turns with tool calls, and as transcripts of messages."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from agentci.model.json import Json, JsonObject
from agentci.model.problem import Place


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


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool that was asked for.

    Attributes:
        args: as given; None where a golden case leaves them out, or where they could not be read.
    """

    name: str
    args: Json = None
    id: str | None = None

    @property
    def named_args(self) -> JsonObject:
        """The arguments as an object: empty where there are none, else a bare one as ``value``."""
        if isinstance(self.args, Mapping):
            return self.args
        return {} if self.args is None else {"value": self.args}


class ToolResponse(Struct, frozen=True, kw_only=True):
    """What a tool answered.

    Attributes:
        output: any JSON value; None where the tool gave none.
        failed: the tool's span was marked as failed.
        call_index: index in the turn's ``tool_calls`` of the call that it answers, where known.
    """

    name: str
    output: Json = None
    id: str | None = None
    failed: bool = False
    call_index: int | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """One round of a conversation: what the user asked, what the agent did and answered.

    Attributes:
        id: the anchor span's id in a recording, ``invocation_id`` (or "") in a golden case.
        user_text: "" where nothing was recorded.
        answer_parts: the text parts of the final answer; empty where there is none.
        intermediate_texts: what other model calls of the turn said, in order.
        trace_id, span_id: the anchor span; None in a golden case.
    """

    id: str
    user_text: str
    answer_parts: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_responses: tuple[ToolResponse, ...] = ()
    intermediate_texts: tuple[str, ...] = ()
    trace_id: str | None = None
    span_id: str | None = None

    @property
    def final_text(self) -> str | None:
        """The final answer in one piece, None where the agent gave none."""
        return "".join(self.answer_parts) if self.answer_parts else None


class Trace(Struct, frozen=True, kw_only=True):
    """One recorded run of an agent: the unit that is judged.

    Attributes:
        id: trace id; of the earliest member where several traces make one conversation.
        key: what the traces of one conversation share (a session id, say), else the trace id.
        conversation: the same, also where every trace is judged by itself; None where they share
            nothing.
        eval_case_id: the golden case that the recording itself names (``agentevals.eval.case.id``).
        performance: latency, tokens and counts as agentevals reports them; None without spans.
        warnings: what had to be guessed or dropped while reading, sorted and unique.
        place: the recording.
    """

    id: str
    key: str
    turns: tuple[Turn, ...]
    place: Place
    conversation: str | None = None
    eval_case_id: str | None = None
    performance: JsonObject | None = None
    warnings: tuple[str, ...] = ()
