"""What models replied in this run: who asks the same is told the same, and nobody pays twice."""

from threading import Lock

from agentci.model.judging import ModelReply


class SaidNow:
    """Replies by key, for any number of threads.

    Without it, two cases with the same question would get two replies, of which a later run finds
    but one.
    """

    def __init__(self) -> None:
        self.replies: dict[bytes, ModelReply] = {}
        self._lock = Lock()
        self._locks: dict[bytes, Lock] = {}

    def lock(self, key: bytes) -> Lock:
        """What whoever asks for a reply holds meanwhile."""
        with self._lock:
            return self._locks.setdefault(key, Lock())
