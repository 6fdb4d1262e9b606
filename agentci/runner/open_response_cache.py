"""Has what was replied in earlier runs at hand, and keeps what is replied in this one."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.evaluators.evaluator import collect_needs
from agentci.model.problem import Problem
from agentci.model.program import RequiredProgram
from agentci.reports.registry import REPORTERS
from agentci.runner.output_names import make_output_names
from agentci.runner.plan import Plan
from agentci.runner.prepare_programs import find_cache_folder
from agentci.runner.response_cache.inspect import NO_SQLITE, has_sqlite
from agentci.runner.services import Services

if TYPE_CHECKING:
    from agentci.runner.response_cache.cache import ResponseCache

# The types whose evaluators run commands, which need not be made ready.
COMMAND_TYPES: Final = frozenset({"code_judge", "composite"})


def open_response_cache(
    plan: Plan, settings: Settings, world: Services
) -> tuple["ResponseCache | None", tuple[Problem, ...]]:
    """The replies that are of use to a plan; none, with the reason, where there can be none."""
    programs = collect_needs((check.evaluator for check in plan.checks), RequiredProgram)
    if not (programs or _has_commands(plan) or world.judges):
        return None, ()
    try:
        folder = find_cache_folder(settings.fetch_settings, world)
    except InputError as error:
        return None, tuple(_make_notice(str(each.message)) for each in error.problems)
    if not has_sqlite():
        return None, (_make_notice(NO_SQLITE),)
    from agentci.runner.response_cache.cache import ResponseCache  # noqa: PLC0415 (of no use to many runs)
    from agentci.runner.response_cache.digests import Digests  # noqa: PLC0415 (likewise)
    from agentci.runner.response_cache.inputs import Inputs  # noqa: PLC0415
    from agentci.runner.response_cache.interpreter_key import Interpreters, packages_of  # noqa: PLC0415
    from agentci.runner.response_cache.observer import Observer  # noqa: PLC0415
    from agentci.runner.response_cache.store import ResponseStore  # noqa: PLC0415

    outputs = make_output_names(gate.config for gate in plan.gates).values()
    own = set(_list_own_paths(folder, world.workspace.cwd / settings.output_dir, outputs))
    keyed = (str(folder), *packages_of(sys.executable))
    watched = Observer(own, left_out={os.path.realpath(each) for each in keyed})
    replies = ResponseCache(
        ResponseStore(folder, owner=world.workspace.root),
        Inputs(world.workspace.root, observer=watched, digests=Digests(own)),
        Interpreters(world.search_path),
        anew=settings.fetch_settings.no_cache,
    )
    return replies, ()


def close_response_cache(replies: "ResponseCache | None") -> Iterator[Problem]:
    """Keep what is to be kept; tell why something could not be."""
    if replies is not None and (why := replies.close()):
        yield _make_notice(why)


def _has_commands(plan: Plan) -> bool:
    return any(check.evaluator.identity.type in COMMAND_TYPES for check in plan.checks)


def _list_own_paths(cache: Path, output: Path, outputs: Iterable[str]) -> Iterator[str]:
    """All that a run itself makes, by real paths."""
    folders = [Path(os.path.realpath(each)) for each in (cache, output)]
    for folder in folders:
        yield from map(str, (folder, *folder.parents))
    names = (*(each.file_name for each in REPORTERS.values()), *outputs)
    yield from (f"{folders[-1]}/{name}" for name in names)


def _make_notice(why: str) -> Problem:
    return Problem(message=f"replies are not kept: {why}", severity="notice")
