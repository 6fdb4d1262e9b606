"""Installers receive the variables that they need to find packages, and no secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.execution.environment_variables import make_installer_environment

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "PIP_INDEX_URL", "PIP_PROXY",
        "PIP_CONFIG_FILE", "PIP_CERT", "UV_DEFAULT_INDEX", "UV_INDEX_URL",
    ],
)  # fmt: skip
def test_installer_variable_is_passed(name: str) -> None:
    assert make_installer_environment({name: "/x"})[name] == "/x"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN", "INPUT_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_SECRET_ACCESS_KEY",
        "UV_PUBLISH_TOKEN", "UV_INDEX_PRIVATE_PASSWORD", "PIP_TARGET", "UV_SYSTEM_PYTHON",
        "PYTHONPATH", "VIRTUAL_ENV", "PYTHONSTARTUP", "PIP_CACHE_DIR", "UV_CACHE_DIR",
    ],
)  # fmt: skip
def test_secret_variable_is_not_passed(name: str) -> None:
    assert SECRET not in make_installer_environment({name: SECRET}).values()


@given(name=st.text(min_size=1).filter(lambda name: name.upper() == name))
def test_unknown_variable_is_not_passed(name: str) -> None:
    known = make_installer_environment({})
    seen = make_installer_environment({f"X_{name}": SECRET})
    assert seen == known


class TestPipIndex:
    def test_pip_index_is_passed_to_uv(self) -> None:
        seen = make_installer_environment({"PIP_INDEX_URL": "https://a.example"})
        assert seen["UV_DEFAULT_INDEX"] == "https://a.example"

    @pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
    def test_uv_index_takes_precedence_over_pip_index(self, name: str) -> None:
        of_uv = {name: "https://b.example"}
        seen = make_installer_environment({"PIP_INDEX_URL": "https://a.example", **of_uv})
        assert {key: seen.get(key) for key in of_uv} == of_uv
        assert "https://a.example" not in {seen.get("UV_DEFAULT_INDEX"), seen.get("UV_INDEX_URL")}


def test_pip_user_setting_is_disabled() -> None:
    assert make_installer_environment({"PIP_USER": "1"})["PIP_USER"] == "0"
