"""Evaluators in a folder of the workspace."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentci._util.http.interface import HttpGetter
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
    """A folder with an index, in a workspace."""
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
    for left_behind in (".hidden.py", ".git/config", "__pycache__/q.pyc"):
        (own / left_behind).write_text("x")
    return folder


@pytest.fixture
def source(shelf: Path, http: HttpGetter) -> LocalSource:
    return LocalSource(SourceContext(http=http, workspace=shelf.parent))


def program(shelf: Path, ref: str = PATH, **others: Any) -> RemoteProgram:
    return RemoteProgram(source="local", ref=ref, repository=str(shelf), **others)


def fetch(source: LocalSource, wanted: RemoteProgram) -> ProgramSnapshot:
    completed = source.complete(wanted)
    return source.fetch(completed, source.resolve(completed), paths=())


def refusal(source: LocalSource, wanted: RemoteProgram) -> PermanentFetchError:
    with pytest.raises(PermanentFetchError) as error:
        fetch(source, wanted)
    return error.value


class TestWhatAConfigNames:
    @pytest.mark.parametrize("ref", ["quality", PATH])
    def test_is_a_name_or_a_path_of_the_index(
        self, source: LocalSource, shelf: Path, ref: str
    ) -> None:
        assert source.complete(program(shelf, ref)) == program(shelf, PATH)

    def test_is_in_the_workspace_where_no_folder_is_named(
        self, shelf: Path, http: HttpGetter
    ) -> None:
        source = LocalSource(SourceContext(http=http, workspace=shelf))
        wanted = RemoteProgram(source="local", ref="quality")
        assert source.complete(wanted) == RemoteProgram(source="local", ref=PATH)
        assert fetch(source, wanted).entry == "q.py"

    def test_may_be_in_a_folder_that_is_named_from_the_workspace(self, source: LocalSource) -> None:
        wanted = RemoteProgram(source="local", ref="quality", repository="shelf")
        assert source.complete(wanted).repository == "shelf"
        assert fetch(source, wanted).entry == "q.py"

    def test_is_refused_where_it_is_not_listed(self, source: LocalSource, shelf: Path) -> None:
        error = refusal(source, program(shelf, "qualty"))
        assert str(error) == "'qualty' is not listed in 'shelf/index.yaml'"
        assert error.hint == "did you mean 'quality'?"

    def test_is_refused_where_it_is_there_but_not_listed(
        self, source: LocalSource, shelf: Path
    ) -> None:
        error = refusal(source, program(shelf, "secret.txt"))
        assert error.hint == "add its name and path to the index"

    def test_has_no_revision(self, source: LocalSource, shelf: Path) -> None:
        error = refusal(source, program(shelf, revision="main"))
        assert str(error) == "a local evaluator has no revision"

    def test_has_its_digest_written_in_one_way(self, source: LocalSource, shelf: Path) -> None:
        assert source.complete(program(shelf, sha256="AB" * 32)).sha256 == "ab" * 32

    def test_needs_an_index(self, source: LocalSource, shelf: Path) -> None:
        error = refusal(source, program(shelf / "own evals"))
        assert str(error) == "shelf/own evals/index.yaml does not exist"
        assert error.hint == "set `repo` to the folder with index.yaml"

    def test_is_named_in_full_outside_of_the_workspace(
        self, source: LocalSource, tmp_path: Path
    ) -> None:
        error = refusal(source, program(tmp_path))
        assert str(error) == f"{tmp_path}/index.yaml does not exist"

    def test_is_not_what_a_broken_index_names(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "index.yaml").write_text("evaluators: 7")
        message = "shelf/index.yaml has no `evaluators` list"
        assert str(refusal(source, program(shelf))) == message

    def test_is_pinned_by_the_workspace(self, source: LocalSource, shelf: Path) -> None:
        source.pin(program(shelf), "sha256:0")


class TestADigest:
    def test_is_the_same_for_the_same_files(self, source: LocalSource, shelf: Path) -> None:
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
    def test_changes_with_every_file(self, source: LocalSource, shelf: Path, change: str) -> None:
        digest = source.resolve(program(shelf))
        assert os.system(f"cd '{shelf}/own evals/q' && {change}") == 0
        assert source.resolve(program(shelf)) != digest

    def test_is_what_the_files_must_still_have(self, source: LocalSource, shelf: Path) -> None:
        digest = source.resolve(program(shelf))
        (shelf / PATH).write_text("evil")
        with pytest.raises(PermanentFetchError) as error:
            source.fetch(program(shelf), digest, paths=())
        assert str(error.value) == f"the folder of '{PATH}' has changed"
        assert error.value.hint == "if the change is intended, run `agentci lock`"


class TestAFolder:
    def test_comes_without_what_tools_left_behind(self, source: LocalSource, shelf: Path) -> None:
        assert fetch(source, program(shelf)) == ProgramSnapshot(
            entry="q.py",
            files={
                "q.py": ProgramFile(content=b"print('{}')"),
                "run": ProgramFile(content=b"#!/bin/sh\n", executable=True),
                "words/日本.txt": ProgramFile(content=b"good"),
            },
        )

    def test_of_the_index_itself_gives_what_belongs_to_the_program_alone(
        self, source: LocalSource, shelf: Path
    ) -> None:
        assert set(fetch(source, program(shelf, "root")).files) == {"root.py", "requirements.txt"}

    def test_holds_the_program(self, source: LocalSource, shelf: Path) -> None:
        error = refusal(source, program(shelf, "gone"))
        message = "'gone/gone.py', which 'shelf/index.yaml' lists, is not a file"
        assert (str(error), error.hint) == (message, "correct its path in the index")

    def test_is_no_program(self, source: LocalSource, shelf: Path) -> None:
        assert "is not a file" in str(refusal(source, program(shelf, "folder")))

    def test_hides_no_program(self, source: LocalSource, shelf: Path) -> None:
        assert "is hidden" in str(refusal(source, program(shelf, "hidden")))

    def test_may_link_files_inside_of_it(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / "again.py").symlink_to("q.py")
        assert fetch(source, program(shelf)).files["again.py"].content == b"print('{}')"

    @pytest.mark.parametrize("target", ["../../secret.txt", "/etc/passwd"])
    def test_may_not_link_files_outside_of_it(
        self, source: LocalSource, shelf: Path, target: str
    ) -> None:
        (shelf / "own evals" / "q" / "x.txt").symlink_to(target)
        message = "'x.txt' is a symbolic link out of its folder"
        assert str(refusal(source, program(shelf))) == message

    def test_may_not_link_folders(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / "x").symlink_to("words")
        assert str(refusal(source, program(shelf))) == "'x' is a link to a folder"

    def test_may_not_lie_elsewhere(self, source: LocalSource, shelf: Path) -> None:
        (shelf.parent / "gone").mkdir()
        (shelf.parent / "gone" / "gone.py").write_text("1")
        (shelf / "gone").symlink_to("../gone")
        message = "'gone/gone.py' is a symbolic link out of its folder"
        assert str(refusal(source, program(shelf, "gone"))) == message

    def test_may_not_hold_pipes(self, source: LocalSource, shelf: Path) -> None:
        os.mkfifo(shelf / "own evals" / "q" / "pipe")
        assert str(refusal(source, program(shelf))) == "'pipe' is not a regular file"

    def test_may_not_hold_names_that_are_no_text(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / os.fsdecode(b"\xff")).write_text("x")
        assert str(refusal(source, program(shelf))) == (
            r"the file name '\udcff' has a character that is not allowed"
        )

    def test_may_not_hold_names_that_differ_in_case_alone(
        self, source: LocalSource, shelf: Path
    ) -> None:
        (shelf / "own evals" / "q" / "Q.py").write_text("x")
        assert "are the same file on case-insensitive file systems" in str(
            refusal(source, program(shelf))
        )

    def test_may_not_hold_too_many_files(self, source: LocalSource, shelf: Path) -> None:
        for index in range(MAX_FILES):
            (shelf / "own evals" / "q" / str(index)).touch()
        assert "more than 200 files" in str(refusal(source, program(shelf)))

    def test_may_not_hold_large_files(self, source: LocalSource, shelf: Path) -> None:
        with (shelf / "own evals" / "q" / "large").open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)
        assert str(refusal(source, program(shelf))) == "'large' is larger than 5 MiB"

    def test_that_cannot_be_read_is_out_of_reach(self, source: LocalSource, shelf: Path) -> None:
        (shelf / "own evals" / "q" / "x.txt").symlink_to("nowhere")
        with pytest.raises(UnreachableError, match=r"'x\.txt' cannot be read: No such file"):
            source.resolve(program(shelf))

    def test_that_cannot_be_listed_is_out_of_reach(self, source: LocalSource, shelf: Path) -> None:
        own = shelf / "own evals" / "q"
        here = os.open(own, os.O_RDONLY)
        for _ in range(20):  # deeper than a path can say
            os.mkdir("x" * 250, dir_fd=here)
            here, before = os.open("x" * 250, os.O_RDONLY, dir_fd=here), here
            os.close(before)
        os.close(here)
        with pytest.raises(UnreachableError, match="cannot be read: File name too long"):
            source.resolve(program(shelf))
        shutil.rmtree(own)


class TestTheCatalogue:
    def test_is_the_index_of_the_workspace(self, shelf: Path, http: HttpGetter) -> None:
        listings = LocalSource(SourceContext(http=http, workspace=shelf)).catalogue()
        assert [listing.name for listing in listings] == [
            *("quality", "root", "gone", "hidden", "folder")
        ]
        assert {listing.source for listing in listings} == {"local"}

    def test_is_empty_where_there_is_none(self, source: LocalSource) -> None:
        assert source.catalogue() == ()
