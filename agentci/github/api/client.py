"""Asks a repository's API: JSON, page by page, and the bytes of artifacts."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

from agentci._util.http.client import GET, POST, HttpClient
from agentci._util.http.document import Response
from agentci.errors import FetchError, GitHubError
from agentci.github.api.access import Access
from agentci.github.api.errors import SUCCESSES, busy, refusal
from agentci.model.json import Json, JsonObject

# A hundred comments of full length come to less.
MAX_JSON_BYTES: Final = 32 * 1024**2
PAGE_ITEMS: Final = 100
# Ten thousand items; whatever is sought stands before.
MAX_PAGES: Final = 100
PATCH: Final = "PATCH"
_NEXT: Final = re.compile(r';\s*rel="?next"?')
_HEADERS: Final = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
}


class GitHubApi:
    """The API of one repository.

    Paths are those below the repository (``issues/7/comments``), or, with ``/`` at their start, of
    the whole API (``/user``). Everything raises ``GitHubError``, and nothing else.
    """

    def __init__(self, access: Access, http: HttpClient) -> None:
        self.repository = access.repository
        self._access = access
        self._http = http

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Json:
        """Ask for a document."""
        return _document(self._ask(GET, _with(path, query or {})), path)

    def pages(
        self, path: str, query: Mapping[str, str | int] | None = None, *, items: str = ""
    ) -> Iterator[JsonObject]:
        """Ask for all items of a list, page by page as they are taken.

        Args:
            items: the member that holds them; empty where the document is the list.
        """
        for page in range(1, MAX_PAGES + 1):
            asked = {**(query or {}), "per_page": PAGE_ITEMS, "page": page}
            response = self._ask(GET, _with(path, asked))
            document = _document(response, path)
            found = document.get(items) if isinstance(document, dict) else document
            if not isinstance(found, list):
                raise GitHubError(f"GitHub answered with no list for {path}")
            yield from (item for item in found if isinstance(item, dict))
            if not _NEXT.search(response.headers.get("link", "")):
                return

    def post(self, path: str, body: JsonObject) -> JsonObject:
        """Make something; never twice, even where nobody knows whether it was made."""
        return _object(self._ask(POST, path, body), path)

    def patch(self, path: str, body: JsonObject) -> JsonObject:
        """Change something."""
        return _object(self._ask(PATCH, path, body), path)

    def download(self, path: str, *, limit_bytes: int) -> bytes:
        """Ask for bytes; where they lie elsewhere, that place is not shown the token."""
        return self._ask(GET, path, limit_bytes=limit_bytes).content

    def _ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        limit_bytes: int = MAX_JSON_BYTES,
    ) -> Response:
        self._access.check()
        headers = {**_HEADERS, "Authorization": f"Bearer {self._access.token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            response = self._http.ask(
                f"{self._access.api}{path if path[0] == '/' else self._below(path)}",
                method=method,
                headers=headers,
                content=content,
                limit_bytes=limit_bytes,
                busy=busy,
            )
        except FetchError as error:
            raise GitHubError(str(error), hint=error.hint) from error
        if response.status not in SUCCESSES:
            raise refusal(method, path.partition("?")[0], response)
        return response

    def _below(self, path: str) -> str:
        return f"/repos/{self._access.repository}/{path}"


def id_of(item: Json) -> int:
    """The number of something that the API knows.

    Raises:
        GitHubError: it has none.
    """
    number = item.get("id") if isinstance(item, Mapping) else None
    if type(number) is not int:
        raise GitHubError("GitHub answered with something that has no id")
    return number


def _with(path: str, query: Mapping[str, str | int]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _document(response: Response, path: str) -> Json:
    try:
        document: Json = json.loads(response.content)
    except (ValueError, RecursionError):
        raise GitHubError(f"GitHub answered with no JSON for {path}") from None
    return document


def _object(response: Response, path: str) -> JsonObject:
    document = _document(response, path)
    if not isinstance(document, dict):
        raise GitHubError(f"GitHub answered with no object for {path}")
    return document
