"""The pages of docs/frameworks/: how to record a good trace with each framework.

Facts were found by running each framework; `tests/repository/test_framework_pages.py` checks them
against the recordings that a page names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OTLP_PACKAGES = "`opentelemetry-sdk`, `opentelemetry-exporter-otlp-proto-http`"
PROVIDER = """\
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
"""
ROOT_SPAN = """
with trace.get_tracer("my-app").start_as_current_span("agent"):  # one trace per question
    answer = run_agent(question)
"""
GENAI_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ON = "recorded by default"
# What the framework's own spans have beyond the model calls.
STRUCTURE = "for agents, times and errors of tools"
NOTHING_TO_ADD = "nothing; agents, times and errors of tools are in the framework's spans"
ADDRESS_IN_CODE = "if the base URL is in the code"
HANDOFF = "the result of a transfer to another agent"


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page of one framework.

    Attributes:
        agents: examples, below ``examples/agents``; a recording of each is beside them.
        to_add: packages with which `agentci record` takes the framework's own spans, and why.
        not_recorded: what is missing when `agentci record` has only seen the model calls.
        without_tokens: whether tokens are missing then, too.
        hides_question: whether prompts hide the question then, which names the case.
        packages: with the versions that were recorded.
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
    to_add: str
    packages: str
    code: str
    not_recorded: str = ""
    without_tokens: bool = False
    hides_question: bool = False
    complete: tuple[str, ...] = ()
    variables: str = ""
    content: str = ON
    conversation: str = "the messages that each question repeats; set `gen_ai.conversation.id`"
    language: str = "python"
    without_content: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


PAGES = (
    Page(
        name="adk",
        title="Google ADK",
        agents=("google-adk/agent.py",),
        to_add=NOTHING_TO_ADD,
        not_recorded=HANDOFF,
        packages="`google-adk` 2.13.0, `opentelemetry-exporter-otlp-proto-http`",
        variables=f"`{GENAI_CONTENT}=SPAN_ONLY`, `ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1`",
        content="off by default; the variables switch it on",
        conversation="`gen_ai.conversation.id`, which ADK sets to the id of its session",
        complete=("adk2-span",),
        without_content=("adk2-nocontent",),
        also=(
            ("1.39.1", "adk1"),
            ("`openinference-instrumentation-google-adk` 1.0.5", "adk2-openinference"),
        ),
        notes=(("`adk api_server`", "needs the variables only"),),
        code="""\
from google.adk.telemetry.setup import maybe_set_otel_providers

maybe_set_otel_providers()
""",
    ),
    Page(
        name="openai-sdk",
        title="OpenAI SDK",
        agents=(
            "openai-chat/agent.py",
            "openai-responses/agent.py",
            "openai-node/agent.mjs",
        ),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-openai`, "
        f"{ADDRESS_IN_CODE}; for Node, nothing",
        packages="`openai` 3.54.0, `opentelemetry-instrumentation-openai-v2` 2.4b0, "
        f"`opentelemetry-util-genai` 1.1b0, {OTLP_PACKAGES}",
        variables=f"`{GENAI_CONTENT}=span_only`, "
        "`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`",
        content=f"off by default; the variables switch it on. Version 2.1: `{GENAI_CONTENT}=true`, "
        "and export log records",
        complete=("openai-chat-v2-span", "openai-chat-v2-span-unwrapped"),
        without_content=("openai-chat-v2-nocontent",),
        also=(
            ("version 2.1 with log records", "openai-chat-v2.1-logs"),
            ("`opentelemetry-instrumentation-openai` 0.62.4", "openai-chat-traceloop"),
            ("the same with the Responses API", "openai-responses-traceloop"),
            ("`openinference-instrumentation-openai` 0.1.66", "openai-chat-openinference"),
        ),
        notes=(
            ("Responses API", "openai-v2 2.4b0 does not record it; use one of the others"),
            ("Without a span around the loop", "each model call is a trace; agentci joins them"),
        ),
        code=PROVIDER.replace(
            "from opentelemetry.sdk.trace import",
            "from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor\n"
            "from opentelemetry.sdk.trace import",
        )
        + "OpenAIInstrumentor().instrument()\n"
        + ROOT_SPAN,
    ),
    Page(
        name="openai-agents",
        title="OpenAI Agents SDK",
        agents=(
            "openai-agents/agent.py",
            "openai-agents-chat/agent.py",
        ),
        to_add=f"`opentelemetry-sdk`, `openinference-instrumentation-openai-agents`, {STRUCTURE}",
        packages="`openai-agents` 0.24.0, `openinference-instrumentation-openai-agents` 2.6.0, "
        f"{OTLP_PACKAGES}",
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
        notes=(("`set_tracing_disabled(True)`", "turns this recording off, too"),),
        code=f"""\
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
{PROVIDER}OpenAIAgentsInstrumentor().instrument()
""",
    ),
    Page(
        name="langchain",
        title="LangChain and LangGraph",
        agents=("langgraph/agent.py",),
        to_add=f"`opentelemetry-sdk`, `openinference-instrumentation-langchain`, {STRUCTURE}",
        packages="`langchain` 1.4.7, `langgraph` 1.2.22, "
        f"`openinference-instrumentation-langchain` 0.1.80, {OTLP_PACKAGES}",
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
                "With LangSmith",
                (
                    "install `opentelemetry-exporter-otlp-proto-http`: without it, conversations "
                    "are sent to LangSmith's service"
                ),
            ),
        ),
        code=f"""\
from openinference.instrumentation.langchain import LangChainInstrumentor
{PROVIDER}LangChainInstrumentor().instrument()
""",
    ),
    Page(
        name="pydantic-ai",
        title="Pydantic AI",
        agents=("pydantic-ai/agent.py",),
        to_add=f"`opentelemetry-sdk`, {STRUCTURE}",
        packages=f"`pydantic-ai-slim` 2.68.0, {OTLP_PACKAGES}",
        conversation="`gen_ai.conversation.id`, which Pydantic AI sets",
        complete=("pydantic-ai-v2", "pydantic-ai-v4", "pydantic-ai-v5"),
        also=(
            ("1.107.10", "pydantic-ai1-default"),
            ("1.107.10 with `InstrumentationSettings(version=1)`", "pydantic-ai1-v1"),
        ),
        notes=(("`InstrumentationSettings`", "keep `include_content=True`, the default"),),
        code=f"""\
{PROVIDER}
from pydantic_ai import Agent

Agent.instrument_all()
""",
    ),
    Page(
        name="strands",
        title="Strands Agents",
        agents=("strands/agent.py",),
        to_add=NOTHING_TO_ADD,
        packages="`strands-agents` 1.62.0, `opentelemetry-exporter-otlp-proto-http`",
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
    Page(
        name="vercel-ai",
        title="Vercel AI SDK",
        agents=(
            "vercel-ai/agent.mjs",
            "vercel-ai-6/agent.mjs",
        ),
        to_add=NOTHING_TO_ADD,
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
    Page(
        name="agent-framework",
        title="Microsoft Agent Framework",
        agents=("agent-framework/agent.py",),
        to_add=f"`opentelemetry-sdk`, {STRUCTURE}",
        packages="`agent-framework-core` 1.23.0, `opentelemetry-exporter-otlp-proto-http`",
        variables="`ENABLE_INSTRUMENTATION=true`, `ENABLE_SENSITIVE_DATA=true`",
        content="off by default; `ENABLE_SENSITIVE_DATA=true` or the line below switches it on",
        complete=("agent-framework-chat",),
        also=(("the Responses API, whose questions stay apart", "agent-framework"),),
        code="""\
from agent_framework.observability import configure_otel_providers

configure_otel_providers(enable_sensitive_data=True)
""",
    ),
    Page(
        name="semantic-kernel",
        title="Semantic Kernel",
        agents=("semantic-kernel/agent.py",),
        to_add=NOTHING_TO_ADD,
        packages="`semantic-kernel` 1.45.0, `opentelemetry-exporter-otlp-proto-http`",
        variables="`SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS=true`, "
        "`SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true`",
        content="off by default; the variables switch it on, and the question is only in log "
        "records of level INFO, which the handler below exports",
        complete=("semantic-kernel",),
        code=f"""\
import logging
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
{PROVIDER}
logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
logger = logging.getLogger("semantic_kernel")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.setLevel(logging.INFO)
""",
    ),
    Page(
        name="crewai",
        title="CrewAI",
        agents=("crewai/agent.py",),
        to_add="`openinference-instrumentation-crewai` and that of the model's SDK, as "
        f"`openinference-instrumentation-openai`, {STRUCTURE}",
        not_recorded="the question, which is inside a prompt: give the case a name",
        hides_question=True,
        packages="`crewai` 1.15.30, `openinference-instrumentation-crewai` 1.1.21, "
        f"`openinference-instrumentation-openai` 0.1.66, {OTLP_PACKAGES}",
        complete=("crewai-openinference",),
        notes=(
            ("Question", "the description of the task, with its inputs filled in"),
            ("Models", "instrument the SDK of the model that the crew uses"),
        ),
        code=f"""\
from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
{PROVIDER}CrewAIInstrumentor().instrument()
OpenAIInstrumentor().instrument()
""",
    ),
    Page(
        name="llama-index",
        title="LlamaIndex",
        agents=("llama-index/agent.py",),
        to_add=f"`opentelemetry-sdk`, `openinference-instrumentation-llama-index`, {STRUCTURE}",
        not_recorded="tokens, as it streams without usage",
        without_tokens=True,
        packages="`llama-index-core` 0.14.25, `openinference-instrumentation-llama-index` 4.6.1, "
        f"{OTLP_PACKAGES}",
        conversation="not joined: set `session.id`",
        complete=("llamaindex-openinference",),
        notes=(
            (
                "`skip_dep_check=True`",
                (
                    "is needed: the instrumentation otherwise asks for a package that most set-ups "
                    "do not have, and records nothing"
                ),
            ),
        ),
        code=f"""\
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
{PROVIDER}LlamaIndexInstrumentor().instrument(skip_dep_check=True)
""",
    ),
    Page(
        name="anthropic-sdk",
        title="Anthropic SDK",
        agents=("anthropic/agent.py",),
        to_add=f"`opentelemetry-sdk`, {ADDRESS_IN_CODE}",
        packages="`anthropic` 2.12.0, `opentelemetry-instrumentation-anthropic` 0.62.4, "
        f"{OTLP_PACKAGES}",
        complete=("anthropic-traceloop",),
        notes=(
            (
                "The SDK's own spans",
                (
                    "have no content by default; with "
                    "`ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE=content` they have it, and no "
                    "other package is needed. A call in both counts once"
                ),
            ),
        ),
        code=PROVIDER.replace(
            "from opentelemetry.sdk.trace import",
            "from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor\n"
            "from opentelemetry.sdk.trace import",
        )
        + "AnthropicInstrumentor().instrument()\n"
        + ROOT_SPAN,
    ),
    Page(
        name="autogen",
        title="AutoGen",
        agents=("autogen/agent.py",),
        to_add=f"`opentelemetry-sdk`, `openinference-instrumentation-autogen-agentchat`, "
        f"{STRUCTURE}",
        not_recorded=HANDOFF,
        packages="`autogen-agentchat` 0.7.5, "
        f"`openinference-instrumentation-autogen-agentchat` 0.1.22, {OTLP_PACKAGES}",
        content="none in AutoGen's own spans; the instrumentation records it",
        complete=("autogen-openinference",),
        without_content=("autogen",),
        code=f"""\
from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
{PROVIDER}AutogenAgentChatInstrumentor().instrument()
""",
    ),
    Page(
        name="google-genai",
        title="Google Gen AI SDK",
        agents=("google-genai/agent.py",),
        to_add="`opentelemetry-sdk`, `openinference-instrumentation-google-genai`, "
        f"{ADDRESS_IN_CODE}",
        packages="`google-genai` 3.6.1, `openinference-instrumentation-google-genai` 1.4.14, "
        f"{OTLP_PACKAGES}",
        complete=("google-genai-openinference",),
        code=f"""\
from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor
{PROVIDER}GoogleGenAIInstrumentor().instrument()
{ROOT_SPAN}""",
    ),
    Page(
        name="smolagents",
        title="smolagents",
        agents=("smolagents/agent.py",),
        to_add=f"`opentelemetry-sdk`, `openinference-instrumentation-smolagents`, {STRUCTURE}",
        not_recorded="the code of a `CodeAgent` is text, without tool calls",
        packages="`smolagents` 1.26.0, `openinference-instrumentation-smolagents` 0.1.43, "
        f"{OTLP_PACKAGES}",
        conversation="not joined: set `session.id`",
        complete=("smolagents-openinference",),
        notes=(("`final_answer`", "is a tool call of its own in these spans"),),
        code=f"""\
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
{PROVIDER}SmolagentsInstrumentor().instrument()
""",
    ),
)


def render_page(page: Page) -> str:
    """Return a page as Markdown."""
    return f"""\
# {page.title}

## Without telemetry
`{_find_command(page)}` [records](../recording.md) an agent such as {_list_agents(page)}.

{_format_list(_list_recorded(page))}

## With telemetry
{_format_list(_list_rows(page))}

```{page.language}
{page.code.strip()}
```
[Export the spans to a file](README.md#export-to-a-file), and check it with \
[`agentci show`](../show.md).
"""


def _find_command(page: Page) -> str:
    """Return the command that records the agent."""
    program = "node" if page.language == "ts" else "python"
    case = "--case NAME " if page.hides_question else ""
    return f'agentci record {case}-- {program} {Path(page.agents[0]).name} "QUESTION"'


def _list_agents(page: Page) -> str:
    links = [f"[`{path}`](../../examples/agents/{path})" for path in page.agents]
    return ", ".join(links)


def _list_recorded(page: Page) -> Iterator[tuple[str, str]]:
    """Yield what `agentci record` records of the example, which its committed recording shows."""
    tokens = "" if page.without_tokens else ", tokens"
    questions = "" if page.hides_question else "questions, "
    yield "Complete", f"{questions}tool calls with arguments, results, answers{tokens}"
    if page.not_recorded:
        yield "Not complete", page.not_recorded
    yield "To add", page.to_add


def _format_list(rows: Iterator[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in rows)


def _list_rows(page: Page) -> Iterator[tuple[str, str]]:
    yield "Packages", page.packages
    if page.variables:
        yield "Variables", page.variables
    if page.content != ON:
        yield "Content", page.content
    yield "Conversations are joined by", page.conversation
    if page.also:
        yield "Also complete", "; ".join(name for name, _ in page.also)
    yield from page.notes


def frameworks_table() -> str:
    """Return the frameworks with their pages as a Markdown table."""
    rows = [
        f"| [{page.title}]({page.name}.md) | {re.split('[.,;]', page.content)[0]} |"
        for page in PAGES
    ]
    return "\n".join(["| Framework | content |", "| --- | --- |", *rows])
