"""Client for the GitHub REST API of one repository."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from agentci._util.http import RATE_LIMIT_HINT, HttpResponse, RetryableError
from agentci._util.http_client import GET, POST, HttpClient
from agentci._util.text import escape, truncate
from agentci.errors import FetchError, GitHubError
from agentci.model.values import Json, JsonObject
from agentci.remote.programs import read_token_input

GITHUB_API: Final = "https://api.github.com"
HINT_WITHOUT_LOGIN: Final = "in a workflow set the input github-token; elsewhere set GITHUB_TOKEN"
_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubApiAccess:
    """Address and credentials of the API of one repository.

    Attributes:
        api: base URL without a trailing ``/``.
        repository: ``OWNER/NAME``.
        token: sent only to that URL.
    """

    api: str
    repository: str
    token: str = field(repr=False)

    def check(self) -> None:
        """Check that the repository and the token are set.

        Raises:
            GitHubError: one of them is not.
        """
        if not _REPOSITORY.fullmatch(self.repository):
            message = "GITHUB_REPOSITORY does not name a repository"
            raise GitHubError(message, hint="set it to OWNER/NAME, as workflows do")
        if not self.token:
            raise GitHubError("no token for the GitHub API", hint=HINT_WITHOUT_LOGIN)


def read_api_access(environ: Mapping[str, str]) -> GitHubApiAccess:
    """Read the runner's variables; the action's input takes precedence over ``GITHUB_TOKEN``."""
    return GitHubApiAccess(
        api=environ.get("GITHUB_API_URL", "").rstrip("/") or GITHUB_API,
        repository=environ.get("GITHUB_REPOSITORY", ""),
        token=read_token_input(environ) or environ.get("GITHUB_TOKEN", "").strip(),
    )


SUCCESSES: Final = range(200, 300)
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
RATE_LIMIT_STATUSES: Final = frozenset({403, 429})
# What GitHub's documentation asks for if the response does not say how long to wait.
SECONDARY_LIMIT_SECONDS: Final = 60.0
MAX_MESSAGE_CHARACTERS: Final = 200

# The workflow permission that an API path needs, by the first part of the path.
_PERMISSIONS: Final = {
    "actions": "actions",
    "check-runs": "checks",
    "commits": "pull-requests",
    "compare": "contents",
    "git": "contents",
    "issues": "pull-requests",
    "pulls": "pull-requests",
    "tarball": "contents",
}


def detect_secondary_limit(response: HttpResponse) -> RetryableError | None:
    """Detect a secondary rate limit, which GitHub may report only in the message."""
    if response.status in RATE_LIMIT_STATUSES and "secondary rate limit" in _extract_message(
        response
    ):
        return RetryableError(
            "secondary rate limit",
            hint=RATE_LIMIT_HINT,
            asked_seconds=SECONDARY_LIMIT_SECONDS,
            arrived=False,
        )
    return None


def make_api_error(method: str, path: str, response: HttpResponse) -> GitHubError:
    """Make the error for an unsuccessful response.

    Args:
        path: the requested path, as passed to ``GitHubApi``.
    """
    status = response.status
    reported = _extract_message(response)
    shown = (
        f" ({truncate.short(escape.escape_for_log_line(reported), MAX_MESSAGE_CHARACTERS)})"
        if reported
        else ""
    )
    message = f"GitHub answered {status} for {method} {path}{shown}"
    if status == UNAUTHORIZED:
        hint = "the token is invalid or has expired: check the input github-token"
        return GitHubError(message, hint=hint, status=status)
    if status == FORBIDDEN:
        return GitHubError(
            message, hint=_format_permission_hint(method, path), status=status, denied=True
        )
    if status == NOT_FOUND:
        permission = _format_permission_hint(method, path)
        hint = f"it does not exist or the token may not read it: {permission}"
        return GitHubError(message, hint=hint, status=status)
    return GitHubError(message, status=status)


def _format_permission_hint(method: str, path: str) -> str:
    # The list of commits needs another permission than the pull requests of a commit.
    kind = "contents" if path == "commits" else _PERMISSIONS.get(path.partition("/")[0])
    if kind is None:
        return "check the permissions of the token"
    return f"the job needs `permissions: {kind}: {'read' if method == GET else 'write'}`"


def _extract_message(response: HttpResponse) -> str:
    """Return GitHub's message in the body of an error response; empty if there is none."""
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        return ""
    message = document.get("message") if isinstance(document, Mapping) else None
    return message if isinstance(message, str) else ""


# More than a page of a hundred comments of maximum length.
MAX_JSON_BYTES: Final = 32 * 1024**2
PAGE_ITEMS: Final = 100
# Ten thousand items.
MAX_PAGES: Final = 100
PATCH: Final = "PATCH"
_NEXT: Final = re.compile(r';\s*rel="?next"?')
_HEADERS: Final = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


class GitHubApi:
    """The API of one repository.

    Paths are relative to the repository (``issues/7/comments``) or, with a leading ``/``, to the
    API (``/user``). All methods raise only ``GitHubError``.
    """

    def __init__(self, access: GitHubApiAccess, http: HttpClient) -> None:
        self.repository = access.repository
        self._access = access
        self._http = http

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Json:
        """Get a JSON document."""
        return _parse_json(self._request(GET, _add_query(path, query or {})), path)

    def pages(
        self,
        path: str,
        query: Mapping[str, str | int] | None = None,
        *,
        items: str = "",
        retry: bool = True,
    ) -> Iterator[JsonObject]:
        """Iterate over all items of a list; pages are fetched on demand.

        Args:
            items: the key of the list; empty if the document itself is the list.
            retry: False for what a run can do without.
        """
        for page in range(1, MAX_PAGES + 1):
            paged = {**(query or {}), "per_page": PAGE_ITEMS, "page": page}
            response = self._request(GET, _add_query(path, paged), retry=retry)
            document = _parse_json(response, path)
            found = document.get(items) if isinstance(document, dict) else document
            if not isinstance(found, list):
                raise GitHubError(f"GitHub's response for {path} is not a list")
            yield from (item for item in found if isinstance(item, dict))
            if not _NEXT.search(response.headers.get("link", "")):
                return

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """Create something; never retried after a request that may have arrived."""
        return _parse_object(self._request(POST, path, body), path)

    def patch(self, path: str, body: JsonObject) -> JsonObject:
        """Update something."""
        return _parse_object(self._request(PATCH, path, body), path)

    def download(self, path: str, *, limit_bytes: int) -> bytes:
        """Download bytes; the token is not sent to another host after a redirect."""
        return self._request(GET, path, limit_bytes=limit_bytes).content

    def _request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        limit_bytes: int = MAX_JSON_BYTES,
        retry: bool = True,
    ) -> HttpResponse:
        self._access.check()
        headers = {**_HEADERS, "Authorization": f"Bearer {self._access.token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            response = self._http.ask(
                f"{self._access.api}{path if path[0] == '/' else self._repository_path(path)}",
                method=method,
                headers=headers,
                content=content,
                limit_bytes=limit_bytes,
                busy=detect_secondary_limit,
                retry=retry,
            )
        except FetchError as error:
            raise GitHubError(str(error), hint=error.hint) from error
        if response.status not in SUCCESSES:
            raise make_api_error(method, path.partition("?")[0], response)
        return response

    def _repository_path(self, path: str) -> str:
        return f"/repos/{self._access.repository}/{path}"


def extract_id(item: Json) -> int:
    """Return the ``id`` of an item.

    Raises:
        GitHubError: it has none.
    """
    number = item.get("id") if isinstance(item, Mapping) else None
    if type(number) is not int:
        raise GitHubError("an item in GitHub's response has no id")
    return number


def _add_query(path: str, query: Mapping[str, str | int]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _parse_json(response: HttpResponse, path: str) -> Json:
    try:
        document: Json = json.loads(response.content)
    except (ValueError, RecursionError):
        raise GitHubError(f"GitHub's response for {path} is not JSON") from None
    return document


def _parse_object(response: HttpResponse, path: str) -> JsonObject:
    document = _parse_json(response, path)
    if not isinstance(document, dict):
        raise GitHubError(f"GitHub's response for {path} is not a JSON object")
    return document
