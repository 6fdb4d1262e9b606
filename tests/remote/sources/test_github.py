"""Evaluators on GitHub, fetched from a fake server on this machine."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentci._util.http import HttpGetter
from agentci.errors import FetchError, PermanentFetchError, UnreachableError
from agentci.model.program import ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.remote.sources.github import GitHubSource
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES
from tests.remote.sources.fake_github import (
    EXECUTABLE,
    LINK,
    SUBMODULE,
    Answer,
    FakeGitHub,
    Kept,
    rate_limited,
)

REPOSITORY = "org/evals"
REF = "evaluators/quality/quality.py"
COMMIT = "8c1f" * 10
FILES: dict[str, bytes | str | Kept] = {
    "README.md": "# Evaluators",
    "LICENSE": "free",
    "evaluators/quality/quality.py": "print('{}')",
    "evaluators/quality/evaluator.yaml": "name: quality",
    "evaluators/quality/words/list of words.txt": "good\nbad",
    "evaluators/quality/wörter/日本.txt": "良い",
    "evaluators/quality/#1?&%41.txt": "odd",
    "evaluators/quality/run.sh": Kept(b"#!/bin/sh\n", EXECUTABLE),
    "evaluators/quality_2/quality_2.py": "print('{}')",
}
OWN = {"quality.py", "evaluator.yaml", "words/list of words.txt", "wörter/日本.txt"} | {
    *("#1?&%41.txt", "run.sh")
}
NEEDS_TOKEN = (
    "for a private repository set AGENTEVALS_GITHUB_TOKEN or GITHUB_TOKEN"
    " to a token that may read it"
)


def program(ref: str = REF, **others: Any) -> RemoteProgram:
    given = {"source": "github", "repository": REPOSITORY, "revision": "main", **others}
    return RemoteProgram(ref=ref, **given)


def fetch(source: GitHubSource, ref: str = REF, *, paths: Sequence[str] = ()) -> ProgramSnapshot:
    """Complete, resolve and fetch a program, as a run does."""
    wanted = source.complete(program(ref))
    return source.fetch(wanted, source.resolve(wanted), paths=paths)


def get_fetch_error(
    source: GitHubSource, ref: str = REF, *, paths: Sequence[str] = ()
) -> PermanentFetchError:
    with pytest.raises(PermanentFetchError) as error:
        fetch(source, ref, paths=paths)
    return error.value


class TestCompletion:
    def test_repository_defaults_to_community_main_branch(
        self, http: HttpGetter, tmp_path: Path
    ) -> None:
        github = FakeGitHub()
        source = GitHubSource(github.context(http, tmp_path))
        completed = source.complete(RemoteProgram(source="github", ref=REF))
        assert completed.repository == "agentevals-dev/evaluators"
        assert completed.revision == "main"

    def test_environment_replaces_default_repository_and_branch(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        source = GitHubSource(github.context(http, tmp_path, repository="own/evals", branch="next"))
        completed = source.complete(RemoteProgram(source="github", ref=REF))
        assert (completed.repository, completed.revision) == ("own/evals", "next")

    def test_config_values_are_kept(self, source: GitHubSource) -> None:
        assert source.complete(program(revision="v1")) == program(revision="v1")

    def test_commit_and_sha256_are_normalized(self, source: GitHubSource) -> None:
        completed = source.complete(program(revision="8C1F" * 10, sha256="AB" * 32))
        assert (completed.revision, completed.sha256) == (COMMIT, "ab" * 32)

    def test_ref_needs_no_file_extension(self, source: GitHubSource) -> None:
        assert source.complete(program("a/LICENSE")).ref == "a/LICENSE"

    @pytest.mark.parametrize(
        "wrong",
        [
            program("../x.py"),
            program(repository="evals"),
            program(revision="a..b"),
            program(sha256="ab"),
        ],
    )
    def test_invalid_program_is_rejected_without_request(
        self, source: GitHubSource, github: FakeGitHub, wrong: RemoteProgram
    ) -> None:
        with pytest.raises(PermanentFetchError):
            source.complete(wrong)
        assert github.count() == 0


class TestCommitLookup:
    def test_branch_resolves_to_current_commit(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        first = github.publish(REPOSITORY, FILES)
        assert source.resolve(program()) == first
        assert github.asked[0].headers["accept"] == "application/vnd.github.sha"

    def test_branch_with_special_characters_is_escaped_in_url(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES, branch="feature/ä+b")
        assert source.resolve(program(revision="feature/ä+b")) == commit
        assert github.asked[0].path == "/repos/org/evals/commits/feature%2F%C3%A4%2Bb"

    def test_commit_resolves_without_request(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        assert source.resolve(program(revision=COMMIT)) == COMMIT
        assert github.count() == 0

    def test_concurrent_lookups_send_one_request(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES)
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda _: source.resolve(program()), range(36)))
        assert set(found) == {commit}
        assert github.count("commit") == 1

    def test_failed_lookup_is_not_repeated(self, source: GitHubSource, github: FakeGitHub) -> None:
        for _ in range(3):
            with pytest.raises(PermanentFetchError):
                source.resolve(program())
        assert github.count("commit") == 1

    def test_unknown_branch_is_reported(self, source: GitHubSource, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, FILES)
        with pytest.raises(
            PermanentFetchError, match=r"^org/evals has no branch, tag or commit 'gone'$"
        ) as error:
            source.resolve(program(revision="gone"))
        assert error.value.hint == "check `branch` or `rev` in the config"

    def test_unknown_repository_is_reported(self, source: GitHubSource) -> None:
        with pytest.raises(
            PermanentFetchError,
            match=r"^org/evals does not exist, is not accessible, or has no 'main'$",
        ) as error:
            source.resolve(program())
        assert error.value.hint == NEEDS_TOKEN

    def test_response_without_commit_is_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.answers["commit"] = lambda _: Answer(200, b"<html>Sign in</html>")
        with pytest.raises(UnreachableError, match=r"returned no commit for 'main' of org/evals"):
            source.resolve(program())

    def test_pin_writes_commit_unless_already_pinned(self, source: GitHubSource) -> None:
        assert source.pin(program(), COMMIT) == f"rev: {COMMIT}"
        assert source.pin(program(revision=COMMIT), COMMIT) is None
        assert source.pin(program(), "main") is not None


class TestFetchedFolder:
    def test_program_is_fetched_with_its_folder(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, FILES)
        snapshot = fetch(source)
        assert snapshot.entry == "quality.py"
        assert set(snapshot.files) == OWN
        assert list(snapshot.files) == sorted(OWN)
        assert snapshot.files["words/list of words.txt"] == ProgramFile(content=b"good\nbad")
        assert snapshot.files["wörter/日本.txt"].content.decode() == "良い"

    def test_executable_mode_is_kept(self, source: GitHubSource, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, FILES)
        snapshot = fetch(source)
        assert {path for path, file in snapshot.files.items() if file.executable} == {"run.sh"}

    def test_program_in_root_comes_without_unrelated_files(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {**FILES, "x.py": "1", "requirements.txt": "a", "y.py": "2"})
        assert set(fetch(source, "x.py").files) == {"x.py", "requirements.txt"}

    def test_files_come_from_commit_not_branch(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES)
        github.publish(REPOSITORY, {REF: "evil"})
        snapshot = source.fetch(program(), commit, paths=())
        assert snapshot.files["quality.py"].content == b"print('{}')"
        assert all(commit in asked.path for asked in github.asked)

    def test_file_bytes_and_mode_are_preserved(
        self, source: GitHubSource, github: FakeGitHub, tmp_path: Path
    ) -> None:
        (tmp_path / "e").mkdir()
        (tmp_path / "e" / "e.sh").write_bytes(b"#!/bin/sh\r\n\xff")
        (tmp_path / "e" / "e.sh").chmod(0o755)
        github.publish_folder(REPOSITORY, tmp_path)
        assert fetch(source, "e/e.sh").files == {
            "e.sh": ProgramFile(content=b"#!/bin/sh\r\n\xff", executable=True)
        }

    def test_programs_of_one_commit_share_one_listing(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, FILES)
        refs = [REF, "evaluators/quality_2/quality_2.py"] * 6
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda ref: fetch(source, ref), refs))
        assert (github.count("commit"), github.count("tree")) == (1, 1)

    def test_missing_program_gets_suggestion(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES)
        error = get_fetch_error(source, "evaluators/quality/qualty.py")
        assert str(error) == f"'evaluators/quality/qualty.py' is not in org/evals at {commit}"
        assert error.hint == f"did you mean {REF!r}?"

    def test_ref_to_folder_gets_hint(self, source: GitHubSource, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, {"e/q/q.py": "1", "e/q/z.py": "1"})
        error = get_fetch_error(source, "e/q")
        assert error.hint == "it is a folder; name the program in it, like 'e/q/q.py'"

    def test_empty_program_is_rejected(self, source: GitHubSource, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, {REF: " \n"})
        assert str(get_fetch_error(source)) == "the program 'quality.py' is empty"

    def test_git_lfs_pointer_is_rejected(self, source: GitHubSource, github: FakeGitHub) -> None:
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 7\n"
        github.publish(REPOSITORY, {REF: "1", "evaluators/quality/model.bin": pointer})
        error = get_fetch_error(source)
        assert str(error) == "'model.bin' is a Git LFS pointer, not the file itself"
        assert error.hint == "store it in the repository without LFS"

    @pytest.mark.parametrize("ref", ["evaluators/quality/other", REF])
    def test_link_in_program_folder_is_rejected(
        self, source: GitHubSource, github: FakeGitHub, ref: str
    ) -> None:
        github.publish(REPOSITORY, {REF: "1", ref: Kept(b"/etc/passwd", LINK)})
        assert str(get_fetch_error(source)) == f"{ref!r} is a symbolic link"

    def test_submodule_in_program_folder_is_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        module = Kept(COMMIT.encode(), SUBMODULE)
        github.publish(REPOSITORY, {REF: "1", "evaluators/quality/lib": module})
        assert str(get_fetch_error(source)) == "'evaluators/quality/lib' is a submodule"

    def test_link_outside_program_folder_is_ignored(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {REF: "1", "docs": Kept(b"/etc", LINK)})
        assert set(fetch(source).files) == {"quality.py"}

    def test_file_names_differing_only_in_case_are_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {REF: "1", "evaluators/quality/Quality.py": "2"})
        assert (
            "'Quality.py' and 'quality.py' are the same file on case-insensitive file systems"
            in str(get_fetch_error(source))
        )

    def test_folder_names_differing_only_in_case_are_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(
            REPOSITORY,
            {REF: "1", "evaluators/quality/Lib/a": "2", "evaluators/quality/lib/b": "2"},
        )
        assert "'Lib' and 'lib' are the same file" in str(get_fetch_error(source))

    def test_listed_path_outside_folder_is_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        evil = "evaluators/quality/../../../.ssh/config"
        github.publish(REPOSITORY, FILES)
        github.answers["tree"] = lambda _: _listing(REF, evil)
        assert (
            str(get_fetch_error(source)) == "the file name '../../../.ssh/config' leaves its folder"
        )
        assert github.count("raw") == 0

    def test_fetch_rejects_invalid_commit(self, source: GitHubSource) -> None:
        with pytest.raises(PermanentFetchError, match=r"^'\.\./\.\./x' is not a commit$"):
            source.fetch(program(), "../../x", paths=())


class TestLimits:
    def test_too_many_files_are_rejected_before_download(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        many = {f"evaluators/quality/{index}": "x" for index in range(MAX_FILES)}
        github.publish(REPOSITORY, {REF: "1", **many})
        error = get_fetch_error(source)
        assert str(error) == "the program's folder contains more than 200 files"
        assert error.hint == (
            "the whole folder of an evaluator is fetched; move it into its own folder"
        )
        assert github.count("raw") == 0

    def test_large_file_is_rejected(self, source: GitHubSource, github: FakeGitHub) -> None:
        large = b"x" * (MAX_FILE_BYTES + 1)
        github.publish(REPOSITORY, {REF: "1", "evaluators/quality/large": large})
        assert str(get_fetch_error(source)) == "'large' is larger than 5 MiB"

    def test_folder_over_size_limit_is_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        count = MAX_TOTAL_BYTES // MAX_FILE_BYTES + 1
        large = {f"evaluators/quality/{index}": b"x" * MAX_FILE_BYTES for index in range(count)}
        github.publish(REPOSITORY, {REF: "1", **large})
        assert str(get_fetch_error(source)) == "the program's folder contains more than 20 MiB"

    def test_file_limit_applies_to_locked_files(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {f"e/{index}": "x" for index in range(MAX_FILES + 1)})
        paths = [str(index) for index in range(MAX_FILES + 1)]
        assert "more than 200 files" in str(get_fetch_error(source, "e/0", paths=paths))
        assert github.count("raw") == 0


class TestTruncatedListing:
    def test_truncated_listing_is_repeated_folder_by_folder(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.longest_listing = 2
        github.publish(REPOSITORY, FILES)
        assert set(fetch(source).files) == OWN
        # The truncated listing, then the root, evaluators, quality and its two subfolders.
        assert github.count("tree") == 1 + 5

    def test_program_in_root_needs_only_root_listing(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.longest_listing = 2
        github.publish(REPOSITORY, {**FILES, "x.py": "1"})
        assert set(fetch(source, "x.py").files) == {"x.py"}
        assert github.count("tree") == 2

    def test_missing_program_is_reported_despite_truncation(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.longest_listing = 2
        github.publish(REPOSITORY, FILES)
        for ref in ("evaluators/qualty/quality.py", "evals/a/b/c.py"):
            assert "is not in org/evals" in str(get_fetch_error(source, ref))

    def test_too_many_folders_are_rejected(self, source: GitHubSource, github: FakeGitHub) -> None:
        github.longest_listing = 2
        github.publish(
            REPOSITORY, {"e/x.py": "1", **{f"e/{n}/x": "1" for n in range(MAX_FILES + 1)}}
        )
        assert str(get_fetch_error(source, "e/x.py")) == "'e' contains more than 200 folders"

    def test_truncated_listing_of_one_folder_is_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, FILES)
        github.answers["tree"] = lambda _: Answer(200, b'{"tree": [], "truncated": true}')
        assert (
            str(get_fetch_error(source))
            == "the folder '/' of org/evals contains too many files to list"
        )


class TestDownloads:
    def test_file_with_wrong_digest_is_downloaded_again(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {REF: "print('{}')"})
        wrong_answers = [Answer(200, b"<html>Please sign in</html>")]
        github.answers["raw"] = lambda _: wrong_answers.pop() if wrong_answers else None
        assert fetch(source).files["quality.py"].content == b"print('{}')"
        assert github.count("raw") == 2

    def test_file_with_wrong_digest_twice_is_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {REF: "print('{}')"})
        github.answers["raw"] = lambda _: Answer(200, b"<html>Please sign in</html>")
        with pytest.raises(UnreachableError) as error:
            fetch(source)
        assert str(error.value) == (
            "'evaluators/quality/quality.py' of org/evals has other content than in git"
        )
        assert error.value.hint == "a proxy or a captive portal may have answered instead of GitHub"
        assert github.count("raw") == 2

    def test_missing_listed_file_is_temporary_error(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, FILES)
        github.answers["raw"] = lambda _: Answer(404)
        with pytest.raises(
            UnreachableError, match="is listed in org/evals, but cannot be downloaded"
        ):
            fetch(source)

    @pytest.mark.parametrize(
        "listing",
        [
            *(b"<html>", b"[]", b"7", b"{}", b'{"tree": 7}', b'{"tree": [7]}', b'{"tree": [{}]}'),
            *(b'{"tree": [{"path": 1, "mode": "1", "sha": ""}]}', b"[" * 100_000, b"\xff"),
            b'{"tree": [{"path": "a", "mode": "1", "sha": "", "size": "9"}]}',
            b'{"tree": [{"path": "a", "mode": "1", "sha": "", "size": -9}]}',
        ],
    )
    def test_invalid_listing_is_rejected(
        self, source: GitHubSource, github: FakeGitHub, listing: bytes
    ) -> None:
        github.publish(REPOSITORY, FILES)
        github.answers["tree"] = lambda _: Answer(200, listing)
        with pytest.raises(UnreachableError, match="returned an invalid file list of org"):
            fetch(source)

    def test_fetch_of_unknown_commit_is_reported(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, FILES)
        with pytest.raises(
            PermanentFetchError,
            match=f"does not exist, is not accessible, or has no commit {COMMIT}",
        ):
            source.fetch(program(), COMMIT, paths=())


class TestLockedFiles:
    def test_locked_files_are_fetched_without_listing(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES)
        snapshot = source.fetch(program(), commit, paths=["quality.py", "words/list of words.txt"])
        assert set(snapshot.files) == {"quality.py", "words/list of words.txt"}
        assert (github.count(), github.count("raw")) == (2, 2)

    def test_locked_file_with_shebang_is_executable(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES)
        snapshot = source.fetch(program(), commit, paths=["quality.py", "run.sh"])
        assert [file.executable for file in snapshot.files.values()] == [False, True]

    def test_locked_file_in_root_is_fetched(self, source: GitHubSource, github: FakeGitHub) -> None:
        commit = github.publish(REPOSITORY, {"x.py": "1"})
        assert source.fetch(program("x.py"), commit, paths=["x.py"]).files["x.py"].content == b"1"

    def test_missing_locked_file_is_reported(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        commit = github.publish(REPOSITORY, FILES)
        error = get_fetch_error(source, paths=["quality.py", "gone.py"])
        assert str(error) == f"'evaluators/quality/gone.py' is not in org/evals at {commit}"
        assert error.hint == NEEDS_TOKEN

    @pytest.mark.parametrize("path", ["../quality_2/quality_2.py", "/etc/passwd", "a\\b", ""])
    def test_unsafe_locked_path_is_rejected_without_download(
        self, source: GitHubSource, github: FakeGitHub, path: str
    ) -> None:
        github.publish(REPOSITORY, FILES)
        assert str(get_fetch_error(source, paths=["quality.py", path])).startswith("the file name ")
        assert github.count("raw") == 0

    def test_locked_files_without_program_are_rejected(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, FILES)
        message = f"'quality.py' is not among the files of {REF!r}"
        assert str(get_fetch_error(source, paths=["run.sh"])) == message


class TestTokens:
    def test_token_is_sent_only_to_its_host(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        github.publish(REPOSITORY, FILES)
        tokens = {host(github.api): "s3cret"}
        source = GitHubSource(github.context(http, tmp_path, tokens=tokens))
        fetch(source)
        sent = {asked.kind: asked.headers.get("authorization") for asked in github.asked}
        assert sent == {"commit": "Bearer s3cret", "tree": "Bearer s3cret", "raw": None}

    def test_token_gives_access_to_private_repository(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        github.token = "s3cret"
        github.publish(REPOSITORY, FILES)
        tokens = dict.fromkeys((host(github.api), host(github.raw)), "s3cret")
        source = GitHubSource(github.context(http, tmp_path, tokens=tokens))
        assert set(fetch(source).files) == OWN

    def test_tokens_of_other_hosts_are_not_sent(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        github.publish(REPOSITORY, FILES)
        tokens = {"api.github.com": "s3cret", "127.0.0.1": "s3cret", "": "s3cret"}
        fetch(GitHubSource(github.context(http, tmp_path, tokens=tokens)))
        assert not any("authorization" in asked.headers for asked in github.asked)

    def test_token_without_access_is_reported(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        github.token = "other"
        github.publish(REPOSITORY, FILES)
        tokens = {host(github.api): "s3cret"}
        error = get_fetch_error(GitHubSource(github.context(http, tmp_path, tokens=tokens)))
        assert str(error) == "org/evals does not exist, is not accessible, or has no 'main'"
        assert error.hint is not None
        assert error.hint.startswith("the token in AGENTEVALS_GITHUB_TOKEN or GITHUB_TOKEN must be")

    def test_password_in_api_url_is_not_in_error(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        github.publish(REPOSITORY, FILES)
        api = github.api.replace("http://", "http://me:s3cret@")
        source = GitHubSource(github.context(http, tmp_path, github_api=api))
        github.answers["commit"] = lambda _: Answer(403)
        with pytest.raises(UnreachableError) as error:
            fetch(source)
        assert str(error.value).startswith(f"{host(github.api)} denies read access to")

    def test_repr_does_not_show_token(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        assert "s3cret" not in repr(github.context(http, tmp_path, tokens={"x": "s3cret"}))


class TestEnterpriseServer:
    @pytest.fixture
    def source(self, github: FakeGitHub, http: HttpGetter, tmp_path: Path) -> GitHubSource:
        return GitHubSource(github.context(http, tmp_path, github_raw=""))

    def test_files_are_read_through_api(self, source: GitHubSource, github: FakeGitHub) -> None:
        commit = github.publish(REPOSITORY, FILES)
        assert set(fetch(source).files) == OWN
        assert (github.count("contents"), github.count("raw")) == (len(OWN), 0)
        contents = [asked for asked in github.asked if asked.kind == "contents"]
        assert {asked.headers["accept"] for asked in contents} == {
            "application/vnd.github.raw+json"
        }
        assert all(asked.path.endswith(f"?ref={commit}") for asked in contents)

    def test_catalogue_is_read_through_api(self, source: GitHubSource, github: FakeGitHub) -> None:
        github.publish(
            "agentevals-dev/evaluators", {"index.yaml": f"evaluators: [{{name: q, path: {REF}}}]"}
        )
        assert [listing.name for listing in source.catalogue()] == ["q"]


class TestErrorResponses:
    @pytest.mark.parametrize(
        ("answer", "kind", "message"),
        [
            (
                Answer(401, b'{"message": "Bad credentials"}'),
                UnreachableError,
                "HOST requires a valid token for 'main' of org/evals (Bad credentials)",
            ),
            (
                Answer(403, b'{"message": "Resource not\\n accessible"}'),
                UnreachableError,
                "HOST denies read access to 'main' of org/evals (Resource not accessible)",
            ),
            (
                Answer(403, b"[]", {"X-RateLimit-Remaining": "7"}),
                UnreachableError,
                "HOST denies read access to 'main' of org/evals",
            ),
            (
                Answer(409, b'{"message": "Git Repository is empty."}'),
                PermanentFetchError,
                "HOST returned status 409 for 'main' of org/evals (Git Repository is empty.)",
            ),
            (
                Answer(410, b'{"message": 7}'),
                PermanentFetchError,
                "HOST returned status 410 for 'main' of org/evals",
            ),
            (
                Answer(304),
                UnreachableError,
                "HOST returned status 304 for 'main' of org/evals",
            ),
        ],
    )
    def test_error_status_is_reported_with_server_message(
        self,
        source: GitHubSource,
        github: FakeGitHub,
        answer: Answer,
        kind: type[FetchError],
        message: str,
    ) -> None:
        github.answers["commit"] = lambda _: answer
        with pytest.raises(FetchError) as error:
            source.resolve(program())
        assert type(error.value) is kind
        assert str(error.value) == message.replace("HOST", host(github.api))

    def test_rate_limit_error_suggests_token(
        self, source: GitHubSource, github: FakeGitHub
    ) -> None:
        github.answers["commit"] = rate_limited
        with pytest.raises(UnreachableError) as error:
            source.resolve(program())
        assert "GITHUB_TOKEN" in (error.value.hint or "")


class TestCatalogue:
    def test_catalogue_lists_index_of_branch(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        index = f"evaluators:\n- {{name: quality, path: {REF}}}\n- {{name: x, path: ../x.py}}\n"
        github.publish("own/evals", {"index.yaml": index}, branch="feature/x")
        context = github.context(http, tmp_path, repository="own/evals", branch="feature/x")
        (listing,) = GitHubSource(context).catalogue()
        assert (listing.source, listing.name, listing.ref) == ("github", "quality", REF)
        assert github.asked[0].path == "/own/evals/feature/x/index.yaml"

    def test_missing_index_is_reported(self, source: GitHubSource) -> None:
        with pytest.raises(
            PermanentFetchError,
            match=r"^index\.yaml of agentevals-dev/evaluators \(main\) not found$",
        ) as error:
            source.catalogue()
        assert error.value.hint == NEEDS_TOKEN

    def test_catalogue_rejects_invalid_repository(
        self, github: FakeGitHub, http: HttpGetter, tmp_path: Path
    ) -> None:
        source = GitHubSource(github.context(http, tmp_path, repository="../.."))
        with pytest.raises(PermanentFetchError, match="is not a GitHub repository"):
            source.catalogue()


def host(address: str) -> str:
    return address.removeprefix("http://")


def _listing(*paths: str) -> Answer:
    sha = hashlib.sha1(b"").hexdigest()
    entries = ", ".join(f'{{"path": "{path}", "mode": "100644", "sha": "{sha}"}}' for path in paths)
    return Answer(200, f'{{"tree": [{entries}]}}'.encode())
