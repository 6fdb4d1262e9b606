"""What GitHub is asked, and what its refusals mean."""

import json
from typing import Final
from urllib.parse import quote

from agentci._util.http.document import Response
from agentci._util.once import Once
from agentci._util.text import truncate
from agentci.errors import FetchError, RefusedError, UnreachableError
from agentci.model.values import replace
from agentci.remote.sources.git_tree import Entry, Tree, parse_tree
from agentci.remote.sources.hosts import host_of, shown_host
from agentci.remote.sources.refs import COMMIT, shown
from agentci.remote.sources.source import MAX_FILE_BYTES, Surroundings

# GitHub ends recursive listings at 7 MB; a single folder may take more.
MAX_TREE_BYTES: Final = 16 * 1024**2
MAX_COMMIT_BYTES: Final = 64 * 1024

_JSON: Final = "application/vnd.github+json"
_RAW: Final = "application/vnd.github.raw+json"
_SHA: Final = "application/vnd.github.sha"

_VARIABLES: Final = "AGENTEVALS_GITHUB_TOKEN or GITHUB_TOKEN"
_SET_ONE: Final = f"for a private repository set {_VARIABLES} to a token that may read it"
_FIX_IT: Final = f"the token in {_VARIABLES} must be valid and be allowed to read the repository"
_MAX_SAID: Final = 200


class GitHubServer:
    """One GitHub: github.com, or a company's own. Each commit and each tree is asked for once."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._commits: Once[tuple[str, str], str] = Once()
        self._trees: Once[tuple[str, str, bool], Tree] = Once()

    def find_commit(self, repository: str, revision: str) -> str:
        """The commit that ``revision`` means now.

        Raises:
            FetchError: there is none, or GitHub cannot be asked.
        """
        key = (repository, revision)
        return self._commits.answer(key, lambda: self._find_commit(repository, revision))

    def list_tree(self, repository: str, sha: str, *, recursive: bool) -> Tree:
        """List the tree of a commit, or the tree ``sha`` itself.

        Raises:
            FetchError: as above.
        """
        key = (repository, sha, recursive)
        return self._trees.answer(key, lambda: self._list_tree(repository, sha, recursive))

    def list_folder(self, repository: str, tree: Entry) -> tuple[Entry, ...]:
        """List the folder ``tree`` alone; the paths are from where its own begins.

        Raises:
            FetchError: as above, also where even that is too long a list for GitHub.
        """
        listed = self.list_tree(repository, tree.sha, recursive=False)
        if listed.truncated:
            raise RefusedError(
                f"the folder {shown(tree.path or '/')} of {repository} holds too many files to list"
            )
        start = f"{tree.path}/" if tree.path else ""
        return tuple(replace(entry, path=start + entry.path) for entry in listed.entries)

    def load_file(
        self, repository: str, revision: str, path: str, *, limit_bytes: int = MAX_FILE_BYTES
    ) -> bytes | None:
        """The content of a file; None where there is no such file that we may see.

        Raises:
            FetchError: as above.
        """
        base, escaped = self._surroundings.github_raw, quote(path)
        if base:
            url, accept = f"{base}/{repository}/{quote(revision)}/{escaped}", "*/*"
        else:
            url = self._api(repository, f"contents/{escaped}?ref={quote(revision, safe='')}")
            accept = _RAW
        response = self._ask(url, accept, limit_bytes)
        if response.status == 404:  # noqa: PLR2004 (every server's word for it)
            return None
        return self._content(response, url, f"{shown(path)} of {repository}")

    def hint(self) -> str:
        """What to do where something is not found that should be there."""
        return _FIX_IT if self._token(self._surroundings.github_api) else _SET_ONE

    def _find_commit(self, repository: str, revision: str) -> str:
        url = self._api(repository, f"commits/{quote(revision, safe='')}")
        response = self._ask(url, _SHA, MAX_COMMIT_BYTES)
        if response.status == 404:  # noqa: PLR2004 (as above)
            message = f"{repository} is not found, or has no {shown(revision)}"
            raise RefusedError(message, hint=self.hint())
        if response.status == 422:  # noqa: PLR2004 (GitHub's word for an unknown revision)
            raise RefusedError(
                f"{repository} has no branch, tag or commit {shown(revision)}",
                hint="`branch` or `rev` names it in a config",
            )
        what = f"{shown(revision)} of {repository}"
        commit = self._content(response, url, what).decode("utf-8", "replace").strip()
        if not COMMIT.fullmatch(commit):
            raise UnreachableError(f"{shown_host(url)} answered with no commit for {what}")
        return commit

    def _list_tree(self, repository: str, sha: str, recursive: bool) -> Tree:  # noqa: FBT001
        url = self._api(repository, f"git/trees/{sha}{'?recursive=1' if recursive else ''}")
        response = self._ask(url, _JSON, MAX_TREE_BYTES)
        if response.status in {404, 422}:
            message = f"{repository} is not found, or has no commit {sha}"
            raise RefusedError(message, hint=self.hint())
        content = self._content(response, url, f"the files of {repository}")
        try:
            return parse_tree(content)
        except ValueError:
            raise UnreachableError(
                f"{shown_host(url)} answered with no listing for the files of {repository}"
            ) from None

    def _api(self, repository: str, question: str) -> str:
        return f"{self._surroundings.github_api}/repos/{repository}/{question}"

    def _ask(self, url: str, accept: str, limit_bytes: int) -> Response:
        headers = {"Accept": accept}
        if token := self._token(url):
            headers["Authorization"] = f"Bearer {token}"
        return self._surroundings.http.get(url, limit_bytes=limit_bytes, headers=headers)

    def _token(self, url: str) -> str:
        """The token for the host of ``url``, its port included; empty where there is none."""
        return self._surroundings.tokens.get(host_of(url), "")

    def _content(self, response: Response, url: str, what: str) -> bytes:
        if response.status != 200:  # noqa: PLR2004 (all that GitHub answers with content)
            raise self._failure(response, url, what)
        return response.content

    def _failure(self, response: Response, url: str, what: str) -> FetchError:
        host, has_token = shown_host(url), bool(self._token(url))
        said = _message(response)
        if response.status == 401:  # noqa: PLR2004 (no or no valid token)
            return UnreachableError(f"{host} wants a valid token for {what}{said}", hint=_FIX_IT)
        if response.status == 403:  # noqa: PLR2004 (known, and not allowed)
            hint = _FIX_IT if has_token else _SET_ONE
            return UnreachableError(f"{host} does not allow to read {what}{said}", hint=hint)
        message = f"{host} answered {response.status} for {what}{said}"
        kind = RefusedError if 400 <= response.status < 500 else UnreachableError  # noqa: PLR2004
        return kind(message)


def _message(response: Response) -> str:
    """What GitHub said beside the status, for the end of a sentence."""
    try:
        said = json.loads(response.content)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return (
        f" ({truncate.short(' '.join(said.split()), _MAX_SAID)})" if isinstance(said, str) else ""
    )
