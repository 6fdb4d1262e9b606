"""What tests of several packages share: a run of the command line in a world of its own."""

import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentci._util.action_inputs import without_inputs
from agentci._util.http.client import HttpClient
from agentci._util.workspace import workspace_of
from agentci.cli.main import carry_out
from agentci.errors import InputError
from agentci.execution.environment_variables import child_environment
from agentci.execution.environments.variables import installer_environment
from agentci.execution.registry import Executors, makers
from agentci.github.api.access import access_of
from agentci.github.api.client import GitHubApi
from agentci.github.context import github_of
from agentci.model.problem import Problem
from agentci.remote.run_sources import Sources
from agentci.remote.sources.variables import surroundings_of
from agentci.runner.services import World

ROOT = Path(__file__).resolve().parents[2]
EVALUATORS = ROOT / "tests" / "evaluator_programs"
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
