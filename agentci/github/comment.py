"""One comment of ours on a pull request: found again, and changed in place."""

from collections.abc import Mapping
from typing import Final

from agentci.errors import GitHubError
from agentci.github.api.client import GitHubApi, id_of
from agentci.github.api.errors import FORBIDDEN, NOT_FOUND
from agentci.github.comment_marker import Mark, mark_of
from agentci.model.choices import Commenting
from agentci.model.json import JsonObject

MADE: Final = "made"
CHANGED: Final = "changed"
SAME: Final = "is as it was"
UNWANTED: Final = ""
# Tokens of workflows and of apps belong to no user.
BOT: Final = "Bot"


def stick(api: GitHubApi, pull: int, mark: Mark, text: str, wanted: "Wanted") -> str:
    """Have the comment say ``text``, if it is wanted; returns what was done.

    Raises:
        GitHubError: it could not be.
    """
    found = _found(api, pull, mark.key)
    before = None if found is None else str(found["body"])
    if not wanted.now(None if before is None else mark_of(before), mark):
        return UNWANTED if found is None else SAME
    body = mark.over(text)
    if found is None:
        return _made(api, pull, body)
    if before is not None and before.replace("\r\n", "\n").rstrip() == body.rstrip():
        return SAME
    try:
        api.patch(f"issues/comments/{id_of(found)}", {"body": body})
    except GitHubError as error:
        if error.status != NOT_FOUND:
            raise
        return _made(api, pull, body)  # somebody deleted it in the meantime
    return CHANGED


class Wanted:
    """When a comment is posted, by those who want one at all.

    Args:
        shut: whether the gate is.
        differs: whether the run came to something else than its baseline.
    """

    def __init__(self, when: Commenting, *, shut: bool, differs: bool) -> None:
        self._when = when
        self._shut = shut
        self._differs = differs

    def now(self, before: Mark | None, now: Mark) -> bool:
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


def _made(api: GitHubApi, pull: int, body: str) -> str:
    api.post(f"issues/{pull}/comments", {"body": body})
    return MADE


def _found(api: GitHubApi, pull: int, key: str) -> JsonObject | None:
    """The first comment with this mark, of those that we may have written."""
    viewer: int | None = None
    asked = False
    for comment in api.pages(f"issues/{pull}/comments"):
        body = comment.get("body")
        mark = mark_of(body) if isinstance(body, str) else None
        if mark is None or mark.key != key:
            continue
        if not asked:
            viewer, asked = _viewer(api), True
        if _is_ours(comment.get("user"), viewer):
            return comment
    return None


def _viewer(api: GitHubApi) -> int | None:
    """Whom the token belongs to; None where that is no user."""
    try:
        return id_of(api.get("/user"))
    except GitHubError as error:
        if error.status in {FORBIDDEN, NOT_FOUND}:
            return None
        raise


def _is_ours(author: object, viewer: int | None) -> bool:
    """Whether one like us wrote it: anybody may write a mark into a comment of their own."""
    if not isinstance(author, Mapping):
        return False
    if viewer is None:
        return author.get("type") == BOT
    return author.get("id") == viewer
