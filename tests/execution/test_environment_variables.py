"""Programs see what they need to run, and nothing that could be a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.execution.environment_variables import (
    DEFAULT_VARIABLES,
    FORCED_FOR_PROGRAMS,
    make_child_environment,
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
def test_keeps_to_itself(name: str) -> None:
    assert SECRET not in make_child_environment({name: SECRET}).values()


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "TZ", "TMPDIR", "LC_ALL", "PYTHONPATH", "SSL_CERT_FILE", "LD_LIBRARY_PATH"],
)
def test_passes_on(name: str) -> None:
    assert make_child_environment({name: "/some/where"})[name] == "/some/where"


def test_passes_on_a_proxy_in_either_case() -> None:
    proxies = {"https_proxy": "http://proxy:3128", "NO_PROXY": "localhost"}
    assert proxies.items() <= make_child_environment(proxies).items()


def test_keeps_a_proxy_with_a_password_to_itself() -> None:
    assert "HTTPS_PROXY" not in make_child_environment(
        {"HTTPS_PROXY": "http://me:s3cr3t@proxy:3128"}
    )


def test_text_is_utf8_and_nothing_is_written_beside_evaluators_whatever_we_were_told() -> None:
    ours = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "PYTHONDONTWRITEBYTECODE": ""}
    assert FORCED_FOR_PROGRAMS.items() <= make_child_environment(ours).items()


def test_hashes_are_the_same_on_every_run_unless_we_were_told_a_seed() -> None:
    assert make_child_environment({})["PYTHONHASHSEED"] == "0"
    assert make_child_environment({"PYTHONHASHSEED": "7"})["PYTHONHASHSEED"] == "7"


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_invents_nothing(environ: dict[str, str]) -> None:
    assert (
        make_child_environment(environ).keys()
        <= environ.keys() | DEFAULT_VARIABLES.keys() | FORCED_FOR_PROGRAMS.keys()
    )
