"""``agentci run --watch``: evaluate again whenever a file of the configs changes."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from agentci._util.files import write_to_stream
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count
from agentci._util.workspace import Workspace, is_folder
from agentci.cli.session import Session
from agentci.config.discovery import SKIPPED_FOLDERS, find_configs, find_matching_paths
from agentci.config.settings import PULL_REQUEST_BASE, Settings
from agentci.errors import InputError
from agentci.execution.runtimes import find_unsupported_reason
from agentci.execution.user_command import UserCommand
from agentci.record.recording_file import is_being_recorded
from agentci.recordings.registry import name_failed_recording
from agentci.runner.fingerprints import SourceDigests
from agentci.runner.gate_snapshot import find_files
from agentci.runner.load_configs import load_suites
from agentci.runner.services import Interruption
from agentci.runner.suite_files import LoadedSuite

POLL_SECONDS: Final = 0.3
WATCHING: Final = (
    "Watching for changes of configs, recorded runs, eval sets and evaluators; the agent is not "
    "run: after a change of it, use `agentci record`. Ctrl+C ends it"
)
MAX_NAMES: Final = 3
# Of a folder with more files, only the first ones are watched.
MAX_FOLDER_FILES: Final = 5_000
SIGNAL_EXIT: Final = 128

# Time of change in nanoseconds and size, by path.
Snapshot: TypeAlias = Mapping[Path, tuple[int, int]]


def run_again_on_changes(
    arguments: Sequence[str], environ: Mapping[str, str], settings: Settings, session: Session
) -> int:
    """Run the command now, and again after each change, until the user ends it.

    Each run is a process of its own, as nothing of an earlier one may decide the result.

    Args:
        arguments: those of ``agentci``, without ``--watch``.
        environ: the environment of the runs.
    """
    interruption = session.services.interruption
    # An interrupt ends the run first, which writes its reports.
    interruption.is_immediate_allowed = False
    watched = WatchedFiles(settings, session)
    while not interruption.is_requested():
        watched.read_configs_again()
        before = watched.take_snapshot()
        if any(map(is_being_recorded, before)):
            _say(session, "Waiting for the end of a recording")
        while any(map(is_being_recorded, before)) and not interruption.is_requested():
            time.sleep(POLL_SECONDS)
            before = watched.take_snapshot()
        _run_once(arguments, environ, interruption)
        _say(session, WATCHING)
        while (after := watched.take_snapshot()) == before and not interruption.is_requested():
            time.sleep(POLL_SECONDS)
        # A file that is being written changes several times; a recording is complete at its end.
        while not interruption.is_requested() and (
            (settled := watched.take_snapshot()) != after
            or any(map(is_being_recorded, _list_changed(before, after)))
        ):
            after = settled
            time.sleep(POLL_SECONDS)
        if not interruption.is_requested():
            _say(session, f"Changed: {_describe(before, after, session.services.workspace)}")
    return SIGNAL_EXIT + (interruption.signal_number or 0)


def _run_once(
    arguments: Sequence[str], environ: Mapping[str, str], interruption: Interruption
) -> None:
    command = [sys.executable, "-P", "-m", "agentci", *arguments]
    running = UserCommand(command, environ, stdin=None, output=None, errors=None)
    while running.wait(POLL_SECONDS) is None:
        if interruption.is_requested():
            running.stop()


def _say(session: Session, text: str) -> None:
    write_to_stream(f"{escape_for_log_line(text)}\n", session.services.err)


def _describe(before: Snapshot, after: Snapshot, workspace: Workspace) -> str:
    changed = [workspace.display_path(path) for path in _list_changed(before, after)]
    more = len(changed) - MAX_NAMES
    rest = f" and {format_count(more, 'more file')}" if more > 0 else ""
    return f"{', '.join(changed[:MAX_NAMES])}{rest}"


def _list_changed(before: Snapshot, after: Snapshot) -> list[Path]:
    return [each for each in sorted({*before, *after}) if before.get(each) != after.get(each)]


class WatchedFiles:
    """The files that a run depends on: configs, recorded runs, eval sets, programs and others.

    Globs are evaluated at each look, so that new files count.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._settings = settings
        self._services = session.services
        self._configs: Snapshot | None = None
        # Folders, and patterns below them.
        self._patterns: dict[tuple[Path, str], None] = {}

    def read_configs_again(self) -> None:
        """Find the files of the next snapshot again: programs may import others now."""
        self._configs = None

    def take_snapshot(self) -> Snapshot:
        """Return the state of all files; what configs name is read again if one has changed."""
        workspace = self._services.workspace
        output = workspace.cwd / self._settings.output_dir
        configs = _look_at(find_configs(self._settings.configs, workspace)[0], output)
        if configs != self._configs:
            self._configs = configs
            # Files that an invalid config named before still count.
            self._patterns |= dict.fromkeys(self._list_patterns())
        found = (
            path
            for folder, pattern in self._patterns
            for named in (
                *find_matching_paths(folder, pattern),
                *find_matching_paths(workspace.cwd, pattern),
            )
            for path in (named, name_failed_recording(named))
        )
        return {**configs, **_look_at(found, output)}

    def _list_patterns(self) -> Iterator[tuple[Path, str]]:
        settings, cwd = self._settings, self._services.workspace.cwd
        baseline = () if settings.baseline in ("", PULL_REQUEST_BASE) else (settings.baseline,)
        given = (*settings.traces, *settings.results, *settings.eval_sets, *baseline)
        yield from ((cwd, each) for each in given)
        try:
            suites = load_suites(settings, self._services)
        except InputError:
            # The run reports it.
            return
        digests = SourceDigests(self._services.workspace)
        for loaded in suites:
            folder = Path(loaded.locator.folder)
            yield from ((folder, each) for each in _list_named_files(loaded, digests))


def _list_named_files(loaded: LoadedSuite, digests: SourceDigests) -> Iterator[str]:
    """Yield what a config names: paths, globs, the folders of programs, modules they import."""
    suite = loaded.suite
    if suite.eval_cases is not None:
        yield loaded.locator.folder
    yield from (*suite.traces, *suite.eval_sets, *([suite.dataset] if suite.dataset else []))
    yield from (each.path for each in suite.results)
    for path in loaded.locator.located:
        # Programs may read other files of their folder.
        yield str(path.parent if find_unsupported_reason(path) is None else path)
    for evaluator in suite.evaluators:
        for files in find_files(evaluator.definition):
            yield from map(str, digests.list_files(files))


def _look_at(paths: Iterator[Path] | Sequence[Path], output: Path) -> Snapshot:
    """Return the state of files, and of those in folders; reports of runs do not count."""
    found: dict[Path, tuple[int, int]] = {}
    for path in paths:
        for file in _list_files(path) if is_folder(path) else (path,):
            if file.is_relative_to(output):
                continue
            try:
                state = file.stat()
            except OSError:
                continue
            found[file] = (state.st_mtime_ns, state.st_size)
    return found


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield up to ``MAX_FOLDER_FILES`` files below a folder, without hidden and vendored ones."""
    number = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and each not in SKIPPED_FOLDERS
        )
        for name in sorted(names):
            number += 1
            if number > MAX_FOLDER_FILES:
                return
            yield Path(parent, name)
