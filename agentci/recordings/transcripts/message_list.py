"""Collects the run of a message list."""

from typing import Final

from agentci._util.text.format import format_count
from agentci.model.json import Json
from agentci.model.trace import SubagentRun
from agentci.recordings.transcripts.transcript_run import TranscriptRun
from agentci.recordings.transcripts.turn_builder import TurnBuilder
from agentci.recordings.transcripts.values import UsageSum, join_text, sum_costs

MAX_WARNINGS: Final = 5


class MessageListBuilder:
    """The turns, tokens, costs and models of one message list, and of its sub-agents.

    Attributes:
        name: of a sub-agent; None if it is not recorded.
    """

    def __init__(self) -> None:
        self.turns = TurnBuilder()
        self.usage = UsageSum()
        self._costs: list[float | None] = []
        self._models: set[str] = set()
        self._subagents: dict[str, MessageListBuilder] = {}
        self.name: str | None = None

    def subagent(self, call_id: str, name: str | None) -> "MessageListBuilder":
        """Return the builder of the sub-agent that a tool call started; note its name."""
        found = self._subagents.setdefault(call_id, MessageListBuilder())
        found.name = found.name or name
        return found

    def add_question(self, content: Json) -> None:
        """Start a turn with the content of a user message; images and sound have no text."""
        self.turns.start_turn(join_text(content) or "")

    def add_model(self, name: Json) -> None:
        """Note the model of a message."""
        if isinstance(name, str) and name:
            self._models.add(name)

    def add_cost(self, cost: float | None) -> None:
        """Add the cost of a reply, in US dollars; None if it was not recorded."""
        self._costs.append(cost)

    def build(self, line: int, run_id: str | None = None) -> TranscriptRun:
        """Return the run."""
        return TranscriptRun(
            id=run_id,
            line=line,
            turns=self.turns.build(),
            usage=self.usage.total,
            models=tuple(sorted(self._models)),
            cost_usd=sum_costs(self._costs),
            lost=tuple(self.turns.lost),
            subagents=tuple(
                SubagentRun(name=inner.name, call_id=call_id, turns=inner.turns.build())
                for call_id, inner in self._subagents.items()
            ),
        )


def summarize_warnings(warnings: list[str]) -> tuple[str, ...]:
    """Return the first warnings, and how many others there are."""
    unique = list(dict.fromkeys(warnings))
    if len(unique) <= MAX_WARNINGS:
        return tuple(unique)
    more = format_count(len(unique) - MAX_WARNINGS, "other warning")
    return (*unique[:MAX_WARNINGS], f"and {more} about this run")
