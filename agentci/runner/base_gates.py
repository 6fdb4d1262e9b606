"""The gates of the base commit, from its files, by the loaders that every run uses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.workspace import Workspace
from agentci.config.discovery import find_configs
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.model.gate import Gate
from agentci.model.values import replace
from agentci.runner.load_configs import LoadedSuite, load_suite, load_suites, make_overrides
from agentci.runner.load_inputs import find_input_files, load_eval_set, load_suite_dataset
from agentci.runner.plan import plan_suites
from agentci.runner.policies import make_gate
from agentci.runner.services import Services

INVALID_BASE: Final = "{config} is not compared: it is invalid in the base commit: {problem}"


class BaseGates(Struct, frozen=True, kw_only=True):
    """The gates of all configs of the base commit.

    Attributes:
        notes: which configs are not among them, and why.
    """

    gates: tuple[Gate, ...]
    notes: tuple[str, ...] = ()


def load_base_gates(
    workspace: Workspace, head: Sequence[LoadedSuite], settings: Settings, services: Services
) -> BaseGates:
    """Read the configs of the base commit; an invalid one is a note.

    Args:
        workspace: with the files of the base commit, at the same paths.
        head: the suites of the run.
        services: of the run.
    """
    settings = _move_settings(settings, services.workspace, workspace)
    sources = services.sources.for_workspace(workspace.root)
    base = replace(services, workspace=workspace, sources=sources)
    suites, notes = _load_suites(settings, base)
    known = {loaded.suite.file: loaded for loaded in head}
    gates: list[Gate] = []
    for loaded in suites:
        own = known.get(loaded.suite.file)
        runs = None if own is None else _list_runs(own, settings, services.workspace)
        try:
            gates.append(_make_gate(loaded, settings, base, known_runs=runs))
        except InputError as error:
            notes.append(_make_note(loaded.suite.file, error))
    return BaseGates(gates=tuple(gates), notes=tuple(notes))


def _move_settings(settings: Settings, head: Workspace, base: Workspace) -> Settings:
    """Return settings in which absolute paths of the workspace are those of the base."""

    def move(path: str) -> str:
        inside = Path(path).is_absolute() and Path(path).is_relative_to(head.root)
        return str(base.root / Path(path).relative_to(head.root)) if inside else path

    return replace(
        settings,
        configs=tuple(map(move, settings.configs)),
        traces=tuple(map(move, settings.traces)),
        eval_set=None if settings.eval_set is None else move(settings.eval_set),
    )


def _load_suites(settings: Settings, services: Services) -> tuple[list[LoadedSuite], list[str]]:
    """Load the configs that exist in the base, and explain those that are invalid."""
    if settings.metrics and not settings.configs:
        return [*load_suites(settings, services)], []
    suites: list[LoadedSuite] = []
    notes: list[str] = []
    # A config that the base does not have is new.
    paths, _ = find_configs(settings.configs, services.workspace)
    for path in paths:
        try:
            loaded = load_suite(path, make_overrides(settings), services)
        except InputError as error:
            notes.append(_make_note(services.workspace.display_path(path), error))
            continue
        if loaded.suite.evaluators:
            suites.append(loaded)
    return suites, notes


def _make_note(config: str, error: InputError) -> str:
    return INVALID_BASE.format(config=config, problem=error.problems[0])


def _make_gate(
    loaded: LoadedSuite,
    settings: Settings,
    services: Services,
    *,
    known_runs: Mapping[str, int] | None,
) -> Gate:
    """Make the gate of a suite; recorded runs are counted only if their files changed.

    Raises:
        InputError: the eval set or the dataset is invalid.
    """
    runs = _list_runs(loaded, settings, services.workspace)
    if runs and known_runs is not None and runs != known_runs:
        return plan_suites([loaded], settings, services).gates[0]
    carries_runs = not (settings.traces or loaded.suite.traces)
    return make_gate(
        loaded.suite,
        services.workspace.root,
        eval_set=load_eval_set(loaded, services.workspace, given=settings.eval_set),
        dataset=load_suite_dataset(loaded, services.workspace, carries_runs=carries_runs),
    )


def _list_runs(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> Mapping[str, int] | None:
    """The files of recorded runs and their sizes; None if there are none or cases count instead."""
    if loaded.suite.eval_cases is not None:
        return None
    try:
        paths = find_input_files(loaded, settings, workspace)
    except InputError:  # often, the agent is run in the workflow, and its traces are not committed
        return None
    return {workspace.display_path(each.path): _read_size(each.path) for each in paths}


def _read_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
