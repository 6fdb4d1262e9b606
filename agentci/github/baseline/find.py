"""``--baseline base``: the results of the commit that a run is put on, or of one before it."""

from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.format import count
from agentci._util.text.suggest import short_commit
from agentci.config.settings import Settings
from agentci.errors import GitHubError, InputError, UnreachableError
from agentci.github.base_commit import Base, base_of
from agentci.github.baseline.artifacts import Runs
from agentci.github.baseline.cache import BaselineStore
from agentci.github.baseline.git import Repository, repository_of
from agentci.github.baseline.save import baseline_store
from agentci.github.baseline.search import Found, Search, told
from agentci.github.read_event import read_event
from agentci.model.values import replace
from agentci.runner.services import World

MAX_MISSES: Final = 4
NO_COMMIT: Final = "it is not known of which commit the results are that would be compared"
NO_MAIN: Final = "git knows no branch main or master, nor what origin calls its HEAD"
OFFLINE: Final = "GitHub is not asked (--offline)"
OUTSIDE: Final = "GitHub is asked in a workflow alone"
UNSURE: Final = "the baseline may be stale: how much of {branch} is judged as well is not known"
WAY_OUT: Final = "see docs/baselines.md for how a workflow keeps its results"


class NoBaselineError(Exception):
    """There is nothing to compare with; says why, without a full stop."""


class Earlier(Struct, frozen=True, kw_only=True):
    """The results that a run is compared with.

    Attributes:
        stale: why they may be of another commit than the base; empty where they are of it.
    """

    found: Found
    stale: str = ""


def find_base(judged: str, settings: Settings, world: World) -> Earlier:
    """Find the results of the base; the cache is looked into before GitHub is asked.

    Args:
        judged: the commit that is to be compared; empty where it is not known.

    Raises:
        NoBaselineError: there are none, or nobody knows what the base is.
    """
    if not judged:
        raise NoBaselineError(NO_COMMIT)
    repository = repository_of(world)
    runs = _runs(settings, world)
    if world.github.active:
        base, doubt = _in_workflow(judged, runs, world)
    else:
        base, doubt = _outside(judged, repository), ""
    if not base.commit:
        raise NoBaselineError(doubt or f"the event {world.github.event} names no commit before it")
    search = _search(settings, world, runs=runs, repository=repository)
    found = search.of_commit(base.commit)
    if found:
        return Earlier(found=found, stale=doubt)
    found = search.of_earlier(base.commit, base.branch)
    if not found:
        raise NoBaselineError(_missing(base, search))
    stale = "" if base.is_any_earlier else _stale(base, found, search)
    return Earlier(found=found, stale="; ".join(filter(None, (stale, doubt))))


def _in_workflow(judged: str, runs: Runs, world: World) -> tuple[Base, str]:
    """The base, and why it may be another one."""
    base = base_of(read_event(world.github), world.github.ref_name)
    if base.is_any_earlier:
        return replace(base, commit=judged), ""
    if not base.left:
        return base, ""
    try:
        return replace(base, commit=runs.left(judged, base.left)), ""
    except GitHubError as error:
        return base, f"{UNSURE.format(branch=base.left)}: {told(error)}"


def _outside(judged: str, repository: Repository) -> Base:
    """The base of what is checked out; on the main branch itself, any of its earlier results."""
    try:
        left = repository.left_main_at(judged)
    except UnreachableError as error:
        raise NoBaselineError(f"what the base is is not known: {told(error)}") from None
    if not left:
        raise NoBaselineError(NO_MAIN)
    return Base(commit=left, branch="", is_any_earlier=left == judged)


def _runs(settings: Settings, world: World) -> Runs:
    unasked = "" if world.github.active else OUTSIDE
    return Runs(
        world.github_api,
        world.github,
        settings.baseline_artifact,
        unasked=OFFLINE if settings.access.offline else unasked,
    )


def _search(settings: Settings, world: World, *, runs: Runs, repository: Repository) -> Search:
    kept: BaselineStore | None = None
    misses: list[str] = []
    try:
        kept = baseline_store(settings.access, world)
    except InputError as error:
        misses += [problem.message for problem in error.problems]
    return Search(
        kept=kept,
        runs=runs,
        history=runs if world.github.active else repository,
        series=settings.baseline_artifact,
        misses=misses,
    )


def _missing(base: Base, search: Search) -> str:
    why = _listed(search) or "neither the cache nor a run of the workflow on GitHub has any"
    none = f"no results are kept of {short_commit(base.commit)}, nor of what was before it"
    return f"{none}: {why} ({WAY_OUT})"


def _stale(base: Base, found: Found, search: Search) -> str:
    behind = count(found.behind, "commit")
    why = _listed(search)
    return (
        f"the baseline is stale: it is of {short_commit(found.commit)}, {behind} before the base "
        f"{short_commit(base.commit)}, which has no results{why and f' ({why})'}"
    )


def _listed(search: Search) -> str:
    return "; ".join(truncate.listed(search.misses, MAX_MISSES))
