"""Creates or updates one comment on a pull request, found by a hidden marker."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci.errors import GitHubError
from agentci.github.api_client import FORBIDDEN, NOT_FOUND, GitHubApi, extract_id
from agentci.model.choices import CommentMode
from agentci.model.json import JsonObject

_DIGITS: Final = 16
_MARKER: Final = re.compile(r"<!-- agentci:([0-9a-f]{16}):([0-9a-f]{16}) -->\r?\n", re.ASCII)


class CommentMarker(Struct, frozen=True, kw_only=True):
    """The hidden marker of a comment: which comment it is, and which result it shows.

    Attributes:
        key: equal for all runs of the same step, job and matrix values.
        result: equal for all runs with the same result.
    """

    key: str
    result: str

    def prepend_to(self, text: str) -> str:
        """Return the comment's body: the marker, then ``text``."""
        return f"<!-- agentci:{self.key}:{self.result} -->\n{text}"


def parse_marker(body: str) -> CommentMarker | None:
    """Return the marker of a comment; None without one."""
    found = _MARKER.match(body)
    return CommentMarker(key=found[1], result=found[2]) if found else None


def make_comment_key(
    *, workflow: str, job: str, step: str, configs: Sequence[str], matrix: str
) -> str:
    """Make the key that tells the comments of a pull request apart.

    It does not depend on anything that changes from run to run (commit, run, attempt, event,
    result, key order of the matrix): each change would create another comment.

    Args:
        workflow: its file.
        job, step: their ids in the workflow.
        configs: as the user named them.
        matrix: the job's matrix values, as JSON.
    """
    return digest_json([workflow, job, step, sorted(configs), _parse_matrix(matrix)])


def digest_json(value: object) -> str:
    """Return a short digest of a JSON value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _parse_matrix(matrix: str) -> object:
    try:
        return json.loads(matrix)
    except (ValueError, RecursionError):
        return matrix


CREATED: Final = "created"
UPDATED: Final = "updated"
UNCHANGED: Final = "unchanged"
NOT_POSTED: Final = ""
# Tokens of workflows and of apps belong to no user.
BOT_TYPE: Final = "Bot"


def upsert_comment(
    api: GitHubApi, pull: int, mark: CommentMarker, text: str, policy: "CommentPolicy"
) -> str:
    """Create or update the comment if ``policy`` says so; returns what was done.

    Raises:
        GitHubError: a request failed.
    """
    found = _find_comment(api, pull, mark.key)
    before = None if found is None else str(found["body"])
    if not policy.should_post(None if before is None else parse_marker(before), mark):
        return NOT_POSTED if found is None else UNCHANGED
    body = mark.prepend_to(text)
    if found is None:
        return _create_comment(api, pull, body)
    if before is not None and before.replace("\r\n", "\n").rstrip() == body.rstrip():
        return UNCHANGED
    try:
        api.patch(f"issues/comments/{extract_id(found)}", {"body": body})
    except GitHubError as error:
        if error.status != NOT_FOUND:
            raise
        return _create_comment(api, pull, body)  # it was deleted in the meantime
    return UPDATED


class CommentPolicy:
    """Decides whether a comment is posted.

    Args:
        failed: whether the gate failed.
        differs: whether the result differs from the baseline's.
    """

    def __init__(self, when: CommentMode, *, failed: bool, differs: bool) -> None:
        self._when = when
        self._failed = failed
        self._differs = differs

    def should_post(self, before: CommentMarker | None, now: CommentMarker) -> bool:
        """Whether to create or update the comment.

        Args:
            before: the marker of the existing comment; None without one.
            now: the marker of the new one.
        """
        if self._when == "failed":
            return self._failed or before is not None
        if self._when == "changed":
            return self._differs if before is None else before.result != now.result
        return True


def _create_comment(api: GitHubApi, pull: int, body: str) -> str:
    api.post(f"issues/{pull}/comments", {"body": body})
    return CREATED


def _find_comment(api: GitHubApi, pull: int, key: str) -> JsonObject | None:
    """Find the first comment with this key that the token's owner wrote."""
    viewer: int | None = None
    is_viewer_known = False
    for comment in api.pages(f"issues/{pull}/comments"):
        body = comment.get("body")
        mark = parse_marker(body) if isinstance(body, str) else None
        if mark is None or mark.key != key:
            continue
        if not is_viewer_known:
            viewer, is_viewer_known = _fetch_viewer_id(api), True
        if _is_ours(comment.get("user"), viewer):
            return comment
    return None


def _fetch_viewer_id(api: GitHubApi) -> int | None:
    """Return the id of the token's user; None for tokens of workflows and apps."""
    try:
        return extract_id(api.get("/user"))
    except GitHubError as error:
        if error.status in {FORBIDDEN, NOT_FOUND}:
            return None
        raise


def _is_ours(author: object, viewer: int | None) -> bool:
    """Whether the token's owner wrote it: any user can put a marker into a comment."""
    if not isinstance(author, Mapping):
        return False
    if viewer is None:
        return author.get("type") == BOT_TYPE
    return author.get("id") == viewer
