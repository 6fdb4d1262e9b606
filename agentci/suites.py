"""Reads configs from disk into suites, and keeps the paths they name inside the workspace."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentci.config.document import MAX_CONFIG_BYTES, read_document
from agentci.config.suite import Overrides, Suite, read_suite
from agentci.discovery import find_configs, matches
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.model.problem import Problem
from agentci.runtimes.registry import supports
from agentci.settings import Settings
from agentci.workspace import Workspace, read_file, workspace_of


def overrides_of(settings: Settings) -> Overrides:
    """The options that replace what configs say of their evaluators."""
    return Overrides(
        metrics=settings.metrics,
        threshold=settings.threshold,
        trajectory_match_type=settings.trajectory_match_type,
        only=settings.only,
    )


def load_suites(
    configs: Sequence[str], overrides: Overrides, workspace: Workspace
) -> tuple[Suite, ...]:
    """Read all configs.

    Raises:
        InputError: with every problem of every config.
    """
    suites: list[Suite] = []
    problems: list[Problem] = []
    for path in find_configs(configs, workspace):
        try:
            suites.append(load_suite(path, overrides, workspace))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(suites)


def load_suite(path: Path, overrides: Overrides, workspace: Workspace) -> Suite:
    """Read one config.

    Raises:
        InputError: with every problem of it.
    """
    name = workspace.name_of(path)
    document = read_document(read_file(path, name=name, limit_bytes=MAX_CONFIG_BYTES), file=name)
    locator = Locator(path, workspace)
    suite = read_suite(document, overrides=overrides, locate=locator.locate, supports=supports)
    return replace(suite, notices=(*suite.notices, *locator.notices))


class Locator:
    """Finds what one config names; remembers what the user should know about it."""

    def __init__(self, config: Path, workspace: Workspace) -> None:
        self._folder = config.parent
        self._workspace = workspace
        # A config from elsewhere was named on the command line: its own repository is trusted.
        self._home = workspace if workspace.holds(config) else workspace_of(config.parent)
        self.notices: list[Problem] = []

    def locate(self, named: str, place: Place) -> Path:
        """The real path of the file ``named`` at ``place``.

        Raises:
            InputError: it does not exist, or lies outside of the workspace.
        """
        paths = self.matches(named, place)
        if not paths:
            hint = f"paths are relative to the config, {self._workspace.name_of(self._folder)}"
            raise _problem(place, f"{named} does not exist", hint)
        if paths[0].is_dir():
            raise _problem(place, f"{named} is a folder, a file is wanted", "name the file")
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
        if not self.notices:
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
            raise _problem(
                place,
                f"{named} leads out of the workspace",
                "a config may only name files inside of it, symbolic links followed",
            )
        return path.resolve()


def _problem(place: Place, message: str, hint: str) -> InputError:
    return InputError([Problem(message=message, place=place, hint=hint)])
