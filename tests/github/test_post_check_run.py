"""A check run on the evaluated commit, with an annotation for each finding."""

import json
from typing import Any

import pytest

from tests._util.http.servers import Answer
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.api.hub import changed_file
from tests.github.bench import BASE, HEAD, OTHER, Bench, workflow_run
from tests.helpers.recordings import otlp
from tests.helpers.runner import commands_in

pytestmark = NEEDS_DESCRIPTION


def _many(bench: Bench, evaluators: int) -> Any:
    """Run with ``evaluators`` evaluators, all of which fail."""
    bench.evaluate()
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


class TestCheckRun:
    def test_check_run_is_on_pull_request_head_commit(self, bench: Bench) -> None:
        ran = bench.evaluate("--check-run", "agent", score=0)
        (check,) = bench.hub.checks
        assert (check["name"], check["head_sha"]) == ("agent", HEAD)
        assert (check["status"], check["conclusion"]) == ("completed", "failure")
        assert check["details_url"] == "https://github.example/octo/agent/actions/runs/3"
        assert check["output"]["title"].startswith("Quality gate failed: 1 of 1 check failed")
        assert (
            check["output"]["summary"]
            == (bench.folder / "agentci-results" / "comment.md").read_text()
        )
        assert "check run `agent` created\n" in ran.out

    def test_check_run_without_run_id_has_no_link(self, bench: Bench) -> None:
        bench.environ = {"GITHUB_RUN_ID": ""}
        bench.evaluate("--check-run", "agent")
        assert "details_url" not in bench.hub.asked[-1].body

    def test_passed_gate_is_successful_check_run(self, bench: Bench) -> None:
        bench.evaluate("--check-run", "agent")
        (check,) = bench.hub.checks
        assert (check["conclusion"], check["annotations"]) == ("success", [])

    def test_annotations_are_on_config_lines(self, bench: Bench) -> None:
        bench.evaluate("--check-run", "agent", score=0)
        (annotation,) = bench.hub.checks[0]["annotations"]
        assert (annotation["path"], annotation["start_line"]) == ("evals/agentci.yaml", 1)
        assert annotation["annotation_level"] == "failure"
        assert annotation["title"] == "weather > quality failed"
        assert annotation["message"].startswith("weather (evals/1.json): score 0")

    def test_failure_on_changed_eval_case_is_annotated_there(self, bench: Bench) -> None:
        bench.hub.head_sha = HEAD
        bench.hub.changed_files = [
            changed_file("evals/golden.json", "@@ -12,2 +12,2 @@\n-a\n+b\n c")
        ]
        bench.evaluate("--check-run", "agent", score=0)
        (annotation,) = bench.hub.checks[0]["annotations"]
        assert (annotation["path"], annotation["start_line"]) == ("evals/golden.json", 12)
        assert annotation["title"] == "weather > quality failed"
        assert annotation["message"].startswith("quality: score 0, threshold 0.7")

    def test_annotations_exceed_the_limit_of_one_request(self, bench: Bench) -> None:
        ran = _many(bench, 120)
        (check,) = bench.hub.checks
        titles = {each["title"] for each in check["annotations"]}
        assert len(titles) == len(check["annotations"]) == 120
        sent = [each.body for each in bench.hub.asked if each.body]
        assert [len(each["output"]["annotations"]) for each in sent] == [50, 50, 20]
        assert "check run `agent` created\n" in ran.out

    def test_omitted_annotations_are_counted(self, bench: Bench) -> None:
        ran = _many(bench, 1_003)
        assert len(bench.hub.checks[0]["annotations"]) == 1_000
        assert "check run `agent` created, without 3 annotations\n" in ran.out

    def test_first_request_completes_check_run(self, bench: Bench) -> None:
        bench.hub.denied = {"checks/update"}
        ran = _many(bench, 51)
        assert bench.hub.checks[0]["status"] == "completed"
        (warning,) = commands_in(ran.out)
        assert "403 for PATCH check-runs/" in warning.data

    def test_file_outside_repository_gets_no_annotation(self, bench: Bench) -> None:
        bench.evaluate()
        bench.run("run", "--metric", "response_match_score", "--traces", "evals/1.json",
                  "--check-run", "agent")  # fmt: skip
        (check,) = bench.hub.checks
        assert (check["conclusion"], check["annotations"]) == ("failure", [])

    def test_invalid_input_fails_check_run(self, bench: Bench) -> None:
        (bench.folder / "agentci.yaml").write_text("evaluators: [{nam: x}]\n")
        bench.run("run", "--check-run", "agent")
        (check,) = bench.hub.checks
        assert check["conclusion"] == "failure"
        assert check["annotations"][0]["title"] == "Invalid input"


class TestCheckRunCommit:
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
    def test_check_run_commit_comes_from_event(
        self, event: tuple[str, Any], commit: str, bench: Bench
    ) -> None:
        bench.event = event
        bench.evaluate("--check-run", "agent")
        assert [check["head_sha"] for check in bench.hub.checks] == [commit]

    def test_event_without_commit_creates_no_check_run(self, bench: Bench) -> None:
        bench.event = ("schedule", {})
        bench.environ = {"GITHUB_SHA": ""}
        ran = bench.evaluate("--check-run", "agent")
        assert "no check run: the event `schedule` has no commit\n" in ran.out


class TestCheckRunFailures:
    def test_missing_permission_is_a_warning(self, bench: Bench) -> None:
        bench.hub.denied = {"checks/create"}
        ran = bench.evaluate("--check-run", "agent")
        (warning,) = commands_in(ran.out)
        assert (warning.name, ran.code) == ("warning", 0)
        assert "the job needs `permissions: checks: write`" in warning.data

    def test_malformed_check_run_response_does_not_stop_comment(self, bench: Bench) -> None:
        bench.hub.faults["checks/create"] = [Answer(status=201, body=b'{"id": null}')]
        bench.hub.denied = {"issues/create-comment"}
        ran = bench.evaluate("--check-run", "agent", "--comment", "always", score=0)
        assert len([each for each in commands_in(ran.out) if each.name == "warning"]) == 2
        assert ran.code == 1

    def test_check_run_is_skipped_after_failed_request(self, bench: Bench) -> None:
        bench.hub.faults["pulls/get"] = [Answer(status=503)] * 5
        ran = bench.evaluate("--comment", "always", "--check-run", "agent")
        (warning,) = commands_in(ran.out)
        assert "status 503 (5 attempts)" in warning.data
        assert (
            "no check run: skipped, because GitHub did not respond to an earlier request\n"
            in ran.out
        )
        assert (len(bench.hub.asked), bench.hub.checks) == (5, [])

    def test_shard_creates_no_check_run(self, bench: Bench) -> None:
        ran = bench.evaluate("--check-run", "agent", "--shard", "1/1")
        assert "no check run: this is one shard of a run" in ran.out
        assert bench.hub.asked == []
