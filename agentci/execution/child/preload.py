"""What a warm Python has imported before its forks become programs, which cannot tell."""

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final

# Looked for by every Python that starts, where it is told to look.
AT_START: Final = frozenset({"sitecustomize", "usercustomize"})
OF_MODULES: Final = (".py", ".pyc", ".so")
# The interpreter takes them down itself, when all others are gone.
LAST: Final = frozenset({"sys", "builtins", "__main__"})


class Imports:
    """The modules that are there before a program begins, and that it must not miss at its end.

    Args:
        bare: the names of those that every Python has before it looks at a file.
        ours: the folder that we are imported from.
    """

    def __init__(self, bare: Iterable[str], *, ours: str) -> None:
        self._bare = frozenset(bare)
        self._ours = ours
        self._asked: set[str] = set()
        self._kept: dict[str, object] = {}
        self._names: frozenset[str] = frozenset()
        self._later_names: frozenset[str] = frozenset()
        # Before anybody else, so that it is called after everybody else.
        atexit.register(self._withdraw)

    def foresee(self, names: Sequence[str]) -> None:
        """Import what a program is going to import, as far as it is there.

        Raises:
            RuntimeError: that has started a thread; a fork would lack it.
        """
        new = [each for each in names if each and each not in self._asked]
        self._asked.update(new)
        with self._installed_ones_only():
            for name in new:
                with suppress(Exception):  # the program finds out by itself
                    import_module(name)
                    WARM_UPS.get(name, lambda: None)()
        if len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("there are threads")
        self._keep()

    def hides(self, folders: Sequence[str], at_start: Sequence[str]) -> bool:
        """Whether a program would have imported something of its own in place of what is there.

        Args:
            folders: where it looks before it looks where we did.
            at_start: those of them that every Python looks through that starts there.
        """
        return any(_has(folder, self._names) for folder in at_start) or any(
            _has(folder, self._later_names) for folder in folders
        )

    def _keep(self) -> None:
        """Have no fork look after what is there: each of its pages would have to be copied."""
        for name, module in sys.modules.items():
            if name not in self._kept and name not in LAST:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
                self._kept[name] = module
        # What lies in a workspace is looked through by each program for itself.
        for path in [each for each in sys.path_importer_cache if not self._is_installed(each)]:
            del sys.path_importer_cache[path]
        # Worked out here, because a fork that looks through all names has to copy their pages.
        names = {name.partition(".")[0] for name in (*self._bare, *self._kept)}
        self._names = frozenset(names | AT_START)
        self._later_names = frozenset(names - self._bare - set(sys.builtin_module_names))
        gc.collect()
        gc.freeze()

    @contextmanager
    def _installed_ones_only(self) -> Iterator[None]:
        """Import nothing of a workspace, to which a path of an editable install may lead.

        Whoever changes the workspace is not trusted to run code outside of a jail.
        """
        path, finders = sys.path[:], sys.meta_path[:]
        sys.path[:] = filter(self._is_installed, path)
        sys.meta_path[:] = [each for each in finders if each.__module__.startswith("_frozen_")]
        try:
            yield
        finally:
            sys.path[:], sys.meta_path[:] = path, finders

    def _is_installed(self, path: str) -> bool:
        folders = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
        return path == self._ours or path.startswith(tuple(f"{each}/" for each in folders))

    def _withdraw(self) -> None:
        """At the end of a program: nothing of what it found is taken down, which nobody sees."""
        for name, module in self._kept.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _has(folder: str, names: frozenset[str]) -> bool:
    try:
        return any(
            entry.partition(".")[0] in names and ("." not in entry or entry.endswith(OF_MODULES))
            for entry in os.listdir(folder)
        )
    except OSError:
        return False


def _define_a_model() -> None:
    """Most of pydantic is imported when the first model is defined and used."""
    from pydantic import BaseModel, Field  # noqa: PLC0415 (of programs, where they have it)

    class Model(BaseModel):
        texts: list[str] = []
        number: float | None = Field(default=None, ge=0)
        values: dict[str, object] = {}

    Model.model_validate_json(Model().model_dump_json())


WARM_UPS: Final[Mapping[str, Callable[[], None]]] = {"pydantic": _define_a_model}
