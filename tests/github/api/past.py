"""History for the local GitHub server: commits, branches and workflow runs."""

from collections.abc import Iterator
from typing import Any

from tests.github.api.description import Question
from tests.github.api.hub import REPOSITORY, Hub, Reply

WORKFLOW = "ci.yml"
FORK = "mallory/agent"
NOT_FOUND = Reply(status=404, body={"message": "Not Found", "documentation_url": "https://x"})


class Past:
    """The history of a repository.

    Attributes:
        parents: of each commit, in order.
        branches: the head commit of each branch.
        runs: as GitHub lists them, the newest first.
    """

    def __init__(self, hub: Hub) -> None:
        self.parents: dict[str, tuple[str, ...]] = {}
        self.branches: dict[str, str] = {}
        self.runs: list[dict[str, Any]] = []
        self._hub = hub
        hub.operations |= {
            "repos/compare-commits-with-basehead": self._compare,
            "repos/list-commits": self._commits,
            "actions/list-workflow-runs": self._list_runs,
            "git/get-tree": lambda _: NOT_FOUND,
        }

    def commit(self, commit: str, *parents: str, branch: str = "main") -> str:
        """Add a commit to a branch; its parent defaults to the branch's head."""
        at = self.branches.get(branch)
        self.parents[commit] = parents or ((at,) if at else ())
        self.branches[branch] = commit
        return commit

    def run(self, commit: str, **others: Any) -> int:
        """Add a workflow run on a commit; return its number."""
        event = others.pop("event", "push")
        home = others.pop("home", REPOSITORY)
        shown: dict[str, Any] = self._hub.description.example("workflow-run")
        shown |= {"id": 100 + len(self.runs), "head_sha": commit, "event": event}
        shown |= {"head_branch": "main", "path": f".github/workflows/{WORKFLOW}", **others}
        shown["repository"] = {**shown["repository"], "full_name": REPOSITORY}
        shown["head_repository"] = {**shown["head_repository"], "full_name": home}
        self.runs.insert(0, shown)
        number: int = shown["id"]
        return number

    def _compare(self, question: Question) -> Reply:
        base, _, head = question.path["basehead"].partition("...")
        start = self.branches.get(base)
        if start is None or head not in self.parents:
            return NOT_FOUND
        own = set(self._before(head))
        common = next(each for each in self._before(start) if each in own)
        shown: dict[str, Any] = self._hub.description.example("commit-comparison")
        shown["merge_base_commit"] |= {"sha": common}
        return Reply(body=shown)

    def _commits(self, question: Question) -> Reply:
        start = question.query["sha"]
        if start not in self.parents:
            return NOT_FOUND
        return self._hub.paged(question, [self._shown(each) for each in self._before(start)])

    def _shown(self, commit: str) -> dict[str, Any]:
        shown: dict[str, Any] = self._hub.description.example("commit", sha=commit)
        del shown["files"]  # not part of list responses
        [parent] = shown["parents"]
        shown["parents"] = [{**parent, "sha": each} for each in self.parents[commit]]
        return shown

    def _list_runs(self, question: Question) -> Reply:
        assert question.path["workflow_id"] == WORKFLOW
        wanted = {"head_sha": "head_sha", "branch": "head_branch", "event": "event"}
        found = [
            run
            for run in self.runs
            if all(
                run[member] == question.query[name]
                for name, member in wanted.items()
                if name in question.query
            )
        ]
        return self._hub.paged(question, found, "workflow_runs")

    def _before(self, commit: str) -> Iterator[str]:
        """A commit and its ancestors, newest first."""
        waiting, seen = [commit], set()
        while waiting:
            each = waiting.pop(0)
            if each not in seen:
                seen.add(each)
                yield each
                waiting += self.parents[each]
