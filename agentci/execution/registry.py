"""The executors that a config can name; a new one needs a module and an entry here.

Plugins add executors as entry points of the group ``agentci.executors``: the name is the value of
``executor:`` in configs, the object an :data:`ExecutorFactory`.
"""

import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeGuard, cast

from agentci.errors import EvaluatorError
from agentci.execution.executor_api import INTERRUPTED, Executor, SandboxPolicy
from agentci.model.requests import ProgramOutput


class PluginExecutor:
    """An executor from a plugin, made when the first program runs.

    Args:
        title: its name in messages.
    """

    def __init__(self, make: Callable[[], Executor], *, title: str) -> None:
        self._make = make
        self._title = title
        self._lock = threading.Lock()
        self._made: Executor | None = None
        self._stopped = False
        self._has_sandbox = True

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes,
        timeout_seconds: float,
        cwd: Path,
        environment: Mapping[str, str],
        sandbox_policy: SandboxPolicy | None = None,
    ) -> ProgramOutput:
        """See :class:`Executor`; a plugin without that parameter gets no ``sandbox_policy``."""
        try:
            executor = self._executor()
            # From here on, stop() also stops the plugin's executor.
            if self._has_stopped():
                raise EvaluatorError(INTERRUPTED)
            response: object = executor.run(
                command,
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                cwd=cwd,
                environment=environment,
                **self._make_policy_argument(executor, sandbox_policy),
            )
        except EvaluatorError:
            raise
        except Exception as error:
            raise self._make_error(f"{type(error).__name__}: {error}") from error
        if not _is_complete(response):
            raise self._make_error(
                f"`run` returned {type(response).__name__}; expected a complete ProgramOutput"
            )
        return response

    def limitations(self) -> Collection[str]:
        """See :class:`Executor`; a plugin may lack this method."""
        if not self._has_sandbox:
            return (f"{self._title} runs evaluator programs without agentci's sandbox",)
        try:
            limitations: Collection[object] = getattr(self._made, "limitations", tuple)()
            return [str(each) for each in limitations]
        except Exception as error:  # noqa: BLE001 (plugin code, and no check depends on it)
            return (f"{self._title} failed to list its limitations: {error}",)

    def stop(self) -> None:
        """See :class:`Executor`; takes no lock, because a signal handler calls it."""
        self._stopped = True
        if self._made is not None:
            # A failure here must not keep the other executors from being stopped.
            with suppress(Exception):
                self._made.stop()

    def _executor(self) -> Executor:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make_policy_argument(
        self, executor: Executor, sandbox_policy: SandboxPolicy | None
    ) -> dict[str, Any]:
        if sandbox_policy is None:
            return {}
        known = inspect.signature(executor.run).parameters.values()
        if any(each.name == "sandbox_policy" or each.kind is each.VAR_KEYWORD for each in known):
            return {"sandbox_policy": sandbox_policy}
        self._has_sandbox = False
        return {}

    def _has_stopped(self) -> bool:
        return self._stopped

    def _make_error(self, problem: str) -> EvaluatorError:
        return EvaluatorError(
            f"could not be run: {self._title} failed: {problem};"
            " report this to the authors of that package"
        )


def _is_complete(response: object) -> TypeGuard[ProgramOutput]:
    return (
        isinstance(response, ProgramOutput)
        and type(response.stdout) is bytes
        and type(response.stderr) is str
        and type(response.exit_code) is int
    )


EXECUTOR_GROUP: Final = "agentci.executors"

ExecutorFactory: TypeAlias = Callable[[], Executor]


def _make_local() -> Executor:
    from agentci.execution.local import (  # noqa: PLC0415 (some runs start no programs)
        LocalExecutor,
    )

    return LocalExecutor()


def _make_docker(variables: Mapping[str, str]) -> Executor:
    from agentci.execution.docker import (  # noqa: PLC0415 (most runs need no engine)
        DockerExecutor,
    )

    return DockerExecutor(variables)


def make_factories(variables: Mapping[str, str]) -> Mapping[str, ExecutorFactory]:
    """Return the factories of agentci's own executors, by name.

    Args:
        variables: the user's environment, for executors that connect to another machine.
    """
    return {"local": _make_local, "docker": lambda: _make_docker(variables)}


EXECUTORS: Final[Mapping[str, ExecutorFactory]] = make_factories({})


class Executors(Mapping[str, Executor]):
    """The executors of one run, each made at its first lookup, from any thread.

    Looking up a plugin's executor that is broken raises InputError; listing names loads no plugin.

    Args:
        ours: factories of agentci's own executors, by name.
    """

    def __init__(self, ours: Mapping[str, ExecutorFactory] = EXECUTORS) -> None:
        self._ours = ours
        self._lock = threading.RLock()
        self._made: dict[str, Executor] = {}
        self._stopped = False

    def __getitem__(self, name: str) -> Executor:
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
                if self._has_stopped():
                    self._made[name].stop()
            return self._made[name]

    def __iter__(self) -> Iterator[str]:
        from agentci._util.plugins import list_plugin_names  # noqa: PLC0415 (most runs need no plugin)

        yield from dict.fromkeys((*self._ours, *list_plugin_names(EXECUTOR_GROUP)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def limitations(self) -> Iterator[str]:
        """Yield the limitations of the executors made so far, as sentences."""
        for executor in tuple(self._made.values()):
            yield from executor.limitations()

    def stop(self) -> None:
        """End all programs; takes no lock, because a signal handler calls it."""
        self._stopped = True
        for executor in tuple(self._made.values()):
            executor.stop()

    def _make(self, name: str) -> Executor:
        make = self._ours.get(name)
        return make() if make is not None else _load_plugin(name)

    def _has_stopped(self) -> bool:
        return self._stopped


def _load_plugin(name: str) -> Executor:
    from agentci._util.plugins import find_plugin_package, load_plugin, make_plugin_error  # noqa: PLC0415 (most runs need no plugin)

    found = load_plugin(EXECUTOR_GROUP, name)
    if found is None:
        raise KeyError(name)
    if not callable(found):
        raise make_plugin_error(
            EXECUTOR_GROUP, name, expected="a function that returns an executor"
        )
    title = f"the executor `{name}` of {find_plugin_package(EXECUTOR_GROUP, name)}"
    return PluginExecutor(cast(ExecutorFactory, found), title=title)
