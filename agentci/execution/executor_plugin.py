"""Executors of other packages, held to what every executor is: their faults are told as theirs."""

import inspect
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from agentci.errors import EvaluatorError
from agentci.execution.executor import INTERRUPTED, Executor
from agentci.execution.limits import Confinement
from agentci.model.requests import ProgramReply


class ForeignExecutor:
    """An executor that another package makes; it is made when the first program is to run.

    Args:
        title: how messages call it.
    """

    def __init__(self, make: Callable[[], Executor], *, title: str) -> None:
        self._make = make
        self._title = title
        self._lock = threading.Lock()
        self._made: Executor | None = None
        self._stopped = False
        self._confines = True

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        confinement: Confinement | None = None,
    ) -> ProgramReply:
        """See :class:`Executor`; one that knows no confinement is asked without."""
        try:
            executor = self._executor()
            # Whoever stops us from here on stops that one, too.
            if self._has_stopped():
                raise EvaluatorError(INTERRUPTED)
            reply: object = executor.run(
                command,
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                cwd=cwd,
                environment=environment,
                **self._confined(executor, confinement),
            )
        except EvaluatorError:
            raise
        except Exception as error:
            raise self._fault(f"{type(error).__name__}: {error}") from error
        if not _is_reply(reply):
            raise self._fault(f"`run` gave a {type(reply).__name__}, not a whole ProgramReply")
        return reply

    def shortcomings(self) -> Collection[str]:
        """See :class:`Executor`; it may have nothing to say."""
        if not self._confines:
            return (f"{self._title} does not confine evaluators' programs as agentci does",)
        try:
            told: Collection[object] = getattr(self._made, "shortcomings", tuple)()
            return [str(each) for each in told]
        except Exception as error:  # noqa: BLE001 (theirs, and no check depends on it)
            return (f"{self._title} does not say what it cannot: {error}",)

    def stop(self) -> None:
        """See :class:`Executor`; takes no lock, because a signal handler calls it."""
        self._stopped = True
        if self._made is not None:
            # The other executors are to be stopped whatever becomes of this one.
            with suppress(Exception):
                self._made.stop()

    def _executor(self) -> Executor:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _confined(self, executor: Executor, confinement: Confinement | None) -> dict[str, Any]:
        if confinement is None:
            return {}
        known = inspect.signature(executor.run).parameters.values()
        if any(each.name == "confinement" or each.kind is each.VAR_KEYWORD for each in known):
            return {"confinement": confinement}
        self._confines = False
        return {}

    def _has_stopped(self) -> bool:
        return self._stopped

    def _fault(self, what: str) -> EvaluatorError:
        flaw = f"{self._title} does not work: {what}"
        return EvaluatorError(f"could not be run: {flaw}; tell the authors of that package")


def _is_reply(reply: object) -> TypeGuard[ProgramReply]:
    return (
        isinstance(reply, ProgramReply)
        and type(reply.stdout) is bytes
        and type(reply.stderr) is str
        and type(reply.exit_code) is int
    )
