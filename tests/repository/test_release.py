"""Releases: checks of the tag, release notes, and the published tags."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import uv
import yaml

from tests.helpers.support import ROOT

pytestmark = pytest.mark.slow

# With compiled bytecode, as pip installs it.
MAX_INSTALLED_BYTES = 60_000_000
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
IDENTITY = {
    f"GIT_{who}_{what}": "ci@example.invalid"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


class Checkout:
    """The files of a release."""

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
        """Commits and checks out the code of ``version``."""
        self.version(version)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", version)

    def tag(self, name: str, *options: str) -> None:
        """Tags the checked-out commit, here and at the remote."""
        self.git("tag", *options, name)
        self.git("push", "--quiet", "origin", f"refs/tags/{name}")

    def release(self, tag: str) -> subprocess.CompletedProcess[str]:
        return self.run("bash", "scripts/publish_tags.sh", tag, IMAGE)

    def git(self, *arguments: str) -> str:
        return self._git(*arguments, cwd=self.folder)

    def commit_at_remote(self, name: str) -> str:
        """The commit of a branch or tag at the remote."""
        return self._git("rev-parse", f"{name}^{{commit}}", cwd=self.remote)

    def action_at_remote(self, name: str) -> str:
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
    """An environment without the git settings of this machine."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**others, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


class TestReleaseCheck:
    def test_matching_tag_code_and_changelog_pass(self, checkout: Checkout) -> None:
        assert checkout.script("check", "v1.2.3").returncode == 0

    @pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2.3-rc.1", "v1"])
    def test_tag_must_match_code_version(self, checkout: Checkout, tag: str) -> None:
        done = checkout.script("check", tag)
        assert done.returncode == 1
        assert done.stderr == f"the tag is {tag}, but agentci/version.py says 1.2.3\n"

    def test_version_missing_in_changelog_is_rejected(self, checkout: Checkout) -> None:
        checkout.version("1.3.0")
        done = checkout.script("check", "v1.3.0")
        assert done.returncode == 1
        assert done.stderr == "CHANGELOG.md says nothing under ## [1.3.0] - YYYY-MM-DD\n"

    def test_unreleased_changes_block_release(self, checkout: Checkout) -> None:
        checkout.write("CHANGELOG.md", CHANGELOG.replace("### Added\n", "### Added\n- More.\n"))
        done = checkout.script("check", "v1.2.3")
        assert done.returncode == 1
        assert "[Unreleased]" in done.stderr

    def test_malformed_version_is_rejected(self, checkout: Checkout) -> None:
        checkout.version("1.2")
        assert checkout.script("check", "v1.2").returncode == 1


def test_release_notes_have_changelog_section_and_image(
    checkout: Checkout,
) -> None:
    assert checkout.script("notes", "v1.2.3", IMAGE).stdout == (
        f"### Fixed\n- A gate that was shut opens.\n\n### Image\n`{IMAGE}`\n"
    )


@pytest.mark.parametrize("image", ["ghcr.io/org/x:1.2.3", "ghcr.io/Org/x@sha256:" + "ab" * 32, ""])
def test_image_without_digest_is_rejected(checkout: Checkout, image: str) -> None:
    done = checkout.script("pin", image)
    assert done.returncode == 1
    assert (checkout.folder / "action.yml").read_text() == (ROOT / "action.yml").read_text()


@pytest.mark.parametrize("arguments", [[], ["check"], ["pin", "a", "b"], ["publish"]])
def test_invalid_arguments_print_usage(checkout: Checkout, arguments: list[str]) -> None:
    done = checkout.script(*arguments)
    assert (done.returncode, done.stderr.split(":")[0]) == (1, "usage")


class TestPublishTags:
    @pytest.mark.parametrize("kind", [[], ["--annotate", "--message", "1.2.3"]])
    def test_tag_moves_to_commit_with_pinned_image(
        self, repository: Repository, kind: list[str]
    ) -> None:
        built = repository.git("rev-parse", "HEAD")
        repository.tag("v1.2.3", *kind)

        done = repository.release("v1.2.3")

        released = repository.commit_at_remote("v1.2.3")
        assert (done.returncode, done.stdout) == (0, f"{released}\n"), done.stderr
        assert repository.action_at_remote("v1.2.3") == f"docker://{IMAGE}"
        assert repository.git("rev-parse", f"{released}^") == built
        assert repository.git("diff", "--name-only", built, released) == "action.yml"

    def test_main_keeps_dockerfile(self, repository: Repository) -> None:
        repository.tag("v1.2.3")
        repository.release("v1.2.3")
        assert repository.action_at_remote("main") == "Dockerfile"

    def test_major_tag_follows_latest_release(self, repository: Repository) -> None:
        for version in ("1.9.0", "1.10.0"):
            repository.commit(version)
            repository.tag(f"v{version}")
            assert repository.release(f"v{version}").returncode == 0
            assert repository.commit_at_remote("v1") == repository.commit_at_remote(f"v{version}")
            repository.git("checkout", "--quiet", "HEAD^")

    def test_release_of_older_line_keeps_major_tag(self, repository: Repository) -> None:
        for version in ("1.10.0", "1.9.1"):
            repository.commit(version)
            repository.tag(f"v{version}")
            assert repository.release(f"v{version}").returncode == 0
            repository.git("checkout", "--quiet", "HEAD^")
        assert repository.commit_at_remote("v1") == repository.commit_at_remote("v1.10.0")

    def test_release_candidate_moves_no_major_tag(self, repository: Repository) -> None:
        repository.commit("2.0.0rc1")
        repository.tag("v2.0.0rc1")
        assert repository.release("v2.0.0rc1").returncode == 0
        assert repository.git("ls-remote", "origin", "refs/tags/v2") == ""

    def test_second_run_changes_nothing(self, repository: Repository) -> None:
        built = repository.git("rev-parse", "HEAD")
        repository.tag("v1.2.3")
        once = repository.release("v1.2.3").stdout
        repository.git("checkout", "--quiet", built)
        assert repository.release("v1.2.3").stdout == once

    def test_tag_moved_by_others_is_not_overwritten(self, repository: Repository) -> None:
        repository.tag("v1.2.3")
        built = repository.git("rev-parse", "HEAD")
        repository.commit("1.2.4")
        elsewhere = repository.git("rev-parse", "HEAD")
        repository.git("push", "--quiet", "--force", "origin", "HEAD:refs/tags/v1.2.3")
        repository.git("checkout", "--quiet", built)

        done = repository.release("v1.2.3")

        assert done.returncode == 1
        assert f"v1.2.3 is at {elsewhere} and not at {built} any more" in done.stderr
        assert repository.commit_at_remote("v1.2.3") == elsewhere

    def test_tag_without_full_version_is_rejected(self, repository: Repository) -> None:
        done = repository.release("v1")
        assert (done.returncode, done.stderr) == (1, "v1 is no tag of a release\n")


@pytest.mark.timeout(600)
def test_base_install_is_small_and_runs(tmp_path: Path) -> None:
    tool, venv = uv.find_uv_bin(), tmp_path / "venv"
    subprocess.run([tool, "venv", "-q", "--python", sys.executable, venv], check=True)
    install = [tool, "pip", "install", "-q", "--system-certs", "--compile-bytecode"]
    done = subprocess.run(
        [*install, "--python", venv / "bin" / "python", ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"cannot install the package: {done.stderr.strip()}")
    ran = subprocess.run(
        [venv / "bin" / "agentci", "record", "--no-injection", "--", "true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr.startswith("error: no complete turn: no model call reached the recorder")
    files = [path for path in (venv / "lib").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MAX_INSTALLED_BYTES
    hooks = [path.name for path in files if path.parent.name == "injected"]
    assert {"agentci_ai_sdk.cjs", "sitecustomize.py"} <= {*hooks}
