"""What the environment says of sources, by the names that agentevals gave its variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentci._util.action_inputs import input_token
from agentci._util.http.document import Http
from agentci.remote.sources.hosts import host_of
from agentci.remote.sources.source import Surroundings

GITHUB_API: Final = "https://api.github.com"
GITHUB_RAW: Final = "https://raw.githubusercontent.com"


def surroundings_of(environ: Mapping[str, str], *, http: Http, workspace: Path) -> Surroundings:
    """Read the variables.

    ``AGENTCI_GITHUB_API_URL`` and ``AGENTCI_GITHUB_RAW_URL`` name other hosts than GitHub's own;
    without them GitHub Enterprise is where its runner says that it is. It has no raw host that
    takes tokens, so there files are asked of the API.
    """
    runners = environ.get("GITHUB_API_URL", "").rstrip("/")
    api = environ.get("AGENTCI_GITHUB_API_URL", "").rstrip("/") or runners or GITHUB_API
    raw = environ.get("AGENTCI_GITHUB_RAW_URL", "").rstrip("/")
    if not raw and api == GITHUB_API:
        raw = GITHUB_RAW
    token = environ.get("AGENTEVALS_GITHUB_TOKEN", "")
    if not token and runners in ("", api):
        # Of the job: for the host that gave it.
        token = environ.get("GITHUB_TOKEN", "") or input_token(environ)
    hosts = {host for address in (api, raw) if (host := host_of(address))}
    return Surroundings(
        http=http,
        workspace=workspace,
        repository=environ.get("AGENTEVALS_EVALUATOR_REPO", ""),
        branch=environ.get("AGENTEVALS_EVALUATOR_BRANCH", ""),
        tokens=dict.fromkeys(sorted(hosts), token) if token else {},
        github_api=api,
        github_raw=raw,
    )
