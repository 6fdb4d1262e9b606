"""A release: what is refused, what its page says, and the tags that it leaves at the remote."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.helpers.support import ROOT

IMAGE = f"ghcr.io/org/agent-eval-action@sha256:{'ab' * 32}"
CHANGELOG = """# Changelog

## [Unreleased]

### Added

## [1.2.3] - 2026-11-22

### Fixed
- A gate that was shut opens.

## [1.2.2] - 2026-10-01

### Fixed
- Another one.
"""
SOMEBODY = {
    f"GIT_{who}_{what}": "ci@example.invalid"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


class Checkout:
    """The files that a release is made of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        for name in ("action.yml", "scripts/release.py", "scripts/publish_tags.sh"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.folder / name)
        (self.folder / "agentci").mkdir()
        self.write("CHANGELOG.md", CHANGELOG)
        self.version("1.2.3")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def version(self, version: str) -> None:
        self.write("agentci/version.py", f'"""The version."""\n\n__version__ = "{version}"\n')

    def script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "scripts.release", *arguments)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )


class Repository(Checkout):
    """A checkout with a remote beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.remote = folder / "remote.git"
        self._git("init", "--quiet", "--bare", str(self.remote), cwd=folder)
        self.git("init", "--quiet")
        self.git("remote", "add", "origin", str(self.remote))
        self.commit("1.2.3")
        self.git("push", "--quiet", "origin", "HEAD:refs/heads/main")

    def commit(self, version: str) -> None:
        """The code of ``version``, committed and checked out."""
        self.version(version)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", version)

    def tag(self, name: str, *options: str) -> None:
        """A tag on what is checked out, here and at the remote."""
        self.git("tag", *options, name)
        self.git("push", "--quiet", "origin", f"refs/tags/{name}")

    def release(self, tag: str) -> subprocess.CompletedProcess[str]:
        return self.run("bash", "scripts/publish_tags.sh", tag, IMAGE)

    def git(self, *arguments: str) -> str:
        return self._git(*arguments, cwd=self.folder)

    def at_the_remote(self, name: str) -> str:
        """What a branch or tag names there."""
        return self._git("rev-parse", f"{name}^{{commit}}", cwd=self.remote)

    def action_at_the_remote(self, name: str) -> str:
        text = self._git("show", f"{name}:action.yml", cwd=self.remote)
        image: str = yaml.safe_load(text)["runs"]["image"]
        return image

    @staticmethod
    def _git(*arguments: str, cwd: Path) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env=_environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()


def _environment() -> Mapping[str, str]:
    """Without the machine's own settings of git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, **SOMEBODY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


class TestATag:
    def test_is_released_when_code_and_changelog_say_the_same(self, checkout: Checkout) -> None:
        assert checkout.script("check", "v1.2.3").returncode == 0

    @pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2.3-rc.1", "v1"])
    def test_that_is_not_the_version_of_the_code_is_refused(
        self, checkout: Checkout, tag: str
    ) -> None:
        done = checkout.script("check", tag)
        assert done.returncode == 1
        assert done.stderr == f"the tag is {tag}, but agentci/version.py says 1.2.3\n"

    def test_of_which_the_changelog_knows_nothing_is_refused(self, checkout: Checkout) -> None:
        checkout.version("1.3.0")
        done = checkout.script("check", "v1.3.0")
        assert done.returncode == 1
        assert done.stderr == "CHANGELOG.md says nothing under ## [1.3.0] - YYYY-MM-DD\n"

    def test_is_refused_while_changes_wait_for_a_version(self, checkout: Checkout) -> None:
        checkout.write("CHANGELOG.md", CHANGELOG.replace("### Added\n", "### Added\n- More.\n"))
        done = checkout.script("check", "v1.2.3")
        assert done.returncode == 1
        assert "[Unreleased]" in done.stderr

    def test_of_a_version_that_is_none_is_refused(self, checkout: Checkout) -> None:
        checkout.version("1.2")
        assert checkout.script("check", "v1.2").returncode == 1


def test_the_page_of_a_release_has_its_part_of_the_changelog_and_its_image(
    checkout: Checkout,
) -> None:
    assert checkout.script("notes", "v1.2.3", IMAGE).stdout == (
        f"### Fixed\n- A gate that was shut opens.\n\n### Image\n`{IMAGE}`\n"
    )


@pytest.mark.parametrize("image", ["ghcr.io/org/x:1.2.3", "ghcr.io/Org/x@sha256:" + "ab" * 32, ""])
def test_an_image_that_is_not_named_by_its_digest_is_refused(
    checkout: Checkout, image: str
) -> None:
    done = checkout.script("pin", image)
    assert done.returncode == 1
    assert (checkout.folder / "action.yml").read_text() == (ROOT / "action.yml").read_text()


@pytest.mark.parametrize("arguments", [[], ["check"], ["pin", "a", "b"], ["publish"]])
def test_a_wrong_call_is_told_the_right_ones(checkout: Checkout, arguments: list[str]) -> None:
    done = checkout.script(*arguments)
    assert (done.returncode, done.stderr.split(":")[0]) == (1, "usage")


class TestPublishing:
    @pytest.mark.parametrize("kind", [[], ["--annotate", "--message", "1.2.3"]])
    def test_moves_the_tag_to_a_commit_whose_action_runs_the_image(
        self, repository: Repository, kind: list[str]
    ) -> None:
        built = repository.git("rev-parse", "HEAD")
        repository.tag("v1.2.3", *kind)

        done = repository.release("v1.2.3")

        released = repository.at_the_remote("v1.2.3")
        assert (done.returncode, done.stdout) == (0, f"{released}\n"), done.stderr
        assert repository.action_at_the_remote("v1.2.3") == f"docker://{IMAGE}"
        assert repository.git("rev-parse", f"{released}^") == built
        assert repository.git("diff", "--name-only", built, released) == "action.yml"

    def test_leaves_main_with_its_dockerfile(self, repository: Repository) -> None:
        repository.tag("v1.2.3")
        repository.release("v1.2.3")
        assert repository.action_at_the_remote("main") == "Dockerfile"

    def test_has_the_major_version_follow(self, repository: Repository) -> None:
        for version in ("1.9.0", "1.10.0"):
            repository.commit(version)
            repository.tag(f"v{version}")
            assert repository.release(f"v{version}").returncode == 0
            assert repository.at_the_remote("v1") == repository.at_the_remote(f"v{version}")
            repository.git("checkout", "--quiet", "HEAD^")

    def test_of_an_older_line_leaves_the_major_version_where_it_is(
        self, repository: Repository
    ) -> None:
        for version in ("1.10.0", "1.9.1"):
            repository.commit(version)
            repository.tag(f"v{version}")
            assert repository.release(f"v{version}").returncode == 0
            repository.git("checkout", "--quiet", "HEAD^")
        assert repository.at_the_remote("v1") == repository.at_the_remote("v1.10.0")

    def test_of_a_candidate_moves_no_major_version(self, repository: Repository) -> None:
        repository.commit("2.0.0rc1")
        repository.tag("v2.0.0rc1")
        assert repository.release("v2.0.0rc1").returncode == 0
        assert repository.git("ls-remote", "origin", "refs/tags/v2") == ""

    def test_twice_is_the_same_as_once(self, repository: Repository) -> None:
        built = repository.git("rev-parse", "HEAD")
        repository.tag("v1.2.3")
        once = repository.release("v1.2.3").stdout
        repository.git("checkout", "--quiet", built)
        assert repository.release("v1.2.3").stdout == once

    def test_overwrites_no_tag_that_was_moved_meanwhile(self, repository: Repository) -> None:
        repository.tag("v1.2.3")
        built = repository.git("rev-parse", "HEAD")
        repository.commit("1.2.4")
        elsewhere = repository.git("rev-parse", "HEAD")
        repository.git("push", "--quiet", "--force", "origin", "HEAD:refs/tags/v1.2.3")
        repository.git("checkout", "--quiet", built)

        done = repository.release("v1.2.3")

        assert done.returncode == 1
        assert f"v1.2.3 is at {elsewhere} and not at {built} any more" in done.stderr
        assert repository.at_the_remote("v1.2.3") == elsewhere

    def test_needs_the_tag_of_a_release(self, repository: Repository) -> None:
        done = repository.release("v1")
        assert (done.returncode, done.stderr) == (1, "v1 is no tag of a release\n")
