"""The files of a repository on the local GitHub server: trees, blobs and archives of commits."""

import base64
import subprocess
from pathlib import Path
from typing import Any

from tests.github.api.description import Question
from tests.github.api.hub import Hub, Reply
from tests.helpers.repositories import ENVIRONMENT, git

NOT_FOUND = Reply(status=404, body={"message": "Not Found", "documentation_url": "https://x"})


class GitData:
    """Serves the commits of a real repository.

    Attributes:
        truncated: whether listings are cut off.
    """

    def __init__(self, hub: Hub, repository: Path) -> None:
        self.truncated = False
        self._hub = hub
        self._repository = repository
        hub.operations |= {
            "git/get-tree": self._tree,
            "git/get-blob": self._blob,
            "repos/download-tarball-archive": self._archive,
        }

    def _tree(self, question: Question) -> Reply:
        sha = question.path["tree_sha"]
        if not self._has(sha):
            return NOT_FOUND
        assert question.query == {"recursive": "1"}
        listed = git(self._repository, "ls-tree", "-r", "-t", "-l", "-z", sha).split("\0")
        tree = [_entry(line) for line in listed if line]
        body = {"sha": sha, "url": "https://x", "truncated": self.truncated, "tree": tree}
        return Reply(body=body)

    def _blob(self, question: Question) -> Reply:
        sha = question.path["file_sha"]
        content = self._run("cat-file", "blob", sha)
        shown = {"sha": sha, "node_id": "x", "size": len(content), "url": "https://x"}
        encoded = base64.encodebytes(content).decode()
        return Reply(body={**shown, "content": encoded, "encoding": "base64"})

    def _archive(self, question: Question) -> Reply:
        sha = question.path["ref"]
        if not self._has(sha):
            return NOT_FOUND
        prefix = f"--prefix=octo-agent-{sha[:7]}/"
        self._hub.archives[sha] = self._run("archive", "--format=tar.gz", prefix, sha)
        return Reply(status=302, headers={"Location": f"{self._hub.files_url}/{sha}"})

    def _has(self, sha: str) -> bool:
        try:
            git(self._repository, "cat-file", "-e", f"{sha}^{{commit}}")
        except subprocess.CalledProcessError:
            return False
        return True

    def _run(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", *arguments],
            cwd=self._repository,
            env=ENVIRONMENT,
            capture_output=True,
            check=True,
        ).stdout


def _entry(line: str) -> dict[str, Any]:
    facts, _, path = line.partition("\t")
    mode, kind, sha, size = facts.split()
    entry = {"path": path, "mode": mode, "type": kind, "sha": sha}
    return entry if size == "-" else {**entry, "size": int(size), "url": "https://x"}
