"""``baseline: base`` in a workflow: results come from the cache or from an earlier run."""

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentci.github.baseline.find import MAX_RUNS_TRIED
from tests._util.http.servers import Answer
from tests.e2e.baseline_workflow import (
    ARTIFACT,
    Workflow,
    pull_request,
    push,
    write_eval,
    zip_folder,
)
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.api.hub import TOKEN, running_hub
from tests.github.api.past import FORK
from tests.helpers.support import ROOT, Ran, cache_of

pytestmark = [NEEDS_DESCRIPTION, pytest.mark.slow]

M1, M2, M3, HEAD, MERGE = (digit * 40 for digit in "12345")
PULL_REQUEST = pull_request(M1, HEAD)


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[Workflow]:
    with running_hub() as hub:
        yield Workflow(tmp_path, hub, cached=False)


def compared(ran: Ran) -> Any:
    return ran.results["comparison"]


def home_of(workflow: Workflow) -> Path:
    """The home folder of a container action, which the runner mounts beside the workspace."""
    return workflow.folder.with_name(f"{workflow.folder.name}.home")


def before(ran: Ran) -> float:
    """The mean score of the baseline."""
    [trend] = compared(ran)["evaluators"]
    return float(trend["before"])


class TestPullRequest:
    def test_merge_commit_is_compared_with_its_first_parent(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=6)
        number = workflow.evaluate_on_main(M2, sunny=3)
        workflow.past.commit(HEAD, M1, branch="topic")
        workflow.past.commit(MERGE, M2, HEAD, branch="merge")
        ran = workflow.step("pull_request", MERGE, PULL_REQUEST, sunny=3)
        assert (compared(ran)["commit"], compared(ran)["stale"]) == (M2, "")
        assert compared(ran)["baseline"] == f"{M2[:12]}, run {number}"
        assert compared(ran)["branch"] == "main"
        assert before(ran) == 0.5

    def test_checked_out_head_is_compared_with_merge_base(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=6)
        workflow.evaluate_on_main(M2, sunny=3)
        workflow.past.commit(HEAD, M1, branch="topic")
        workflow.past.commit(MERGE, M2, HEAD, branch="merge")
        ran = workflow.step("pull_request", MERGE, PULL_REQUEST, head=HEAD)
        assert (compared(ran)["commit"], before(ran)) == (M1, 1.0)

    def test_regression_fails_gate(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        ran = workflow.step(
            "pull_request", MERGE, PULL_REQUEST, sunny=0, gate={"max_regression": 0.1}
        )
        assert ran.code == 1
        reason = "mean score 1 → 0 (6 cases, max_regression 0.1, p = 0.016)"
        verdict = f"Quality gate failed: 6 cases newly failing, own regressed: {reason}"
        assert verdict in ran.out

    def test_fork_pull_request_is_compared_with_base(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        request = pull_request(M1, HEAD)
        request["pull_request"]["head"]["repo"] = {"full_name": FORK}
        assert before(workflow.step("pull_request", MERGE, request)) == 1.0

    def test_pull_request_results_are_not_saved_as_baseline(self, workflow: Workflow) -> None:
        workflow.cached = True
        workflow.past.commit(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        workflow.step("pull_request", MERGE, PULL_REQUEST)
        workflow.step("pull_request_target", MERGE, PULL_REQUEST)
        assert not (cache_of(workflow.folder) / "baselines").exists()
        assert "baseline not found" in compared(workflow.step("schedule", MERGE))["no_baseline"]


class TestBaselineCache:
    @pytest.fixture(autouse=True)
    def share_cache(self, workflow: Workflow) -> None:
        workflow.cached = True

    def test_cache_is_searched_before_workflow_runs(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=3)
        workflow.past.commit(MERGE, M1, branch="merge")
        asked = len(workflow.hub.asked)
        ran = workflow.step("pull_request", MERGE, PULL_REQUEST)
        assert (compared(ran)["baseline"], before(ran)) == (f"{M1[:12]}, the cache", 0.5)
        questions = {each.operation for each in workflow.hub.asked[asked:]}
        assert questions == {"repos/compare-commits-with-basehead", "git/get-tree"}

    def test_cache_provides_baseline_without_token(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        workflow.token = ""
        ran = workflow.step("pull_request", MERGE, PULL_REQUEST)
        assert (compared(ran)["commit"], before(ran)) == (M1, 1.0)
        assert compared(ran)["stale"].startswith(
            "the baseline may be stale: the merge base with main is unknown: "
            "no token for the GitHub API ("
        )

    def test_cache_provides_baseline_offline(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        asked = len(workflow.hub.asked)
        ran = workflow.step("push", M2, push(M1, M2), "--offline")
        assert (compared(ran)["commit"], compared(ran)["stale"]) == (M1, "")
        reason = compared(workflow.step("push", M3, push(HEAD, M3), "--offline"))["no_baseline"]
        assert "GitHub is not searched with --offline" in reason
        assert len(workflow.hub.asked) == asked

    def test_older_cached_commit_gives_stale_baseline(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=3)
        workflow.past.commit(M2)
        workflow.past.commit(M3)
        ran = workflow.step("push", MERGE, push(M3, MERGE))
        assert (compared(ran)["commit"], before(ran)) == (M1, 0.5)
        assert compared(ran)["stale"] == (
            f"the baseline is stale: its commit {M1[:12]} is 2 commits before the base {M3[:12]}, "
            "which has no results"
        )

    def test_baselines_of_matrix_jobs_are_separate(self, workflow: Workflow) -> None:
        for sunny, name in ((6, "small"), (3, "large")):
            step = ("--baseline-artifact", name)
            workflow.step("push", M1, push(M1, M1), *step, sunny=sunny)
        for score, name in ((1.0, "small"), (0.5, "large")):
            ran = workflow.step("push", M2, push(M1, M2), "--baseline-artifact", name)
            assert before(ran) == score

    def test_cache_in_checkout_is_not_trusted(self, workflow: Workflow) -> None:
        workflow.step("push", M1, push(M1, M1))
        cache_of(workflow.folder).rename(workflow.folder / "cache")
        ran = workflow.step("push", M2, push(M1, M2), "--cache-dir", "cache")
        assert "the cache cache is not used: it is in the ch" in compared(ran)["no_baseline"]
        messages = [each["message"] for each in ran.results["problems"]]
        assert any("are not saved as a baseline" in each for each in messages)

    def test_partial_or_invalid_results_are_not_saved(self, workflow: Workflow) -> None:
        baselines = cache_of(workflow.folder) / "baselines"
        workflow.step("push", M1, push(M1, M1), head=M2)
        workflow.step("push", M1, push(M1, M1), "--shard", "1/2")
        workflow.step("push", M1, push(M1, M1), "--only", "nobody")
        workflow.step("push", M1, push(M1, M1), "--trace-format", "odd")
        assert not baselines.exists()
        workflow.step("push", M1, push(M1, M1), sunny=0, gate={"min_pass_rate": 1})
        assert len(list(baselines.iterdir())) == 1

    def test_cached_report_of_another_commit_is_rejected(self, workflow: Workflow) -> None:
        workflow.step("push", M1, push(M1, M1))
        [kept] = (cache_of(workflow.folder) / "baselines").iterdir()
        kept.rename(kept.with_name(kept.name.replace(M1, M2)))
        reason = compared(workflow.step("push", M3, push(M2, M3)))["no_baseline"]
        assert f"results.json of the cache belongs to commit {M1[:12]}" in reason


class TestOtherEvents:
    def test_push_is_compared_with_previous_branch_head(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=3)
        ran = workflow.step("push", M2, push(M1, M2))
        assert (compared(ran)["commit"], before(ran)) == (M1, 0.5)

    def test_new_branch_is_compared_with_merge_base(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=3)
        workflow.past.commit(M2)
        workflow.past.commit(HEAD, M1, branch="topic")
        new = {**push("0" * 40, HEAD), "ref": "refs/heads/topic"}
        assert compared(workflow.step("push", HEAD, new))["commit"] == M1

    def test_merge_group_is_compared_with_its_base(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        queued = "gh-readonly-queue/main/pr-6"
        workflow.past.commit(M2, M1, branch=queued)
        workflow.step("push", M2, push(M1, M2), sunny=3)
        workflow.upload(workflow.past.run(M2, event="merge_group", head_branch=queued))
        group = {"base_sha": M2, "head_sha": M3, "base_ref": "refs/heads/main"}
        ran = workflow.step("merge_group", M3, {"merge_group": group})
        assert (compared(ran)["commit"], before(ran)) == (M2, 0.5)

    @pytest.mark.parametrize("event", ["schedule", "workflow_dispatch"])
    def test_schedule_and_dispatch_are_compared_with_latest_results(
        self, workflow: Workflow, event: str
    ) -> None:
        workflow.evaluate_on_main(M1, sunny=3)
        workflow.past.commit(M2)
        ran = workflow.step(event, M2)
        assert (compared(ran)["commit"], compared(ran)["stale"], before(ran)) == (M1, "", 0.5)
        workflow.upload(workflow.past.run(M2, event=event))
        ran = workflow.step(event, M2)
        assert (compared(ran)["commit"], before(ran)) == (M2, 1.0)

    def test_current_run_is_not_its_own_baseline(self, workflow: Workflow) -> None:
        number = workflow.evaluate_on_main(M1)
        ran = workflow.step("schedule", M1, GITHUB_RUN_ID=str(number))
        assert "baseline not found" in compared(ran)["no_baseline"]

    def test_event_without_base_commit_has_no_baseline(self, workflow: Workflow) -> None:
        reason = compared(workflow.step("pull_request", MERGE, {}))["no_baseline"]
        assert reason.endswith("the event `pull_request` names no base commit")


class TestWorkflowRuns:
    def test_runs_of_forks_and_pull_requests_are_ignored(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=6)
        for other in (
            {"event": "pull_request", "head_branch": "topic"},
            {"event": "pull_request_target"},
            {"event": "workflow_run"},
            {"home": FORK},
        ):
            workflow.step("push", M1, push(M1, M1), sunny=0)
            workflow.upload(workflow.past.run(M1, **other))
        assert before(workflow.step("push", M2, push(M1, M2))) == 1.0

    def test_latest_run_of_commit_is_used(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=6)
        workflow.step("push", M1, push(M1, M1), sunny=3)
        workflow.upload(workflow.past.run(M1))
        assert before(workflow.step("push", M2, push(M1, M2))) == 0.5

    def test_latest_attempt_of_run_is_used(self, workflow: Workflow) -> None:
        workflow.step("push", M1, push(M1, M1), sunny=0)
        number = workflow.past.run(M1)
        workflow.upload(number, created_at="2026-01-02T00:00:00Z")
        workflow.step("push", M1, push(M1, M1), sunny=3)
        workflow.upload(number, created_at="2026-01-03T00:00:00Z")
        workflow.step("push", M1, push(M1, M1), sunny=6)
        workflow.upload(number, created_at="2026-01-01T00:00:00Z")
        assert before(workflow.step("push", M2, push(M1, M2))) == 0.5

    def test_incomplete_or_invalid_reports_are_passed_over(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=3)
        workflow.step("push", M1, push(M1, M1), sunny=6)
        report = workflow.folder / "agentci-results" / "results.json"
        whole = report.read_text()
        for broken in (
            whole.replace('"complete": true', '"complete": false'),
            whole.replace(M1, M2),
            whole[:-40],
            whole.replace('"version": "', '"version": "0'),
        ):
            report.write_text(broken)
            workflow.upload(workflow.past.run(M1))
        for options in (["--shard", "1/2"], ["--only", "nobody"]):
            workflow.step("push", M1, push(M1, M1), *options)
            workflow.upload(workflow.past.run(M1))
        assert before(workflow.step("push", M2, push(M1, M2))) == 0.5

    def test_older_commit_on_branch_gives_stale_baseline(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1, sunny=6)
        number = workflow.evaluate_on_main(M2, sunny=3)
        workflow.past.commit(M3)
        ran = workflow.step("push", MERGE, push(M3, MERGE))
        assert compared(ran)["baseline"] == f"{M2[:12]}, run {number}"
        assert compared(ran)["stale"] == (
            f"the baseline is stale: its commit {M2[:12]} is 1 commit before the base {M3[:12]}, "
            "which has no results"
        )

    def test_older_commit_in_merge_queue_is_found(self, workflow: Workflow) -> None:
        queued = "gh-readonly-queue/main/pr-6"
        workflow.evaluate_on_main(M1, event="merge_group", head_branch=queued)
        workflow.past.commit(M2)
        assert compared(workflow.step("push", M3, push(M2, M3)))["commit"] == M1

    def test_number_of_searched_runs_is_limited(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        for _ in range(MAX_RUNS_TRIED):
            workflow.past.run(M1)
        workflow.hub.asked.clear()
        reason = compared(workflow.step("push", M2, push(M1, M2)))["no_baseline"]
        assert "baseline not found" in reason
        assert workflow.hub.count("actions/list-workflow-run-artifacts") == MAX_RUNS_TRIED
        assert f"{MAX_RUNS_TRIED - 4} more" in reason

    def test_commit_outside_base_history_is_ignored(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        workflow.evaluate_on_main(M2)
        workflow.past.commit(MERGE, M1, branch="merge")
        ran = workflow.step("push", MERGE, push(M1, MERGE))
        assert "no results of" in compared(ran)["no_baseline"]


class TestStaleBaseline:
    @pytest.fixture(autouse=True)
    def stale_base(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        workflow.past.commit(M2)

    def step(self, workflow: Workflow, *failing: str, sunny: int = 6) -> Ran:
        gate = {"max_regression": 0.1, "fail_on_regression": failing}
        return workflow.step("push", M3, push(M2, M3), gate=gate, sunny=sunny)

    def test_stale_baseline_is_reported_in_every_output(self, workflow: Workflow) -> None:
        ran = self.step(workflow, "fail")
        message = (
            f"the baseline is stale: its commit {M1[:12]} is 1 commit before the base {M2[:12]}"
        )
        assert ran.code == 0
        assert any(message in each for each in ran.results["decision"]["notes"])
        assert message in ran.out
        for name in ("summary.md", "report.html"):
            assert message in (workflow.folder / "agentci-results" / name).read_text()

    def test_stale_baseline_fails_gate_if_configured(self, workflow: Workflow) -> None:
        ran = self.step(workflow, "stale")
        assert (ran.code, "Quality gate failed: the baseline is stale: " in ran.out) == (
            1,
            True,
        )

    def test_regression_against_stale_baseline_fails_gate(self, workflow: Workflow) -> None:
        assert self.step(workflow, "fail", sunny=0).code == 1


class TestMissingBaseline:
    def test_missing_baseline_is_reported_in_output_and_summary(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        ran = workflow.step("push", M2, push(M1, M2), gate={"max_regression": 0.1})
        why = (
            f"baseline not found: no results of {M1[:12]} or an "
            "earlier commit: neither the cache nor a run of the workflow on GitHub has any (see "
            "agentci's docs/baselines.md for how a workflow keeps its results)"
        )
        assert (ran.code, compared(ran)["no_baseline"]) == (0, why)
        assert why in ran.results["decision"]["notes"]
        assert why in ran.out
        assert (
            "baseline not found" in (workflow.folder / "agentci-results" / "summary.md").read_text()
        )

    def test_missing_baseline_fails_gate_if_configured(self, workflow: Workflow) -> None:
        gate = {"max_regression": 0.1, "fail_on_regression": ["no-baseline"]}
        ran = workflow.step("push", M2, push(M1, M2), gate=gate)
        assert (
            ran.code,
            "Quality gate failed: baseline not found" in ran.out,
        ) == (1, True)

    def no_baseline(self, workflow: Workflow) -> str:
        ran = workflow.step("push", M2, push(M1, M2))
        assert ran.code == 0
        return str(compared(ran)["no_baseline"])

    def test_missing_permission_is_named(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        workflow.hub.denied = {"actions/list-workflow-runs"}
        assert "the job needs `permissions: actions: read`" in self.no_baseline(workflow)
        workflow.hub.denied = {"actions/list-workflow-runs", "repos/list-commits"}
        assert "the job needs `permissions: contents: read`" in self.no_baseline(workflow)

    def test_denied_artifact_download_is_reported(self, workflow: Workflow) -> None:
        number = workflow.evaluate_on_main(M1)
        workflow.hub.denied = {"actions/download-artifact"}
        assert f"run {number}: GitHub answered 403" in self.no_baseline(workflow)

    def test_missing_or_expired_artifact_is_reported(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        number = workflow.past.run(M1)
        assert f"run {number}: has no artifact {ARTIFACT}" in self.no_baseline(workflow)
        workflow.upload(number, "agentci-results-2")
        assert f"run {number}: has no artifact {ARTIFACT}" in self.no_baseline(workflow)
        workflow.upload(number, expired=True)
        assert f"run {number}: has only an expired artifact {ARTIFACT}" in self.no_baseline(
            workflow
        )

    def test_artifact_expiring_before_download_is_reported(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        gone = {"message": "Artifact has expired", "documentation_url": "https://x"}
        answer = Answer(status=410, body=json.dumps(gone).encode())
        workflow.hub.faults["actions/download-artifact"] = [answer]
        assert "GitHub answered 410" in self.no_baseline(workflow)

    @pytest.mark.parametrize("operation", ["list-workflow-runs", "download-artifact"])
    def test_github_outage_is_reported_and_ends_search(
        self, workflow: Workflow, operation: str
    ) -> None:
        workflow.evaluate_on_main(M1)
        workflow.hub.faults[f"actions/{operation}"] = [Answer(status=502)] * 99
        workflow.hub.asked.clear()
        assert "status 502" in self.no_baseline(workflow)
        assert workflow.hub.asked[-1].operation == f"actions/{operation}"  # no further requests

    def test_transient_github_errors_are_retried(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        for operation in ("list-workflow-runs", "list-workflow-run-artifacts", "download-artifact"):
            workflow.hub.faults[f"actions/{operation}"] = [Answer(status=503)]
        assert before(workflow.step("push", M2, push(M1, M2))) == 1.0

    @pytest.mark.parametrize("body", [b"[]", b"{}", b"null", b"<html>", b'{"workflow_runs": [1]}'])
    def test_malformed_run_list_gives_no_baseline(self, workflow: Workflow, body: bytes) -> None:
        workflow.evaluate_on_main(M1)
        workflow.hub.faults["actions/list-workflow-runs"] = [Answer(body=body)] * 3
        assert "baseline not found" in self.no_baseline(workflow)

    def test_malformed_merge_base_gives_no_baseline(self, workflow: Workflow) -> None:
        body = b'{"merge_base_commit": {"sha": "main"}}'
        workflow.hub.faults["repos/compare-commits-with-basehead"] = [Answer(body=body)]
        reason = compared(workflow.step("push", M2, push("0" * 40, M2)))["no_baseline"]
        assert f"GitHub returned no merge base of {M2} and main" in reason

    def test_unknown_workflow_is_reported(self, workflow: Workflow) -> None:
        workflow.evaluate_on_main(M1)
        ran = workflow.step("push", M2, push(M1, M2), GITHUB_WORKFLOW_REF="")
        assert "GITHUB_WORKFLOW_REF does not name a workflow" in compared(ran)["no_baseline"]

    def test_unknown_commit_gives_no_baseline(self, workflow: Workflow) -> None:
        ran = workflow.step("push", "", push(M1, M2), head="none")
        assert "the commit of this run is unknown" in compared(ran)["no_baseline"]

    def test_unknown_base_branch_gives_no_baseline(self, workflow: Workflow) -> None:
        new = push("0" * 40, M2)
        reason = compared(workflow.step("push", M2, new))["no_baseline"]
        assert "the merge base with main is unknown: GitHub answered 404" in reason


def bomb() -> bytes:
    """An archive whose results.json unpacks to more than 256 MiB."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("results.json", "w") as member,
    ):
        for _ in range(257):
            member.write(bytes(1024**2))
    return content.getvalue()


class TestHostileArtifact:
    @pytest.fixture
    def archive(self, workflow: Workflow) -> bytes:
        workflow.step("push", M1, push(M1, M1))
        return zip_folder(workflow.folder / "agentci-results")

    def no_baseline(self, workflow: Workflow, content: bytes) -> str:
        workflow.past.commit(M1)
        workflow.hub.add_artifact(workflow.past.run(M1), ARTIFACT, content)
        return str(compared(workflow.step("push", M2, push(M1, M2)))["no_baseline"])

    def test_truncated_archive_is_rejected(self, workflow: Workflow, archive: bytes) -> None:
        assert "the archive is broken" in self.no_baseline(workflow, archive[:-30])

    @pytest.mark.slow
    def test_zip_bomb_is_rejected(self, workflow: Workflow) -> None:
        assert "results.json is larger than 256 MiB" in self.no_baseline(workflow, bomb())

    def test_archive_with_false_member_size_is_rejected(
        self, workflow: Workflow, archive: bytes
    ) -> None:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            size = opened.getinfo("results.json").file_size
        forged = archive.replace(struct.pack("<I", size), struct.pack("<I", 3))
        assert "the archive is broken" in self.no_baseline(workflow, forged)

    def test_path_traversal_in_archive_writes_nothing(self, workflow: Workflow) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("../../evil", "x")
            archive.writestr("/etc/results.json", "{}")
        assert "not a results.json of agentci" in self.no_baseline(workflow, content.getvalue())
        assert not (workflow.folder.parent / "evil").exists()

    def test_archive_with_several_reports_is_rejected(self, workflow: Workflow) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("1/results.json", "{}")
            archive.writestr("2/results.json", "{}")
        message = self.no_baseline(workflow, content.getvalue())
        assert "the archive has 2 files called results.json" in message

    def test_report_cannot_inject_workflow_commands(self, workflow: Workflow) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            evil = {"tool": {"name": "agentci", "version": "::error::x\n::set-output name=a::b"}}
            archive.writestr("results.json", json.dumps(evil))
        workflow.past.commit(M1)
        workflow.hub.add_artifact(workflow.past.run(M1), ARTIFACT, content.getvalue())
        ran = workflow.step("push", M2, push(M1, M2))
        assert "baseline not found" in compared(ran)["no_baseline"]
        assert not any(line.lstrip().startswith("::set-output") for line in ran.out.splitlines())


def test_only_merged_shards_are_compared(workflow: Workflow) -> None:
    workflow.evaluate_on_main(M1)
    workflow.past.commit(MERGE, M1, branch="merge")
    for shard in (1, 2):
        options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
        workflow.step("pull_request", MERGE, PULL_REQUEST, *options, sunny=0)
        written = json.loads((workflow.folder / f"s{shard}" / "results.json").read_text())
        assert written["comparison"] is None
    workflow.check_out("none")
    merge = ["merge", "s1", "s2", "--baseline", "base"]
    ran = workflow.agentci(merge, "pull_request", MERGE, PULL_REQUEST)
    assert (compared(ran)["commit"], compared(ran)["evaluators"][0]["outcome"]) == (M1, "fail")


def test_merged_report_is_saved_as_baseline(workflow: Workflow) -> None:
    workflow.cached = True
    for shard in (1, 2):
        options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
        workflow.step("push", M1, push(M1, M1), *options)
    workflow.check_out("none")
    workflow.agentci(["merge", "s1", "s2", "--baseline", "base"], "push", M1, push(M1, M1))
    assert before(workflow.step("push", M2, push(M1, M2))) == 1.0


class TestAction:
    """The entry point in a workflow workspace, with a cache restored by actions/cache."""

    def step(self, workflow: Workflow, event: str, sha: str, payload: Any, sunny: int) -> Any:
        write_eval(workflow.folder, sunny=sunny, max_regression=0.1)
        workflow.check_out(sha)
        ran = subprocess.run(
            [sys.executable, ROOT / "entrypoint.py"],
            cwd=workflow.folder,
            env={
                **os.environ,
                **workflow.environ(event, sha, payload),
                "HOME": str(home_of(workflow)),
                "XDG_CACHE_HOME": "",
                "INPUT_BASELINE": "base",
                "INPUT_BASELINE-ARTIFACT": ARTIFACT,
                "GITHUB_OUTPUT": str(workflow.folder / "output"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        report = json.loads((workflow.folder / "agentci-results" / "results.json").read_text())
        return ran.returncode, ran.stdout, report

    def test_regression_against_cached_push_fails_pull_request(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        code, _, report = self.step(workflow, "push", M1, push("0" * 40, M1), 6)
        assert (code, report["commit"]) == (0, M1)
        # As actions/cache does it: restore only the baselines in the home folder of another job.
        carried = home_of(workflow) / ".cache" / "agentci" / "baselines"
        carried.rename(cache_of(workflow.folder))
        shutil.rmtree(home_of(workflow))
        carried.parent.mkdir(parents=True)
        cache_of(workflow.folder).rename(carried)
        code, log, report = self.step(workflow, "pull_request", MERGE, PULL_REQUEST, 0)
        assert report["comparison"]["baseline"] == f"{M1[:12]}, the cache"
        assert (code, "Quality gate failed: 6 cases newly failing, own regressed" in log) == (
            1,
            True,
        )
        assert TOKEN not in log

    def test_artifact_provides_baseline(self, workflow: Workflow) -> None:
        number = workflow.evaluate_on_main(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        code, _, report = self.step(workflow, "pull_request", MERGE, PULL_REQUEST, 6)
        assert (code, report["comparison"]["baseline"]) == (0, f"{M1[:12]}, run {number}")
        assert self.step(workflow, "pull_request", MERGE, PULL_REQUEST, 0)[0] == 1
