"""A run read from a transcript, and the interface of a reader."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct

from agentci.model.trace import SubagentRun, TokenUsage, Turn
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document


class TranscriptRun(Struct, frozen=True, kw_only=True):
    """One run of an agent; None stands for what was not recorded.

    Attributes:
        id: the id of the session.
        line: number of the line where the run starts.
        eval_case_id: the eval case that the recording names.
        parent_id: the run that started this one as a sub-agent.
        child_ids: runs that this one started as sub-agents, with the ids of the tool calls.
        agent: name of the agent, to tell sub-agents apart.
        usage: tokens of the main agent.
        models: of the main agent, sorted.
        cost_usd: of the run with its sub-agents, in US dollars.
        failures: why the run did not end normally; empty if it did, or if the format does not
            record it.
        lost: signs that a tool call of the run was not recorded or not understood.
    """

    turns: tuple[Turn, ...]
    line: int
    id: str | None = None
    eval_case_id: str | None = None
    parent_id: str | None = None
    child_ids: Mapping[str, str | None] = {}
    agent: str | None = None
    subagents: tuple[SubagentRun, ...] = ()
    usage: TokenUsage | None = None
    models: tuple[str, ...] = ()
    cost_usd: float | None = None
    duration_ms: float | None = None
    failures: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class TranscriptReader(Struct, frozen=True, kw_only=True):
    """Reads one format.

    Attributes:
        recognises: whether a recording with this document, one of its first, has the format.
        read: reads the runs of a recording. Raises ``DocumentFormatError`` if its documents do not
            have the format.
    """

    recognises: Callable[[Json], bool]
    read: Callable[[Iterator[Document]], Iterator[TranscriptRun]]


Record: TypeAlias = tuple[JsonObject, int]


class RecordCollector(Protocol):
    """Collects the run of a file from its records."""

    def add(self, record: JsonObject) -> None:
        """Add a record, in the order of the file.

        Raises:
            DocumentFormatError: if it is invalid.
        """
