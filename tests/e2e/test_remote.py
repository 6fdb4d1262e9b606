"""Evaluators that are kept elsewhere: fetched, verified, cached, locked, and then run as any."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.remote import PROGRAM, REF, REPOSITORY, agentci, configure, files, scores
from tests.remote.sources.fake_github import FakeGitHub, rate_limited


class TestRun:
    def test_takes_the_whole_folder_and_judges_by_it(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "run")
        [result] = ran.results["results"]
        assert (ran.code, result["status"], result["score"]) == (0, "passed", 0.75)
        assert result["type"] == "remote"

    def test_tells_what_the_evaluator_was(self, folder: Path, github: FakeGitHub) -> None:
        commit = github.publish(REPOSITORY, files())
        [told] = agentci(folder, github, "run").results["provenance"]
        digest = told.pop("digest")
        assert told == {
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

    def test_fetches_nothing_but_the_commit_the_second_time(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        before = github.count()
        assert scores(agentci(folder, github, "run")) == [0.75]
        assert [each.kind for each in github.asked[before:]] == ["commit"]

    def test_asks_nothing_at_all_for_a_commit_that_is_in_the_cache(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        agentci(folder, github, "run")
        before = github.count()
        assert scores(agentci(folder, github, "run")) == [0.75]
        assert github.count() == before

    def test_fetches_anew_where_the_cache_is_not_wanted(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        before = github.count("raw")
        assert scores(agentci(folder, github, "run", "--no-cache")) == [0.75]
        assert github.count("raw") == 2 * before

    def test_follows_a_branch_and_warns_with_the_pin_on_its_line(
        self, folder: Path, github: FakeGitHub
    ) -> None:
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

    def test_says_nothing_of_a_commit(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        assert agentci(folder, github, "run").results["problems"] == []

    def test_takes_repository_and_branch_from_the_environment(
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

    def test_keeps_repositories_and_branches_apart(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files("0.1"))
        github.publish(REPOSITORY, files("0.2"), branch="dev")
        github.publish("ours/evals", files("0.3"))
        found = []
        for more in ("branch: main", "branch: dev", "repo: ours/evals"):
            configure(folder, more)
            found += scores(agentci(folder, github, "run"))
        assert found == [0.1, 0.2, 0.3]

    def test_runs_the_same_evaluator_under_two_names_once_fetched(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        configure(folder)
        config = folder / "agentci.yaml"
        entry = config.read_text().partition("evaluators:\n")[2]
        config.write_text(config.read_text() + entry.replace("name: fixed", "name: again"))
        assert scores(agentci(folder, github, "run")) == [0.75, 0.75]
        assert github.count("raw") == 3

    def test_shows_the_token_to_github_and_never_to_the_evaluator(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.token = "hush"
        github.publish(REPOSITORY, files() | {REF: f"import os\nassert 'hush' not in "
                                              f"str(os.environ)\n{PROGRAM}"})  # fmt: skip
        assert scores(agentci(folder, github, "run", GITHUB_TOKEN="hush")) == [0.75]

    def test_the_token_of_another_server_stays_there(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        job = {"GITHUB_TOKEN": "hush", "GITHUB_API_URL": "https://github.example.com/api/v3"}
        assert scores(agentci(folder, github, "run", **job)) == [0.75]
        assert not [each for each in github.asked if "authorization" in each.headers]


class TestFaults:
    def test_a_ref_that_is_not_there_is_the_configs_fault(
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
    def test_a_ref_that_leads_elsewhere_is_refused_before_anything_is_asked(
        self, folder: Path, github: FakeGitHub, ref: str
    ) -> None:
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, f'"{ref}"'))
        for command in ("validate", "run"):
            ran = agentci(folder, github, command)
            assert (ran.code, github.count()) == (2, 0)
            assert "agentci.yaml:5:10" in ran.out
            assert "the ref" in ran.out

    def test_a_server_that_does_not_answer_costs_its_checks_alone(
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
    def test_an_address_of_github_that_is_none_is_told(
        self, folder: Path, github: FakeGitHub, address: str
    ) -> None:
        ran = agentci(folder, github, "run", AGENTCI_GITHUB_API_URL=address, GITHUB_TOKEN="hush")
        [problem] = ran.results["problems"]
        assert ran.code == 2
        assert "https" in problem["hint"]

    def test_an_unknown_source_is_told_on_its_line(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, "source: gitbuh")
        ran = agentci(folder, github, "validate")
        assert ran.code == 2
        assert "agentci.yaml:6:13" in ran.out
        assert "did you mean 'github'?" in ran.out

    def test_a_damaged_cache_is_fetched_again(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        [score] = (folder / ".agentci" / "cache").rglob("score.txt")
        score.write_text("1.0")
        assert scores(agentci(folder, github, "run")) == [0.75]

    def test_a_cache_that_cannot_be_written_is_done_without(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        github.publish(REPOSITORY, files())
        (folder / "file").touch()
        ran = agentci(folder, github, "run", "--cache-dir", "file/cache")
        assert scores(ran) == [0.75]
        assert any("is not writable" in each["message"] for each in ran.results["problems"])


class TestSha256:
    def test_of_another_file_stops_the_run(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"sha256: {'a' * 64}")
        github.publish(REPOSITORY, files())
        ran = agentci(folder, github, "run")
        assert ran.code == 2
        assert "sha256" in ran.results["problems"][0]["message"]

    def test_is_verified_from_the_cache_too(self, folder: Path, github: FakeGitHub) -> None:
        github.publish(REPOSITORY, files())
        agentci(folder, github, "run")
        configure(folder, f"sha256: {'a' * 64}")
        assert agentci(folder, github, "run").code == 2


class TestOffline:
    def test_runs_from_the_cache(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        agentci(folder, github, "run")
        before = github.count()
        assert scores(agentci(folder, github, "run", "--offline")) == [0.75]
        assert github.count() == before

    def test_names_all_that_is_missing(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, f"rev: {github.publish(REPOSITORY, files())}")
        with (folder / "agentci.yaml").open("a") as config:
            config.write("  - {name: other, type: remote, ref: evaluators/other/other.py}\n")
        ran = agentci(folder, github, "run", "--offline")
        first, second = (each["message"] for each in ran.results["problems"])
        assert (ran.code, github.count()) == (2, 0)
        assert f"{REF} of {REPOSITORY} at" in first
        assert "is not in the cache" in first
        assert "the commit of main of" in second

    def test_cannot_be_asked_for_together_with_a_new_cache(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        ran = agentci(folder, github, "run", "--offline", "--no-cache")
        assert (ran.code, len(ran.problems)) == (2, 1)


class TestOtherSources:
    def test_a_folder_with_an_index_is_a_source(self, folder: Path, github: FakeGitHub) -> None:
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

    def test_a_folder_outside_of_the_workspace_is_none(
        self, folder: Path, github: FakeGitHub
    ) -> None:
        configure(folder, "source: local", "repo: ..")
        ran = agentci(folder, github, "validate")
        assert ran.code == 2
        assert ".. is outside the workspace" in ran.out

    def test_an_address_needs_its_digest(self, folder: Path, github: FakeGitHub) -> None:
        configure(folder, "source: url")
        config = folder / "agentci.yaml"
        config.write_text(config.read_text().replace(REF, "https://example.com/fixed.py"))
        ran = agentci(folder, github, "validate")
        assert ran.code == 2
        assert "sha256" in ran.out


def test_a_plan_asks_nothing_of_the_network(folder: Path, github: FakeGitHub) -> None:
    ran = agentci(folder, github, "plan")
    assert (ran.code, github.count()) == (0, 0)
    assert f"run {REF} (github: {REPOSITORY} at main)" in ran.out


def test_what_the_older_tool_cached_is_not_trusted(
    folder: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = folder / "home" / ".cache" / "agentevals" / "evaluators" / "github"
    (theirs / REF).parent.mkdir(parents=True)
    (theirs / REF).write_text("print('{\"score\": 1}')")
    monkeypatch.setenv("HOME", str(folder / "home"))
    github.publish(REPOSITORY, files("0.5"))
    assert scores(agentci(folder, github, "run")) == [0.5]
    shutil.rmtree(theirs)
