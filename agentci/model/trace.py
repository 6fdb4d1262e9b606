"""Recorded runs of an agent: as turns with tool calls, and as transcripts of messages."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from agentci.model.values import Json, JsonObject, Place

# How warnings begin that a run is not what its eval case asks, or what the agent's users see.
OTHER_QUESTION: Final = "the recorded run asks something else than its eval case"
OTHER_OUTPUT: Final = "the command printed"
PRINTED_KEY: Final = f"{OTHER_OUTPUT} a key, which is not in the recording"
OTHER_TELEMETRY: Final = "the framework's telemetry has"
EARLY_END: Final = "the model ended its answer early"
# How the error of a run without an answer begins, before the reason.
INCOMPLETE_RUN: Final = "The recorded run is not complete: "


def concerns_reviewers(warning: str) -> bool:
    """Return whether a warning of a run is about the agent, and not about reading its traces."""
    return warning.startswith((OTHER_QUESTION, OTHER_OUTPUT, OTHER_TELEMETRY, EARLY_END))


class ToolUse(Struct, frozen=True, kw_only=True):
    """A tool use in a message.

    Attributes:
        input, output: as recorded; None if missing.
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
        content: text, or any other JSON value; None if there is none.
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
    """Number of tokens that a run used."""

    input: float
    output: float
    cached: float | None = None


class Transcript(Struct, frozen=True, kw_only=True):
    """One recorded run; None stands for values that were not recorded.

    Attributes:
        answer: the text to evaluate, if it is not the last message of the agent.
        tool_calls_recorded: False if the output is only an answer, so that there may have been tool
            calls.
        file_changes: what the agent changed in its workspace, as a unified diff.
    """

    messages: tuple[Message, ...]
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    start_time: str | None = None
    end_time: str | None = None
    answer: str | None = None
    tool_calls_recorded: bool = True
    file_changes: str | None = None

    @property
    def tool_uses(self) -> Iterator[ToolUse]:
        """The tools of all messages, in order."""
        return (use for message in self.messages for use in message.tool_calls)


class TokenTotals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Number of tokens."""

    input: Annotated[int, Meta(ge=0)]
    output: Annotated[int, Meta(ge=0)]


Milliseconds: TypeAlias = Annotated[float, Meta(ge=0)]
SpanKind: TypeAlias = Literal["agent", "model", "tool", "other"]


class RunSpan(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One timed step of a run.

    Attributes:
        start_ms: since the first span of the run.
        parent: id of the span around it; None if that is not in the run.
        tokens: of a model call; None if they were not counted.
        first_token_ms: of a model call, since its start; None if that is not recorded.
        before_ms, before_start_ms, before_tokens, before_first_token_ms: of the same step in the
            baseline, whose start is since that run's first span; None if it has none.
    """

    id: str
    name: str
    kind: SpanKind
    start_ms: Milliseconds
    ms: Milliseconds
    before_ms: Milliseconds | None = None
    before_start_ms: Milliseconds | None = None
    parent: str | None = None
    tokens: TokenTotals | None = None
    before_tokens: TokenTotals | None = None
    first_token_ms: Milliseconds | None = None
    before_first_token_ms: Milliseconds | None = None
    model: str | None = None
    error: bool = False


class ToolCall(Struct, frozen=True, kw_only=True):
    """A requested tool call; None stands for what was not recorded.

    Attributes:
        args: as given; None if they were not recorded or could not be read, or if an eval case
            leaves them out. Never taken for ``{}``.
        step: index in the turn's ``model_steps`` of the model call that requested it; calls of one
            step were requested in parallel.
        failed: whether the tool failed. False only if the recording says so, or has a span of the
            tool without an error.
        start: nanoseconds since 1970.
        duration_ms: milliseconds that the tool ran.
        span_id: of the tool's span.
    """

    name: str
    args: Json = None
    id: str | None = None
    step: int | None = None
    failed: bool | None = None
    start: int | None = None
    duration_ms: float | None = None
    span_id: str | None = None

    @property
    def named_args(self) -> JsonObject:
        """The arguments as an object, for protocols that require one.

        Unknown arguments are empty, and a non-object is ``value``.
        """
        if isinstance(self.args, Mapping):
            return self.args
        return {} if self.args is None else {"value": self.args}


class ToolResponse(Struct, frozen=True, kw_only=True):
    """The response of a tool.

    Attributes:
        output: any JSON value; None if the tool returned none.
        failed: the recording says that the tool failed; ``ToolCall.failed`` tells unknown from no.
        call_index: index in the turn's ``tool_calls`` of the call that it responds to, if known.
    """

    name: str
    output: Json = None
    id: str | None = None
    failed: bool = False
    call_index: int | None = None


class ModelStep(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One model call of a turn; None stands for what was not recorded.

    Attributes:
        model: the requested model, else the one that responded.
        input_tokens: as the provider counts them: with or without those of a cache.
        cached_tokens: input tokens read from a cache.
        cache_write_tokens: input tokens written to a cache.
        cost_usd: US dollars.
        start: nanoseconds since 1970.
        duration_ms: milliseconds.
        span: id of its span; the outermost, if there are several.
    """

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    start: int | None = None
    duration_ms: float | None = None
    span: str | None = None


class ModelPrice(Struct, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


# By patterns of models; the first that matches counts.
PriceList: TypeAlias = Mapping[str, ModelPrice]


class Turn(Struct, frozen=True, kw_only=True):
    """One turn of a conversation: the user's message, and what the agent did and answered.

    Attributes:
        id: the anchor span's id in a recorded run, ``invocation_id`` (or "") in an eval case.
        user_text: "" if none was recorded.
        user_text_recorded: False if the recording's format leaves out what the user wrote; the text
            is then "" or that of the eval case.
        answer_parts: the text parts of the final answer; empty if there is none.
        tool_calls_recorded: False if the recording's format leaves out tool calls, so that there
            may have been some; ``tool_calls`` is then empty.
        intermediate_texts: output of the turn's other model calls, in order.
        model_steps: its model calls, in order; empty if the recording does not tell them apart.
        trace_id, span_id: the anchor span; None in an eval case.
        early_end: why the model ended the answer before it was complete, in the words of its API,
            such as ``length``; empty if it did not, or that is not recorded.
        start: nanoseconds since 1970; None if not recorded.
        duration_ms: milliseconds from the first to the last span; None if not recorded.
    """

    id: str
    user_text: str
    user_text_recorded: bool = True
    answer_parts: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_calls_recorded: bool = True
    tool_responses: tuple[ToolResponse, ...] = ()
    intermediate_texts: tuple[str, ...] = ()
    model_steps: tuple[ModelStep, ...] = ()
    early_end: str = ""
    trace_id: str | None = None
    span_id: str | None = None
    start: int | None = None
    duration_ms: float | None = None

    @property
    def final_text(self) -> str | None:
        """The final answer as one text; None if the agent gave none."""
        return "".join(self.answer_parts) if self.answer_parts else None


class SubagentRun(Struct, frozen=True, kw_only=True):
    """What an agent did that a tool call of another agent started.

    Attributes:
        name: the agent's name or id; None if not recorded.
        call_id: id of the tool call that started it; None if not recorded.
    """

    turns: tuple[Turn, ...]
    name: str | None = None
    call_id: str | None = None


class Trace(Struct, frozen=True, kw_only=True):
    """One recorded run of an agent, the unit of evaluation.

    Attributes:
        id: trace id; of the earliest trace if a conversation has several.
        key: shared by the traces of one conversation (a session id, for example), else the trace
            id.
        conversation: the same, even when every trace is its own case; None if there is no shared
            key.
        eval_case_id: the eval case that the recording names (``agentevals.eval.case.id``).
        asked: digest of the input of the recorded case, see ``digest_input``; empty if the
            recording is not of a file with cases.
        recorded_run: the run of `agentci record` that named the eval case; empty if there is none.
        replayed: whether the model's responses came from an earlier recording, so that no time of
            the run was measured; its turns and model calls have no durations.
        printed: the lines that the command of the agent printed to stdout, without logs, with
            ``{answer}`` for texts of the model; None if that is not known.
        performance: latency, tokens, counts and costs as agentevals reports them, without those
            that were not recorded; None if none were. Its token counts are 0 where agentevals
            has 0 for unknown: compare limits with ``usage``.
        usage: tokens of the run, in a trace with its sub-agents, in a transcript without; None if
            they were not recorded for every model call.
        cost_usd: cost of the run with its sub-agents in US dollars; None if it was not recorded for
            every model call.
        subagents: runs of other agents; their tool calls are not in ``turns``.
        warnings: what was guessed or dropped while reading, sorted and unique.
        place: position of the recording.
        not_captured: why the turns cannot be evaluated: the recording lacks their content; empty if
            they can.
        spans: in order of their start; they are not stored with the trace.
    """

    id: str
    key: str
    turns: tuple[Turn, ...]
    place: Place
    conversation: str | None = None
    eval_case_id: str | None = None
    asked: str = ""
    recorded_run: str = ""
    replayed: bool = False
    printed: str | None = None
    performance: JsonObject | None = None
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    subagents: tuple[SubagentRun, ...] = ()
    warnings: tuple[str, ...] = ()
    not_captured: str = ""
    spans: tuple[RunSpan, ...] = ()
