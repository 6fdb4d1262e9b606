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
    """Which comment it is, and what it tells.

    Attributes:
        key: the same for all runs of a step, a job and a leg of its matrix.
        result: the same for all runs that came to the same.
    """

    key: str
    result: str

    def prepend_to(self, text: str) -> str:
        """The body of a comment."""
        return f"<!-- agentci:{self.key}:{self.result} -->\n{text}"


def parse_marker(body: str) -> CommentMarker | None:
    """The mark of a comment; None where it has none."""
    found = _MARKER.match(body)
    return CommentMarker(key=found[1], result=found[2]) if found else None


def make_comment_key(
    *, workflow: str, job: str, step: str, configs: Sequence[str], matrix: str
) -> str:
    """What tells the comments of a pull request apart.

    Commits, runs, attempts, events, results and the order of a matrix do not: whatever changes from
    run to run would leave a comment behind each time.

    Args:
        workflow: its file; job, step: their ids in it.
        configs: as the user named them.
        matrix: the leg of it that the job is, in JSON.
    """
    return digest_json([workflow, job, step, sorted(configs), _parse_matrix(matrix)])


def digest_json(value: object) -> str:
    """A short digest of what JSON can say."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _parse_matrix(matrix: str) -> object:
    try:
        return json.loads(matrix)
    except (ValueError, RecursionError):
        return matrix


CREATED: Final = "made"
UPDATED: Final = "changed"
UNCHANGED: Final = "is as it was"
NOT_POSTED: Final = ""
# Tokens of workflows and of apps belong to no user.
BOT_TYPE: Final = "Bot"


def upsert_comment(
    api: GitHubApi, pull: int, mark: CommentMarker, text: str, wanted: "CommentPolicy"
) -> str:
    """Have the comment say ``text``, if it is wanted; returns what was done.

    Raises:
        GitHubError: it could not be.
    """
    found = _find_comment(api, pull, mark.key)
    before = None if found is None else str(found["body"])
    if not wanted.should_post(None if before is None else parse_marker(before), mark):
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
        return _create_comment(api, pull, body)  # somebody deleted it in the meantime
    return UPDATED


class CommentPolicy:
    """When a comment is posted, by those who want one at all.

    Args:
        shut: whether the gate is.
        differs: whether the run came to something else than its baseline.
    """

    def __init__(self, when: CommentMode, *, shut: bool, differs: bool) -> None:
        self._when = when
        self._shut = shut
        self._differs = differs

    def should_post(self, before: CommentMarker | None, now: CommentMarker) -> bool:
        """Whether it is now.

        Args:
            before: the mark of an earlier comment; None without one.
            now: that of the new one.
        """
        if self._when == "failed":
            return self._shut or before is not None
        if self._when == "changed":
            return self._differs if before is None else before.result != now.result
        return True


def _create_comment(api: GitHubApi, pull: int, body: str) -> str:
    api.post(f"issues/{pull}/comments", {"body": body})
    return CREATED


def _find_comment(api: GitHubApi, pull: int, key: str) -> JsonObject | None:
    """The first comment with this mark, of those that we may have written."""
    viewer: int | None = None
    asked = False
    for comment in api.pages(f"issues/{pull}/comments"):
        body = comment.get("body")
        mark = parse_marker(body) if isinstance(body, str) else None
        if mark is None or mark.key != key:
            continue
        if not asked:
            viewer, asked = _fetch_viewer_id(api), True
        if _is_ours(comment.get("user"), viewer):
            return comment
    return None


def _fetch_viewer_id(api: GitHubApi) -> int | None:
    """Whom the token belongs to; None where that is no user."""
    try:
        return extract_id(api.get("/user"))
    except GitHubError as error:
        if error.status in {FORBIDDEN, NOT_FOUND}:
            return None
        raise


def _is_ours(author: object, viewer: int | None) -> bool:
    """Whether one like us wrote it: anybody may write a mark into a comment of their own."""
    if not isinstance(author, Mapping):
        return False
    if viewer is None:
        return author.get("type") == BOT_TYPE
    return author.get("id") == viewer
