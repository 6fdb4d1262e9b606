"""The default cache folder, and the repository whose entries are used."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentci._util.workspace import Workspace
from agentci.cli.session import find_default_cache_folder, identify_repository
from agentci.github.events import read_github_context

STEP = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/github/workspace", "HOME": "/github/home"}
REPOSITORY = {"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "o/r"}


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        pytest.param(STEP, "/github/home/.cache/agentci", id="container action"),
        pytest.param({"HOME": "/home/me"}, "/home/me/.cache/agentci", id="home folder"),
        pytest.param(
            {"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}, "/fast/agentci", id="XDG_CACHE_HOME"
        ),
        pytest.param(
            {"HOME": "/home/me", "XDG_CACHE_HOME": "rel"},
            "/home/me/.cache/agentci",
            id="relative XDG_CACHE_HOME is ignored",
        ),
        pytest.param({}, "/.cache/agentci", id="no home folder"),
        pytest.param({"HOME": ""}, "/.cache/agentci", id="empty home folder"),
        pytest.param({"HOME": "here"}, "/.cache/agentci", id="relative home folder is ignored"),
    ],
)
def test_default_cache_folder_follows_environment(environ: Mapping[str, str], folder: str) -> None:
    assert find_default_cache_folder(environ) == Path(folder)


@pytest.mark.parametrize(
    ("environ", "repository"),
    [
        pytest.param({**STEP, **REPOSITORY}, "https://github.example/o/r", id="workflow"),
        pytest.param(STEP, "/repo", id="workflow without repository"),
        pytest.param(REPOSITORY, "/repo", id="variables outside a workflow are ignored"),
    ],
)
def test_repository_is_identified(environ: Mapping[str, str], repository: str) -> None:
    workspace = Workspace(root=Path("/repo"), cwd=Path("/repo/evals"))
    assert identify_repository(read_github_context(environ), workspace) == repository
