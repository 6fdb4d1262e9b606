"""The environments in the cache: made once for all evaluators of equal requirements."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.atomic import place_file, remove
from agentci._util.cache.init import ENVIRONMENTS, found
from agentci._util.cache.lock import claim
from agentci._util.ownership import give_to_owner, make_folder
from agentci._util.text.format import count
from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.environments import installed as kept
from agentci.execution.environments import manifest
from agentci.execution.environments.installer_runner import Workshop, failure
from agentci.execution.environments.installers import choose, python_in
from agentci.execution.environments.key import digest_of
from agentci.execution.environments.requirements import Requirements
from agentci.execution.environments.sdk_files import ship

FILE: Final = "requirements.txt"


@dataclass(slots=True)
class Environments:
    """Makes environments on first use, one process at a time, and verifies each once a run.

    An environment lies at ``FOLDER/environments/DIGEST/``, in a folder with a name of its own that
    the manifest beside it names. The manifest is written last: without it nothing is complete. So
    an installer that outlives a killed process of ours writes to where nobody looks any more.

    Programs that share an environment could change it for each other while they run, as any two
    programs of one user can; the next run finds that.

    Attributes:
        folder: the cache.
        tell: is called with a sentence on what takes long.
        offline: nothing is installed.
        owner: a path whose owner gets what we make as root.
    """

    folder: Path
    _: KW_ONLY
    workshop: Workshop
    tell: Callable[[str], None]
    offline: bool = False
    owner: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _turns: dict[str, threading.Lock] = field(default_factory=dict, init=False, repr=False)
    _outcomes: dict[str, Path | str] = field(default_factory=dict, init=False, repr=False)

    def python_for(self, requirements: Requirements, *, name: str) -> str:
        """The absolute path of a Python that has ``requirements`` installed.

        Where that failed once it is not tried again. Called from several threads at once.

        Args:
            name: the evaluator's, for what is told.

        Raises:
            EvaluatorError: they cannot be installed; as the end of a sentence about the evaluator.
        """
        digest = digest_of(requirements)
        with self._lock:
            turn = self._turns.setdefault(digest, threading.Lock())
        with turn:
            outcome = self._outcomes.get(digest)
            if outcome is None:
                outcome = self._outcome(requirements, digest, name)
                self._outcomes[digest] = outcome
        if isinstance(outcome, str):
            raise EvaluatorError(outcome)
        return str(python_in(outcome))

    def _outcome(self, requirements: Requirements, digest: str, name: str) -> Path | str:
        home = self.folder.absolute() / ENVIRONMENTS / digest
        try:
            return self._find(home, name) or self._make(requirements, home, name)
        except (EvaluatorError, UnreachableError) as error:
            return str(error)
        except OSError as error:
            hint = "is there room, and may we write there? name another folder with --cache-dir"
            return str(failure(str(error), hint=hint))

    def _find(self, home: Path, name: str) -> Path | None:
        try:
            return kept.find(home)
        except kept.DamagedError as error:
            if self.offline:
                raise EvaluatorError(
                    f"has its requirements in a damaged environment, {home} ({error});"
                    " run once without --offline, so that it is made again"
                ) from None
            self.tell(f"the environment of {name} is damaged ({error}), and is made again")
            return None

    def _make(self, requirements: Requirements, home: Path, name: str) -> Path:
        wanted = [line for line in requirements.installed() if not line.startswith("-")]
        if self.offline:
            raise EvaluatorError(
                f"needs {', '.join(line.partition(' --hash')[0] for line in wanted)} installed,"
                " and the cache has no environment with that;"
                " run once without --offline and with the same --cache-dir"
            )
        with claim(self.folder, f"environment {home.name}", owner=self.owner):
            # Another process may have made it while we waited.
            with suppress(kept.DamagedError):
                if there := kept.find(home):
                    return there
            self.tell(f"installing requirements of {name} ({count(len(wanted), 'package')})")
            return self._install(requirements, home)

    def _install(self, requirements: Requirements, home: Path) -> Path:
        found(self.folder, self.owner)
        remove(home)
        make_folder(home, self.owner)
        folder = home / os.urandom(4).hex()
        try:
            self._fill(folder, requirements)
            self._give_away(folder)
            place_file(home / manifest.MANIFEST, manifest.render(folder), owner=self.owner)
        except BaseException:
            remove(home)
            raise
        return folder

    def _fill(self, folder: Path, requirements: Requirements) -> None:
        installer = choose(self.workshop)
        self.workshop.run(installer.making(folder))
        file = folder / FILE
        file.write_text("".join(f"{line}\n" for line in requirements.installed()), "utf-8")
        self.workshop.run(installer.installing(folder, file, locked=bool(requirements.locked)))
        ship(folder)

    def _give_away(self, folder: Path) -> None:
        if self.owner is not None:
            for path in (folder, *folder.rglob("*")):
                give_to_owner(path, self.owner)
