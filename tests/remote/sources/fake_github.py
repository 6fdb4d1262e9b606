"""Fake GitHub on this machine: API and raw host over real sockets, with git's digests."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from agentci._util.http import HttpGetter
from agentci.remote.sources.source import SourceContext

JSON = "application/json; charset=utf-8"
FILE, EXECUTABLE, LINK, SUBMODULE, FOLDER = "100644", "100755", "120000", "160000", "040000"


@dataclass(frozen=True)
class Kept:
    """A git object; the content of a link is its target, that of a submodule its commit."""

    content: bytes
    mode: str = FILE


@dataclass(frozen=True)
class Asked:
    """One request: its ``kind`` as in ``FakeGitHub.answers``, its path, and lower-case headers."""

    kind: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Repository:
    """Files by commit and by tree, and commits by branch or tag."""

    commits: dict[str, dict[str, Kept]] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    trees: dict[str, dict[str, Kept]] = field(default_factory=dict)


class FakeGitHub:
    """Fake server, to be used as a context manager; its attributes may change at any time.

    Attributes:
        api, raw: base URLs of two servers on separate ports.
        token: required for all content, otherwise status 404; empty if all content is public.
        longest_listing: maximum number of entries in a recursive listing; None for no limit.
        answers: replacements by kind (``commit``, ``tree``, ``contents``, ``raw``): takes the path
            of a request and returns the response; None for the usual response.
        asked: all requests so far.
    """

    def __init__(self) -> None:
        self.token = ""
        self.longest_listing: int | None = None
        self.answers: dict[str, Callable[[str], Answer | None]] = {}
        self.asked: list[Asked] = []
        self.api = self.raw = ""
        self._repositories: dict[str, Repository] = {}
        self._lock = Lock()
        self._servers: list[ThreadingHTTPServer] = []

    def __enter__(self) -> Self:
        self.api, self.raw = self._serve(self._answer_api), self._serve(self._answer_raw)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def publish(
        self, repository: str, files: Mapping[str, bytes | str | Kept], *, branch: str = "main"
    ) -> str:
        """Replace all files of a branch by ``files``, and return the new commit."""
        kept = {path: _kept(content) for path, content in files.items()}
        home = self._repositories.setdefault(repository, Repository())
        root = _store_trees(kept, home)
        before = home.revisions.get(branch, "")
        commit = _sha("commit", f"tree {root}\nparent {before}\n\n{branch}\n".encode())
        home.commits[commit] = kept
        home.trees[commit] = home.trees[root]
        home.revisions[branch] = commit
        return commit

    def publish_folder(self, repository: str, folder: Path, *, branch: str = "main") -> str:
        """Publish all files of a folder on disk, as :meth:`publish` does."""
        return self.publish(repository, dict(_read_folder(folder)), branch=branch)

    def count(self, kind: str | None = None) -> int:
        """Return the number of requests of one kind, or of all kinds."""
        return len(self.asked) if kind is None else Counter(each.kind for each in self.asked)[kind]

    def context(self, http: HttpGetter, workspace: Path, **others: Any) -> SourceContext:
        """Return a context for sources that uses this server."""
        return SourceContext(
            http=http,
            workspace=workspace,
            **{"github_api": self.api, "github_raw": self.raw, **others},
        )

    def _serve(self, answer: Callable[[str, Mapping[str, str]], tuple[str, Answer]]) -> str:
        github = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                kind, response = answer(self.path, headers)
                if kind in github.answers:
                    response = github.answers[kind](self.path) or response
                with github._lock:
                    github.asked.append(Asked(kind=kind, path=self.path, headers=headers))
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(response.content)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(response.content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing; tests read ``asked``."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._servers.append(server)
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    def _answer_api(self, path: str, headers: Mapping[str, str]) -> tuple[str, Answer]:
        parts = urlsplit(path)
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/(commits|git/trees|contents)/(.+)", parts.path)
        if found is None:
            return "unknown", _make_error(404, "Not Found")
        kind = {"commits": "commit", "git/trees": "tree"}.get(found[2], found[2])
        home = self._repositories.get(found[1])
        if home is None or not self._is_authorized(headers):
            return kind, _make_error(404, "Not Found")
        rest, query = unquote(found[3]), parse_qs(parts.query)
        if kind == "commit":
            return kind, _commit(home, rest, headers)
        if kind == "tree":
            return kind, self._tree(home, rest, recursive="recursive" in query)
        return kind, _contents(home, rest, query.get("ref", ["main"])[0], headers)

    def _answer_raw(self, path: str, headers: Mapping[str, str]) -> tuple[str, Answer]:
        owner, name, rest = unquote(urlsplit(path).path).removeprefix("/").split("/", 2)
        home = self._repositories.get(f"{owner}/{name}")
        if home is not None and self._is_authorized(headers):
            for revision in (*home.commits, *home.revisions):
                kept = _files(home, revision).get(rest.removeprefix(f"{revision}/"))
                if rest.startswith(f"{revision}/") and kept is not None:
                    kind = {"Content-Type": "text/plain; charset=utf-8"}
                    return "raw", Answer(200, kept.content, kind)
        return "raw", Answer(404, b"404: Not Found", {"Content-Type": "text/plain; charset=utf-8"})

    def _is_authorized(self, headers: Mapping[str, str]) -> bool:
        return not self.token or headers.get("authorization") == f"Bearer {self.token}"

    def _tree(self, home: Repository, sha: str, *, recursive: bool) -> Answer:
        kept = home.trees.get(sha)
        if kept is None:
            return _make_error(404, "Not Found")
        entries = list(_entries(kept, recursive=recursive))
        most = self.longest_listing
        truncated = recursive and most is not None and len(entries) > most
        shown = entries[:most] if truncated else entries
        body = {"sha": sha, "url": f"{self.api}/x", "tree": shown, "truncated": truncated}
        return Answer(200, json.dumps(body).encode(), {"Content-Type": JSON})


def rate_limited(_: str) -> Answer:
    """Return GitHub's response to too many requests, for use in ``FakeGitHub.answers``."""
    response = _make_error(403, "API rate limit exceeded for 127.0.0.1.")
    return Answer(
        response.status, response.content, {**response.headers, "X-RateLimit-Remaining": "0"}
    )


def blob_sha(content: bytes) -> str:
    """Return git's object name of a file's content."""
    return _sha("blob", content)


def _kept(content: bytes | str | Kept) -> Kept:
    if isinstance(content, Kept):
        return content
    return Kept(content.encode() if isinstance(content, str) else content)


def _read_folder(folder: Path) -> Iterator[tuple[str, Kept]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            yield name, Kept(str(path.readlink()).encode(), LINK)
        elif path.is_file():
            mode = EXECUTABLE if path.stat().st_mode & 0o111 else FILE
            yield name, Kept(path.read_bytes(), mode)


def _sha(kind: str, content: bytes) -> str:
    return hashlib.sha1(b"%b %d\0%b" % (kind.encode(), len(content), content)).hexdigest()


def _name_of(kept: Kept) -> str:
    return kept.content.decode() if kept.mode == SUBMODULE else blob_sha(kept.content)


def _store_trees(files: Mapping[str, Kept], home: Repository) -> str:
    """Store the trees of a folder and its subfolders; return the object name of the folder."""
    home_files = dict(files)
    content = b""
    for name, each in sorted(_children(files).items(), key=lambda child: _order(*child)):
        if isinstance(each, Kept):
            content += f"{each.mode} {name}".encode() + b"\0" + bytes.fromhex(_name_of(each))
        else:
            content += f"40000 {name}".encode() + b"\0" + bytes.fromhex(_store_trees(each, home))
    sha = _sha("tree", content)
    home.trees[sha] = home_files
    return sha


def _children(files: Mapping[str, Kept]) -> dict[str, "Kept | dict[str, Kept]"]:
    children: dict[str, Kept | dict[str, Kept]] = {}
    for path, kept in files.items():
        name, _, rest = path.partition("/")
        if not rest:
            children[name] = kept
            continue
        child = children.setdefault(name, {})
        assert isinstance(child, dict)
        child[rest] = kept
    return children


def _order(name: str, child: "Kept | dict[str, Kept]") -> str:
    return name if isinstance(child, Kept) else f"{name}/"


def _entries(
    files: Mapping[str, Kept], *, recursive: bool, start: str = ""
) -> Iterator[dict[str, Any]]:
    for name, child in sorted(_children(files).items(), key=lambda each: _order(*each)):
        path = start + name
        if isinstance(child, Kept):
            entry: dict[str, Any] = {"path": path, "mode": child.mode, "sha": _name_of(child)}
            if child.mode == SUBMODULE:
                yield {**entry, "type": "commit"}
            else:
                yield {**entry, "type": "blob", "size": len(child.content)}
        else:
            sha = _store_trees(child, Repository())
            yield {"path": path, "mode": FOLDER, "type": "tree", "sha": sha}
            if recursive:
                yield from _entries(child, recursive=True, start=f"{path}/")


def _files(home: Repository, revision: str) -> Mapping[str, Kept]:
    return home.commits.get(home.revisions.get(revision, revision), {})


def _commit(home: Repository, revision: str, headers: Mapping[str, str]) -> Answer:
    commit = home.revisions.get(revision.removeprefix("heads/"), revision)
    if commit not in home.commits:
        return _make_error(422, f"No commit found for SHA: {revision}")
    if headers.get("accept") == "application/vnd.github.sha":
        kind = {"Content-Type": "application/vnd.github.sha; charset=utf-8"}
        return Answer(200, commit.encode(), kind)
    return Answer(200, json.dumps({"sha": commit}).encode(), {"Content-Type": JSON})


def _contents(home: Repository, path: str, revision: str, headers: Mapping[str, str]) -> Answer:
    kept = _files(home, revision).get(path)
    if kept is None:
        return _make_error(404, "Not Found")
    if "raw" in headers.get("accept", ""):
        kind = {"Content-Type": "application/vnd.github.raw+json; charset=utf-8"}
        return Answer(200, kept.content, kind)
    entry = {"path": path, "sha": blob_sha(kept.content), "type": "file"}
    return Answer(200, json.dumps(entry).encode(), {"Content-Type": JSON})


def _make_error(status: int, message: str) -> Answer:
    body = {
        "message": message,
        "documentation_url": "https://docs.github.com/rest",
        "status": str(status),
    }
    assert HTTPStatus(status)
    return Answer(status, json.dumps(body).encode(), {"Content-Type": JSON})
