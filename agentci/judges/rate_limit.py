"""What all threads know of one service: when it may be asked again, and how."""

from collections.abc import Hashable
from threading import Lock

from agentci.errors import EvaluatorError
from agentci.judges.provider import Way
from agentci.model.judging import ModelSettings


class Account:
    """One account at one service."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._not_before = 0.0
        self._closed = ""
        self._ways: dict[str, Way] = {}

    def wait_seconds(self, now: float) -> float:
        """How long it wants to be left alone.

        Raises:
            EvaluatorError: for good.
        """
        with self._lock:
            if self._closed:
                raise EvaluatorError(self._closed)
            return max(0.0, self._not_before - now)

    def leave_alone(self, until: float) -> None:
        """Nobody asks it before ``until``."""
        with self._lock:
            self._not_before = max(self._not_before, until)

    def close(self, why: str) -> None:
        """Nobody asks it any more."""
        with self._lock:
            self._closed = why

    def way(self, model: str) -> Way | None:
        """How a model was asked when it understood; None where it has not yet."""
        return self._ways.get(model)

    def learn(self, model: str, way: Way) -> None:
        """A model understood what it was asked."""
        self._ways[model] = way


class Accounts:
    """The accounts of one run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accounts: dict[Hashable, Account] = {}

    def of(self, settings: ModelSettings) -> Account:
        """The one that is asked with ``settings``."""
        key = (settings.provider, settings.base_url, settings.key_variable, settings.federation)
        with self._lock:
            return self._accounts.setdefault(key, Account())
