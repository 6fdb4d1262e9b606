"""The executors that a config can name: a new one is a file and a line here.

Packages of others add theirs as entry points of the group ``agentci.executors``: the name is the
``executor:`` in configs, the object a :data:`MakeExecutor`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, cast

from agentci.execution.executor import Executor
from agentci.execution.executor_plugin import ForeignExecutor

GROUP: Final = "agentci.executors"

MakeExecutor: TypeAlias = Callable[[], Executor]


def _local() -> Executor:
    from agentci.execution.local import (  # noqa: PLC0415 (some runs start no program)
        LocalExecutor,
    )

    return LocalExecutor()


def _docker(variables: Mapping[str, str]) -> Executor:
    from agentci.execution.docker.executor import (  # noqa: PLC0415 (most runs need no engine)
        DockerExecutor,
    )

    return DockerExecutor(variables)


def makers(variables: Mapping[str, str]) -> Mapping[str, MakeExecutor]:
    """What makes ours, by name.

    Args:
        variables: the environment of the user, for those that reach another machine.
    """
    return {"local": _local, "docker": lambda: _docker(variables)}


EXECUTORS: Final[Mapping[str, MakeExecutor]] = makers({})


class Executors(Mapping[str, Executor]):
    """The executors of one run, each made when it is first asked for, from any thread.

    Looking one up that is neither ours nor works raises InputError; listing them loads none.

    Args:
        ours: what makes them, by name.
    """

    def __init__(self, ours: Mapping[str, MakeExecutor] = EXECUTORS) -> None:
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
        from agentci._util.plugins import names_in  # noqa: PLC0415 (most runs need none of theirs)

        yield from dict.fromkeys((*self._ours, *names_in(GROUP)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def shortcomings(self) -> Iterator[str]:
        """What those that were made could not do as they were asked, a sentence each."""
        for executor in tuple(self._made.values()):
            yield from executor.shortcomings()

    def stop(self) -> None:
        """End all that they run; takes no lock, because a signal handler calls it."""
        self._stopped = True
        for executor in tuple(self._made.values()):
            executor.stop()

    def _make(self, name: str) -> Executor:
        make = self._ours.get(name)
        return make() if make is not None else _foreign(name)

    def _has_stopped(self) -> bool:
        return self._stopped


def _foreign(name: str) -> Executor:
    from agentci._util.plugins import misfit, named, package_of  # noqa: PLC0415 (likewise)

    found = named(GROUP, name)
    if found is None:
        raise KeyError(name)
    if not callable(found):
        raise misfit(GROUP, name, wanted="something that makes an executor")
    title = f"the executor {name!r} of {package_of(GROUP, name)}"
    return ForeignExecutor(cast(MakeExecutor, found), title=title)
