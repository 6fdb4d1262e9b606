"""Where the cache lies when nobody says where."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentci.cli.process import find_default_cache_folder
from agentci.github.context import read_github_context

STEP = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "/github/workspace", "HOME": "/github/home"}


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        pytest.param(STEP, "/github/workspace/.agentci/cache", id="in a workflow"),
        pytest.param({"HOME": "/home/me"}, "/home/me/.cache/agentci", id="at home"),
        pytest.param(
            {"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}, "/fast/agentci", id="where caches are"
        ),
        pytest.param(
            {"HOME": "/home/me", "XDG_CACHE_HOME": "rel"},
            "/home/me/.cache/agentci",
            id="a relative place counts for nothing, as the standard says",
        ),
        pytest.param({}, "/.cache/agentci", id="without a home"),
        pytest.param({"HOME": ""}, "/.cache/agentci", id="with an empty one"),
        pytest.param({"HOME": "here"}, "/.cache/agentci", id="never in the working directory"),
    ],
)
def test_is(environ: Mapping[str, str], folder: str) -> None:
    assert find_default_cache_folder(environ, read_github_context(environ)) == Path(folder)
