"""The conventions that are read: how each is recognised, and what is read of its spans."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Final, TypeAlias, cast

from msgspec import Struct

from agentci.model.values import Json
from agentci.recordings.telemetry import semconv
from agentci.recordings.telemetry.semconv import AttributeNames, ReadAttributes
from agentci.recordings.telemetry.spans import Span, SpanEvent, SpanReading, classify_span

GENAI: Final = "genai"
GENAI_PREFIX: Final = "gen_ai."
# Spans of these kinds are work of an agent; others are health checks, databases or set-up.
ACTIVE_KINDS: Final = frozenset({"agent", "workflow", "inference", "tool"})


# Reads a span with its log records, the best source first.
SpanReader: TypeAlias = Callable[[Span, Sequence[SpanEvent]], Iterator[SpanReading]]


class Convention(Struct, frozen=True, kw_only=True):
    """How one library, framework or platform records what an agent does.

    Attributes:
        name: as users write it; the function of its reader is ``read_NAME``.
        title: as shown to users.
        reader: the module here that reads it; None if its spans follow GenAI, and only ``capture``
            differs.
        prefixes, attributes: a span with an attribute of one of these prefixes or names is
            recognised as one of the convention.
        scopes: so is a span of one of these instrumentation scopes; a name that ends with a dot is
            a prefix.
        read_attributes: the attributes that the reader uses besides ``attributes`` and
            ``session``, as all others are dropped; None keeps all with ``prefixes``.
        session: attributes that hold the id of a conversation.
        messages: attributes that hold whole messages, which are not read if they are too long.
        model_output: those that hold, as JSON, what a model returned.
        run_output: those that hold what the run of an agent returned.
        model_call: an attribute, and the values that mark the span of a model call, compared in
            upper case; for grouping, which reads no content.
        capture: how users switch on the recording of content.
        in_agentevals: whether agentevals reads it, too.
    """

    name: str
    title: str
    reader: str | None = None
    prefixes: tuple[str, ...] = ()
    attributes: frozenset[str] = frozenset()
    read_attributes: AttributeNames | None = None
    scopes: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    model_output: tuple[str, ...] = ()
    run_output: tuple[str, ...] = ()
    model_call: tuple[str, frozenset[Json]] | None = None
    capture: str = "record inputs and outputs"
    in_agentevals: bool = False

    def has_scope(self, scope: str) -> bool:
        """Return whether spans of this instrumentation scope belong to the convention."""
        return any(
            scope == one or (one.endswith(".") and scope.startswith(one)) for one in self.scopes
        )


# In order of precedence: what an earlier convention says about a span wins.
CONVENTIONS: Final = (
    Convention(
        name="strands",
        title="Strands Agents",
        reader="frameworks",
        scopes=("strands.telemetry.tracer", "strands.", "strands-agents"),
        read_attributes=AttributeNames(frozenset({"gen_ai.tool.status"})),
        capture="set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
    ),
    Convention(
        name="traceloop",
        title="Traceloop OpenLLMetry",
        reader="instrumentation",
        prefixes=("traceloop.",),
        read_attributes=AttributeNames(frozenset({"traceloop.span.kind"}), ("traceloop.entity.",)),
        session=(
            "traceloop.association.properties.session_id",
            "traceloop.association.properties.thread_id",
            "traceloop.association.properties.conversation_id",
        ),
        messages=("traceloop.entity.input", "traceloop.entity.output"),
        capture="set TRACELOOP_TRACE_CONTENT=true",
    ),
    Convention(
        name=GENAI,
        in_agentevals=True,
        title="OpenTelemetry GenAI",
        reader="genai",
        prefixes=(GENAI_PREFIX,),
        read_attributes=semconv.SPAN_ATTRIBUTES,
        session=("gen_ai.conversation.id", "session.id"),
        messages=(semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES),
        model_output=(semconv.OUTPUT_MESSAGES,),
        capture="set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only (`true` in "
        "older versions) and OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
    ),
    Convention(
        name="adk",
        in_agentevals=True,
        title="Google ADK",
        reader="genai",
        prefixes=("gcp.vertex.agent.",),
        scopes=("gcp.vertex.agent",),
        capture="set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (EVENT_ONLY if "
        "log records are exported) and ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1",
    ),
    Convention(
        name="indexed",
        in_agentevals=True,
        title="OpenLLMetry's indexed attributes",
        reader="instrumentation",
        prefixes=(semconv.PROMPT_PREFIX, semconv.COMPLETION_PREFIX),
        capture="set TRACELOOP_TRACE_CONTENT=true",
    ),
    Convention(
        name="openinference",
        title="OpenInference",
        reader="instrumentation",
        model_call=("openinference.span.kind", frozenset({"LLM"})),
        prefixes=("openinference.",),
        read_attributes=AttributeNames(
            frozenset(
                {
                    *("openinference.span.kind", "input.value", "output.value", "llm.model_name"),
                    *("llm.finish_reason", "tool.name", "tool.id", "tool_call.id"),
                    "tool_call.function.name",
                }
            ),
            ("llm.input_messages.", "llm.output_messages.", "llm.token_count.", "llm.cost."),
        ),
        session=("session.id",),
        messages=("input.value", "output.value"),
        run_output=("output.value",),
        capture="unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other "
        "OPENINFERENCE_HIDE_* variables",
    ),
    Convention(
        name="vercel_ai",
        title="Vercel AI SDK 4 to 6",
        reader="frameworks",
        prefixes=("ai.",),
        read_attributes=AttributeNames(
            frozenset({"ai.operationId", "ai.model.id", "ai.prompt", "ai.prompt.messages"}),
            ("ai.response.", "ai.usage.", "ai.toolCall."),
        ),
        session=("ai.telemetry.metadata.sessionId",),
        messages=("ai.prompt", "ai.prompt.messages", "ai.response.toolCalls"),
        model_output=("ai.response.toolCalls",),
        capture="remove `recordInputs: false` and `recordOutputs: false` of "
        "`experimental_telemetry`",
    ),
    Convention(
        name="logfire",
        title="Logfire, Pydantic AI",
        reader="instrumentation",
        prefixes=("pydantic_ai.",),
        scopes=("pydantic-ai", "logfire."),
        attributes=frozenset({"all_messages_events"}),
        read_attributes=AttributeNames(
            frozenset(
                {
                    *("events", "raw_input", "response", "request_data", "response_data", "name"),
                    *("input", "output", "tool_arguments", "tool_response", "final_result"),
                    *("agent_trace_id", "handoffs", "tools", "pydantic_ai.all_messages"),
                }
            )
        ),
        messages=(
            *("events", "all_messages_events", "pydantic_ai.all_messages", "raw_input"),
            *("response", "request_data", "response_data"),
        ),
        capture="set `include_content=True` in `InstrumentationSettings`",
    ),
    Convention(
        name="langsmith",
        title="LangSmith OTel",
        reader="platforms",
        model_call=("langsmith.span.kind", frozenset({"LLM"})),
        prefixes=("langsmith.",),
        attributes=frozenset({"gen_ai.prompt", "gen_ai.completion"}),
        read_attributes=AttributeNames(
            frozenset({"langsmith.span.kind", "langsmith.metadata.usage_metadata"})
        ),
        session=("langsmith.metadata.thread_id", "langsmith.metadata.session_id"),
        messages=("gen_ai.prompt", "gen_ai.completion"),
        model_output=("gen_ai.completion",),
        run_output=("gen_ai.completion",),
        capture="unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS",
    ),
    Convention(
        name="langfuse",
        title="Langfuse",
        reader="platforms",
        model_call=("langfuse.observation.type", frozenset({"GENERATION"})),
        prefixes=("langfuse.",),
        read_attributes=AttributeNames(
            frozenset({"langfuse.observation.metadata.tool_call_id"}),
            (
                *("langfuse.observation.type", "langfuse.observation.input"),
                *("langfuse.observation.output", "langfuse.observation.model."),
                *("langfuse.observation.usage_details", "langfuse.observation.cost_details"),
            ),
        ),
        session=(
            "langfuse.session.id",
            "session.id",
            "langfuse.trace.metadata.thread_id",
            "langfuse.observation.metadata.thread_id",
        ),
        messages=("langfuse.observation.input", "langfuse.observation.output"),
        model_output=("langfuse.observation.output",),
        run_output=("langfuse.observation.output",),
    ),
    Convention(
        name="mlflow",
        title="MLflow Tracing",
        reader="platforms",
        model_call=("mlflow.spanType", frozenset({'"CHAT_MODEL"', '"LLM"'})),
        prefixes=("mlflow.",),
        read_attributes=AttributeNames(
            frozenset({"mlflow.chat.tokenUsage", "mlflow.llm.model", "mlflow.llm.cost"}),
            ("mlflow.span",),
        ),
        session=("mlflow.trace.session",),
        messages=("mlflow.spanInputs", "mlflow.spanOutputs"),
        model_output=("mlflow.spanOutputs",),
        run_output=("mlflow.spanOutputs",),
    ),
    Convention(
        name="laminar",
        title="Laminar",
        reader="platforms",
        prefixes=("lmnr.",),
        read_attributes=AttributeNames(
            frozenset({"lmnr.span.type", "lmnr.span.input", "lmnr.span.output"})
        ),
        session=("lmnr.association.properties.session_id",),
        messages=("lmnr.span.input", "lmnr.span.output"),
        model_output=("lmnr.span.output",),
        run_output=("lmnr.span.output",),
        model_call=("lmnr.span.type", frozenset({"LLM"})),
        capture="unset LMNR_TRACE_CONTENT, and remove `ignore_input` and `ignore_output` of "
        "`observe`",
    ),
    Convention(
        name="langwatch",
        title="LangWatch",
        reader="platforms",
        prefixes=("langwatch.",),
        read_attributes=AttributeNames(
            frozenset(
                {
                    *("langwatch.span.type", "langwatch.input", "langwatch.output"),
                    "langwatch.metrics",
                }
            )
        ),
        messages=("langwatch.input", "langwatch.output"),
        model_output=("langwatch.output",),
        run_output=("langwatch.output",),
        model_call=("langwatch.span.type", frozenset({"LLM"})),
        capture="remove `capture_input=False` and `capture_output=False` of `langwatch.span`",
    ),
    Convention(
        name="haystack",
        title="Haystack's tracing",
        reader="frameworks",
        prefixes=("haystack.",),
        read_attributes=AttributeNames(
            frozenset(
                {
                    *("haystack.agent.input", "haystack.agent.output", "haystack.tool.name"),
                    *("haystack.agent.step.llm.input", "haystack.agent.step.llm.output"),
                    *("haystack.agent.step.tool.input", "haystack.agent.step.tool.output"),
                    *("haystack.component.input", "haystack.component.output"),
                    *("haystack.component.type", "haystack.tool.error", "haystack.agent.max_steps"),
                }
            )
        ),
        messages=(
            *("haystack.agent.input", "haystack.agent.output", "haystack.agent.step.llm.input"),
            *("haystack.agent.step.llm.output", "haystack.component.input"),
            "haystack.component.output",
        ),
        model_output=("haystack.agent.step.llm.output", "haystack.component.output"),
        run_output=("haystack.agent.output",),
        capture="set HAYSTACK_CONTENT_TRACING_ENABLED=true",
    ),
    Convention(
        name="mastra",
        title="Mastra",
        reader="frameworks",
        prefixes=("mastra.",),
        read_attributes=AttributeNames(
            frozenset({"mastra.span.type", "mastra.agent_run.input", "error.message"})
        ),
        messages=("mastra.agent_run.input",),
        capture="remove `hideInput` and `hideOutput` of the `tracingOptions`",
    ),
    Convention(
        name="genkit",
        title="Genkit",
        reader="frameworks",
        prefixes=("genkit:",),
        read_attributes=AttributeNames(
            frozenset(
                {
                    *("genkit:input", "genkit:output", "genkit:name", "genkit:isRoot"),
                    "genkit:metadata:subtype",
                }
            )
        ),
        messages=("genkit:input", "genkit:output"),
        model_output=("genkit:output",),
        run_output=("genkit:output",),
        model_call=("genkit:metadata:subtype", frozenset({"MODEL"})),
    ),
    Convention(
        name="agent_framework",
        title="Microsoft Agent Framework",
        scopes=("agent_framework",),
        capture="set ENABLE_SENSITIVE_DATA=true",
        in_agentevals=True,
    ),
    Convention(
        name="anthropic_sdk",
        title="Anthropic SDK",
        scopes=("com.anthropic.sdk.",),
        capture="set ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content",
        in_agentevals=True,
    ),
    Convention(
        name="semantic_kernel",
        title="Semantic Kernel",
        scopes=("semantic_kernel.",),
        capture="set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true "
        "and export log records",
        in_agentevals=True,
    ),
    Convention(
        name="azure_ai",
        title="Azure AI Inference and Agents",
        scopes=("azure.core.tracing.", "azure.ai."),
        capture="set AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true",
    ),
    Convention(
        name="autogen",
        title="AutoGen core",
        scopes=("autogen-core", "autogen."),
        capture="it records no content; add openinference-instrumentation-autogen-agentchat",
        in_agentevals=True,
    ),
    Convention(
        name="langtrace",
        title="Langtrace",
        scopes=("langtrace_python_sdk.",),
        capture="its events are not read; record with OpenLLMetry or OpenInference",
    ),
)


# Of conventions that are not read. Traces with such attributes are errors; they are not ignored.
UNREAD_PREFIXES: Final = (
    *("llm.", "braintrust.", "promptflow.", "weave."),
    *("langtrace.", "agentops.", "opik."),
)


def _join_names(prefixes: Iterable[str] = ()) -> AttributeNames:
    exact: set[str] = set()
    joined = {*prefixes}
    for one in CONVENTIONS:
        read = one.read_attributes or AttributeNames(frozenset(), one.prefixes)
        exact |= {*one.attributes, *one.session, *read.exact}
        joined |= {*read.prefixes}
    return AttributeNames(frozenset(exact), tuple(sorted(joined)))


CONVENTION_ATTRIBUTES: Final = _join_names()
READ_SPAN_ATTRIBUTES: Final = _join_names(UNREAD_PREFIXES)
READ_ATTRIBUTES: Final = ReadAttributes(READ_SPAN_ATTRIBUTES, semconv.RESOURCE_ATTRIBUTES)
# In order of precedence.
SESSION_ATTRIBUTES: Final = tuple(
    dict.fromkeys(
        [
            *(semconv.CONVERSATION_ID, semconv.SESSION_ID),
            *(name for one in CONVENTIONS for name in one.session),
        ]
    )
)

MESSAGE_ATTRIBUTES: Final = tuple(name for one in CONVENTIONS for name in one.messages)
MODEL_OUTPUT_ATTRIBUTES: Final = tuple(name for one in CONVENTIONS for name in one.model_output)
RUN_OUTPUT_ATTRIBUTES: Final = tuple(name for one in CONVENTIONS for name in one.run_output)

_MODEL_CALLS: Final = tuple(one.model_call for one in CONVENTIONS if one.model_call is not None)


def is_model_call(span: Span) -> bool:
    """Return whether a span is a model call, without reading its content."""
    return classify_span(span) == "inference" or any(
        isinstance(value := span.attributes.get(name), str) and value.upper() in values
        for name, values in _MODEL_CALLS
    )


@cache
def load_reader(module: str, convention: str) -> SpanReader:
    """Import the reader of a convention."""
    imported = import_module(f"{__package__}.{module}")
    return cast("SpanReader", getattr(imported, f"read_{convention}"))


def find_conventions(span: Span) -> Sequence[Convention]:
    """Return the conventions that read a span, in order of precedence."""
    found = 0
    for name in span.attributes:
        found |= _find_by_attribute(name)
    if span.scope:
        found |= _find_by_scope(span.scope)
    return _select(found | _GENAI_BIT)


def find_marked_conventions(span: Span) -> Sequence[Convention]:
    """Return the conventions to which an attribute, an event or the scope of a span belongs."""
    found = find_conventions(span)
    names = (*span.attributes, *(event.name for event in span.events))
    if any(name.startswith(GENAI_PREFIX) for name in names):
        return found
    return tuple(one for one in found if one.name != GENAI)


def is_agent_activity(span: Span) -> bool:
    """Return whether a span records work of an agent, even if no turn can be read from it."""
    kind = classify_span(span)
    if kind in ACTIVE_KINDS or (kind == "none" and semconv.REQUEST_MODEL in span.attributes):
        return True
    if any(name.startswith(UNREAD_PREFIXES) for name in span.attributes):
        return True
    return any(one.name != GENAI and one.reader is not None for one in find_conventions(span))


_GENAI_BIT: Final = 1 << next(index for index, one in enumerate(CONVENTIONS) if one.name == GENAI)


@lru_cache(maxsize=4096)
def _find_by_attribute(name: str) -> int:
    return sum(
        1 << index
        for index, one in enumerate(CONVENTIONS)
        if name.startswith(one.prefixes) or name in one.attributes
    )


@lru_cache(maxsize=256)
def _find_by_scope(scope: str) -> int:
    return sum(1 << index for index, one in enumerate(CONVENTIONS) if one.has_scope(scope))


@cache
def _select(found: int) -> tuple[Convention, ...]:
    return tuple(one for index, one in enumerate(CONVENTIONS) if found >> index & 1)
