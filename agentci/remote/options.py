"""What programs are gathered from, and by which rules."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agentci.model.lock import Lock
from agentci.remote.cache.evaluators import EvaluatorStore
from agentci.remote.environments import Packages
from agentci.remote.run_sources import Sources


class Stock(Struct, frozen=True, kw_only=True):
    """Where programs come from.

    Attributes:
        store: the cache.
        spare: a folder to keep programs in where the cache takes none; made on first use.
        lock: None where there is no lock file.
        locked: nothing is taken that is not in the lock.
        offline: nothing is asked of a network.
        anew: what the cache has is not taken.
    """

    sources: Sources
    store: EvaluatorStore
    spare: Callable[[], Path]
    packages: Packages
    lock: Lock | None
    locked: bool = False
    offline: bool = False
    anew: bool = False
