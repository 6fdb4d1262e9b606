"""The sections of docs/frameworks.md: how to record a good trace with each framework.

Facts were found by running each framework; `tests/repository/test_framework_sections.py` checks
them against the recordings that a section names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OTLP_HTTP = "`opentelemetry-exporter-otlp-proto-http`"
GENAI_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ON = "recorded by default"
HISTORY = "the messages that each question repeats"
ADDRESS_IN_CODE = "if the base URL is in the code"
HANDOFF = "the result of a transfer to another agent"


@dataclass(frozen=True, kw_only=True)
class FrameworkSection:
    """The section of one framework.

    Attributes:
        agents: examples, below ``examples/agents``; a recording of each is beside them.
        to_add: packages with which `agentci record` takes the framework's own spans, and why.
        not_recorded: what is missing when `agentci record` has only seen the model calls.
        without_tokens: whether tokens are missing then, too.
        packages: with the versions that were recorded.
        sets_provider: whether the code sets a provider, instead of the common lines.
        variables: of the environment; empty for none.
        content: whether content is recorded, and what switches it on.
        conversation: what joins the traces of a conversation.
        complete: recordings that are read completely.
        without_content: recordings without the switches.
        also: other ways that were recorded, each with its recording.
        notes: further items of the list.
    """

    name: str
    title: str
    agents: tuple[str, ...]
    packages: str
    code: str
    sets_provider: bool = False
    to_add: str = ""
    not_recorded: str = ""
    without_tokens: bool = False
    complete: tuple[str, ...] = ()
    variables: str = ""
    content: str = ON
    conversation: str = HISTORY
    language: str = "python"
    without_content: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


SECTIONS = (
    FrameworkSection(
        name="adk",
        sets_provider=True,
        title="Google ADK",
        agents=("google-adk/agent.py",),
        not_recorded=HANDOFF,
        packages=f"`google-adk` 2.13.0, {OTLP_HTTP}",
        variables=f"`{GENAI_CONTENT}=SPAN_ONLY`, `ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1`",
        content="only with the variables",
        conversation="`gen_ai.conversation.id`, the id of ADK's session",
        complete=("adk2-span",),
        without_content=("adk2-nocontent",),
        also=(
            ("1.39.1", "adk1"),
            ("`openinference-instrumentation-google-adk` 1.0.5", "adk2-openinference"),
        ),
        notes=("`adk api_server` needs the variables only",),
        code="""\
from google.adk.telemetry.setup import maybe_set_otel_providers

maybe_set_otel_providers()
""",
    ),
    FrameworkSection(
        name="openai-sdk",
        title="OpenAI SDK",
        agents=(
            "openai-chat/agent.py",
            "openai-responses/agent.py",
            "openai-node/agent.mjs",
        ),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-openai`, "
        f"{ADDRESS_IN_CODE}; for Node, none",
        packages="`openai` 3.54.0, `opentelemetry-instrumentation-openai-v2` 2.4b0, "
        "`opentelemetry-util-genai` 1.1b0",
        variables=f"`{GENAI_CONTENT}=span_only`, "
        "`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`",
        content=f"only with the variables. Version 2.1: `{GENAI_CONTENT}=true`, "
        "and export log records",
        complete=("openai-chat-v2-span", "openai-chat-v2-span-unwrapped"),
        without_content=("openai-chat-v2-nocontent",),
        also=(
            ("version 2.1 with log records", "openai-chat-v2.1-logs"),
            ("`opentelemetry-instrumentation-openai` 0.62.4", "openai-chat-traceloop"),
            ("the same with the Responses API", "openai-responses-traceloop"),
            ("`openinference-instrumentation-openai` 0.1.66", "openai-chat-openinference"),
        ),
        notes=("openai-v2 2.4b0 does not record the Responses API",),
        code="""\
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

OpenAIInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="openai-agents",
        title="OpenAI Agents SDK",
        agents=(
            "openai-agents/agent.py",
            "openai-agents-chat/agent.py",
        ),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-openai-agents`",
        packages="`openai-agents` 0.24.0, `openinference-instrumentation-openai-agents` 2.6.0",
        complete=("openai-agents-openinference",),
        also=(
            (
                (
                    "`logfire` 5.2.0: `logfire.configure(send_to_logfire=False)`, "
                    "`logfire.instrument_openai_agents()`"
                ),
                "openai-agents-logfire",
            ),
        ),
        notes=("`set_tracing_disabled(True)` turns this recording off, too",),
        code="""\
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

OpenAIAgentsInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="langchain",
        title="LangChain and LangGraph",
        agents=("langgraph/agent.py",),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-langchain`",
        packages="`langchain` 1.4.7, `langgraph` 1.2.22, "
        "`openinference-instrumentation-langchain` 0.1.80",
        conversation='`session.id`, which is the `thread_id` of `config={"configurable": ...}`',
        complete=("langchain-openinference",),
        also=(
            ("`langfuse` 5.0.4", "langchain-langfuse"),
            (
                (
                    "LangSmith: `LANGSMITH_TRACING=true`, `LANGSMITH_OTEL_ENABLED=true`, "
                    "`LANGSMITH_OTEL_ONLY=true`"
                ),
                "langchain-langsmith-otel",
            ),
            ("`opentelemetry-instrumentation-langchain` 0.62.4", "langchain-traceloop"),
        ),
        notes=(
            (
                "Without `opentelemetry-exporter-otlp-proto-http`, LangSmith sends "
                "conversations to its service"
            ),
        ),
        code="""\
from openinference.instrumentation.langchain import LangChainInstrumentor

LangChainInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="pydantic-ai",
        title="Pydantic AI",
        agents=("pydantic-ai/agent.py",),
        to_add="`opentelemetry-sdk`",
        packages="`pydantic-ai-slim` 2.68.0",
        conversation="`gen_ai.conversation.id`, set by Pydantic AI",
        complete=("pydantic-ai-v2", "pydantic-ai-v4", "pydantic-ai-v5"),
        also=(
            ("1.107.10", "pydantic-ai1-default"),
            ("1.107.10 with `InstrumentationSettings(version=1)`", "pydantic-ai1-v1"),
        ),
        notes=("Keep the default `include_content=True` of `InstrumentationSettings`",),
        code="""\
from pydantic_ai import Agent

Agent.instrument_all()
""",
    ),
    FrameworkSection(
        name="strands",
        sets_provider=True,
        title="Strands Agents",
        agents=("strands/agent.py",),
        packages=f"`strands-agents` 1.62.0, {OTLP_HTTP}",
        variables="`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`",
        content="recorded by default; with the variable as attributes, else as span events",
        conversation="`session.id` of `trace_attributes`",
        complete=("strands-latest", "strands"),
        code="""\
from strands import Agent
from strands.telemetry import StrandsTelemetry

StrandsTelemetry().setup_otlp_exporter()
agent = Agent(trace_attributes={"session.id": "s-1"})
""",
    ),
    FrameworkSection(
        name="vercel-ai",
        sets_provider=True,
        title="Vercel AI SDK",
        agents=(
            "vercel-ai/agent.mjs",
            "vercel-ai-6/agent.mjs",
        ),
        packages="`ai` 4 to 6, `@opentelemetry/sdk-node`",
        content="recorded with `isEnabled: true`, unless `recordInputs` or `recordOutputs` is off",
        conversation="`sessionId` of `metadata`",
        complete=("vercel-ai",),
        language="ts",
        code="""\
import { NodeSDK } from "@opentelemetry/sdk-node";
import { generateText } from "ai";

const sdk = new NodeSDK(); // exports to OTEL_EXPORTER_OTLP_ENDPOINT
sdk.start();
const result = await generateText({
  model, tools, prompt,
  experimental_telemetry: { isEnabled: true, metadata: { sessionId: "s-1" } },
});
await sdk.shutdown();
""",
    ),
    FrameworkSection(
        name="agent-framework",
        sets_provider=True,
        title="Microsoft Agent Framework",
        agents=("agent-framework/agent.py",),
        to_add="`opentelemetry-sdk`",
        packages=f"`agent-framework-core` 1.23.0, {OTLP_HTTP}",
        variables="`ENABLE_INSTRUMENTATION=true`, `ENABLE_SENSITIVE_DATA=true`",
        content="only with `ENABLE_SENSITIVE_DATA=true` or the line below",
        complete=("agent-framework-chat",),
        also=(("the Responses API, whose questions stay apart", "agent-framework"),),
        code="""\
from agent_framework.observability import configure_otel_providers

configure_otel_providers(enable_sensitive_data=True)
""",
    ),
    FrameworkSection(
        name="semantic-kernel",
        title="Semantic Kernel",
        agents=("semantic-kernel/agent.py",),
        packages=f"`semantic-kernel` 1.45.0, {OTLP_HTTP}",
        variables="`SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS=true`, "
        "`SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true`",
        content="only with the variables; the question is only in log records of level INFO, "
        "which the handler below exports",
        complete=("semantic-kernel",),
        code="""\
import logging
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
logger = logging.getLogger("semantic_kernel")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.setLevel(logging.INFO)
""",
    ),
    FrameworkSection(
        name="crewai",
        title="CrewAI",
        agents=("crewai/agent.py",),
        to_add="`openinference-instrumentation-crewai` and that of the model's SDK, such as "
        "`openinference-instrumentation-openai`",
        not_recorded="the question: set `--case NAME`",
        packages="`crewai` 1.15.30, `openinference-instrumentation-crewai` 1.1.21, "
        "`openinference-instrumentation-openai` 0.1.66",
        complete=("crewai-openinference",),
        notes=(
            "The question is the task's description",
            "Instrument the SDK of the model that the crew uses",
        ),
        code="""\
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor

CrewAIInstrumentor().instrument()
OpenAIInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="llama-index",
        title="LlamaIndex",
        agents=("llama-index/agent.py",),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-llama-index`",
        not_recorded="tokens, as it streams without usage",
        without_tokens=True,
        packages="`llama-index-core` 0.14.25, `openinference-instrumentation-llama-index` 4.6.1",
        conversation="not joined: set `session.id`",
        complete=("llamaindex-openinference",),
        notes=(("Without `skip_dep_check=True` nothing is recorded"),),
        code="""\
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

LlamaIndexInstrumentor().instrument(skip_dep_check=True)
""",
    ),
    FrameworkSection(
        name="anthropic-sdk",
        title="Anthropic SDK",
        agents=("anthropic/agent.py",),
        to_add=f"`opentelemetry-sdk`, {ADDRESS_IN_CODE}",
        packages="`anthropic` 2.12.0, `opentelemetry-instrumentation-anthropic` 0.62.4",
        complete=("anthropic-traceloop",),
        notes=(
            (
                "The SDK's own spans have content only with "
                "`ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content`, and then need no other "
                "package"
            ),
        ),
        code="""\
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

AnthropicInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="autogen",
        title="AutoGen",
        agents=("autogen/agent.py",),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-autogen-agentchat`",
        not_recorded=HANDOFF,
        packages="`autogen-agentchat` 0.7.5, "
        "`openinference-instrumentation-autogen-agentchat` 0.1.22",
        content="none in AutoGen's own spans",
        complete=("autogen-openinference",),
        without_content=("autogen",),
        code="""\
from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

AutogenAgentChatInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="google-genai",
        title="Google Gen AI SDK",
        agents=("google-genai/agent.py",),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-google-genai`, "
        f"{ADDRESS_IN_CODE}",
        packages="`google-genai` 3.6.1, `openinference-instrumentation-google-genai` 1.4.14",
        complete=("google-genai-openinference",),
        code="""\
from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor

GoogleGenAIInstrumentor().instrument()
""",
    ),
    FrameworkSection(
        name="smolagents",
        title="smolagents",
        agents=("smolagents/agent.py",),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-smolagents`",
        not_recorded="the code of a `CodeAgent` is text, without tool calls",
        packages="`smolagents` 1.26.0, `openinference-instrumentation-smolagents` 0.1.43",
        conversation="not joined: set `session.id`",
        complete=("smolagents-openinference",),
        notes=("`final_answer` is a tool call in these spans",),
        code="""\
from openinference.instrumentation.smolagents import SmolagentsInstrumentor

SmolagentsInstrumentor().instrument()
""",
    ),
)


def render_section(section: FrameworkSection) -> str:
    """Return the section on a framework as Markdown."""
    rows = (f"{name}: {value}" for name, value in _list_rows(section))
    lines = [section.packages, *rows, *section.notes]
    provider = "\nInstead of the [provider](#provider):" if section.sets_provider else ""
    listed = "\n".join(f"- {line}" for line in lines)
    return f"""\
### {section.title}
{listed}
{provider}
```{section.language}
{section.code.strip()}
```"""


def framework_sections() -> str:
    """Return the sections of all frameworks as Markdown."""
    return "\n\n".join(render_section(section) for section in SECTIONS)


def frameworks_list() -> str:
    """Return what `agentci record` records of each framework as a Markdown list."""
    return "\n".join(
        "; ".join(
            [
                f"- {_list_agents(section)}",
                *filter(
                    None,
                    (
                        section.not_recorded and f"not recorded: {section.not_recorded}",
                        section.to_add and f"add {section.to_add}",
                    ),
                ),
            ]
        )
        for section in SECTIONS
    )


def make_anchor(section: FrameworkSection) -> str:
    """Return the anchor of the section on a framework."""
    return section.title.lower().replace(" ", "-")


def _list_agents(section: FrameworkSection) -> str:
    links = ", ".join(
        f"[{Path(path).parent.name}](../examples/agents/{path})" for path in section.agents
    )
    return f"[{section.title}](#{make_anchor(section)}): {links}"


def _list_rows(section: FrameworkSection) -> Iterator[tuple[str, str]]:
    if section.variables:
        yield "Variables", section.variables
    if section.content != ON:
        yield "Content", section.content
    if section.conversation != HISTORY:
        yield "Conversations", section.conversation
    if section.also:
        yield "Also", "; ".join(name for name, _ in section.also)
