"""Tells how far a run has come: a bar on a terminal, a line every few seconds in a log."""

from collections import Counter

from agentci._util.files import say
from agentci.model.result import Result
from agentci.runner.services import World

BAR_WIDTH = 24
SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_FRAMES = 0.1


class Progress:
    """Counts results as they come in and shows the count on the world's ``err``."""

    def __init__(self, total: int, world: World, *, quiet: bool) -> None:
        self._total = total
        self._world = world
        self._counts: Counter[str] = Counter()
        self._shows = not quiet and total > 0
        self._terminal = world.err.isatty()
        self._every = SECONDS_BETWEEN_FRAMES if self._terminal else SECONDS_BETWEEN_LINES
        self._shown_at = world.clock()

    def count(self, result: Result) -> None:
        """Take one more result into account."""
        self._counts[result.status] += 1
        now = self._world.clock()
        if self._shows and now - self._shown_at >= self._every:
            self._shown_at = now
            self._show()

    def note(self, text: str) -> None:
        """Say what is about to take a while."""
        if self._shows:
            say(f"\r{text}\x1b[K" if self._terminal else f"{text}\n", self._world.err)

    def finish(self) -> None:
        """Clear the bar away."""
        if self._shows and self._terminal:
            say("\r\x1b[K", self._world.err)

    def _show(self) -> None:
        done = self._counts.total()
        text = f"{done} of {self._total} checks"
        bad = [
            f"{self._counts[name]} {name}" for name in ("failed", "errored") if self._counts[name]
        ]
        text = ", ".join([text, *bad])
        if self._terminal:
            filled = BAR_WIDTH * done // self._total
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            say(f"\r{bar} {text}\x1b[K", self._world.err)
        else:
            say(f"{text}\n", self._world.err)
