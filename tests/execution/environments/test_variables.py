"""Installers see what leads to packages, and no secret of the job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.execution.environment_variables import make_installer_environment

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "PIP_INDEX_URL", "PIP_PROXY",
        "PIP_CONFIG_FILE", "PIP_CERT", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CACHE_DIR",
    ],
)  # fmt: skip
def test_passes_on(name: str) -> None:
    assert make_installer_environment({name: "/x"})[name] == "/x"


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN", "INPUT_TOKEN", "ACTIONS_RUNTIME_TOKEN", "AWS_SECRET_ACCESS_KEY",
        "UV_PUBLISH_TOKEN", "UV_INDEX_PRIVATE_PASSWORD", "PIP_TARGET", "UV_SYSTEM_PYTHON",
        "PYTHONPATH", "VIRTUAL_ENV", "PYTHONSTARTUP",
    ],
)  # fmt: skip
def test_keeps_to_itself(name: str) -> None:
    assert SECRET not in make_installer_environment({name: SECRET}).values()


@given(name=st.text(min_size=1).filter(lambda name: name.upper() == name))
def test_keeps_anything_unknown_to_itself(name: str) -> None:
    known = make_installer_environment({})
    seen = make_installer_environment({f"X_{name}": SECRET})
    assert seen == known


class TestAnIndexThatIsNamedForPip:
    def test_is_the_one_for_uv_as_well(self) -> None:
        seen = make_installer_environment({"PIP_INDEX_URL": "https://a.example"})
        assert seen["UV_DEFAULT_INDEX"] == "https://a.example"

    @pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL"])
    def test_leaves_uv_with_its_own(self, name: str) -> None:
        of_uv = {name: "https://b.example"}
        seen = make_installer_environment({"PIP_INDEX_URL": "https://a.example", **of_uv})
        assert {key: seen.get(key) for key in of_uv} == of_uv
        assert "https://a.example" not in {seen.get("UV_DEFAULT_INDEX"), seen.get("UV_INDEX_URL")}


def test_a_user_who_installs_for_himself_alone_does_not_stop_us() -> None:
    assert make_installer_environment({"PIP_USER": "1"})["PIP_USER"] == "0"
