"""The files of the base commit, from git and from GitHub."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from agentci.config.settings import parse_settings
from agentci.github.baseline import base_files
from agentci.github.baseline.base_files import BaseFiles, BaseFilesFetcher, NoBaseFilesError
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.api.git_data import GitData
from tests.github.api.hub import Hub, running_hub
from tests.github.api.past import WORKFLOW, Past
from tests.helpers.repositories import commit, git, repository
from tests.helpers.support import make_session

LARGE = 11 * 1024**2
# Makes a workflow step; also returns the commit before, and its files at GitHub.
MakeStep: TypeAlias = Callable[..., tuple[BaseFilesFetcher, str, GitData]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "agent")


def fetcher(cwd: Path, *options: str, **environ: str) -> BaseFilesFetcher:
    session = make_session(cwd, environ)
    settings = parse_settings([], {name: ["true"] for name in options})
    return BaseFilesFetcher(settings, session.services, session.workflow)


def contents(files: BaseFiles) -> Mapping[str, bytes]:
    folder = files.workspace.root
    paths = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {
        str(path.relative_to(folder)): (
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        )
        for path in paths
    }


class TestFilesFromGit:
    def test_files_are_those_of_the_commit(self, root: Path) -> None:
        (root / "evals").mkdir()
        (root / "evals" / "é ü.json").write_bytes(b"\r\n\0\xff")
        (root / "empty").touch()
        (root / "run.sh").write_text("#!/bin/sh\n")
        (root / "run.sh").chmod(0o755)
        base = commit(root)
        (root / "empty").write_text("changed")
        (root / "untracked").touch()
        commit(root)
        kept = fetcher(root)
        files = kept.fetch(base)
        assert contents(files) == {
            "evals/é ü.json": b"\r\n\0\xff",
            "empty": b"",
            "run.sh": b"#!/bin/sh\n",
        }
        assert (files.commit, files.source) == (base, "git")
        assert os.access(files.workspace.root / "run.sh", os.X_OK)
        assert kept.fetch(base) is files

    def test_working_directory_is_the_same(self, root: Path) -> None:
        (root / "evals").mkdir()
        (root / "evals" / "agentci.yaml").touch()
        base = commit(root)
        kept = fetcher(root)
        workspace = kept.fetch(base).workspace
        assert workspace.cwd == workspace.root
        session = make_session(
            root / "evals", {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(root)}
        )
        kept = BaseFilesFetcher(parse_settings([], {}), session.services, session.workflow)
        workspace = kept.fetch(base).workspace
        assert workspace.cwd == workspace.root / "evals"

    def test_checkout_below_the_workspace_stays_below(self, root: Path) -> None:
        (root / "a").touch()
        base = commit(root)
        session = make_session(
            root, {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(root.parent)}
        )
        kept = BaseFilesFetcher(parse_settings([], {}), session.services, session.workflow)
        assert contents(kept.fetch(base)) == {"agent/a": b""}

    def test_many_and_large_files_are_complete(self, root: Path) -> None:
        big = os.urandom(1024) * (LARGE // 1024)
        (root / "large.json").write_bytes(big)
        for number in range(8):
            (root / f"{number}.json").write_bytes(b"%d" % number * 1024**2)
        base = commit(root)
        kept = fetcher(root)
        found = contents(kept.fetch(base))
        assert len(found) == 9
        assert found["large.json"] == big
        assert found["7.json"] == b"7" * 1024**2
        assert not (root / ".git" / "large").exists()
        assert git(root, "status", "--porcelain") == ""

    def test_git_attributes_change_no_content_and_run_no_filter(
        self, root: Path, tmp_path: Path
    ) -> None:
        (root / ".gitattributes").write_text(
            "hidden export-ignore\nsubst export-subst\n* filter=evil eol=crlf ident\n"
        )
        (root / "hidden").write_text("a\n")
        (root / "subst").write_text("$Format:%H$ $Id$\n")
        base = commit(root)
        ran = tmp_path / "ran"
        for kind in ("smudge", "clean", "process"):
            git(root, "config", f"filter.evil.{kind}", f"touch {ran}")
        kept = fetcher(root)
        found = contents(kept.fetch(base))
        assert (found["hidden"], found["subst"]) == (b"a\n", b"$Format:%H$ $Id$\n")
        assert not ran.exists()

    def test_links_out_of_the_repository_are_left_out(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("secret")
        (root / "sub").mkdir()
        (root / "sub" / "file").write_text("inside")
        links = {"in": "sub/file", "folder": "sub", "up": "../secret", "far": str(tmp_path)}
        links |= {"sub/top": "..", "chain": "sub/top/../secret", "loop": "loop"}
        for name, target in links.items():
            (root / name).symlink_to(target)
        base = commit(root)
        kept = fetcher(root)
        files = kept.fetch(base)
        assert set(contents(files)) == {"sub/file", "in", "folder", "sub/top", "loop"}
        assert (files.workspace.root / "in").read_text() == "inside"

    def test_submodules_are_left_out(self, root: Path) -> None:
        commit(repository(root / "sub"))
        (root / "a").touch()
        base = commit(root)
        kept = fetcher(root)
        assert contents(kept.fetch(base)) == {"a": b""}

    def test_programs_of_the_repository_settings_are_not_started(self, root: Path) -> None:
        (root / "a").write_text("a")
        base = commit(root)
        git(root, "config", "core.fsmonitor", "touch ran;")
        git(root, "config", "core.pager", "touch ran;")
        git(root, "config", "core.hooksPath", "hooks")
        kept = fetcher(root)
        assert contents(kept.fetch(base)) == {"a": b"a"}
        assert not (root / "ran").exists()

    def test_committed_repository_is_not_that_of_the_checkout(
        self, root: Path, tmp_path: Path
    ) -> None:
        (root / "agentci.yaml").write_text("strict")
        base = commit(root)
        (root / "lenient").write_text("lenient")
        strict, lenient = (
            git(root, "hash-object", "-w", name) for name in ("agentci.yaml", "lenient")
        )
        # `actions/checkout` downloads the pull request where git is missing. This one contains the
        # files of a bare repository, in which a file of the base has other content.
        checkout = tmp_path / "checkout"
        shutil.copytree(root / ".git", checkout)
        content = (checkout / "objects" / lenient[:2] / lenient[2:]).read_bytes()
        forged = checkout / "objects" / strict[:2] / strict[2:]
        forged.unlink()
        forged.write_bytes(content)
        assert git(checkout, "show", f"{base}:agentci.yaml") == "lenient"
        with pytest.raises(NoBaseFilesError, match="there is no git repository"):
            fetcher(checkout, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(checkout)).fetch(base)

    def test_partial_clone_fetches_nothing(self, root: Path, tmp_path: Path) -> None:
        (root / "a").write_text("a")
        base = commit(root)
        git(root, "config", "uploadpack.allowFilter", "true")
        source = f"file://{root}"
        git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", source, "mine")
        with pytest.raises(NoBaseFilesError, match="are not available: git "):
            fetcher(tmp_path / "mine").fetch(base)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
    def test_repository_of_another_user_is_read(self, root: Path) -> None:
        (root / "a").write_text("a")
        base = commit(root)
        for path in (root, *root.rglob("*")):
            os.chown(path, 1234, 1234)
        kept = fetcher(root)
        assert contents(kept.fetch(base)) == {"a": b"a"}


class TestBounds:
    def test_too_many_files_are_a_reason(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(base_files, "MAX_FILES", 2)
        for name in "abc":
            (root / name).touch()
        base = commit(root)
        with pytest.raises(NoBaseFilesError, match=f"^{base[:12]} has more than 2 files$"):
            fetcher(root).fetch(base)

    def test_too_large_files_are_a_reason(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(base_files, "MAX_TOTAL_BYTES", 1024**2)
        (root / "a").write_bytes(bytes(1024**2 + 1))
        base = commit(root)
        with pytest.raises(NoBaseFilesError, match=r"has more than 1 MiB of files$"):
            fetcher(root).fetch(base)


class TestBaseCommit:
    def test_branch_has_its_merge_base(self, root: Path) -> None:
        (root / "a").write_text("before")
        base = commit(root)
        git(root, "checkout", "--quiet", "-b", "topic")
        (root / "a").write_text("after")
        head = commit(root)
        kept = fetcher(root)
        files = kept.fetch_base(head)
        assert (files.commit, contents(files)) == (base, {"a": b"before"})

    def test_main_branch_has_its_last_commit(self, root: Path) -> None:
        (root / "a").write_text("before")
        head = commit(root)
        (root / "a").write_text("after")
        kept = fetcher(root)
        assert contents(kept.fetch_base(head)) == {"a": b"before"}

    def test_unknown_commit_is_a_reason(self, root: Path) -> None:
        with pytest.raises(NoBaseFilesError, match="the commit of this run is unknown"):
            fetcher(root).fetch_base("")

    def test_missing_main_branch_is_a_reason(self, root: Path) -> None:
        head = commit(root)
        git(root, "branch", "--move", "trunk")
        with pytest.raises(NoBaseFilesError, match="no branch main or master"):
            fetcher(root).fetch_base(head)

    def test_schedule_has_no_base(self, root: Path) -> None:
        head = commit(root)
        step = fetcher(root, GITHUB_ACTIONS="true", GITHUB_EVENT_NAME="schedule")
        with pytest.raises(NoBaseFilesError, match="the event `schedule` has no base commit"):
            step.fetch_base(head)

    def test_github_is_not_called_outside_workflows(self, root: Path) -> None:
        commit(root)
        with pytest.raises(NoBaseFilesError, match="GitHub is searched only in a workflow"):
            fetcher(root).fetch("5d41" * 10)


@NEEDS_DESCRIPTION
class TestFilesFromGitHub:
    @pytest.fixture
    def hub(self) -> Iterator[Hub]:
        with running_hub() as hub:
            yield hub

    @pytest.fixture
    def make_step(self, hub: Hub, root: Path, tmp_path: Path) -> MakeStep:
        """A push that is checked out without its history."""

        def make(*options: str, **environ: str) -> tuple[BaseFilesFetcher, str, GitData]:
            before, past, data = commit(root), Past(hub), GitData(hub, root)
            after = commit(root, "the push")
            past.commit(before)
            past.commit(after)
            mine = tmp_path / "checkout"
            shutil.rmtree(mine, ignore_errors=True)
            git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{root}", "checkout")
            event = tmp_path / "event.json"
            event.write_text(f'{{"ref": "refs/heads/main", "before": "{before}"}}')
            given = {
                **hub.environ,
                "GITHUB_ACTIONS": "true",
                "GITHUB_EVENT_NAME": "push",
                "GITHUB_EVENT_PATH": str(event),
                "GITHUB_SHA": after,
                "GITHUB_WORKFLOW_REF": f"octo/agent/.github/workflows/{WORKFLOW}@refs/heads/main",
                **environ,
            }
            return fetcher(mine, *options, **given), before, data

        return make

    def test_files_come_from_one_archive(
        self,
        hub: Hub,
        root: Path,
        make_step: MakeStep,
    ) -> None:
        (root / "evals").mkdir()
        (root / "evals" / "é ü.json").write_bytes(b"\r\n\0\xff")
        (root / "run.sh").write_text("#!/bin/sh\n")
        (root / "run.sh").chmod(0o755)
        (root / "empty").touch()
        step, before, _ = make_step()
        files = step.fetch_base("0" * 39 + "1")
        assert (files.commit, files.source) == (before, "github")
        assert contents(files) == {
            "evals/é ü.json": b"\r\n\0\xff",
            "run.sh": b"#!/bin/sh\n",
            "empty": b"",
        }
        assert os.access(files.workspace.root / "run.sh", os.X_OK)
        assert step.fetch(before) is files
        asked = [each.operation for each in hub.asked]
        assert asked == ["git/get-tree", "repos/download-tarball-archive"]

    def test_files_that_the_archive_lacks_or_changes_are_downloaded(
        self,
        hub: Hub,
        root: Path,
        make_step: MakeStep,
    ) -> None:
        (root / ".gitattributes").write_text("hidden export-ignore\nsubst export-subst\n")
        (root / "hidden").write_text("a\n")
        (root / "subst").write_text("$Format:%H$\n")
        (root / "link").symlink_to("hidden")
        (root / "out").symlink_to("/etc")
        step, before, _ = make_step()
        found = contents(step.fetch(before))
        assert set(found) == {".gitattributes", "hidden", "subst", "link"}
        assert (found["hidden"], found["subst"], found["link"]) == (
            b"a\n",
            b"$Format:%H$\n",
            b"hidden",
        )
        assert hub.count("git/get-blob") == 4

    def test_archive_that_lacks_many_files_is_a_reason(
        self,
        root: Path,
        make_step: MakeStep,
    ) -> None:
        (root / ".gitattributes").write_text("hidden export-ignore\n")
        (root / "hidden").mkdir()
        for number in range(101):
            (root / "hidden" / str(number)).write_text(str(number))
        step, before, _ = make_step()
        with pytest.raises(NoBaseFilesError, match=r"lacks 101 files \(see `.gitattributes`\)"):
            step.fetch(before)

    def test_truncated_list_is_a_reason(self, make_step: MakeStep) -> None:
        step, before, data = make_step()
        data.truncated = True
        with pytest.raises(NoBaseFilesError, match="GitHub does not list all files"):
            step.fetch(before)

    def test_missing_permission_is_a_reason(self, hub: Hub, make_step: MakeStep) -> None:
        hub.denied.add("git/get-tree")
        step, before, _ = make_step()
        with pytest.raises(NoBaseFilesError, match="the job needs `permissions: contents: read`"):
            step.fetch(before)

    def test_damaged_archive_is_a_reason(
        self,
        hub: Hub,
        root: Path,
        make_step: MakeStep,
    ) -> None:
        (root / "a").touch()
        step, before, _ = make_step()
        served = hub.operations["repos/download-tarball-archive"]

        def cut(question: object) -> object:
            response = served(question)  # type: ignore[arg-type] # the question is only passed on
            hub.archives[before] = hub.archives[before][:-20]
            return response

        hub.operations["repos/download-tarball-archive"] = cut  # type: ignore[assignment] # as above
        with pytest.raises(NoBaseFilesError, match="the archive is broken"):
            step.fetch(before)

    def test_github_is_not_called_offline(self, hub: Hub, make_step: MakeStep) -> None:
        step, before, _ = make_step("offline")
        with pytest.raises(NoBaseFilesError, match="GitHub is not searched with --offline"):
            step.fetch(before)
        assert hub.asked == []

    def test_missing_token_is_a_reason(self, hub: Hub, make_step: MakeStep) -> None:
        step, before, _ = make_step(**{"INPUT_GITHUB-TOKEN": ""})
        with pytest.raises(NoBaseFilesError, match="no token for the GitHub API"):
            step.fetch(before)
        assert hub.asked == []
