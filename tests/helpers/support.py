"""Shared by tests of several packages: runs of the command line in a new session."""

import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentci._util.http_client import HttpClient
from agentci._util.workspace import find_workspace
from agentci.cli.main import run_command
from agentci.cli.session import Session, identify_repository, make_config_variables
from agentci.errors import InputError
from agentci.execution.environment_variables import (
    make_child_environment,
    make_installer_environment,
    make_own_environment,
    select_outer_folders,
)
from agentci.execution.registry import Executors, make_factories
from agentci.github.api_client import GitHubApi, read_api_access
from agentci.github.events import Workflow, read_github_context
from agentci.model.values import Problem, replace
from agentci.remote.programs import Sources, read_source_context
from agentci.runner.services import Services

ROOT = Path(__file__).resolve().parents[2]
EVALUATORS = ROOT / "tests" / "evaluator_programs"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The outcome of a run of the command line.

    Attributes:
        problems: input errors that prevented the run.
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
    session = make_session(cwd, environ or {})
    problems: tuple[Problem, ...] = ()
    try:
        code = run_command(arguments, session)
    except InputError as error:
        code, problems = 2, error.problems
    assert isinstance(session.out, io.StringIO)
    assert isinstance(session.services.err, io.StringIO)
    return Ran(
        code=code,
        out=session.out.getvalue(),
        err=session.services.err.getvalue(),
        folder=cwd,
        problems=problems,
    )


def make_environment_with_input_limits(factor: str) -> dict[str, str]:
    """The environment of a program whose input limits are multiplied by ``factor``."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "AGENTCI_INPUT_LIMITS": factor}


def cache_of(workspace: Path) -> Path:
    """The default cache folder in tests: beside the workspace, as in it none is trusted."""
    return workspace.with_name(f"{workspace.name}.cache")


def make_services(cwd: Path, environ: Mapping[str, str]) -> Services:
    """Services whose workspace is ``cwd``."""
    return make_session(cwd, environ).services


def make_session(cwd: Path, environ: Mapping[str, str], **replaced: Any) -> Session:
    """A session whose workspace is ``cwd`` and whose output is captured.

    Args:
        replaced: services to use instead of the usual ones.
    """
    github = read_github_context(environ)
    workspace = find_workspace(cwd, root=github.workspace or cwd)
    err = io.StringIO()
    http = HttpClient(report=lambda text: print(text, file=err), sleep=lambda _: None)
    own = make_own_environment({"PATH": PATH, **environ}, workspace)
    outer = select_outer_folders({"PATH": PATH, **environ}, workspace)
    services = Services(
        workspace=workspace,
        executors=Executors(make_factories(own)),
        child_environment=make_child_environment({"PATH": environ.get("PATH", PATH)}),
        installer_environment=make_installer_environment(outer),
        search_path=outer["PATH"],
        sources=Sources(read_source_context(environ, http=http, workspace=workspace.root)),
        cache_folder=cache_of(cwd),
        repository=identify_repository(github, workspace),
        err=err,
        clock=time.monotonic,
        processors=2,
        variables=make_config_variables(environ, github),
    )
    return Session(
        services=replace(services, **replaced),
        workflow=Workflow(context=github, api=GitHubApi(read_api_access(environ), http)),
        http=http,
        out=io.StringIO(),
        otlp_headers=environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""),
    )
