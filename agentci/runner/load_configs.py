"""Reads configs from disk into suites."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agentci._util.workspace import Workspace, is_file, read_file
from agentci.config.detect import is_eval_file
from agentci.config.discovery import CONFIG_NAMES, find_configs
from agentci.config.overrides import Overrides, selection_problems
from agentci.config.settings import Settings
from agentci.config.suite import Suite, read_suite, suite_of_metrics
from agentci.config.yaml_document import YamlDocument, read_yaml
from agentci.errors import InputError
from agentci.model.problem import Problem
from agentci.runner.locate_programs import Locator
from agentci.runner.services import World

MAX_CONFIG_BYTES = 1024**2


class LoadedSuite(Struct, frozen=True, kw_only=True):
    """A suite, and what finds the files that its config names."""

    suite: Suite
    locator: Locator

    @property
    def notices(self) -> tuple[Problem, ...]:
        """What the user should know about the config, by what was looked for so far."""
        return (*self.suite.notices, *self.locator.notices)


def load_suites(settings: Settings, world: World) -> tuple[LoadedSuite, ...]:
    """Read all configs that ``settings`` name; none is read where they name metrics alone.

    Raises:
        InputError: with every problem of every config.
    """
    overrides = Overrides(
        metrics=settings.metrics,
        threshold=settings.threshold,
        trajectory_match_type=settings.trajectory_match_type,
        judge_model=settings.judge_model,
        only=settings.only,
    )
    if settings.metrics and not settings.configs:
        locator = _locator(world.workspace.cwd, world)
        locator.notices += _left_out(world.workspace)
        suite = suite_of_metrics(overrides)
        return _selected([LoadedSuite(suite=suite, locator=locator)], settings.only)
    suites: list[LoadedSuite] = []
    paths, missing = find_configs(settings.configs, world.workspace)
    problems = [*missing]
    for path in paths:
        try:
            suites.append(load_suite(path, overrides, world))
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


def load_suite(path: Path, overrides: Overrides, world: World) -> LoadedSuite:
    """Read one config.

    Raises:
        InputError: with every problem of it.
    """
    document = _document(path, world)
    locator = _locator(path.parent, world)
    if is_eval_file(document):
        # They load much that eval configs have no use for.
        from agentci.config.agentv.attachments import Attachments  # noqa: PLC0415
        from agentci.config.agentv.read import read_eval_file  # noqa: PLC0415

        files = Attachments(path.parent, world.workspace)
        suite = read_eval_file(document, overrides, files, variables=world.variables)
        return LoadedSuite(suite=suite, locator=locator)
    try:
        suite = read_suite(document, overrides, locator)
    except InputError as error:
        raise InputError([*error.problems, *_missing_files(document, locator)]) from None
    return LoadedSuite(suite=suite, locator=locator)


def _document(path: Path, world: World) -> YamlDocument:
    """A config, or an eval file; one of JSON Lines with what the file beside it adds."""
    if path.suffix != ".jsonl":
        return _yaml(path, world)
    from agentci.config.agentv.attachments import (  # noqa: PLC0415 (likewise)
        MAX_ATTACHMENT_BYTES,
        sidecar_of,
    )
    from agentci.config.agentv.jsonl import read_jsonl  # noqa: PLC0415 (likewise)

    sidecar = sidecar_of(path)
    return read_jsonl(
        _content(path, world, limit_bytes=MAX_ATTACHMENT_BYTES),
        file=world.workspace.name_of(path),
        sidecar=None if sidecar is None else _yaml(sidecar, world),
    )


def _yaml(path: Path, world: World) -> YamlDocument:
    return read_yaml(_content(path, world), file=world.workspace.name_of(path))


def _content(path: Path, world: World, *, limit_bytes: int = MAX_CONFIG_BYTES) -> bytes:
    name = world.workspace.name_of(path)
    return read_file(path, name=name, limit_bytes=limit_bytes)


def _locator(folder: Path, world: World) -> Locator:
    return Locator(folder, world.workspace, sources=world.sources, executors=world.executors)


def _missing_files(document: YamlDocument, locator: Locator) -> Iterator[Problem]:
    """Look for the other files of a config that is wrong anyway, to tell all of it at once."""
    for key in ("eval_set", "dataset"):
        named = document.data.get(key)
        try:
            if isinstance(named, str):
                locator.locate(named, document.place_of((key,)))
        except InputError as error:
            yield from error.problems
