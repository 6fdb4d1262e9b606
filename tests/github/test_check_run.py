"""A check run on the commit that was judged, with every finding on its line."""

import json
from typing import Any

import pytest

from tests._util.http.servers import Answer
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.bench import BASE, HEAD, OTHER, Bench, workflow_run
from tests.helpers.recordings import otlp
from tests.helpers.runner import commands_in

pytestmark = NEEDS_DESCRIPTION


def _many(bench: Bench, evaluators: int) -> Any:
    """Judge by so many evaluators, none of which passes."""
    bench.judge()
    grader = {"type": "string_check", "operation": "eq", "reference": "another answer"}
    entries = [
        {"name": f"quality {number}", "type": "openai_eval", "grader": grader}
        for number in range(evaluators)
    ]
    folder = bench.folder / "many"
    folder.mkdir()
    text = json.dumps({"evaluators": entries, "traces": "1.json"}, indent=1)
    (folder / "agentci.yaml").write_text(text)
    (folder / "1.json").write_text(otlp(answer='{"score": 0}'))
    return bench.run("run", "many", "--check-run", "agent", "--annotations", "none")


class TestACheckRun:
    def test_is_on_the_commit_of_the_pull_request_and_leads_to_the_run(self, bench: Bench) -> None:
        ran = bench.judge("--check-run", "agent", score=0)
        (check,) = bench.hub.checks
        assert (check["name"], check["head_sha"]) == ("agent", HEAD)
        assert (check["status"], check["conclusion"]) == ("completed", "failure")
        assert check["details_url"] == "https://github.example/octo/agent/actions/runs/3"
        assert check["output"]["title"].startswith("Quality gate failed: 1 of 1 check failed")
        assert (
            check["output"]["summary"]
            == (bench.folder / "agentci-results" / "comment.md").read_text()
        )
        assert "the check run agent was made\n" in ran.out

    def test_leads_nowhere_where_no_run_is_known(self, bench: Bench) -> None:
        bench.environ = {"GITHUB_RUN_ID": ""}
        bench.judge("--check-run", "agent")
        assert "details_url" not in bench.hub.asked[0].body

    def test_of_an_open_gate_is_a_success(self, bench: Bench) -> None:
        bench.judge("--check-run", "agent")
        (check,) = bench.hub.checks
        assert (check["conclusion"], check["annotations"]) == ("success", [])

    def test_has_findings_on_the_lines_of_the_config(self, bench: Bench) -> None:
        bench.judge("--check-run", "agent", score=0)
        (annotation,) = bench.hub.checks[0]["annotations"]
        assert (annotation["path"], annotation["start_line"]) == ("evals/agentci.yaml", 1)
        assert annotation["annotation_level"] == "failure"
        assert annotation["title"] == "quality: 1 of 1 below at least 0.7"
        assert annotation["message"].startswith("weather (evals/1.json): score 0")

    def test_has_more_findings_than_a_step_may_show(self, bench: Bench) -> None:
        ran = _many(bench, 120)
        (check,) = bench.hub.checks
        titles = {each["title"] for each in check["annotations"]}
        assert len(titles) == len(check["annotations"]) == 120
        assert [len(each.body["output"]["annotations"]) for each in bench.hub.asked] == [50, 50, 20]
        assert "the check run agent was made\n" in ran.out

    def test_counts_the_findings_that_it_does_not_show(self, bench: Bench) -> None:
        ran = _many(bench, 1_003)
        assert len(bench.hub.checks[0]["annotations"]) == 1_000
        assert "the check run agent was made, without 3 annotations\n" in ran.out

    def test_is_complete_from_the_first_request_on(self, bench: Bench) -> None:
        bench.hub.denied = {"checks/update"}
        ran = _many(bench, 51)
        assert bench.hub.checks[0]["status"] == "completed"
        (warning,) = commands_in(ran.out)
        assert "403 for PATCH check-runs/" in warning.data

    def test_has_no_finding_on_a_file_outside_of_the_repository(self, bench: Bench) -> None:
        bench.judge()
        bench.run("run", "--metric", "response_match_score", "--traces", "evals/1.json",
                  "--check-run", "agent")  # fmt: skip
        (check,) = bench.hub.checks
        assert (check["conclusion"], check["annotations"]) == ("failure", [])

    def test_says_that_the_input_is_wrong(self, bench: Bench) -> None:
        (bench.folder / "agentci.yaml").write_text("evaluators: [{nam: x}]\n")
        bench.run("run", "--check-run", "agent")
        (check,) = bench.hub.checks
        assert check["conclusion"] == "failure"
        assert check["annotations"][0]["title"] == "agentci cannot use this"


class TestTheCommit:
    @pytest.mark.parametrize(
        ("event", "commit"),
        [
            (("push", {"after": BASE, "ref": "refs/heads/main"}), BASE),
            (("merge_group", {"merge_group": {"head_sha": BASE}}), BASE),
            (("schedule", {}), OTHER),
            (("workflow_run", workflow_run()), HEAD),
        ],
        ids=lambda value: value[0],
    )
    def test_is_that_of_the_event(self, event: tuple[str, Any], commit: str, bench: Bench) -> None:
        bench.event = event
        bench.judge("--check-run", "agent")
        assert [check["head_sha"] for check in bench.hub.checks] == [commit]

    def test_may_not_be_told(self, bench: Bench) -> None:
        bench.event = ("schedule", {})
        bench.environ = {"GITHUB_SHA": ""}
        ran = bench.judge("--check-run", "agent")
        assert "no check run: the event schedule names no commit\n" in ran.out


class TestWhateverFails:
    def test_is_a_warning_with_the_permission(self, bench: Bench) -> None:
        bench.hub.denied = {"checks/create"}
        ran = bench.judge("--check-run", "agent")
        (warning,) = commands_in(ran.out)
        assert (warning.name, ran.code) == ("warning", 0)
        assert "the job needs `permissions: checks: write`" in warning.data

    def test_keeps_the_comment_from_nothing(self, bench: Bench) -> None:
        bench.hub.faults["checks/create"] = [Answer(status=201, body=b'{"id": null}')]
        bench.hub.denied = {"issues/create-comment"}
        ran = bench.judge("--check-run", "agent", "--comment", "always", score=0)
        assert len([each for each in commands_in(ran.out) if each.name == "warning"]) == 2
        assert ran.code == 1

    def test_is_not_tried_where_nobody_answered_before(self, bench: Bench) -> None:
        bench.hub.faults["pulls/get"] = [Answer(status=503)] * 5
        ran = bench.judge("--comment", "always", "--check-run", "agent")
        (warning,) = commands_in(ran.out)
        assert "status 503 (5 attempts)" in warning.data
        assert "no check run: GitHub did not answer before, and is not asked again\n" in ran.out
        assert (len(bench.hub.asked), bench.hub.checks) == (5, [])

    def test_is_no_part_of_a_run(self, bench: Bench) -> None:
        ran = bench.judge("--check-run", "agent", "--shard", "1/1")
        assert "no check run: this is a part of a run" in ran.out
        assert bench.hub.asked == []
