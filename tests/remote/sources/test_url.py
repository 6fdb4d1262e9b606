"""Evaluators at a URL."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from agentci._util.http import HttpGetter
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.model.program import ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.remote.sources.source import MAX_FILE_BYTES
from agentci.remote.sources.url import UrlSource
from tests.remote.sources.archives import tar_files, zipped
from tests.remote.sources.fake_github import Answer, FakeGitHub, Kept

HOST = "https://example.org"
SHA256 = "ab" * 32
FILES = {"e/q/q.py": b"print('{}')", "e/q/words.txt": b"good", "e/x.py": b"x"}


def program(ref: str, **others: Any) -> RemoteProgram:
    return RemoteProgram(source="url", ref=ref, **{"sha256": SHA256, **others})


@pytest.fixture
def source(github: FakeGitHub, http: HttpGetter, tmp_path: Path) -> UrlSource:
    tokens = {github.raw.removeprefix("http://"): "s3cret"}
    return UrlSource(github.context(http, tmp_path, tokens=tokens))


def publish(github: FakeGitHub, name: str, content: bytes) -> RemoteProgram:
    """Serve a file on this machine, and return the program that a config would name."""
    commit = github.publish("org/files", {name: Kept(content)})
    sha256 = hashlib.sha256(content).hexdigest()
    return program(f"{github.raw}/org/files/{commit}/{name}", sha256=sha256)


def fetch(source: UrlSource, wanted: RemoteProgram) -> ProgramSnapshot:
    completed = source.complete(wanted)
    return source.fetch(completed, source.resolve(completed), paths=())


def get_completion_error(source: UrlSource, wanted: RemoteProgram) -> PermanentFetchError:
    with pytest.raises(PermanentFetchError) as error:
        source.complete(wanted)
    return error.value


class TestUrlRef:
    @pytest.mark.parametrize(
        "ref",
        [
            f"{HOST}/q.py",
            f"{HOST}:8443/a%20b/q.py?download=1",
            f"{HOST}/e.zip#e/q.py",
            f"{HOST}/e.tar.gz#q.py",
            f"{HOST}/e.tgz?x=y#e/f/q.js",
            "http://127.0.0.1:8000/q.py",
            "http://localhost/q.py",
            "http://[::1]:8000/q.py",
        ],
    )
    def test_url_of_program_or_archive_is_accepted(self, source: UrlSource, ref: str) -> None:
        assert source.complete(program(ref)) == program(ref)

    @pytest.mark.parametrize(
        ("ref", "message"),
        [
            ("", "'' does not start with https://"),
            ("evaluators/q.py", "'evaluators/q.py' does not start with https://"),
            ("http://example.org/q.py", "'http://example.org/q.py' does not start with https://"),
            ("file:///etc/passwd", "'file:///etc/passwd' does not start with https://"),
            ("ftp://example.org/q.py", "'ftp://example.org/q.py' does not start with https://"),
            ("https:///q.py", "'https:///q.py' does not start with https://"),
            ("https://[::1/q.py", "the ref is not a URL"),
            (f"{HOST}:port/q.py", "the ref is not a URL"),
            (f"{HOST}/a b.py", "the ref is not a URL"),
            (f"{HOST}/ä.py", "the ref is not a URL"),
            (f"{HOST}/q.py\r\nHost: evil", "the ref is not a URL"),
            (f"{HOST}/q.p\ny", "the ref is not a URL"),
            (f"\t{HOST}/q.py", "the ref is not a URL"),
            (f"{HOST}\\@evil.org/q.py", "the ref is not a URL"),
            (
                "https://me:s3cret@example.org/q.py",
                "the URL at example.org contains a user name or password",
            ),
            (
                "https://s3cret@example.org/q.py",
                "the URL at example.org contains a user name or password",
            ),
            (f"{HOST}/{'x' * 2048}", "the URL has more than 2,048 characters"),
            (f"{HOST}/", "the URL has no file name"),
            (HOST, "the URL has no file name"),
            (f"{HOST}/a%2Fb.py", "the file name 'a/b.py' contains a `/`"),
            (f"{HOST}/%2e%2e", "the file name '..' has the part '..', which is not allowed"),
            (f"{HOST}/a%00.py", r"the file name 'a\x00.py' has the part 'a\x00.py', which is not"),
            (f"{HOST}/e.zip", f"'{HOST}/e.zip' is an archive, but the ref names no program in it"),
            (f"{HOST}/e.zip#", f"'{HOST}/e.zip' is an archive, but the ref names no program in it"),
            (f"{HOST}/e.zip#../q.py", "the ref '../q.py' has the part '..', which is not allowed"),
            (f"{HOST}/e.zip#/q.py", "the ref '/q.py' is absolute"),
            (f"{HOST}/e.zip#%2e%2e/q", "the ref '%2e%2e/q' has the part '%2e%2e', which is not"),
            (f"{HOST}/q.py#q.py", f"'{HOST}/q.py' is not an archive, so it cannot contain 'q.py'"),
        ],
    )
    def test_invalid_url_is_rejected_without_request(
        self, source: UrlSource, github: FakeGitHub, ref: str, message: str
    ) -> None:
        error = get_completion_error(source, program(ref))
        assert str(error).startswith(message)
        assert "s3cret" not in f"{error} {error.hint}"
        assert github.count() == 0

    def test_missing_sha256_is_rejected(self, source: UrlSource) -> None:
        error = get_completion_error(source, program(f"{HOST}/q.py", sha256=""))
        assert str(error) == "a program at a URL needs a `sha256`"
        assert error.hint == "add `sha256: ...`; `curl -L URL | sha256sum` prints it"

    def test_invalid_sha256_is_rejected(self, source: UrlSource) -> None:
        assert (
            str(get_completion_error(source, program(f"{HOST}/q.py", sha256="ab")))
            == "'ab' is not a sha256"
        )

    def test_sha256_is_normalized(self, source: UrlSource) -> None:
        assert source.complete(program(f"{HOST}/q.py", sha256=SHA256.upper())).sha256 == SHA256

    @pytest.mark.parametrize("field", ["repository", "revision"])
    def test_repository_or_revision_is_rejected(self, source: UrlSource, field: str) -> None:
        error = get_completion_error(source, program(f"{HOST}/q.py", **{field: "x"}))
        assert str(error) == "a URL has no repository or revision"

    def test_url_resolves_to_sha256_without_request(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        wanted = source.complete(program(f"{HOST}/q.py"))
        assert source.resolve(wanted) == f"sha256:{SHA256}"
        source.pin(wanted, f"sha256:{SHA256}")
        assert source.catalogue() == ()
        assert github.count() == 0


class TestSingleProgram:
    def test_single_program_is_fetched_without_other_files(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        snapshot = fetch(source, publish(github, "q.py", b"print('{}')"))
        assert snapshot == ProgramSnapshot(
            entry="q.py", files={"q.py": ProgramFile(content=b"print('{}')")}
        )

    def test_program_with_shebang_is_executable(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        snapshot = fetch(source, publish(github, "q", b"#!/bin/sh\n"))
        assert snapshot.files["q"].executable

    def test_content_with_other_sha256_is_rejected(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        wanted = publish(github, "q.py", b"print('{}')")
        github.answers["raw"] = lambda _: Answer(200, b"evil")
        with pytest.raises(PermanentFetchError) as error:
            fetch(source, wanted)
        evil = hashlib.sha256(b"evil").hexdigest()
        assert f"has sha256 {evil}, expected {wanted.sha256}" in str(error.value)

    def test_empty_program_is_rejected(self, source: UrlSource, github: FakeGitHub) -> None:
        with pytest.raises(PermanentFetchError, match=r"the program 'q\.py' is empty"):
            fetch(source, publish(github, "q.py", b""))

    def test_large_program_is_rejected(self, source: UrlSource, github: FakeGitHub) -> None:
        with pytest.raises(PermanentFetchError):
            fetch(source, publish(github, "q.py", b"x" * (MAX_FILE_BYTES + 1)))

    def test_request_has_no_token(self, source: UrlSource, github: FakeGitHub) -> None:
        fetch(source, publish(github, "q.py", b"1"))
        assert "authorization" not in github.asked[0].headers

    @pytest.mark.parametrize("status", [401, 403, 404, 410])
    def test_client_error_status_is_permanent_error(
        self, source: UrlSource, github: FakeGitHub, status: int
    ) -> None:
        wanted = publish(github, "q.py", b"1")
        github.answers["raw"] = lambda _: Answer(status, b"no")
        with pytest.raises(PermanentFetchError, match=f"returned status {status}") as error:
            fetch(source, wanted)
        assert error.value.hint == "the URL must be accessible without a login"

    def test_server_error_status_is_temporary_error(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        wanted = publish(github, "q.py", b"1")
        github.answers["raw"] = lambda _: Answer(501)
        with pytest.raises(UnreachableError, match="returned status 501"):
            fetch(source, wanted)


class TestArchive:
    @pytest.mark.parametrize("name", ["e.zip", "e.tgz", "e.tar.gz"])
    def test_archive_gives_folder_of_program(
        self, source: UrlSource, github: FakeGitHub, name: str
    ) -> None:
        content = zipped(FILES) if name == "e.zip" else tar_files(FILES)
        wanted = publish(github, name, content)
        named = program(f"{wanted.ref}#e/q/q.py", sha256=wanted.sha256)
        snapshot = fetch(source, named)
        assert (snapshot.entry, set(snapshot.files)) == ("q.py", {"q.py", "words.txt"})

    def test_archive_is_verified_before_unpacking(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        wanted = publish(github, "e.zip", b"no archive at all")
        with pytest.raises(PermanentFetchError, match="has sha256"):
            fetch(source, program(f"{wanted.ref}#e/q/q.py"))

    def test_archive_without_program_is_rejected(
        self, source: UrlSource, github: FakeGitHub
    ) -> None:
        wanted = publish(github, "e.zip", zipped(FILES))
        with pytest.raises(PermanentFetchError, match=r"'e/z\.py' is not in 'e\.zip'"):
            fetch(source, program(f"{wanted.ref}#e/z.py", sha256=wanted.sha256))
