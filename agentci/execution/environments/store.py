"""The environments in the cache, each made once for all evaluators with equal requirements."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

from agentci._util.cache_folder import ENVIRONMENTS_FOLDER, hold_cache_lock, init_cache
from agentci._util.files import give_to_owner, make_folder, remove_path, write_file_atomically
from agentci._util.text.format import format_count
from agentci.errors import EvaluatorError, UnreachableError
from agentci.execution.environments import installed
from agentci.execution.environments import installed as kept
from agentci.execution.environments.installers import (
    InstallerRunner,
    choose_installer,
    find_python,
    make_install_error,
)
from agentci.execution.environments.key import compute_environment_key, install_sdk
from agentci.execution.environments.requirements import Requirements

REQUIREMENTS_FILE: Final = "requirements.txt"


@dataclass(slots=True)
class EnvironmentStore:
    """Makes environments on first use, one process at a time, and verifies each once per run.

    An environment is a folder with a random name in ``FOLDER/environments/DIGEST/``; the manifest
    next to it has the name. The manifest is written last, and an environment without one is not
    complete. So an installer that outlives a killed agentci process writes to a folder that is
    never used.

    Programs that share an environment could change it for each other while they run, as any two
    programs of one user can; the next run detects that.

    Attributes:
        folder: the cache folder.
        installer_runner: runs the installers.
        notify: called with a sentence before a step that takes long.
        offline: whether installing is forbidden.
        owner: a path whose owner gets the files that are made as root.
    """

    folder: Path
    _: KW_ONLY
    installer_runner: InstallerRunner
    notify: Callable[[str], None]
    offline: bool = False
    owner: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _key_locks: dict[str, threading.Lock] = field(default_factory=dict, init=False, repr=False)
    _outcomes: dict[str, Path | str] = field(default_factory=dict, init=False, repr=False)

    def get_python(self, requirements: Requirements, *, name: str) -> str:
        """Return the absolute path of a Python with ``requirements`` installed.

        A failure is not retried. Several threads may call this at once.

        Args:
            requirements: the evaluator's requirements.
            name: the evaluator's name, for messages.

        Raises:
            EvaluatorError: the requirements cannot be installed; the message completes a sentence
                about the evaluator.
        """
        digest = compute_environment_key(requirements)
        with self._lock:
            turn = self._key_locks.setdefault(digest, threading.Lock())
        with turn:
            outcome = self._outcomes.get(digest)
            if outcome is None:
                outcome = self._find_or_make(requirements, digest, name)
                self._outcomes[digest] = outcome
        if isinstance(outcome, str):
            raise EvaluatorError(outcome)
        return str(find_python(outcome))

    def _find_or_make(self, requirements: Requirements, digest: str, name: str) -> Path | str:
        home = self.folder.absolute() / ENVIRONMENTS_FOLDER / digest
        try:
            return self._find(home, name) or self._make(requirements, home, name)
        except (EvaluatorError, UnreachableError) as error:
            return str(error)
        except OSError as error:
            hint = "is there room, and may we write there? name another folder with --cache-dir"
            return str(make_install_error(str(error), hint=hint))

    def _find(self, home: Path, name: str) -> Path | None:
        try:
            return kept.find_environment(home)
        except kept.DamagedEnvironmentError as error:
            if self.offline:
                raise EvaluatorError(
                    f"has its requirements in a damaged environment, {home} ({error});"
                    " run once without --offline, so that it is made again"
                ) from None
            self.notify(f"the environment of {name} is damaged ({error}), and is made again")
            return None

    def _make(self, requirements: Requirements, home: Path, name: str) -> Path:
        wanted = [line for line in requirements.install_lines() if not line.startswith("-")]
        if self.offline:
            raise EvaluatorError(
                f"needs {', '.join(line.partition(' --hash')[0] for line in wanted)} installed,"
                " and the cache has no environment with that;"
                " run once without --offline and with the same --cache-dir"
            )
        with hold_cache_lock(self.folder, f"environment {home.name}", owner=self.owner):
            # Another process may have made it while this one waited for the lock.
            with suppress(kept.DamagedEnvironmentError):
                if there := kept.find_environment(home):
                    return there
            self.notify(
                f"installing requirements of {name} ({format_count(len(wanted), 'package')})"
            )
            return self._install(requirements, home)

    def _install(self, requirements: Requirements, home: Path) -> Path:
        init_cache(self.folder, self.owner)
        remove_path(home)
        make_folder(home, self.owner)
        folder = home / os.urandom(4).hex()
        try:
            self._install_packages(folder, requirements)
            self._set_owner(folder)
            write_file_atomically(
                home / installed.MANIFEST, installed.format_manifest(folder), owner=self.owner
            )
        except BaseException:
            remove_path(home)
            raise
        return folder

    def _install_packages(self, folder: Path, requirements: Requirements) -> None:
        installer = choose_installer(self.installer_runner)
        self.installer_runner.run(installer.venv_command(folder))
        file = folder / REQUIREMENTS_FILE
        file.write_text("".join(f"{line}\n" for line in requirements.install_lines()), "utf-8")
        self.installer_runner.run(
            installer.install_command(folder, file, locked=bool(requirements.locked))
        )
        install_sdk(folder)

    def _set_owner(self, folder: Path) -> None:
        if self.owner is not None:
            for path in (folder, *folder.rglob("*")):
                give_to_owner(path, self.owner)
