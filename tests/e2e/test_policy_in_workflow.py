"""The policy of a pull request is compared with that of its base, from git, GitHub or results."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.baseline_workflow import CASES, PROGRAM, Workflow, pull_request, push
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.api.git_data import GitData
from tests.github.api.hub import Hub, running_hub
from tests.helpers.recordings import otlp
from tests.helpers.repositories import commit, git, repository
from tests.helpers.support import Ran, run_agentci

pytestmark = [NEEDS_DESCRIPTION, pytest.mark.slow]

LOWERED = "threshold of own: 1 → 0.1"


def write_config(folder: Path, threshold: float, cases: int = CASES, **gate: Any) -> None:
    """Write a config with one evaluator, and ``cases`` traces of which one does not pass it."""
    (folder / "own.py").write_text(PROGRAM)
    entry = {"name": "own", "type": "code", "path": "own.py", "threshold": threshold}
    content = {"traces": "trace*.json", "evaluators": [entry], "gate": gate}
    (folder / "agentci.yaml").write_text(json.dumps(content))
    for number in range(cases):
        answer = "It is sunny." if number else "It rains."
        text = otlp(f"Question {number}?", answer, trace=number + 1)
        (folder / f"trace{number}.json").write_text(text)


class PullRequest:
    """A pull request that lowers a threshold from 1 to 0.1, as a workflow checks it out.

    Attributes:
        base, merge: the base commit and GitHub's merge commit.
    """

    def __init__(self, folder: Path, hub: Hub, base_gate: Any, head_gate: Any) -> None:
        self._folder = folder
        self._origin = repository(folder / "origin")
        (self._origin / ".gitignore").write_text("agentci-results/\nevent.json\nshards/\n")
        write_config(self._origin, 1.0, **{"min_pass_rate": 0, **base_gate})
        self.base = commit(self._origin)
        git(self._origin, "checkout", "--quiet", "-b", "topic")
        write_config(self._origin, 0.1, **{"min_pass_rate": 0, **head_gate})
        self.head = commit(self._origin)
        git(self._origin, "checkout", "--quiet", "-b", "merge", "main")
        git(self._origin, "merge", "--quiet", "--no-ff", "--message", "merge", "topic")
        self.merge = git(self._origin, "rev-parse", "HEAD")
        git(self._origin, "checkout", "--quiet", "main")
        self.workflow = Workflow(folder / "checkout", hub)
        past = self.workflow.past
        past.commit(self.base)
        past.commit(self.head, self.base, branch="topic")
        past.commit(self.merge, self.base, self.head, branch="merge")
        self._hub = hub

    def check_out(self, branch: str = "merge", *, depth: int = 0) -> None:
        options = [f"--depth={depth}", "--no-single-branch"] if depth else []
        source = f"file://{self._origin}"
        git(self._folder, "clone", "--quiet", "--branch", branch, *options, source, "checkout")
        if depth:  # as `actions/checkout`, without other branches
            folder = self.workflow.folder
            git(folder, "remote", "remove", "origin")
            git(folder, "branch", "--quiet", "--force", "main", "HEAD")
            git(folder, "-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now")

    def publish_files(self) -> None:
        """Let GitHub have the files of the base."""
        GitData(self._hub, self._origin)

    def evaluate_base(self) -> int:
        """Evaluate the base as a push to main, and upload the results."""
        number = self.workflow.past.run(self.base)
        self.check_out("main")
        before = "0" * 40
        self.workflow.agentci(
            ["run", "--baseline", "base"], "push", self.base, push(before, self.base)
        )
        self.workflow.upload(number)
        self.workflow.folder.rename(self._folder / "main")
        return number

    def step(self, *arguments: str, event: str = "pull_request") -> Ran:
        payload: Any = pull_request(self.base, self.head)
        if event == "push":
            payload = push(self.base, self.merge)
        elif event == "merge_group":
            refs = {"base_sha": self.base, "head_sha": self.merge, "base_ref": "refs/heads/main"}
            payload = {"merge_group": refs}
        return self.workflow.agentci([*arguments], event, self.merge, payload)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def make(tmp_path: Path, hub: Hub) -> Any:
    def make_pull_request(base: Any = None, head: Any = None) -> PullRequest:
        made = PullRequest(tmp_path, hub, base or {}, head or {})
        made.workflow.cached = False
        return made

    return make_pull_request


def loosened(ran: Ran) -> Sequence[str]:
    return [each["subject"] for each in ran.results["policy"]["loosened"]]


def asked_for_policy(hub: Hub) -> list[str]:
    """The operations of all requests but that for the diff, which places annotations."""
    return [each.operation for each in hub.asked if each.operation != "pulls/list-files"]


class TestWithoutBaseline:
    def test_base_in_the_checkout_is_compared_without_network(self, make: Any, hub: Hub) -> None:
        request = make()
        request.check_out()
        ran = request.step("run")
        assert (ran.code, LOWERED in ran.out) == (0, True)
        assert ran.results["policy"]["base"] == f"{request.base[:12]}, git"
        assert asked_for_policy(hub) == []

    def test_shallow_checkout_is_not_compared(self, make: Any, hub: Hub) -> None:
        request = make()
        request.check_out(depth=1)
        ran = request.step("run")
        assert ran.code == 0
        verdict = "with 2 warnings: 5 of 6 checks passed, "
        unknown = (
            "the policy of the base is unknown: the checkout does not have the base commit "
            "(set `baseline: base`, or `fetch-depth: 0`)"
        )
        assert f"{verdict}{unknown}, 1 problem\n" in ran.out
        # A verdict of more than two lines has its first clause and the warnings.
        [first, _, second, *_] = (ran.folder / "agentci-results/comment.md").read_text().split("\n")
        assert first.endswith(f"{verdict}1 problem")
        assert second.replace("\\", "").startswith(unknown)
        assert asked_for_policy(hub) == []

    @pytest.mark.parametrize("switch", [{"on_loosened": "fail"}, {"policy": "base"}])
    def test_shallow_checkout_fails_where_the_base_counts(self, make: Any, switch: Any) -> None:
        request = make(switch, switch)
        request.check_out(depth=1)
        ran = request.step("run")
        assert ran.code == 1
        assert (
            "Quality gate failed: the policy of the base is unknown: the checkout does not have "
            "the base commit (set `baseline: base`, or `fetch-depth: 0`)\n"
        ) in ran.out

    def test_merge_queue_is_compared(self, make: Any) -> None:
        request = make()
        request.check_out()
        assert loosened(request.step("run", event="merge_group")) == ["threshold of own"]

    def test_base_decides_what_fails(self, make: Any) -> None:
        request = make({"on_loosened": "fail"})
        request.check_out()
        ran = request.step("run")
        assert ran.code == 1
        assert "Quality gate failed: the policy is looser than the base's: " in ran.out

    def test_nothing_is_compared_outside_of_workflows(self, make: Any) -> None:
        request = make()
        request.check_out()
        ran = run_agentci(["run"], cwd=request.workflow.folder)
        assert ran.results["policy"] is None


class TestWithBaseline:
    def test_files_of_the_base_come_from_github(self, make: Any) -> None:
        request = make()
        request.publish_files()
        request.check_out(depth=1)
        ran = request.step("run", "--baseline", "base")
        assert ran.results["policy"]["base"] == f"{request.base[:12]}, GitHub"
        assert loosened(ran) == ["threshold of own"]

    def test_results_of_the_base_are_used_without_its_files(self, make: Any) -> None:
        request = make({"policy": "base"})
        number = request.evaluate_base()
        request.check_out(depth=1)
        ran = request.step("run", "--baseline", "base")
        assert ran.results["policy"]["base"] == f"{request.base[:12]}, run {number}"
        assert loosened(ran) == ["gate.policy", "threshold of own"]
        assert ran.results["results"][0]["threshold"] == 1.0

    def test_unknown_policy_of_the_base_is_reported(self, make: Any) -> None:
        request = make()
        request.check_out(depth=1)
        ran = request.step("run", "--baseline", "base")
        assert ran.code == 0
        assert "the policy of the base is unknown: the files of " in ran.out

    @pytest.mark.parametrize("switch", [{"on_loosened": "fail"}, {"policy": "base"}])
    def test_unknown_policy_of_the_base_fails_where_it_counts(self, make: Any, switch: Any) -> None:
        request = make(switch, switch)
        request.check_out(depth=1)
        ran = request.step("run", "--baseline", "base")
        assert ran.code == 1
        assert "Quality gate failed: the policy of the base is unknown: " in ran.out

    def test_merge_queue_is_compared(self, make: Any) -> None:
        request = make()
        request.check_out()
        ran = request.step("run", "--baseline", "base", event="merge_group")
        assert loosened(ran) == ["threshold of own"]

    def test_push_is_not_compared(self, make: Any) -> None:
        request = make({"on_loosened": "fail"})
        request.check_out()
        ran = request.step("run", "--baseline", "base", event="push")
        assert (ran.code, ran.results["policy"]) == (0, None)

    def test_named_results_are_compared(self, make: Any, tmp_path: Path) -> None:
        request = make()
        request.check_out("main")
        run_agentci(["run"], cwd=request.workflow.folder)
        request.workflow.folder.rename(tmp_path / "main")
        request.check_out()
        ran = run_agentci(
            ["run", "--baseline", "../main/agentci-results"], cwd=request.workflow.folder
        )
        assert loosened(ran) == ["threshold of own"]

    def test_absolute_paths_are_those_of_the_base(self, make: Any) -> None:
        request = make()
        request.check_out()
        config = str(request.workflow.folder / "agentci.yaml")
        ran = run_agentci(["run", config, "--baseline", "base"], cwd=request.workflow.folder)
        assert loosened(ran) == ["threshold of own"]


class TestShards:
    def run_shards(self, request: PullRequest, *options: str) -> Ran:
        for index in (1, 2):
            folder = f"shards/{index}"
            shard = ("--shard", f"{index}/2", "--output-dir", folder)
            request.step("run", *shard, *options)
        return request.step("merge", "shards/*/results.json", "--baseline", "base")

    def test_policy_of_the_base_decides_in_each_shard(self, make: Any) -> None:
        request = make({"policy": "base", "min_pass_rate": 1})
        request.check_out()
        ran = self.run_shards(request, "--baseline", "base")
        assert ran.code == 1
        assert "1 of 6 checks failed (pass rate 83%, required 100%)" in ran.out
        assert ran.results["policy"]["decided_by_base"] == ["agentci.yaml"]
        assert ran.results["policy"]["missing"] == []

    def test_merged_shards_of_a_push_are_not_compared(self, make: Any) -> None:
        request = make({"on_loosened": "fail"})
        request.check_out()
        request.step("run", "--shard", "1/1", "--output-dir", "shards/1", event="push")
        merge = ("merge", "shards/1", "--baseline", "base")
        ran = request.step(*merge, event="push")
        assert (ran.code, ran.results["policy"]) == (0, None)

    def test_merged_shards_are_compared_with_named_results(self, make: Any, tmp_path: Path) -> None:
        request = make()
        request.check_out("main")
        run_agentci(["run"], cwd=request.workflow.folder)
        request.workflow.folder.rename(tmp_path / "main")
        request.check_out(depth=1)
        request.step("run", "--shard", "1/1", "--output-dir", "shards/1")
        ran = request.step("merge", "shards/1", "--baseline", "../main/agentci-results")
        assert loosened(ran) == ["threshold of own"]

    def test_stale_results_are_not_the_policy_of_the_base(self, make: Any) -> None:
        request = make()
        request.evaluate_base()
        later = "6" * 40
        request.workflow.past.commit(later, request.base)
        request.workflow.past.parents[request.merge] = (later, request.head)
        request.check_out(depth=1)
        ran = request.step("run", "--baseline", "base")
        assert ran.code == 0
        assert "the baseline is stale" in ran.results["policy"]["unavailable"]

    def test_shards_without_baseline_are_compared_with_results(self, make: Any) -> None:
        request = make({"policy": "base"})
        request.evaluate_base()
        request.check_out(depth=1)
        ran = self.run_shards(request)
        assert ran.code == 1
        assert "the base's policy is not met: threshold of own: 1 → 0.1" in ran.out
