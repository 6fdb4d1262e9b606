"""Open the response cache before a run, and close it afterwards."""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci._util.cache_folder import find_cache_owner
from agentci.config.discovery import make_output_names
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.model.values import OPTIONAL_FORMATS, Problem, list_field_names
from agentci.reports.registry import REPORT_WRITERS
from agentci.runner.plan import Plan
from agentci.runner.prepare import choose_cache_folder
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.runner.response_cache.cache import ResponseCache

CACHED_FIELD: Final = "cached"
# As with a Python that was built without the headers of SQLite.
NO_SQLITE: Final = "this Python has no `sqlite3` module"


def has_sqlite() -> bool:
    """Whether this Python can read and write the database."""
    return find_spec("_sqlite3") is not None


def open_response_cache(
    plan: Plan, settings: Settings, services: Services
) -> tuple["ResponseCache | None", tuple[Problem, ...]]:
    """The cache for a plan, with a note if its folder is not trusted.

    None if its checks need none, or, with a note, if there can be none.
    """
    evaluators = {id(check.evaluator): check.evaluator for check in plan.checks}.values()
    if not (services.judges or any(map(_asks_for_cache, evaluators))):
        return None, ()
    try:
        folder, notes = choose_cache_folder(settings.fetch_settings, services)
    except InputError as error:
        return None, tuple(_make_notice(str(each.message)) for each in error.problems)
    if not has_sqlite():
        return None, (_make_notice(NO_SQLITE),)
    from agentci.runner.response_cache.cache import (  # noqa: PLC0415 (most runs do not need it)
        ContentDigests,
        ResponseCache,
    )
    from agentci.runner.response_cache.program_key import Interpreters  # noqa: PLC0415
    from agentci.runner.response_cache.store import ResponseStore  # noqa: PLC0415

    recorded_outputs = make_output_names(gate.config for gate in plan.gates).values()
    own = _list_own_paths(folder, services.workspace.cwd / settings.output_dir, recorded_outputs)
    cache = ResponseCache(
        ResponseStore(folder, owner=find_cache_owner(folder)),
        ContentDigests(services.workspace.root, set(own)),
        Interpreters(services.child_environment.get("PATH", os.defpath)),
        workspace=services.workspace,
        repository=services.repository,
        ignore_cached=settings.fetch_settings.no_cache,
    )
    return cache, tuple(each for each in notes if each not in plan.problems)


def close_response_cache(cache: "ResponseCache | None") -> Iterator[Problem]:
    """Write new responses; yields a note if some could not be cached."""
    if cache is not None and (reason := cache.close()):
        yield _make_notice(reason)


def _asks_for_cache(value: object) -> bool:
    """Whether an evaluator, or a part of it, has `cached` set."""
    if isinstance(value, Mapping):
        return any(map(_asks_for_cache, value.values()))
    if isinstance(value, tuple | list):
        return any(map(_asks_for_cache, value))
    return any(
        getattr(value, name) is True
        if name == CACHED_FIELD
        else _asks_for_cache(getattr(value, name))
        for name in list_field_names(value)
    )


def _list_own_paths(cache: Path, output: Path, recorded_outputs: Iterable[str]) -> Iterator[str]:
    """Real paths of the files that a run writes; they are not part of a key."""
    yield os.path.realpath(cache)
    reports = (each.file_name for each in REPORT_WRITERS.values())
    names = (*reports, *OPTIONAL_FORMATS.values(), *recorded_outputs)
    yield from (f"{os.path.realpath(output)}/{name}" for name in names)


def _make_notice(reason: str) -> Problem:
    return Problem(message=f"responses are not cached: {reason}", severity="note")
