"""``baseline: base``: the results of the base, wherever they were kept; or why there are none."""

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
from tests.e2e.based import ARTIFACT, Workflow, packed, pull_request, push, record
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.api.hub import TOKEN, running_hub
from tests.github.api.past import FORK
from tests.helpers.repositories import repository, track
from tests.helpers.support import ROOT, Ran

pytestmark = NEEDS_DESCRIPTION

M1, M2, M3, HEAD, MERGE = (digit * 40 for digit in "12345")
REQUEST = pull_request(M1, HEAD)


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[Workflow]:
    with running_hub() as hub:
        yield Workflow(tmp_path, hub, cached=False)


def compared(ran: Ran) -> Any:
    return ran.results["comparison"]


def before(ran: Ran) -> float:
    """The mean score of the baseline."""
    [trend] = compared(ran)["evaluators"]
    return float(trend["before"])


class TestAPullRequest:
    def test_is_compared_with_the_commit_that_it_was_merged_into(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=6)
        number = workflow.judged_on_main(M2, sunny=3)
        workflow.past.commit(HEAD, M1, branch="topic")
        workflow.past.commit(MERGE, M2, HEAD, branch="merge")
        ran = workflow.step("pull_request", MERGE, REQUEST, sunny=3)
        assert (compared(ran)["commit"], compared(ran)["stale"]) == (M2, "")
        assert compared(ran)["baseline"] == f"{M2[:12]}, run {number}"
        assert before(ran) == 0.5

    def test_whose_head_is_checked_out_is_compared_with_where_it_left(
        self, workflow: Workflow
    ) -> None:
        workflow.judged_on_main(M1, sunny=6)
        workflow.judged_on_main(M2, sunny=3)
        workflow.past.commit(HEAD, M1, branch="topic")
        workflow.past.commit(MERGE, M2, HEAD, branch="merge")
        ran = workflow.step("pull_request", MERGE, REQUEST, head=HEAD)
        assert (compared(ran)["commit"], before(ran)) == (M1, 1.0)

    def test_that_makes_it_worse_shuts_the_gate(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        ran = workflow.step("pull_request", MERGE, REQUEST, sunny=0, gate={"max_regression": 0.1})
        assert ran.code == 1
        assert ran.out.startswith(
            "Quality gate failed: own regressed: mean score 1 -> 0 (6 cases, p = 0.016)"
        )

    def test_from_a_fork_is_compared_as_well(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        request = pull_request(M1, HEAD)
        request["pull_request"]["head"]["repo"] = {"full_name": FORK}
        assert before(workflow.step("pull_request", MERGE, request)) == 1.0

    def test_is_never_a_baseline(self, workflow: Workflow) -> None:
        workflow.cached = True
        workflow.past.commit(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        workflow.step("pull_request", MERGE, REQUEST)
        workflow.step("pull_request_target", MERGE, REQUEST)
        assert not (workflow.folder / ".agentci" / "cache" / "baselines").exists()
        assert "baseline not found" in compared(workflow.step("schedule", MERGE))["not_comparable"]


class TestTheCache:
    @pytest.fixture(autouse=True)
    def carried(self, workflow: Workflow) -> None:
        workflow.cached = True

    def test_is_looked_into_before_runs_are_asked(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=3)
        workflow.past.commit(MERGE, M1, branch="merge")
        asked = len(workflow.hub.asked)
        ran = workflow.step("pull_request", MERGE, REQUEST)
        assert (compared(ran)["baseline"], before(ran)) == (f"{M1[:12]}, the cache", 0.5)
        questions = [each.operation for each in workflow.hub.asked[asked:]]
        assert questions == ["repos/compare-commits-with-basehead"]

    def test_is_enough_without_a_token(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        workflow.token = ""
        ran = workflow.step("pull_request", MERGE, REQUEST)
        assert (compared(ran)["commit"], before(ran)) == (M1, 1.0)
        assert compared(ran)["stale"].startswith(
            "the baseline may be stale: the merge base with main is unknown: "
            "no token for the GitHub API ("
        )

    def test_is_enough_offline(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        asked = len(workflow.hub.asked)
        ran = workflow.step("push", M2, push(M1, M2), "--offline")
        assert (compared(ran)["commit"], compared(ran)["stale"]) == (M1, "")
        refused = compared(workflow.step("push", M3, push(HEAD, M3), "--offline"))["not_comparable"]
        assert "GitHub is not searched with --offline" in refused
        assert len(workflow.hub.asked) == asked

    def test_has_what_an_older_commit_came_to(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=3)
        workflow.past.commit(M2)
        workflow.past.commit(M3)
        ran = workflow.step("push", MERGE, push(M3, MERGE))
        assert (compared(ran)["commit"], before(ran)) == (M1, 0.5)
        assert compared(ran)["stale"] == (
            f"the baseline is stale: its commit {M1[:12]} is 2 commits before the base {M3[:12]}, "
            "which has no results"
        )

    def test_of_each_job_of_a_matrix_is_its_own(self, workflow: Workflow) -> None:
        for sunny, name in ((6, "small"), (3, "large")):
            step = ("--baseline-artifact", name)
            workflow.step("push", M1, push(M1, M1), *step, sunny=sunny)
        for score, name in ((1.0, "small"), (0.5, "large")):
            ran = workflow.step("push", M2, push(M1, M2), "--baseline-artifact", name)
            assert before(ran) == score

    def test_that_is_committed_is_not_believed(self, workflow: Workflow) -> None:
        workflow.step("push", M1, push(M1, M1))
        track(repository(workflow.folder), ".agentci/cache/baselines/x")
        ran = workflow.step("push", M2, push(M1, M2))
        assert "the cache .agentci/cache is committed" in compared(ran)["not_comparable"]
        notices = [each["message"] for each in ran.results["problems"]]
        assert any("are not saved as a baseline" in each for each in notices)

    def test_does_not_keep_what_is_of_no_use(self, workflow: Workflow) -> None:
        baselines = workflow.folder / ".agentci" / "cache" / "baselines"
        workflow.step("push", M1, push(M1, M1), head=M2)
        workflow.step("push", M1, push(M1, M1), "--shard", "1/2")
        workflow.step("push", M1, push(M1, M1), "--only", "nobody")
        workflow.step("push", M1, push(M1, M1), "--trace-format", "odd")
        assert not baselines.exists()
        workflow.step("push", M1, push(M1, M1), sunny=0, gate={"min_pass_rate": 1})
        assert len(list(baselines.iterdir())) == 1

    def test_has_the_base_by_the_report_that_says_so(self, workflow: Workflow) -> None:
        workflow.step("push", M1, push(M1, M1))
        [kept] = (workflow.folder / ".agentci" / "cache" / "baselines").iterdir()
        kept.rename(kept.with_name(kept.name.replace(M1, M2)))
        refused = compared(workflow.step("push", M3, push(M2, M3)))["not_comparable"]
        assert f"results.json of the cache belongs to commit {M1[:12]}" in refused


class TestOtherEvents:
    def test_a_push_is_compared_with_what_the_branch_was_at(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=3)
        ran = workflow.step("push", M2, push(M1, M2))
        assert (compared(ran)["commit"], before(ran)) == (M1, 0.5)

    def test_a_new_branch_is_compared_with_where_it_left(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=3)
        workflow.past.commit(M2)
        workflow.past.commit(HEAD, M1, branch="topic")
        new = {**push("0" * 40, HEAD), "ref": "refs/heads/topic"}
        assert compared(workflow.step("push", HEAD, new))["commit"] == M1

    def test_a_merge_queue_is_compared_with_what_stands_before_in_it(
        self, workflow: Workflow
    ) -> None:
        workflow.judged_on_main(M1)
        queued = "gh-readonly-queue/main/pr-6"
        workflow.past.commit(M2, M1, branch=queued)
        workflow.step("push", M2, push(M1, M2), sunny=3)
        workflow.keep(workflow.past.run(M2, event="merge_group", head_branch=queued))
        group = {"base_sha": M2, "head_sha": M3, "base_ref": "refs/heads/main"}
        ran = workflow.step("merge_group", M3, {"merge_group": group})
        assert (compared(ran)["commit"], before(ran)) == (M2, 0.5)

    @pytest.mark.parametrize("event", ["schedule", "workflow_dispatch"])
    def test_a_run_by_the_clock_or_by_hand_is_compared_with_the_one_before(
        self, workflow: Workflow, event: str
    ) -> None:
        workflow.judged_on_main(M1, sunny=3)
        workflow.past.commit(M2)
        ran = workflow.step(event, M2)
        assert (compared(ran)["commit"], compared(ran)["stale"], before(ran)) == (M1, "", 0.5)
        workflow.keep(workflow.past.run(M2, event=event))
        ran = workflow.step(event, M2)
        assert (compared(ran)["commit"], before(ran)) == (M2, 1.0)

    def test_its_own_run_is_no_earlier_one(self, workflow: Workflow) -> None:
        number = workflow.judged_on_main(M1)
        ran = workflow.step("schedule", M1, GITHUB_RUN_ID=str(number))
        assert "baseline not found" in compared(ran)["not_comparable"]

    def test_an_event_that_names_no_commit_has_no_base(self, workflow: Workflow) -> None:
        refused = compared(workflow.step("pull_request", MERGE, {}))["not_comparable"]
        assert refused.endswith("the event `pull_request` names no base commit")


class TestRuns:
    def test_of_others_and_of_pull_requests_are_not_believed(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=6)
        for other in (
            {"event": "pull_request", "head_branch": "topic"},
            {"event": "pull_request_target"},
            {"event": "workflow_run"},
            {"home": FORK},
        ):
            workflow.step("push", M1, push(M1, M1), sunny=0)
            workflow.keep(workflow.past.run(M1, **other))
        assert before(workflow.step("push", M2, push(M1, M2))) == 1.0

    def test_of_several_the_last_one_counts(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=6)
        workflow.step("push", M1, push(M1, M1), sunny=3)
        workflow.keep(workflow.past.run(M1))
        assert before(workflow.step("push", M2, push(M1, M2))) == 0.5

    def test_of_several_attempts_the_last_one_counts(self, workflow: Workflow) -> None:
        workflow.step("push", M1, push(M1, M1), sunny=0)
        number = workflow.past.run(M1)
        workflow.keep(number, created_at="2026-01-02T00:00:00Z")
        workflow.step("push", M1, push(M1, M1), sunny=3)
        workflow.keep(number, created_at="2026-01-03T00:00:00Z")
        workflow.step("push", M1, push(M1, M1), sunny=6)
        workflow.keep(number, created_at="2026-01-01T00:00:00Z")
        assert before(workflow.step("push", M2, push(M1, M2))) == 0.5

    def test_that_were_broken_off_are_passed_over(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=3)
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
            workflow.keep(workflow.past.run(M1))
        for options in (["--shard", "1/2"], ["--only", "nobody"]):
            workflow.step("push", M1, push(M1, M1), *options)
            workflow.keep(workflow.past.run(M1))
        assert before(workflow.step("push", M2, push(M1, M2))) == 0.5

    def test_of_older_commits_are_found_on_the_branch(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1, sunny=6)
        number = workflow.judged_on_main(M2, sunny=3)
        workflow.past.commit(M3)
        ran = workflow.step("push", MERGE, push(M3, MERGE))
        assert compared(ran)["baseline"] == f"{M2[:12]}, run {number}"
        assert compared(ran)["stale"] == (
            f"the baseline is stale: its commit {M2[:12]} is 1 commit before the base {M3[:12]}, "
            "which has no results"
        )

    def test_of_older_commits_are_found_in_the_merge_queue(self, workflow: Workflow) -> None:
        queued = "gh-readonly-queue/main/pr-6"
        workflow.judged_on_main(M1, event="merge_group", head_branch=queued)
        workflow.past.commit(M2)
        assert compared(workflow.step("push", M3, push(M2, M3)))["commit"] == M1

    def test_are_not_asked_without_end(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        for _ in range(MAX_RUNS_TRIED):
            workflow.past.run(M1)
        workflow.hub.asked.clear()
        refused = compared(workflow.step("push", M2, push(M1, M2)))["not_comparable"]
        assert "baseline not found" in refused
        assert workflow.hub.count("actions/list-workflow-run-artifacts") == MAX_RUNS_TRIED
        assert f"{MAX_RUNS_TRIED - 4} more" in refused

    def test_that_the_base_does_not_hold_are_no_older_ones(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        workflow.judged_on_main(M2)
        workflow.past.commit(MERGE, M1, branch="merge")
        ran = workflow.step("push", MERGE, push(M1, MERGE))
        assert "no results of" in compared(ran)["not_comparable"]


class TestAStaleBaseline:
    @pytest.fixture(autouse=True)
    def past(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        workflow.past.commit(M2)

    def step(self, workflow: Workflow, *shuts: str, sunny: int = 6) -> Ran:
        gate = {"max_regression": 0.1, "fail_on_regression": shuts}
        return workflow.step("push", M3, push(M2, M3), gate=gate, sunny=sunny)

    def test_is_told_wherever_the_comparison_is(self, workflow: Workflow) -> None:
        ran = self.step(workflow, "fail")
        said = f"the baseline is stale: its commit {M1[:12]} is 1 commit before the base {M2[:12]}"
        assert ran.code == 0
        assert any(said in each for each in ran.results["decision"]["reasons"])
        assert said in ran.out
        for name in ("summary.md", "report.html"):
            assert said in (workflow.folder / "agentci-results" / name).read_text()

    def test_shuts_the_gate_where_that_is_wanted(self, workflow: Workflow) -> None:
        ran = self.step(workflow, "stale")
        assert (ran.code, ran.out.startswith("Quality gate failed: the baseline is stale: ")) == (
            1,
            True,
        )

    def test_is_compared_with_all_the_same(self, workflow: Workflow) -> None:
        assert self.step(workflow, "fail", sunny=0).code == 1


class TestAMissingBaseline:
    def test_is_told_and_never_passed_in_silence(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        ran = workflow.step("push", M2, push(M1, M2), gate={"max_regression": 0.1})
        why = (
            f"baseline not found: no results of {M1[:12]} or an "
            "earlier commit: neither the cache nor a run of the workflow on GitHub has any (see "
            "docs/baselines.md for how a workflow keeps its results)"
        )
        assert (ran.code, compared(ran)["not_comparable"]) == (0, why)
        assert why in ran.results["decision"]["reasons"]
        assert why in ran.out
        assert (
            "baseline not found" in (workflow.folder / "agentci-results" / "summary.md").read_text()
        )

    def test_shuts_the_gate_where_that_is_wanted(self, workflow: Workflow) -> None:
        gate = {"max_regression": 0.1, "fail_on_regression": ["non-comparable"]}
        ran = workflow.step("push", M2, push(M1, M2), gate=gate)
        assert (
            ran.code,
            ran.out.startswith("Quality gate failed: baseline not found"),
        ) == (1, True)

    def refused(self, workflow: Workflow) -> str:
        ran = workflow.step("push", M2, push(M1, M2))
        assert ran.code == 0
        return str(compared(ran)["not_comparable"])

    def test_says_which_permission_is_missing(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        workflow.hub.denied = {"actions/list-workflow-runs"}
        assert "the job needs `permissions: actions: read`" in self.refused(workflow)
        workflow.hub.denied = {"actions/list-workflow-runs", "repos/list-commits"}
        assert "the job needs `permissions: contents: read`" in self.refused(workflow)

    def test_says_that_nobody_may_download(self, workflow: Workflow) -> None:
        number = workflow.judged_on_main(M1)
        workflow.hub.denied = {"actions/download-artifact"}
        assert f"run {number}: GitHub answered 403" in self.refused(workflow)

    def test_says_what_a_run_did_not_keep(self, workflow: Workflow) -> None:
        workflow.past.commit(M1)
        number = workflow.past.run(M1)
        assert f"run {number}: has no artifact {ARTIFACT}" in self.refused(workflow)
        workflow.keep(number, "agentci-results-2")
        assert f"run {number}: has no artifact {ARTIFACT}" in self.refused(workflow)
        workflow.keep(number, expired=True)
        assert f"run {number}: has only an expired artifact {ARTIFACT}" in self.refused(workflow)

    def test_says_that_an_artifact_went_as_it_was_asked_for(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        gone = {"message": "Artifact has expired", "documentation_url": "https://x"}
        answer = Answer(status=410, body=json.dumps(gone).encode())
        workflow.hub.faults["actions/download-artifact"] = [answer]
        assert "GitHub answered 410" in self.refused(workflow)

    @pytest.mark.parametrize("operation", ["list-workflow-runs", "download-artifact"])
    def test_says_that_github_is_down(self, workflow: Workflow, operation: str) -> None:
        workflow.judged_on_main(M1)
        workflow.hub.faults[f"actions/{operation}"] = [Answer(status=502)] * 99
        workflow.hub.asked.clear()
        assert "status 502" in self.refused(workflow)
        assert workflow.hub.asked[-1].operation == f"actions/{operation}"  # it is left alone then

    def test_is_none_where_github_was_down_for_a_moment(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        for operation in ("list-workflow-runs", "list-workflow-run-artifacts", "download-artifact"):
            workflow.hub.faults[f"actions/{operation}"] = [Answer(status=503)]
        assert before(workflow.step("push", M2, push(M1, M2))) == 1.0

    @pytest.mark.parametrize("body", [b"[]", b"{}", b"null", b"<html>", b'{"workflow_runs": [1]}'])
    def test_is_what_an_answer_without_sense_leads_to(
        self, workflow: Workflow, body: bytes
    ) -> None:
        workflow.judged_on_main(M1)
        workflow.hub.faults["actions/list-workflow-runs"] = [Answer(body=body)] * 3
        assert "baseline not found" in self.refused(workflow)

    def test_is_what_a_comparison_without_sense_leads_to(self, workflow: Workflow) -> None:
        body = b'{"merge_base_commit": {"sha": "main"}}'
        workflow.hub.faults["repos/compare-commits-with-basehead"] = [Answer(body=body)]
        refused = compared(workflow.step("push", M2, push("0" * 40, M2)))["not_comparable"]
        assert f"GitHub returned no merge base of {M2} and main" in refused

    def test_says_that_the_workflow_is_not_known(self, workflow: Workflow) -> None:
        workflow.judged_on_main(M1)
        ran = workflow.step("push", M2, push(M1, M2), GITHUB_WORKFLOW_REF="")
        assert "GITHUB_WORKFLOW_REF does not name a workflow" in compared(ran)["not_comparable"]

    def test_is_what_no_commit_at_all_leads_to(self, workflow: Workflow) -> None:
        ran = workflow.step("push", "", push(M1, M2), head="none")
        assert "the commit of this run is unknown" in compared(ran)["not_comparable"]

    def test_is_what_an_unknown_base_branch_leads_to(self, workflow: Workflow) -> None:
        new = push("0" * 40, M2)
        refused = compared(workflow.step("push", M2, new))["not_comparable"]
        assert "the merge base with main is unknown: GitHub answered 404" in refused


def bomb() -> bytes:
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("results.json", "w") as member,
    ):
        for _ in range(257):
            member.write(bytes(1024**2))
    return content.getvalue()


class TestAHostileArtifact:
    @pytest.fixture
    def sound(self, workflow: Workflow) -> bytes:
        workflow.step("push", M1, push(M1, M1))
        return packed(workflow.folder / "agentci-results")

    def refused(self, workflow: Workflow, content: bytes) -> str:
        workflow.past.commit(M1)
        workflow.hub.add_artifact(workflow.past.run(M1), ARTIFACT, content)
        return str(compared(workflow.step("push", M2, push(M1, M2)))["not_comparable"])

    def test_that_is_cut_off_is_of_no_use(self, workflow: Workflow, sound: bytes) -> None:
        assert "the archive is broken" in self.refused(workflow, sound[:-30])

    def test_that_is_a_bomb_is_not_unpacked(self, workflow: Workflow) -> None:
        assert "results.json is larger than 256 MiB" in self.refused(workflow, bomb())

    def test_that_says_it_is_smaller_is_of_no_use(self, workflow: Workflow, sound: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(sound)) as archive:
            size = archive.getinfo("results.json").file_size
        lie = sound.replace(struct.pack("<I", size), struct.pack("<I", 3))
        assert "the archive is broken" in self.refused(workflow, lie)

    def test_that_leads_elsewhere_writes_nothing(self, workflow: Workflow) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("../../evil", "x")
            archive.writestr("/etc/results.json", "{}")
        assert "not a results.json of agentci" in self.refused(workflow, content.getvalue())
        assert not (workflow.folder.parent / "evil").exists()

    def test_with_several_reports_is_not_guessed_at(self, workflow: Workflow) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("1/results.json", "{}")
            archive.writestr("2/results.json", "{}")
        said = self.refused(workflow, content.getvalue())
        assert "the archive has 2 files called results.json" in said

    def test_that_forges_the_log_is_shown_as_text(self, workflow: Workflow) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            evil = {"tool": {"name": "agentci", "version": "::error::x\n::set-output name=a::b"}}
            archive.writestr("results.json", json.dumps(evil))
        workflow.past.commit(M1)
        workflow.hub.add_artifact(workflow.past.run(M1), ARTIFACT, content.getvalue())
        ran = workflow.step("push", M2, push(M1, M2))
        assert "baseline not found" in compared(ran)["not_comparable"]
        assert not any(line.lstrip().startswith("::set-output") for line in ran.out.splitlines())


def test_shards_are_compared_once_they_are_merged(workflow: Workflow) -> None:
    workflow.judged_on_main(M1)
    workflow.past.commit(MERGE, M1, branch="merge")
    asked = len(workflow.hub.asked)
    for shard in (1, 2):
        options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
        workflow.step("pull_request", MERGE, REQUEST, *options, sunny=0)
    assert len(workflow.hub.asked) == asked
    workflow.check_out("none")
    merge = ["merge", "s1", "s2", "--baseline", "base"]
    ran = workflow.agentci(merge, "pull_request", MERGE, REQUEST)
    assert (compared(ran)["commit"], compared(ran)["evaluators"][0]["outcome"]) == (M1, "fail")


def test_a_merged_report_is_kept(workflow: Workflow) -> None:
    workflow.cached = True
    for shard in (1, 2):
        options = ("--shard", f"{shard}/2", "--output-dir", f"s{shard}")
        workflow.step("push", M1, push(M1, M1), *options)
    workflow.check_out("none")
    workflow.agentci(["merge", "s1", "s2", "--baseline", "base"], "push", M1, push(M1, M1))
    assert before(workflow.step("push", M2, push(M1, M2))) == 1.0


class TestTheAction:
    """The entry point in a workspace as a workflow gives it one, with a cache carried by others."""

    def step(self, workflow: Workflow, event: str, sha: str, payload: Any, sunny: int) -> Any:
        record(workflow.folder, sunny=sunny, max_regression=0.1)
        workflow.check_out(sha)
        ran = subprocess.run(
            [sys.executable, ROOT / "entrypoint.py"],
            cwd=workflow.folder,
            env={
                **os.environ,
                **workflow.environ(event, sha, payload),
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

    def test_keeps_a_push_and_shuts_the_gate_of_a_pull_request_that_is_worse(
        self, workflow: Workflow
    ) -> None:
        workflow.past.commit(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        code, _, report = self.step(workflow, "push", M1, push("0" * 40, M1), 6)
        assert (code, report["commit"]) == (0, M1)
        # As actions/cache carries it: into the workspace of another job.
        carried = workflow.folder / ".agentci" / "cache" / "baselines"
        carried.rename(workflow.folder.parent / "carried")
        shutil.rmtree(workflow.folder / ".agentci")
        carried.parent.mkdir(parents=True)
        (workflow.folder.parent / "carried").rename(carried)
        code, log, report = self.step(workflow, "pull_request", MERGE, REQUEST, 0)
        assert report["comparison"]["baseline"] == f"{M1[:12]}, the cache"
        assert (code, "Quality gate failed: own regressed" in log) == (1, True)
        assert TOKEN not in log

    def test_takes_it_from_an_artifact_as_well(self, workflow: Workflow) -> None:
        number = workflow.judged_on_main(M1)
        workflow.past.commit(MERGE, M1, branch="merge")
        code, _, report = self.step(workflow, "pull_request", MERGE, REQUEST, 6)
        assert (code, report["comparison"]["baseline"]) == (0, f"{M1[:12]}, run {number}")
        assert self.step(workflow, "pull_request", MERGE, REQUEST, 0)[0] == 1
