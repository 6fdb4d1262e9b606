"""What replies were made from, beside what was known before: seen, listed, and looked at again."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Final

from agentci.execution.allowed_paths import is_too_broad
from agentci.runner.response_cache.circumstances import Circumstances
from agentci.runner.response_cache.digests import FILE, Digests
from agentci.runner.response_cache.observer import BlindError, Observation, Observer

# A program that reads more has its reason to be run.
MAX_INPUTS: Final = 1_000
# The kernel's clock by which it stamps changes: <linux/time.h>, CLOCK_REALTIME_COARSE.
COARSE_CLOCK: Final = 5
TICK_SECONDS: Final = 0.001
# Where programs find modules beside their own folder.
MODULES: Final = ("PYTHONPATH", "NODE_PATH")
COMPILED: Final = ".pyc"


class Inputs:
    """The files and folders that programs read; of use by several threads at once.

    Attributes:
        trouble: why it could not be seen what one of them reads; empty where it could.

    Args:
        root: the workspace; paths below it are listed relative to it.
    """

    def __init__(self, root: Path, *, observer: Observer, digests: Digests) -> None:
        self.trouble = ""
        self._root = root
        self._observer = observer
        self._digests = digests
        self._lock = threading.Lock()
        self._begun_ns = 0
        self._roots: set[Path] = set()

    @contextmanager
    def watching(self, given: Circumstances) -> Iterator[Observation | None]:
        """See what a program reads while it runs; None where that cannot be seen."""
        try:
            with self._lock:
                self._watch(given)
        except BlindError as error:
            self.trouble = str(error)
            yield None
            return
        observation = self._observer.begin()
        try:
            yield observation
        finally:
            self._observer.end(observation)

    def listed(self, observation: Observation, given: Circumstances) -> bytes | None:
        """Digests by path of all that a reply was made from; None where it may be other things.

        That is so where something was not seen, or has changed since it was read.
        """
        paths = set(observation.opened)
        if given.tree is None:
            programs = [Path(os.path.realpath(each)) for each in given.programs]
            if paths.isdisjoint(map(str, programs)):  # then others may have been missed, too
                return None
            paths |= {os.path.realpath(each.parent) for each in (*given.programs, *programs)}
        paths |= {*_sources_of(paths)}
        paths |= {*self._links_to(paths)}
        if observation.lost or len(paths) > MAX_INPUTS:
            return None
        inputs = {self.shown(path): self._settled(path) for path in sorted(paths)}
        if None in inputs.values() or self._observer.has_changed(paths):
            return None
        return json.dumps(inputs).encode()

    def hold(self, listed: bytes) -> bool:
        """Whether all is now as it was when ``listed`` was made, by whomever that was."""
        try:
            inputs = json.loads(listed)
        except (ValueError, RecursionError):
            return False
        return isinstance(inputs, dict) and all(
            self._digests.of(str(Path(self._root, path))) == digest
            for path, digest in inputs.items()
        )

    def content(self, path: str) -> str:
        """A digest of a file.

        Raises:
            OSError: there is none.
        """
        found = self._digests.of(path)
        if found is None:
            raise FileNotFoundError(path)
        return found

    def shown(self, path: str) -> str:
        """``path`` as it is listed: relative to the workspace where it lies inside."""
        if path == str(self._root):
            return "."
        return path.removeprefix(f"{self._root}/")

    def close(self) -> None:
        """Watch nothing any more."""
        self._observer.close()

    def _watch(self, given: Circumstances) -> None:
        new = [root for root in _roots(given) if root not in self._roots]
        is_more = self._observer.watch(new)
        self._roots.update(new)
        if not is_more:
            return
        if not self._begun_ns:
            # What was changed until now has an earlier stamp than what is changed from then on.
            now = time.time_ns()
            while (stamp := time.clock_gettime_ns(COARSE_CLOCK)) <= now:
                time.sleep(TICK_SECONDS)
            self._begun_ns = stamp
        self._digests.forget()  # what changed before was not seen

    def _links_to(self, paths: set[str]) -> Iterator[str]:
        """The links by which something may have been reached."""
        passed: set[str] = set()
        for path in paths if self._observer.links else ():
            while path not in passed:
                passed.add(path)
                yield from self._observer.links.get(path or "/", ())
                path = path.rpartition("/")[0]  # noqa: PLW2901 (from the path up)

    def _settled(self, path: str) -> str | None:
        """The digest of what has not changed since it is watched."""
        digest = self._digests.of(path)
        if digest is None or not digest.startswith(FILE):
            return digest
        try:
            return digest if os.lstat(path).st_ctime_ns < self._begun_ns else None
        except OSError:
            return None


def _sources_of(paths: set[str]) -> Iterator[str]:
    """What Python compiled: it reads the outcome, where that has the source's size and time."""
    for path in paths:
        if path.endswith(COMPILED):
            with suppress(ValueError):
                source = source_from_cache(path)
                if os.path.lexists(source):
                    yield source


def _roots(given: Circumstances) -> Iterator[Path]:
    """What a program can read that may change from run to run."""
    for path in given.job.confinement.readable:
        if is_too_broad(path):  # closed by the jail
            continue
        if given.tree is None or not path.is_relative_to(given.tree):
            yield path
    for name in MODULES:
        paths = given.job.environment.get(name, "").split(os.pathsep)
        yield from (Path(each) for each in paths if each and Path(each).is_dir())
