"""The executors that a config can name: a new one is a file and a line here."""

from collections.abc import Callable, Mapping
from typing import Final

from agentci.executors.base import Executor
from agentci.executors.local import LocalExecutor

EXECUTORS: Final[Mapping[str, Callable[[], Executor]]] = {"local": LocalExecutor}
