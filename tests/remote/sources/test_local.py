"""Evaluators in a workspace folder."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentci._util.http import HttpGetter
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.model.program import ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.remote.sources.local import LocalSource
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_FILES, SourceContext

INDEX = """\
evaluators:
- {name: quality, path: own evals/q/q.py, description: Judges.}
- {name: root, path: root.py}
- {name: gone, path: gone/gone.py}
- {name: hidden, path: own evals/q/.hidden.py}
- {name: folder, path: own evals/q}
"""
PATH = "own evals/q/q.py"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder with an index in a workspace."""
    folder = tmp_path / "workspace" / "shelf"
    own = folder / "own evals" / "q"
    (own / "words").mkdir(parents=True)
    (own / "__pycache__").mkdir()
    (own / ".git").mkdir()
    (folder / "index.yaml").write_text(INDEX)
    (folder / "root.py").write_text("print('{}')")
    (folder / "requirements.txt").write_text("")
    (folder / "secret.txt").write_text("secret")
    (own / "q.py").write_text("print('{}')")
    (own / "run").write_text("#!/bin/sh\n")
    (own / "run").chmod(0o755)
    (own / "words" / "日本.txt").write_text("good")
    for ignored in (".hidden.py", ".git/config", "__pycache__/q.pyc"):
        (own / ignored).write_text("x")
    return folder


@pytest.fixture
def source(shelf: Path, http: HttpGetter) -> LocalSource:
    return LocalSource(SourceContext(http=http, workspace=shelf.parent))


def program(shelf: Path, ref: str = PATH, **others: Any) -> RemoteProgram:
    return RemoteProgram(source="local", ref=ref, repository=str(shelf), **others)


def fetch(source: LocalSource, wanted: RemoteProgram) -> ProgramSnapshot:
    completed = source.complete(wanted)
    return source.fetch(completed, source.resolve(completed), paths=())


def get_fetch_error(source: LocalSource, wanted: RemoteProgram) -> PermanentFetchError:
    with pytest.raises(PermanentFetchError) as error:
        fetch(source, wanted)
    return error.value


class TestProgramLookup:
    @pytest.mark.parametrize("ref", ["quality", PATH])
    def test_program_is_found_by_name_or_path(
        self, source: LocalSource, shelf: Path, ref: str
    ) -> None:
        assert source.complete(program(shelf, ref)) == program(shelf, PATH)

    def test_repository_defaults_to_workspace_root(self, shelf: Path, http: HttpGetter) -> None:
        source = LocalSource(SourceContext(http=http, workspace=shelf))
        wanted = RemoteProgram(source="local", ref="quality")
        assert source.complete(wanted) == RemoteProgram(source="local", ref=PATH)
        assert fetch(source, wanted).entry == "q.py"

    def test_repository_is_relative_to_workspace(self, source: LocalSource) -> None:
        wanted = RemoteProgram(source="local", ref="quality", repository="shelf")
        assert source.complete(wanted).repository == "shelf"
        assert fetch(source, wanted).entry == "q.py"

    def test_unlisted_name_gets_suggestion(self, source: LocalSource, shelf: Path) -> None:
        error = get_fetch_error(source, program(shelf, "qualty"))
        assert str(error) == "'qualty' is not listed in 'shelf/index.yaml'"
        assert error.hint == "did you mean 'quality'?"

    def test_unlisted_file_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        error = get_fetch_error(source, program(shelf, "secret.txt"))
        assert error.hint == "add its name and path to the index"

    def test_revision_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        error = get_fetch_error(source, program(shelf, revision="main"))
        assert str(error) == "a local evaluator has no revision"

    def test_sha256_is_normalized(self, source: LocalSource, shelf: Path) -> None:
        assert source.complete(program(shelf, sha256="AB" * 32)).sha256 == "ab" * 32

    def test_missing_index_is_reported(self, source: LocalSource, shelf: Path) -> None:
        error = get_fetch_error(source, program(shelf / "own evals"))
        assert str(error) == "shelf/own evals/index.yaml does not exist"
        assert error.hint == "set `repo` to the folder with index.yaml"

    def test_index_outside_workspace_is_shown_by_absolute_path(
        self, source: LocalSource, tmp_path: Path
    ) -> None:
        error = get_fetch_error(source, program(tmp_path))
        assert str(error) == f"{tmp_path}/index.yaml does not exist"

    def test_invalid_index_is_reported(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "index.yaml").write_text("evaluators: 7")
        message = "shelf/index.yaml has no `evaluators` list"
        assert str(get_fetch_error(source, program(shelf))) == message

    def test_local_program_needs_no_pin(self, source: LocalSource, shelf: Path) -> None:
        source.pin(program(shelf), "sha256:0")


class TestFolderDigest:
    def test_digest_ignores_unrelated_files(self, source: LocalSource, shelf: Path) -> None:
        digest = source.resolve(program(shelf))
        assert digest.startswith("sha256:")
        assert len(digest) == len("sha256:") + 64
        (shelf / "secret.txt").write_text("other")
        (shelf / "own evals" / "q" / "__pycache__" / "q.pyc").write_text("other")
        assert source.resolve(program(shelf)) == digest

    @pytest.mark.parametrize(
        "change",
        [
            "echo x >> q.py",
            "chmod +x q.py",
            "mv words/* .",
            "touch new",
            "rm run",
        ],
    )
    def test_digest_changes_with_each_file(
        self, source: LocalSource, shelf: Path, change: str
    ) -> None:
        digest = source.resolve(program(shelf))
        assert os.system(f"cd '{shelf}/own evals/q' && {change}") == 0
        assert source.resolve(program(shelf)) != digest

    def test_fetch_rejects_folder_changed_since_resolve(
        self, source: LocalSource, shelf: Path
    ) -> None:
        digest = source.resolve(program(shelf))
        (shelf / PATH).write_text("evil")
        with pytest.raises(PermanentFetchError) as error:
            source.fetch(program(shelf), digest, paths=())
        assert str(error.value) == f"the folder of '{PATH}' has changed"
        assert error.value.hint == "if the change is intended, run `agentci lock`"


class TestProgramFolder:
    def test_fetch_skips_hidden_and_generated_files(self, source: LocalSource, shelf: Path) -> None:
        assert fetch(source, program(shelf)) == ProgramSnapshot(
            entry="q.py",
            files={
                "q.py": ProgramFile(content=b"print('{}')"),
                "run": ProgramFile(content=b"#!/bin/sh\n", executable=True),
                "words/日本.txt": ProgramFile(content=b"good"),
            },
        )

    def test_program_in_root_comes_without_unrelated_files(
        self, source: LocalSource, shelf: Path
    ) -> None:
        assert set(fetch(source, program(shelf, "root")).files) == {"root.py", "requirements.txt"}

    def test_missing_program_file_is_reported(self, source: LocalSource, shelf: Path) -> None:
        error = get_fetch_error(source, program(shelf, "gone"))
        message = "'gone/gone.py', which 'shelf/index.yaml' lists, is not a file"
        assert (str(error), error.hint) == (message, "correct its path in the index")

    def test_folder_is_not_accepted_as_program(self, source: LocalSource, shelf: Path) -> None:
        assert "is not a file" in str(get_fetch_error(source, program(shelf, "folder")))

    def test_hidden_program_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        assert "is hidden" in str(get_fetch_error(source, program(shelf, "hidden")))

    def test_link_to_file_in_folder_is_followed(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / "again.py").symlink_to("q.py")
        assert fetch(source, program(shelf)).files["again.py"].content == b"print('{}')"

    @pytest.mark.parametrize("target", ["../../secret.txt", "/etc/passwd"])
    def test_link_to_file_outside_folder_is_rejected(
        self, source: LocalSource, shelf: Path, target: str
    ) -> None:
        (shelf / "own evals" / "q" / "x.txt").symlink_to(target)
        message = "'x.txt' is a symbolic link out of its folder"
        assert str(get_fetch_error(source, program(shelf))) == message

    def test_link_to_folder_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / "x").symlink_to("words")
        assert str(get_fetch_error(source, program(shelf))) == "'x' is a link to a folder"

    def test_program_in_linked_outside_folder_is_rejected(
        self, source: LocalSource, shelf: Path
    ) -> None:
        (shelf.parent / "gone").mkdir()
        (shelf.parent / "gone" / "gone.py").write_text("1")
        (shelf / "gone").symlink_to("../gone")
        message = "'gone/gone.py' is a symbolic link out of its folder"
        assert str(get_fetch_error(source, program(shelf, "gone"))) == message

    def test_named_pipe_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        os.mkfifo(shelf / "own evals" / "q" / "pipe")
        assert str(get_fetch_error(source, program(shelf))) == "'pipe' is not a regular file"

    def test_undecodable_file_name_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / os.fsdecode(b"\xff")).write_text("x")
        assert str(get_fetch_error(source, program(shelf))) == (
            r"the file name '\udcff' has a character that is not allowed"
        )

    def test_file_names_differing_only_in_case_are_rejected(
        self, source: LocalSource, shelf: Path
    ) -> None:
        (shelf / "own evals" / "q" / "Q.py").write_text("x")
        assert "are the same file on case-insensitive file systems" in str(
            get_fetch_error(source, program(shelf))
        )

    def test_too_many_files_are_rejected(self, source: LocalSource, shelf: Path) -> None:
        for index in range(MAX_FILES):
            (shelf / "own evals" / "q" / str(index)).touch()
        assert "more than 200 files" in str(get_fetch_error(source, program(shelf)))

    def test_large_file_is_rejected(self, source: LocalSource, shelf: Path) -> None:
        with (shelf / "own evals" / "q" / "large").open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)
        assert str(get_fetch_error(source, program(shelf))) == "'large' is larger than 5 MiB"

    def test_unreadable_file_is_reported(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / "x.txt").symlink_to("nowhere")
        with pytest.raises(UnreachableError, match=r"'x\.txt' cannot be read: No such file"):
            source.resolve(program(shelf))

    def test_unreadable_folder_is_reported(self, source: LocalSource, shelf: Path) -> None:
        own = shelf / "own evals" / "q"
        here = os.open(own, os.O_RDONLY)
        for _ in range(20):  # longer than the maximum length of a path
            os.mkdir("x" * 250, dir_fd=here)
            here, before = os.open("x" * 250, os.O_RDONLY, dir_fd=here), here
            os.close(before)
        os.close(here)
        with pytest.raises(UnreachableError, match="cannot be read: File name too long"):
            source.resolve(program(shelf))
        shutil.rmtree(own)


class TestCatalogue:
    def test_catalogue_lists_index_of_workspace(self, shelf: Path, http: HttpGetter) -> None:
        listings = LocalSource(SourceContext(http=http, workspace=shelf)).catalogue()
        assert [listing.name for listing in listings] == [
            *("quality", "root", "gone", "hidden", "folder")
        ]
        assert {listing.source for listing in listings} == {"local"}

    def test_catalogue_without_index_is_empty(self, source: LocalSource) -> None:
        assert source.catalogue() == ()
