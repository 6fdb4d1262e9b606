"""The sources of one run, each made when it is first asked for."""

import threading
from collections.abc import Mapping

from agentci._util.http.offline import NoHttp
from agentci._util.text.suggest import did_you_mean, one_of, quoted
from agentci.errors import RefusedError
from agentci.model.values import replace
from agentci.remote.sources.source import Source, Surroundings


class Sources:
    """Sources by the names that configs use; may be asked from several threads at once."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._made: dict[str, Source] = {}
        self._lock = threading.RLock()

    def named(self, name: str) -> Source:
        """The source ``name``.

        Raises:
            RefusedError: there is none.
            InputError: another package brings it, and is broken.
        """
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def all(self) -> Mapping[str, Source]:
        """Ours, and those that other packages bring.

        Raises:
            InputError: one of these is broken.
        """
        from agentci.remote.sources.registry import all_sources  # noqa: PLC0415 (most runs use none)

        return {name: self.named(name) for name in all_sources()}

    def offline(self) -> "Sources":
        """The same ones without a network."""
        return Sources(replace(self._surroundings, http=NoHttp()))

    def _make(self, name: str) -> Source:
        from agentci.remote.sources.registry import SOURCES, source_named  # noqa: PLC0415 (likewise)

        make = source_named(name)
        if make is None:
            raise RefusedError(
                f"there is no source {quoted(name)} of evaluators",
                hint=did_you_mean(name, list(SOURCES)) or f"there is {one_of(list(SOURCES))}",
            )
        return make(self._surroundings)
