"""What tests of several packages share: a run of the command line in a world of its own."""

import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentci.cli import carry_out
from agentci.engines.world import World
from agentci.environments.variables import installer_environment
from agentci.errors import InputError
from agentci.executors.environment import child_environment
from agentci.executors.registry import Executors, makers
from agentci.github.context import github_of
from agentci.github.job_token import without_inputs
from agentci.github_api.access import access_of
from agentci.github_api.client import GitHubApi
from agentci.http.client import HttpClient
from agentci.library.sources import Sources
from agentci.model.problem import Problem
from agentci.sources.variables import surroundings_of
from agentci.workspace import workspace_of

ROOT = Path(__file__).resolve().parent.parent
EVALUATORS = ROOT / "tests" / "evaluators"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run of the command line left behind.

    Attributes:
        problems: those of the input that kept it from running.
    """

    code: int
    out: str
    err: str
    folder: Path
    problems: tuple[Problem, ...] = ()

    @property
    def results(self) -> Any:
        """The content of results.json in the default folder."""
        return json.loads((self.folder / "agentci-results" / "results.json").read_text())


def run_agentci(
    arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str] | None = None
) -> Ran:
    """Run ``agentci ARGUMENTS`` in this process, as the command line does."""
    world = world_at(cwd, environ or {})
    problems: tuple[Problem, ...] = ()
    try:
        code = carry_out(arguments, world)
    except InputError as error:
        code, problems = 2, error.problems
    assert isinstance(world.out, io.StringIO)
    assert isinstance(world.err, io.StringIO)
    return Ran(
        code=code,
        out=world.out.getvalue(),
        err=world.err.getvalue(),
        folder=cwd,
        problems=problems,
    )


def world_at(cwd: Path, environ: Mapping[str, str]) -> World:
    """A world whose workspace is ``cwd`` and whose output is kept."""
    github = github_of(environ)
    workspace = workspace_of(cwd, root=github.workspace or cwd)
    err = io.StringIO()
    http = HttpClient(tell=lambda text: print(text, file=err), sleep=lambda _: None)
    return World(
        workspace=workspace,
        executors=Executors(makers({"PATH": PATH, **environ})),
        child_environment=child_environment({"PATH": PATH}),
        installer_environment=installer_environment({"PATH": PATH, **environ}),
        search_path=environ.get("PATH", PATH),
        sources=Sources(surroundings_of(environ, http=http, workspace=workspace.root)),
        cache_folder=cwd / ".agentci" / "cache",
        github=github,
        github_api=GitHubApi(access_of(environ), http),
        out=io.StringIO(),
        err=err,
        clock=time.monotonic,
        processors=2,
        variables=without_inputs(environ),
    )
