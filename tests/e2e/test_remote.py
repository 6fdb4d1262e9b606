"""Remote evaluators are fetched, verified, cached and run."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.remote import PROGRAM, REF, REPOSITORY, agentci, configure, files, scores
from tests.helpers.support import cache_of
from tests.remote.sources.fake_github import FakeGitHub, rate_limited


class TestRun:
    def test_run_fetches_whole_folder_of_evaluator(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "run")
        [result] = ran.results["results"]
        assert (ran.code, result["status"], result["score"]) == (0, "passed", 0.75)
        assert result["type"] == "remote"

    def test_provenance_is_reported(self, folder: Path, github: FakeGitHub) -> None:
        commit = github.publish(REPOSITORY, files())
        [provenance] = agentci(folder, github, "run").results["provenance"]
        digest = provenance.pop("digest")
        assert provenance == {
            "config": "agentci.yaml",
            "evaluator": "fixed",
            "source": "github",
            "repository": REPOSITORY,
            "revision": "main",
            "ref": REF,
            "commit": commit,
        }
        github.publish(REPOSITORY, files("1.0"))
        assert agentci(folder, github, "run").results["provenance"][0]["digest"] != digest

    def test_second_run_resolves_only_commit(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        before = github.count()
        assert scores(agentci(folder, github, "run")) == [0.75]
        assert [each.kind for each in github.asked[before:]] == ["commit"]

    def test_cached_pinned_commit_needs_no_request(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        agentci(folder, github, "run")
        before = github.count()
        assert scores(agentci(folder, github, "run")) == [0.75]
        assert github.count() == before

    def test_no_cache_option_fetches_again(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        before = github.count("raw")
        assert scores(agentci(folder, github, "run", "--no-cache")) == [0.75]
        assert github.count("raw") == 2 * before

    def test_moved_branch_is_followed_with_warning(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, "branch: main")
        github.publish(REPOSITORY, files("0.75"))
        agentci(folder, github, "run")
        commit = github.publish(REPOSITORY, files("1.0"))
        ran = agentci(folder, github, "run")
        assert scores(ran) == [1.0]
        [problem] = ran.results["problems"]
        assert problem["severity"] == "warning"
        assert problem["place"]["line"] == 6
        assert f"rev: {commit}" in problem["hint"]

    def test_pinned_commit_causes_no_warning(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        assert agentci(folder, github, "run").results["problems"] == []

    def test_repository_and_branch_come_from_environment(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish("ours/evals", files("0.25"), branch="stable")
        ran = agentci(
            folder,
            github,
            "run",
            AGENTEVALS_EVALUATOR_REPO="ours/evals",
            AGENTEVALS_EVALUATOR_BRANCH="stable",
        )
        assert scores(ran) == [0.25]

    def test_cache_separates_repositories_and_branches(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files("0.1"))
        github.publish(REPOSITORY, files("0.2"), branch="dev")
        github.publish("ours/evals", files("0.3"))
        found = []
        for more in ("branch: main", "branch: dev", "repo: ours/evals"):
            configure(folder, more)
            found += scores(agentci(folder, github, "run"))
        assert found == [0.1, 0.2, 0.3]

    def test_evaluator_with_two_names_is_fetched_once(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        configure(folder)
        config = folder / "agentci.yaml"
        entry = config.read_text().partition("evaluators:\n")[2]
        config.write_text(config.read_text() + entry.replace("name: fixed", "name: again"))
        assert scores(agentci(folder, github, "run")) == [0.75, 0.75]
        assert github.count("raw") == 3

    def test_github_token_is_hidden_from_evaluator(self, folder: Path, github: FakeGitHub) -> None:
        github.token = "hush"
        github.publish(REPOSITORY, files() | {REF: f"import os\nassert 'hush' not in "
                                              f"str(os.environ)\n{PROGRAM}"})  # fmt: skip
        assert scores(agentci(folder, github, "run", GITHUB_TOKEN="hush")) == [0.75]

    def test_token_of_enterprise_server_is_not_sent_elsewhere(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        job = {"GITHUB_TOKEN": "hush", "GITHUB_API_URL": "https://github.example.com/api/v3"}
        assert scores(agentci(folder, github, "run", **job)) == [0.75]
        assert not [each for each in github.asked if "authorization" in each.headers]


class TestErrors:
    def test_missing_ref_is_rejected_with_suggestion(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, {"evaluators/fixed/fixd.py": PROGRAM})
        ran = agentci(folder, github, "run")
        assert ran.code == 2
        [problem] = ran.results["problems"]
        assert problem["place"]["line"] == 5
        assert problem["hint"] == "did you mean 'evaluators/fixed/fixd.py'?"

    @pytest.mark.parametrize(
        "ref", ["../x.py", "/etc/x.py", "a/%2e%2e/x.py", "a//x.py", "a\\\\x.py"]
    )
    def test_ref_outside_repository_is_rejected_before_any_request(
        self, folder: Path, github: FakeGitHub, ref: str
    ) -> None:
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, f'"{ref}"'))
        for command in ("validate", "run"):
            ran = agentci(folder, github, command)
            assert (ran.code, github.count()) == (2, 0)
            assert "agentci.yaml:5:10" in ran.out
            assert "the ref" in ran.out

    def test_rate_limited_server_errors_only_remote_checks(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.answers["commit"] = rate_limited
        (folder / "own.py").write_text("print('{\"score\": 1}')")
        config = folder / "agentci.yaml"
        config.write_text(config.read_text() + "  - {name: own, type: code, path: own.py}\n")
        ran = agentci(folder, github, "run")
        fixed, own = ran.results["results"]
        assert (ran.code, fixed["status"], own["status"]) == (3, "errored", "passed")
        assert "could not be fetched" in fixed["reason"]
        assert "GITHUB_TOKEN" in fixed["reason"]

    @pytest.mark.parametrize("address", ["https://[::1", "nonsense", "ftp://h", "http://h"])
    def test_invalid_github_api_url_is_rejected(
        self, folder: Path, github: FakeGitHub, address: str
    ) -> None:
        ran = agentci(folder, github, "run", AGENTCI_GITHUB_API_URL=address, GITHUB_TOKEN="hush")
        [problem] = ran.results["problems"]
        assert ran.code == 2
        assert "https" in problem["hint"]

    def test_unknown_source_is_reported_with_location(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        configure(folder, "source: gitbuh")
        ran = agentci(folder, github, "validate")
        assert ran.code == 2
        assert "agentci.yaml:6:13" in ran.out
        assert "did you mean 'github'?" in ran.out

    def test_corrupt_cache_is_fetched_again(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        [score] = cache_of(folder).rglob("score.txt")
        score.write_text("1.0")
        assert scores(agentci(folder, github, "run")) == [0.75]

    def test_unwritable_cache_is_warning(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        cache_of(folder).touch()
        ran = agentci(folder, github, "run")
        assert scores(ran) == [0.75]
        assert any("is not writable" in each["message"] for each in ran.results["problems"])


class TestSha256:
    def test_sha256_mismatch_is_rejected(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"sha256: {'a' * 64}")
        github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "run")
        assert ran.code == 2
        assert "sha256" in ran.results["problems"][0]["message"]

    def test_sha256_is_verified_for_cached_file(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        configure(folder, f"sha256: {'a' * 64}")
        assert agentci(folder, github, "run").code == 2


class TestOffline:
    def test_offline_run_uses_cache(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        agentci(folder, github, "run")
        before = github.count()
        assert scores(agentci(folder, github, "run", "--offline")) == [0.75]
        assert github.count() == before

    def test_offline_run_reports_all_missing_evaluators(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        with (folder / "agentci.yaml").open("a") as config:
            config.write("  - {name: other, type: remote, ref: evaluators/other/other.py}\n")
        ran = agentci(folder, github, "run", "--offline")
        first, second = (each["message"] for each in ran.results["problems"])
        assert (ran.code, github.count()) == (2, 0)
        assert f"{REF} of {REPOSITORY} at" in first
        assert "is not in the cache" in first
        assert "the commit of main of" in second

    def test_offline_and_no_cache_are_exclusive(self, folder: Path, github: FakeGitHub) -> None:
        ran = agentci(folder, github, "run", "--offline", "--no-cache")
        assert (ran.code, len(ran.problems)) == (2, 1)


class TestOtherSources:
    def test_local_source_reads_folder_with_index(self, folder: Path, github: FakeGitHub) -> None:
        vendored = folder / "vendor" / "evaluators" / "fixed"
        vendored.mkdir(parents=True)
        (vendored / "fixed.py").write_text(PROGRAM)
        (vendored / "score.txt").write_text("0.5")
        (folder / "vendor" / "index.yaml").write_text(
            f"evaluators: [{{name: fixed, path: {REF}, language: python}}]\n"
        )
        configure(folder, "source: local", "repo: vendor")
        assert scores(agentci(folder, github, "run")) == [0.5]
        (vendored / "score.txt").write_text("0.75")
        assert scores(agentci(folder, github, "run")) == [0.75]

    def test_local_source_outside_workspace_is_rejected(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        configure(folder, "source: local", "repo: ..")
        ran = agentci(folder, github, "validate")
        assert ran.code == 2
        assert ".. is outside the workspace" in ran.out

    def test_url_source_requires_sha256(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, "source: url")
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, "https://example.com/fixed.py"))
        ran = agentci(folder, github, "validate")
        assert ran.code == 2
        assert "sha256" in ran.out


def test_plan_sends_no_requests(folder: Path, github: FakeGitHub) -> None:
    ran = agentci(folder, github, "plan")
    assert (ran.code, github.count()) == (0, 0)
    assert f"run {REF} (github: {REPOSITORY} at main)" in ran.out


def test_agentevals_cache_is_not_used(
    folder: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "home" / ".cache" / "agentevals" / "evaluators" / "github"
    (theirs / REF).parent.mkdir(parents=True)
    (theirs / REF).write_text("print('{\"score\": 1}')")
    monkeypatch.setenv("HOME", str(folder / "home"))
    github.publish(REPOSITORY, files("0.5"))
    assert scores(agentci(folder, github, "run")) == [0.5]
    shutil.rmtree(theirs)
