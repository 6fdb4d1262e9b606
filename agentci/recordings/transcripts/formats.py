"""The formats of transcripts that are read; a reader is loaded only when a file has its format."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from msgspec import Struct

from agentci.model.values import Json
from agentci.recordings.transcripts.reader import TranscriptReader

_PACKAGE: Final = "agentci.recordings.transcripts"
_MESSAGE_LISTS: Final = "message_lists"


class TranscriptFormat(Struct, frozen=True, kw_only=True):
    """One format of transcripts.

    Attributes:
        name: the name that users write, such as ``atif``.
        title: what writes it, in Markdown.
        module, reader: the module of this package and the name of the reader in it; None for a
            kind of message lists.
        has_prompt: whether it records what the user wrote.
        note: what else to know, in Markdown.
    """

    name: str
    title: str
    module: str
    reader: str | None = None
    has_prompt: bool = True
    note: str = ""

    def load(self) -> TranscriptReader:
        """Import and return the reader."""
        module = import_module(f"{_PACKAGE}.{self.module}")
        found: TranscriptReader = (
            module.make_reader(self.name) if self.reader is None else getattr(module, self.reader)
        )
        return found


# Tried in this order: message lists last, as their marks are the weakest.
_ROWS: Final = (
    TranscriptFormat(
        name="atif",
        title="ATIF 1.0 to 1.8 (`trajectory.json` of Harbor)",
        module="atif",
        reader="TRAJECTORY",
        note="steps copied from an earlier trajectory are left out",
    ),
    TranscriptFormat(
        name="qwen-code-session",
        title="Qwen Code, session (`~/.qwen/projects/*/chats/*.jsonl`)",
        module="gemini_cli",
        reader="QWEN_SESSION",
        note="tool calls of sub-agents are only counted",
    ),
    TranscriptFormat(
        name="claude-code-session",
        title="Claude Code, session (`~/.claude/projects/**/*.jsonl`)",
        module="claude_code",
        reader="SESSION",
    ),
    TranscriptFormat(
        name="claude-code-stream",
        title="Claude Code and Qwen Code, `--output-format stream-json`; the `execution_file` of "
        "Claude's action",
        module="claude_code",
        reader="STREAM",
        has_prompt=False,
    ),
    TranscriptFormat(
        name="codex-rollout",
        title="Codex, session (`~/.codex/sessions/**/rollout-*.jsonl`)",
        module="codex",
        reader="ROLLOUT",
        note="tokens include cached ones",
    ),
    TranscriptFormat(
        name="codex-exec",
        title="Codex, `codex exec --json`",
        module="codex",
        reader="EXEC",
        has_prompt=False,
    ),
    TranscriptFormat(
        name="copilot",
        title="GitHub Copilot CLI (`events.jsonl`, `--output-format json`)",
        module="copilot",
        reader="EVENTS",
        note="stdout has no tokens",
    ),
    TranscriptFormat(
        name="gemini-session",
        title="Gemini CLI, session (`~/.gemini/tmp/*/chats/session-*`)",
        module="gemini_cli",
        reader="SESSION",
    ),
    TranscriptFormat(
        name="gemini-stream",
        title="Gemini CLI, `--output-format stream-json`",
        module="gemini_cli",
        reader="STREAM",
        note="results of some tools are empty",
    ),
    TranscriptFormat(
        name="opencode-export",
        title="OpenCode, `opencode export`",
        module="opencode",
        reader="EXPORT",
    ),
    TranscriptFormat(
        name="opencode-run",
        title="OpenCode, `opencode run --format json`",
        module="opencode",
        reader="STREAM",
        has_prompt=False,
    ),
    TranscriptFormat(
        name="adk-session",
        title="Google ADK, session or events of a runner",
        module="adk",
        reader="SESSION",
        note="events of a runner have no prompt",
    ),
    TranscriptFormat(
        name="adk-eval-set-result",
        title="Google ADK, `*.evalset_result.json`",
        module="adk",
        reader="EVAL_SET_RESULT",
        note="names its eval cases",
    ),
    TranscriptFormat(
        name="smolagents",
        title="smolagents (`agent.memory.get_full_steps()`, `RunResult`)",
        module="smolagents",
        reader="MEMORY",
        note="not `CodeAgent`, whose code calls the tools",
    ),
    TranscriptFormat(
        name="autogen-messages",
        title="AutoGen (`TaskResult`, messages and states of teams and agents)",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="autogen-chat-history",
        title="AutoGen 0.2 (`ChatResult`, `chat_history`)",
        module=_MESSAGE_LISTS,
        note="the code that a proxy ran is an unknown argument",
    ),
    TranscriptFormat(
        name="llama-index-messages",
        title="LlamaIndex (`ChatMessage`, chat stores, contexts of workflows)",
        module=_MESSAGE_LISTS,
        note="not `ReActAgent`, whose calls are text",
    ),
    TranscriptFormat(
        name="haystack-messages",
        title="Haystack (`ChatMessage.to_dict()`)",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="semantic-kernel-messages",
        title="Semantic Kernel, `ChatHistory` of Python and .NET",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="langchain-messages",
        title="LangChain and LangGraph messages (`dumpd`, `messages_to_dict`, state, snapshot)",
        module=_MESSAGE_LISTS,
        note="updates of a graph have no prompt",
    ),
    TranscriptFormat(
        name="pydantic-ai-messages",
        title="Pydantic AI (`all_messages_json()`)",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="google-genai-contents",
        title="Google GenAI SDK, `contents`",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="ai-sdk-ui-messages",
        title="Vercel AI SDK, `UIMessage`",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="ai-sdk-messages",
        title="Vercel AI SDK, `ModelMessage`",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="openai-responses",
        title="OpenAI Responses items, OpenAI Agents SDK (`to_input_list()`)",
        module=_MESSAGE_LISTS,
        note="a stored response has no prompt",
    ),
    TranscriptFormat(
        name="anthropic-messages",
        title="Anthropic Messages",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="bedrock-converse",
        title="Amazon Bedrock Converse, Strands Agents (`agent.messages`)",
        module=_MESSAGE_LISTS,
    ),
    TranscriptFormat(
        name="openai-chat",
        title="OpenAI Chat Completions, and lists of `role` and `content`",
        module=_MESSAGE_LISTS,
    ),
)
TRANSCRIPT_FORMATS: Final[Mapping[str, TranscriptFormat]] = {row.name: row for row in _ROWS}


def detect_transcript(documents: Sequence[Json]) -> TranscriptFormat | None:
    """Return the format of a recording with these first documents; None if it has none of them."""
    for row in _ROWS:
        recognises = row.load().recognises
        if any(map(recognises, documents)):
            return row
    return None
