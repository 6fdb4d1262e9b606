"""Reads configs from disk into suites, and keeps the paths they name inside the workspace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentci.config.overrides import Overrides, selection_problems
from agentci.config.suite import Suite, read_suite, suite_of_metrics
from agentci.config.yaml_document import YamlDocument, read_yaml
from agentci.discovery import CONFIG_NAMES, find_configs, matches
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.runtimes.registry import why_unsupported
from agentci.settings import Settings
from agentci.workspace import Workspace, is_file, is_folder, read_file, real, workspace_of

MAX_CONFIG_BYTES = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSuite:
    """A suite, and what finds the files that its config names."""

    suite: Suite
    locator: "Locator"

    @property
    def notices(self) -> tuple[Problem, ...]:
        """What the user should know about the config, by what was looked for so far."""
        return (*self.suite.notices, *self.locator.notices)


def load_suites(settings: Settings, workspace: Workspace) -> tuple[LoadedSuite, ...]:
    """Read all configs that ``settings`` name; none is read where they name metrics alone.

    Raises:
        InputError: with every problem of every config.
    """
    overrides = Overrides(
        metrics=settings.metrics,
        threshold=settings.threshold,
        trajectory_match_type=settings.trajectory_match_type,
        only=settings.only,
    )
    if settings.metrics and not settings.configs:
        locator = Locator(workspace.cwd, workspace)
        locator.notices += _left_out(workspace)
        suite = suite_of_metrics(overrides)
        return _selected([LoadedSuite(suite=suite, locator=locator)], settings.only)
    suites: list[LoadedSuite] = []
    problems: list[Problem] = []
    for path in find_configs(settings.configs, workspace):
        try:
            suites.append(load_suite(path, overrides, workspace))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return _selected(suites, settings.only)


def _left_out(workspace: Workspace) -> Iterator[Problem]:
    """Configs that a run without metrics of its own would have found first."""
    for name in CONFIG_NAMES:
        if is_file(workspace.cwd / name):
            yield Problem(
                message=f"{name} is not judged by: --metric stands alone where no config is named",
                hint=f"name {name}, too, to judge by both",
                severity="warning",
            )


def _selected(suites: Sequence[LoadedSuite], only: Sequence[str]) -> tuple[LoadedSuite, ...]:
    """The suites that have an evaluator to run; each name has to be in one of them."""
    names = [name for loaded in suites for name in loaded.suite.names]
    if problems := tuple(selection_problems(only, names)):
        raise InputError(problems)
    return tuple(loaded for loaded in suites if loaded.suite.evaluators)


def load_suite(path: Path, overrides: Overrides, workspace: Workspace) -> LoadedSuite:
    """Read one config.

    Raises:
        InputError: with every problem of it.
    """
    name = workspace.name_of(path)
    document = read_yaml(read_file(path, name=name, limit_bytes=MAX_CONFIG_BYTES), file=name)
    locator = Locator(path.parent, workspace)
    try:
        suite = read_suite(document, overrides, locator.find_program)
    except InputError as error:
        raise InputError([*error.problems, *_missing_eval_set(document, locator)]) from None
    return LoadedSuite(suite=suite, locator=locator)


def _missing_eval_set(document: YamlDocument, locator: "Locator") -> tuple[Problem, ...]:
    """Look for the eval set of a config that is wrong anyway, to tell all of it at once."""
    named = document.data.get("eval_set")
    try:
        if isinstance(named, str):
            locator.locate(named, document.place_of(("eval_set",)))
    except InputError as error:
        return error.problems
    return ()


class Locator:
    """Finds what one config names; remembers what the user should know about it."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self._folder = folder
        self._workspace = workspace
        # A config from elsewhere was named on the command line: its own repository is trusted.
        self._home = workspace if workspace.holds(folder) else workspace_of(folder)
        self._has_fallen_back = False
        self.notices: list[Problem] = []

    def find_program(self, named: str, place: Place) -> Path:
        """The real path of the evaluator's program ``named`` at ``place``.

        Raises:
            InputError: it does not exist, lies outside of the workspace, or cannot be run.
        """
        path = self.locate(named, place)
        if reason := why_unsupported(path):
            raise InputError.of(reason, place=place)
        if path.suffix == ".py" and is_file(path.parent / "requirements.txt"):
            self.notices.append(
                Problem(
                    message=f"the requirements.txt beside {named} is not installed",
                    place=place,
                    hint="this version runs evaluators with the packages that are there",
                    severity="notice",
                )
            )
        return path

    def locate(self, named: str, place: Place) -> Path:
        """The real path of the file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, or lies outside of the workspace.
        """
        paths = self.matches(named, place)
        if not paths:
            raise InputError.of(
                f"{named} does not exist",
                place=place,
                hint="paths are relative to the config's folder, else to the working directory",
            )
        if is_folder(paths[0]):
            message = f"{named} is a folder, a file is wanted"
            raise InputError.of(message, place=place, hint="name the file")
        if not is_file(paths[0]):
            message = f"{named} is no regular file, or a link that leads nowhere"
            raise InputError.of(message, place=place)
        return paths[0]

    def matches(self, pattern: str, place: Place) -> tuple[Path, ...]:
        """The real paths that ``pattern`` matches beside the config, else from where we run.

        Configs written for agentevals name paths from the directory it was started in.

        Raises:
            InputError: one of them lies outside of the workspace.
        """
        paths = matches(self._folder, pattern)
        if not paths and (paths := matches(self._workspace.cwd, pattern)):
            self._note_fallback(pattern, place)
        return tuple(self._inside(path, pattern, place) for path in paths)

    def _note_fallback(self, named: str, place: Place) -> None:
        """Say once a config that it depends on the working directory."""
        if not self._has_fallen_back:
            self._has_fallen_back = True
            self.notices.append(
                Problem(
                    message=f"{named} was found from the working directory, not beside the config",
                    place=place,
                    hint="paths in a config are relative to its folder",
                    severity="notice",
                )
            )

    def _inside(self, path: Path, named: str, place: Place) -> Path:
        if not self._workspace.holds(path) and not self._home.holds(path):
            raise InputError.of(
                f"{named} leads out of the workspace",
                place=place,
                hint="a config may only name files inside of it, symbolic links followed",
            )
        return real(path)
