"""Has what was replied in earlier runs at hand, and keeps what is replied in this one."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentci._util.text.output_names import file_names
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.evaluators.evaluator import needs_of
from agentci.model.problem import Problem
from agentci.model.program import Wanted
from agentci.reports.registry import REPORTERS
from agentci.runner.plan import Plan
from agentci.runner.prepare_programs import cache_folder
from agentci.runner.response_cache.inspect import NO_SQLITE, has_sqlite
from agentci.runner.services import World

if TYPE_CHECKING:
    from agentci.runner.response_cache.cache import ReplyCache

# The types whose evaluators run commands, which need not be made ready.
OF_COMMANDS: Final = frozenset({"code_judge", "composite"})


def open_replies(
    plan: Plan, settings: Settings, world: World
) -> tuple["ReplyCache | None", tuple[Problem, ...]]:
    """The replies that are of use to a plan; none, with the reason, where there can be none."""
    programs = needs_of((check.evaluator for check in plan.checks), Wanted)
    if not (programs or _has_commands(plan) or world.judges):
        return None, ()
    try:
        folder = cache_folder(settings.access, world)
    except InputError as error:
        return None, tuple(_notice(str(each.message)) for each in error.problems)
    if not has_sqlite():
        return None, (_notice(NO_SQLITE),)
    from agentci.runner.response_cache.cache import ReplyCache  # noqa: PLC0415 (of no use to many runs)
    from agentci.runner.response_cache.digests import Digests  # noqa: PLC0415 (likewise)
    from agentci.runner.response_cache.inputs import Inputs  # noqa: PLC0415
    from agentci.runner.response_cache.interpreter_key import Interpreters, packages_of  # noqa: PLC0415
    from agentci.runner.response_cache.observer import Observer  # noqa: PLC0415
    from agentci.runner.response_cache.store import ReplyStore  # noqa: PLC0415

    outputs = file_names(gate.config for gate in plan.gates).values()
    own = set(_own(folder, world.workspace.cwd / settings.output_dir, outputs))
    keyed = (str(folder), *packages_of(sys.executable))
    watched = Observer(own, left_out={os.path.realpath(each) for each in keyed})
    replies = ReplyCache(
        ReplyStore(folder, owner=world.workspace.root),
        Inputs(world.workspace.root, observer=watched, digests=Digests(own)),
        Interpreters(world.search_path),
        anew=settings.access.anew,
    )
    return replies, ()


def close_replies(replies: "ReplyCache | None") -> Iterator[Problem]:
    """Keep what is to be kept; tell why something could not be."""
    if replies is not None and (why := replies.close()):
        yield _notice(why)


def _has_commands(plan: Plan) -> bool:
    return any(check.evaluator.identity.type in OF_COMMANDS for check in plan.checks)


def _own(cache: Path, output: Path, outputs: Iterable[str]) -> Iterator[str]:
    """All that a run itself makes, by real paths."""
    folders = [Path(os.path.realpath(each)) for each in (cache, output)]
    for folder in folders:
        yield from map(str, (folder, *folder.parents))
    names = (*(each.file_name for each in REPORTERS.values()), *outputs)
    yield from (f"{folders[-1]}/{name}" for name in names)


def _notice(why: str) -> Problem:
    return Problem(message=f"replies are not kept: {why}", severity="notice")
