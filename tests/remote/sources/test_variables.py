"""What the environment says of sources: whose repository, which host, and whose token."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentci._util.http.interface import OfflineHttp
from agentci.remote.run_sources import read_source_context
from agentci.remote.sources.source import SourceContext

API, RAW = "https://api.github.com", "https://raw.githubusercontent.com"
ENTERPRISE = "https://github.example.com/api/v3"
BOTH = {"api.github.com": "t", "raw.githubusercontent.com": "t"}


def _read(environ: Mapping[str, str]) -> SourceContext:
    return read_source_context(environ, http=OfflineHttp(), workspace=Path("/w"))


class TestHosts:
    @pytest.mark.parametrize(
        ("environ", "hosts"),
        [
            pytest.param({}, (API, RAW), id="of GitHub itself"),
            pytest.param({"GITHUB_API_URL": API}, (API, RAW), id="as its runner names them"),
            pytest.param(
                {"GITHUB_API_URL": ENTERPRISE}, (ENTERPRISE, ""), id="of Enterprise, without raw"
            ),
            pytest.param(
                {"GITHUB_API_URL": ENTERPRISE, "AGENTCI_GITHUB_API_URL": f"{API}/"},
                (API, RAW),
                id="of GitHub, from Enterprise",
            ),
            pytest.param(
                {"AGENTCI_GITHUB_API_URL": "http://h:1", "AGENTCI_GITHUB_RAW_URL": "http://h:2/"},
                ("http://h:1", "http://h:2"),
                id="of the user's choice",
            ),
        ],
    )
    def test_are(self, environ: Mapping[str, str], hosts: tuple[str, str]) -> None:
        found = _read(environ)
        assert (found.github_api, found.github_raw) == hosts

    def test_that_are_none_get_no_token(self) -> None:
        found = _read({"AGENTCI_GITHUB_API_URL": "https://[::1", "GITHUB_TOKEN": "t"})
        assert (found.github_api, found.tokens) == ("https://[::1", {})


class TestTokens:
    @pytest.mark.parametrize(
        ("environ", "tokens"),
        [
            pytest.param({}, {}, id="none"),
            pytest.param({"GITHUB_TOKEN": ""}, {}, id="an empty one is none"),
            pytest.param({"GITHUB_TOKEN": "t"}, BOTH, id="of the job"),
            pytest.param({"AGENTEVALS_GITHUB_TOKEN": "t", "GITHUB_TOKEN": "x"}, BOTH, id="first"),
            pytest.param({"INPUT_GITHUB-TOKEN": "t"}, BOTH, id="of the action"),
            pytest.param({"INPUT_GITHUB-TOKEN": "x", "GITHUB_TOKEN": "t"}, BOTH, id="before it"),
            pytest.param(
                {
                    "INPUT_GITHUB-TOKEN": "x",
                    "GITHUB_API_URL": ENTERPRISE,
                    "AGENTCI_GITHUB_API_URL": API,
                },
                {},
                id="that of an Enterprise's action stays there",
            ),
            pytest.param(
                {"GITHUB_TOKEN": "t", "GITHUB_API_URL": ENTERPRISE},
                {"github.example.com": "t"},
                id="of a job on Enterprise",
            ),
            pytest.param(
                {
                    "GITHUB_TOKEN": "t",
                    "GITHUB_API_URL": ENTERPRISE,
                    "AGENTCI_GITHUB_API_URL": API,
                },
                {},
                id="that of Enterprise stays there",
            ),
            pytest.param(
                {
                    "AGENTEVALS_GITHUB_TOKEN": "t",
                    "GITHUB_API_URL": ENTERPRISE,
                    "AGENTCI_GITHUB_API_URL": API,
                },
                BOTH,
                id="one for evaluators goes where they are",
            ),
        ],
    )
    def test_are_for(self, environ: Mapping[str, str], tokens: Mapping[str, str]) -> None:
        assert _read(environ).tokens == tokens

    def test_are_not_shown(self) -> None:
        assert "hush" not in repr(_read({"GITHUB_TOKEN": "hush"}))
