"""Evaluator programs receive the variables that they need and no secrets."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.workspace import Workspace
from agentci.execution.environment_variables import (
    DEFAULT_VARIABLES,
    FORCED_FOR_PROGRAMS,
    make_child_environment,
    make_own_environment,
    select_outer_folders,
)

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "GITHUB_OUTPUT",
        "GITHUB_EVENT_PATH",
        "GH_TOKEN",
        "INPUT_TOKEN",
        "INPUT_FAIL-ON",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "RUNNER_TEMP",
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "HF_TOKEN",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
        "PATHS",
        "path",
        "LC",
    ],
)
def test_secret_variable_is_not_passed(name: str) -> None:
    assert SECRET not in make_child_environment({name: SECRET}).values()


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "TZ", "TMPDIR", "LC_ALL", "PYTHONPATH", "SSL_CERT_FILE", "LD_LIBRARY_PATH"],
)
def test_harmless_variable_is_passed(name: str) -> None:
    assert make_child_environment({name: "/some/where"})[name] == "/some/where"


def test_proxy_variable_is_passed_in_either_case() -> None:
    proxies = {"https_proxy": "http://proxy:3128", "NO_PROXY": "localhost"}
    assert proxies.items() <= make_child_environment(proxies).items()


def test_proxy_with_password_is_not_passed() -> None:
    assert "HTTPS_PROXY" not in make_child_environment(
        {"HTTPS_PROXY": "http://me:s3cr3t@proxy:3128"}
    )


def test_forced_python_variables_override_environment() -> None:
    ours = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "PYTHONDONTWRITEBYTECODE": ""}
    assert FORCED_FOR_PROGRAMS.items() <= make_child_environment(ours).items()


def test_hash_seed_is_fixed_unless_set() -> None:
    assert make_child_environment({})["PYTHONHASHSEED"] == "0"
    assert make_child_environment({"PYTHONHASHSEED": "7"})["PYTHONHASHSEED"] == "7"


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_no_unknown_variables_are_added(environ: dict[str, str]) -> None:
    assert (
        make_child_environment(environ).keys()
        <= environ.keys() | DEFAULT_VARIABLES.keys() | FORCED_FOR_PROGRAMS.keys()
    )


class TestOwnPrograms:
    """What programs get that agentci starts for itself."""

    @pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH"])
    def test_search_path_has_only_folders_outside(self, name: str, tmp_path: Path) -> None:
        workspace = Workspace(root=tmp_path / "ws", cwd=tmp_path / "ws")
        folders = f"{tmp_path}/ws/bin:/usr/bin::lib:{tmp_path}/ws/../ws:{tmp_path}/ws2"
        found = select_outer_folders({name: folders}, workspace)
        assert found[name] == f"/usr/bin:{tmp_path}/ws2"

    def test_search_path_is_never_empty(self, tmp_path: Path) -> None:
        workspace = Workspace(root=tmp_path, cwd=tmp_path)
        for environ in ({}, {"PATH": ""}, {"PATH": f"{tmp_path}/bin", "LD_LIBRARY_PATH": "lib"}):
            assert select_outer_folders(environ, workspace) == {"PATH": os.defpath}

    @pytest.mark.parametrize("name", ["DOCKER_CONFIG", "HOME", "XDG_CONFIG_HOME"])
    def test_settings_in_workspace_are_not_used(self, name: str, tmp_path: Path) -> None:
        workspace = Workspace(root=tmp_path, cwd=tmp_path)
        assert name not in make_own_environment({name: f"{tmp_path}/h"}, workspace)
        assert make_own_environment({name: "/root"}, workspace)[name] == "/root"
