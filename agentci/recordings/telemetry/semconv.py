"""Names of the attributes and events that are read: OpenTelemetry's GenAI conventions and ADK's.

GenAI names include former ones.
"""

from typing import Final

from msgspec import Struct, field

OPERATION_NAME: Final = "gen_ai.operation.name"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM: Final = "gen_ai.system"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
# Not recorded: names an attribute that stands in a span with two values.
REPEATED_ATTRIBUTE: Final = "agentci.repeated_attribute"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FINISH_REASON: Final = "gen_ai.response.finish_reason"
USAGE_PREFIX: Final = "gen_ai.usage."
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
PROMPT_TOKENS: Final = "gen_ai.usage.prompt_tokens"
COMPLETION_TOKENS: Final = "gen_ai.usage.completion_tokens"
# No convention; OpenLIT and others record it, in US dollars.
COST: Final = "gen_ai.usage.cost"
COST_USD: Final = "gen_ai.usage.cost_usd"
OPERATION_COST: Final = "operation.cost"
# By name, the milliseconds of its unit: of the GenAI conventions, vLLM, and the Vercel AI SDK.
FIRST_TOKEN_UNITS: Final = {
    "gen_ai.response.time_to_first_chunk": 1000,
    "gen_ai.latency.time_to_first_token": 1000,
    "ai.response.msToFirstChunk": 1,
    "ai.stream.msToFirstChunk": 1,
}
CACHE_CREATION_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
PROMPT_PREFIX: Final = "gen_ai.prompt."
COMPLETION_PREFIX: Final = "gen_ai.completion."
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
SESSION_ID: Final = "session.id"
SESSION_NAME: Final = "agentevals.session_name"
EVAL_CASE_ID: Final = "agentevals.eval.case.id"
# Of the resource, from `agentci record`: which run of the case the traces are of, a digest of the
# input, and why the run is not complete.
RECORDED_RUN: Final = "agentci.case.run"
ASKED: Final = "agentci.case.asked"
INCOMPLETE: Final = "agentci.case.incomplete"
# Also of the resource: "true" if the model's responses came from an earlier recording.
REPLAYED: Final = "agentci.case.replayed"
# Also of the resource: warnings about the run, one per line, and where its answer is from, if the
# it is what the command prints, or the user chose that. Of a root span: what the command printed
# as the answer, and all lines that it printed, with ``{answer}`` for texts of the model.
WARNINGS: Final = "agentci.case.warnings"
ANSWER_SOURCE: Final = "agentci.case.answer_source"
PRINTED_ANSWER: Final = "agentci.answer"
PRINTED: Final = "agentci.printed"
# Of a tool span from `agentci record`: "unknown" if messages do not say whether the tool failed.
TOOL_STATUS: Final = "agentci.tool.status"
ERROR_TYPE: Final = "error.type"

ADK_SCOPE: Final = "gcp.vertex.agent"
ADK_PREFIX: Final = "gcp.vertex.agent."
ADK_REQUEST: Final = "gcp.vertex.agent.llm_request"
ADK_RESPONSE: Final = "gcp.vertex.agent.llm_response"
ADK_TOOL_ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
ADK_TOOL_RESULT: Final = "gcp.vertex.agent.tool_response"
MCP_METHOD: Final = "mcp.method.name"
MCP_TOOL_NAME: Final = "mcp.tool.name"
MCP_TOOL_CALL: Final = "tools/call"
NOT_SPECIFIED: Final = "<not specified>"

DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
SYSTEM_EVENT: Final = "gen_ai.system.message"
USER_EVENT: Final = "gen_ai.user.message"
ASSISTANT_EVENT: Final = "gen_ai.assistant.message"
TOOL_EVENT: Final = "gen_ai.tool.message"
CHOICE_EVENT: Final = "gen_ai.choice"
MESSAGE_EVENTS: Final = frozenset(
    {SYSTEM_EVENT, USER_EVENT, ASSISTANT_EVENT, TOOL_EVENT, CHOICE_EVENT},
)
READ_EVENTS: Final = MESSAGE_EVENTS | {DETAILS_EVENT}


# A recording has few names, unless they are made up.
MAX_KNOWN_NAMES: Final = 4096


class AttributeNames(Struct, frozen=True):
    """Attribute names that some rule reads; others are dropped while a file is decoded."""

    exact: frozenset[str]
    prefixes: tuple[str, ...] = ()
    _known: dict[str, bool] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether the attribute is read."""
        known = self._known.get(name)
        if known is None:
            known = name in self.exact or name.startswith(self.prefixes)
            if len(self._known) < MAX_KNOWN_NAMES:
                self._known[name] = known
        return known


class ReadAttributes(Struct, frozen=True):
    """The attributes that are read from a recording."""

    span: AttributeNames
    resource: AttributeNames


RESOURCE_ATTRIBUTES: Final = AttributeNames(
    frozenset(
        {
            *(SESSION_NAME, CONVERSATION_ID, SESSION_ID),
            *(EVAL_CASE_ID, RECORDED_RUN, ASKED, INCOMPLETE, REPLAYED, WARNINGS),
        }
    ),
)
DETAILS_ATTRIBUTES: Final = frozenset(
    {
        INPUT_MESSAGES,
        OUTPUT_MESSAGES,
        PROVIDER_NAME,
        REQUEST_MODEL,
        RESPONSE_MODEL,
        FINISH_REASONS,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        CACHE_READ_TOKENS,
        CACHE_WRITE_TOKENS,
    },
)
SPAN_ATTRIBUTES: Final = AttributeNames(
    DETAILS_ATTRIBUTES
    | {
        *FIRST_TOKEN_UNITS,
        OPERATION_NAME,
        RESPONSE_ID,
        SYSTEM,
        FINISH_REASON,
        TOOL_NAME,
        TOOL_CALL_ID,
        TOOL_ARGUMENTS,
        TOOL_RESULT,
        CONVERSATION_ID,
        SESSION_ID,
        EVAL_CASE_ID,
        ERROR_TYPE,
        TOOL_STATUS,
        PRINTED_ANSWER,
        PRINTED,
        OPERATION_COST,
        MCP_METHOD,
        MCP_TOOL_NAME,
    },
    (ADK_PREFIX, USAGE_PREFIX, PROMPT_PREFIX, COMPLETION_PREFIX),
)
# What a message event says as one JSON text, in the clients of Azure AI.
EVENT_CONTENT: Final = "gen_ai.event.content"
EVENT_ATTRIBUTES: Final = AttributeNames(
    DETAILS_ATTRIBUTES
    | {EVENT_CONTENT}
    | {"content", "id", "message", "name", "finish_reason", "tool_calls"}
    | {"event.name", "otel.event.name"},
)
