"""The default cache folder."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentci.cli.process import find_default_cache_folder
from agentci.github.context import read_github_context

STEP = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/github/workspace", "HOME": "/github/home"}


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        pytest.param(STEP, "/github/workspace/.agentci/cache", id="workflow"),
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
    assert find_default_cache_folder(environ, read_github_context(environ)) == Path(folder)
