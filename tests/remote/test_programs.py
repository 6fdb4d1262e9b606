"""Environment variables for sources: hosts and tokens of GitHub."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agentci._util.http import OfflineHttp
from agentci.remote.programs import read_source_context, read_token_input
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
            pytest.param({}, (API, RAW), id="github.com by default"),
            pytest.param({"GITHUB_API_URL": API}, (API, RAW), id="github.com runner"),
            pytest.param(
                {"GITHUB_API_URL": ENTERPRISE},
                (ENTERPRISE, ""),
                id="enterprise server without raw host",
            ),
            pytest.param(
                {"GITHUB_API_URL": ENTERPRISE, "AGENTCI_GITHUB_API_URL": f"{API}/"},
                (API, RAW),
                id="github.com from an enterprise runner",
            ),
            pytest.param(
                {"AGENTCI_GITHUB_API_URL": "http://h:1", "AGENTCI_GITHUB_RAW_URL": "http://h:2/"},
                ("http://h:1", "http://h:2"),
                id="custom hosts",
            ),
        ],
    )
    def test_github_hosts_follow_environment(
        self, environ: Mapping[str, str], hosts: tuple[str, str]
    ) -> None:
        found = _read(environ)
        assert (found.github_api, found.github_raw) == hosts

    def test_invalid_host_gets_no_token(self) -> None:
        found = _read({"AGENTCI_GITHUB_API_URL": "https://[::1", "GITHUB_TOKEN": "t"})
        assert (found.github_api, found.tokens) == ("https://[::1", {})


class TestTokens:
    @pytest.mark.parametrize(
        ("environ", "tokens"),
        [
            pytest.param({}, {}, id="no token"),
            pytest.param({"GITHUB_TOKEN": ""}, {}, id="empty token"),
            pytest.param({"GITHUB_TOKEN": "t"}, BOTH, id="job token"),
            pytest.param(
                {"AGENTEVALS_GITHUB_TOKEN": "t", "GITHUB_TOKEN": "x"},
                BOTH,
                id="evaluator token before job token",
            ),
            pytest.param({"INPUT_GITHUB-TOKEN": "t"}, BOTH, id="action input"),
            pytest.param(
                {"INPUT_GITHUB-TOKEN": "x", "GITHUB_TOKEN": "t"},
                BOTH,
                id="job token before action input",
            ),
            pytest.param(
                {
                    "INPUT_GITHUB-TOKEN": "x",
                    "GITHUB_API_URL": ENTERPRISE,
                    "AGENTCI_GITHUB_API_URL": API,
                },
                {},
                id="action input of an enterprise runner is not sent to github.com",
            ),
            pytest.param(
                {"GITHUB_TOKEN": "t", "GITHUB_API_URL": ENTERPRISE},
                {"github.example.com": "t"},
                id="job token on an enterprise server",
            ),
            pytest.param(
                {
                    "GITHUB_TOKEN": "t",
                    "GITHUB_API_URL": ENTERPRISE,
                    "AGENTCI_GITHUB_API_URL": API,
                },
                {},
                id="job token of an enterprise runner is not sent to github.com",
            ),
            pytest.param(
                {
                    "AGENTEVALS_GITHUB_TOKEN": "t",
                    "GITHUB_API_URL": ENTERPRISE,
                    "AGENTCI_GITHUB_API_URL": API,
                },
                BOTH,
                id="evaluator token is sent to github.com from an enterprise runner",
            ),
        ],
    )
    def test_token_is_sent_only_to_allowed_hosts(
        self, environ: Mapping[str, str], tokens: Mapping[str, str]
    ) -> None:
        assert _read(environ).tokens == tokens

    def test_repr_does_not_show_token(self) -> None:
        assert "hush" not in repr(_read({"GITHUB_TOKEN": "hush"}))


def test_token_is_read_from_input() -> None:
    assert read_token_input({"INPUT_GITHUB-TOKEN": " t\n"}) == "t"
    assert read_token_input({"GITHUB_TOKEN": "t"}) == ""
