"""Each workflow step has one pull request comment, which later runs update."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests._util.http.servers import Answer
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.api.hub import BOT, TOKEN
from tests.github.bench import CONFIG, HEAD, PULL, Bench, pull_request
from tests.helpers.runner import commands_in
from tests.helpers.support import ROOT, run_agentci

pytestmark = NEEDS_DESCRIPTION
USER = {"login": "ada", "id": 5, "type": "User"}
CREATE, UPDATE = "issues/create-comment", "issues/update-comment"


class TestComment:
    def test_comment_contains_marker_and_comment_md(self, bench: Bench) -> None:
        ran = bench.evaluate("--comment", "always", score=0)
        (body,) = bench.bodies
        mark, _, text = body.partition("\n")
        assert mark.startswith("<!-- agentci:")
        assert text == (bench.folder / "agentci-results" / "comment.md").read_text()
        assert text.startswith("## \N{CROSS MARK} Quality gate failed: 1 of 1 check failed")
        run = "https://github.example/octo/agent/actions/runs/3"
        assert f"[Artifacts]({run}#artifacts) \N{MIDDLE DOT} commit {HEAD[:12]}" in text
        assert (ran.code, "comment on pull request 7 created\n" in ran.out) == (1, True)

    def test_comment_is_not_posted_by_default(self, bench: Bench) -> None:
        bench.evaluate(score=0)
        assert bench.bodies == []

    def test_comment_is_updated_in_place(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        ran = bench.evaluate("--comment", "always", score=1)
        (body,) = bench.bodies
        assert "Quality gate passed" in body
        assert "comment on pull request 7 updated\n" in ran.out
        assert ran.code == 0

    def test_unchanged_comment_is_not_updated(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always")
        bench.hub.comments[PULL][0]["body"] = bench.bodies[0].replace("\n", "\r\n")
        ran = bench.evaluate("--comment", "always")
        assert bench.hub.count(UPDATE) == 0
        assert "comment on pull request 7 unchanged\n" in ran.out

    def test_comment_is_found_across_pages(self, bench: Bench) -> None:
        for number in range(230):
            bench.hub.add_comment(PULL, f"comment {number}", USER)
        bench.evaluate("--comment", "always", score=0)
        bench.evaluate("--comment", "always", score=1)
        assert len(bench.bodies) == 231
        assert "Quality gate passed" in bench.bodies[-1]

    def test_comment_deleted_during_run_is_recreated(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        bench.hub.faults[UPDATE] = [Answer(status=404, body=b"{}")]
        bench.evaluate("--comment", "always", score=1)
        assert ["Quality gate passed" in body for body in bench.bodies] == [False, True]

    def test_quiet_run_posts_comment_without_printing(self, bench: Bench) -> None:
        ran = bench.evaluate("--comment", "always", "--quiet")
        assert "pull request" not in ran.out
        assert len(bench.bodies) == 1


class TestCommentAuthor:
    def test_comment_of_user_is_not_updated_by_bot(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        bench.hub.comments[PULL].insert(0, self._forged(bench, USER))
        bench.evaluate("--comment", "always", score=1)
        forged, ours = bench.bodies
        assert forged.endswith("forged")
        assert "Quality gate passed" in ours

    def test_comment_of_bot_is_not_updated_by_user(self, bench: Bench) -> None:
        bench.hub.viewer, bench.hub.author = {"id": 5, "login": "ada"}, USER
        bench.evaluate("--comment", "always", score=0)
        bench.hub.comments[PULL].insert(0, self._forged(bench, BOT))
        bench.evaluate("--comment", "always", score=1)
        forged, ours = bench.bodies
        assert forged.endswith("forged")
        assert "Quality gate passed" in ours

    def test_comment_of_deleted_user_is_ignored(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        bench.hub.comments[PULL].insert(0, {**self._forged(bench, USER), "user": None})
        bench.evaluate("--comment", "always", score=1)
        assert "Quality gate passed" in bench.bodies[1]

    def test_viewer_is_not_requested_without_matching_comment(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always")
        assert bench.hub.count("users/get-authenticated") == 0

    def _forged(self, bench: Bench, author: dict[str, Any]) -> dict[str, Any]:
        mark = bench.bodies[0].partition("\n")[0]
        forged = bench.hub.add_comment(PULL, f"{mark}\nforged", author)
        bench.hub.comments[PULL].remove(forged)
        return forged


class TestCommentKey:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("GITHUB_JOB", "other"),
            ("GITHUB_ACTION", "__octo_agent-eval-action_2"),
            ("GITHUB_WORKFLOW_REF", "octo/agent/.github/workflows/b.yml@refs/pull/7/merge"),
        ],
    )
    def test_other_workflow_step_gets_own_comment(
        self, name: str, value: str, bench: Bench
    ) -> None:
        bench.evaluate("--comment", "always")
        bench.environ = {name: value}
        bench.evaluate("--comment", "always")
        assert len(bench.bodies) == 2

    def test_other_configs_get_own_comment(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always")
        bench.evaluate("--comment", "always", config="evals/agentci.yaml")
        assert len(bench.bodies) == 2

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("GITHUB_RUN_ID", "4"),
            ("GITHUB_RUN_ATTEMPT", "2"),
            ("GITHUB_SHA", HEAD),
            ("GITHUB_WORKFLOW_REF", "octo/agent/.github/workflows/a.yml@refs/heads/main"),
            ("GITHUB_REF", "refs/heads/feature"),
        ],
    )
    def test_rerun_of_same_step_updates_comment(self, name: str, value: str, bench: Bench) -> None:
        bench.evaluate("--comment", "always")
        bench.environ = {name: value}
        bench.evaluate("--comment", "always", "--output-dir", "elsewhere", score=0)
        assert len(bench.bodies) == 1


class TestCommentCondition:
    def test_always_posts_comment(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always")
        assert len(bench.bodies) == 1

    def test_failed_posts_on_failure_and_updates_on_recovery(self, bench: Bench) -> None:
        ran = bench.evaluate("--comment", "failed", score=1)
        assert bench.bodies == []
        assert (
            "no comment on pull request 7: `comment: failed` does not apply to this result\n"
            in ran.out
        )
        bench.evaluate("--comment", "failed", score=0)
        assert "Quality gate failed" in bench.bodies[0]
        bench.evaluate("--comment", "failed", score=1)
        (body,) = bench.bodies
        assert "Quality gate passed" in body

    def test_changed_ignores_score_without_outcome_change(self, bench: Bench) -> None:
        bench.evaluate("--comment", "changed", score=1)
        bench.evaluate("--comment", "changed", score=0.9)
        assert "| 1 of 1 | 1 |" in bench.bodies[0]
        assert bench.hub.count(UPDATE) == 0
        bench.evaluate("--comment", "changed", score=0.5)
        (body,) = bench.bodies
        assert "| 0 of 1 | 0.5 |" in body

    def test_changed_posts_first_comment_if_baseline_differs(self, bench: Bench) -> None:
        bench.evaluate("--output-dir", "earlier", score=1)
        bench.evaluate("--comment", "changed", "--baseline", "earlier", score=1)
        assert bench.bodies == []
        bench.evaluate("--comment", "changed", "--baseline", "earlier", score=0.2)
        assert "| 1 newly failing; " in bench.bodies[0]

    def test_changed_posts_comment_if_the_gate_passes_with_warnings(self, bench: Bench) -> None:
        bench.evaluate("--output-dir", "earlier", score=1)
        looser = CONFIG.replace("threshold: 0.7", "threshold: 0.6")
        assert looser != CONFIG
        bench.hub.denied = {"git/get-tree"}  # the runs are evaluated again from the results
        given = ("--comment", "changed", "--baseline", "earlier")
        bench.evaluate(*given, score=1, text=looser)
        assert "Quality gate passed with 1 warning" in bench.bodies[0]
        bench.evaluate(*given, score=1)
        (body,) = bench.bodies
        assert "Quality gate passed: 1 check passed" in body

    def test_changed_posts_comment_if_baseline_is_missing(self, bench: Bench) -> None:
        bench.hub.denied = {
            "repos/compare-commits-with-basehead",
            "actions/list-workflow-runs",
            "repos/list-commits",
            "git/get-tree",
        }
        bench.evaluate("--comment", "changed", "--baseline", "base")
        assert "baseline not found" in bench.bodies[0]

    def test_shard_posts_no_comment_but_merge_does(self, bench: Bench) -> None:
        ran = bench.evaluate("--comment", "always", "--shard", "1/1", "--output-dir", "parts/1")
        assert bench.hub.asked == []
        assert "no comment: this is one shard of a run" in ran.out
        bench.run("merge", "parts", "--comment", "always")
        assert len(bench.bodies) == 1

    def test_offline_run_posts_no_comment(self, bench: Bench) -> None:
        ran = bench.evaluate("--comment", "always", "--offline")
        assert bench.hub.asked == []
        assert "no comment: --offline allows no network access" in ran.out


class TestPullRequestLookup:
    @pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
    def test_pull_request_comes_from_event(self, name: str, bench: Bench) -> None:
        bench.event = (name, None)
        bench.evaluate("--comment", "always")
        assert len(bench.bodies) == 1

    def test_outdated_commit_posts_no_comment(self, bench: Bench) -> None:
        bench.hub.head_sha = "77aa" * 10
        ran = bench.evaluate("--comment", "always")
        assert "no comment: pull request 7 has commits after 8c1f8c1f8c1f\n" in ran.out
        assert bench.bodies == []

    def test_pull_request_without_head_sha_gets_comment(self, bench: Bench) -> None:
        payload = pull_request()
        del payload["pull_request"]["head"]["sha"]
        bench.event = ("pull_request", payload)
        bench.evaluate("--comment", "always")
        assert len(bench.bodies) == 1
        assert "commit" not in bench.bodies[0]

    def test_push_comments_on_open_pull_request(self, bench: Bench) -> None:
        bench.event = ("push", {"after": HEAD, "ref": "refs/heads/feature"})
        bench.hub.pulls[HEAD] = [
            bench.add_pull(PULL),
            bench.add_pull(8, state="closed"),
            bench.add_pull(9, head={"sha": "77aa" * 10}),
        ]
        bench.evaluate("--comment", "always")
        assert len(bench.bodies) == 1

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [((), "no open pull request has"), ((7, 8), "2 open pull requests have")],
    )
    def test_push_without_unique_pull_request_posts_no_comment(
        self, numbers: tuple[int, ...], message: str, bench: Bench
    ) -> None:
        bench.event = ("push", {"after": HEAD, "ref": "refs/heads/feature"})
        bench.hub.pulls[HEAD] = [bench.add_pull(number) for number in numbers]
        ran = bench.evaluate("--comment", "always")
        assert f"no comment: {message} {HEAD[:12]} as the last commit\n" in ran.out
        assert commands_in(ran.out) == []

    @pytest.mark.parametrize("name", ["merge_group", "schedule", "workflow_dispatch", "push"])
    def test_event_without_pull_request_is_reported_once(self, name: str, bench: Bench) -> None:
        bench.event = (name, {"ref": "refs/tags/v1"})
        bench.environ = {"GITHUB_SHA": ""}
        ran = bench.evaluate("--comment", "always")
        assert ran.out.count(f"no comment: the event `{name}` has no pull request\n") == 1
        assert (ran.code, bench.hub.asked) == (0, [])

    def test_run_outside_workflow_posts_no_comment(self, bench: Bench) -> None:
        bench.evaluate()
        arguments = ["run", "evals", "--comment", "always"]
        ran = run_agentci(arguments, cwd=bench.folder, environ={"GITHUB_TOKEN": "t"})
        assert "no comment: there is no pull request outside a workflow\n" in ran.out


class TestCommentFailures:
    """A failed comment does not change the verdict, outputs or exit code."""

    def _ran(self, bench: Bench) -> tuple[str, str]:
        output = bench.folder / "output"
        output.write_text("")
        bench.environ |= {"GITHUB_OUTPUT": str(output)}
        ran = bench.evaluate("--comment", "always")
        assert ran.code == 0
        assert "passed" in output.read_text()
        (warning,) = (each for each in commands_in(ran.out) if each.name == "warning")
        return warning.data, ran.out

    def test_missing_permission_is_a_warning(self, bench: Bench) -> None:
        bench.hub.denied = {CREATE}
        message, out = self._ran(bench)
        assert message.startswith("no comment: GitHub answered 403 for POST issues/7/comments")
        assert "the job needs `permissions: pull-requests: write`" in message
        assert out.index("Quality gate passed") < out.index("::warning")

    def test_fork_warning_points_to_documentation(self, bench: Bench) -> None:
        bench.event = ("pull_request", pull_request(fork=True))
        bench.hub.denied = {CREATE}
        message, _ = self._ran(bench)
        assert "docs/pull-requests.md" in message

    @pytest.mark.parametrize(
        "fault",
        [
            Answer(status=500),
            Answer(status=401, body=b'{"message": "Bad credentials"}'),
            Answer(status=410, body=b'{"message": "Issues are disabled"}'),
            Answer(status=200, body=b"<html>"),
            Answer(status=200, body=b"{}"),
        ],
        ids=lambda fault: f"{fault.status} {fault.body[:8]!r}",
    )
    def test_unexpected_api_response_is_a_warning(self, fault: Answer, bench: Bench) -> None:
        bench.hub.faults["issues/list-comments"] = [fault] * 9
        message, _ = self._ran(bench)
        assert message.startswith("no comment: ")

    def test_malformed_comments_are_a_warning(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        mark = bench.bodies[0]
        odd = [{"body": None}, {"body": 5}, {}, {"body": mark, "user": "x"}]
        last = {"body": mark, "user": {"type": "Bot"}, "id": "x"}
        listed = Answer(body=json.dumps([*odd, 3, None, last]).encode())
        bench.hub.faults["issues/list-comments"] = [listed]
        message, _ = self._ran(bench)
        assert "has no id" in message

    def test_missing_token_is_a_warning(self, bench: Bench) -> None:
        bench.environ = {"INPUT_GITHUB-TOKEN": ""}
        message, _ = self._ran(bench)
        assert "no token for the GitHub API" in message

    def test_refused_connection_is_a_warning(self, bench: Bench) -> None:
        bench.environ = {"GITHUB_API_URL": "http://127.0.0.1:9"}
        message, _ = self._ran(bench)
        assert "connection refused" in message

    @pytest.mark.parametrize("viewer", [b"[]", b"{}", b'{"id": null}'])
    def test_viewer_without_id_is_a_warning(self, viewer: bytes, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        bench.hub.faults["users/get-authenticated"] = [Answer(body=viewer)]
        message, _ = self._ran(bench)
        assert "has no id" in message

    def test_failed_viewer_request_is_a_warning(self, bench: Bench) -> None:
        bench.evaluate("--comment", "always", score=0)
        bench.hub.faults["users/get-authenticated"] = [Answer(status=500)] * 9
        message, _ = self._ran(bench)
        assert "/user" in message

    def test_unreadable_event_posts_no_comment(self, bench: Bench, tmp_path: Path) -> None:
        bench.environ = {"GITHUB_EVENT_PATH": str(tmp_path / "gone")}
        ran = bench.evaluate("--comment", "always")
        assert "no comment: the event `pull_request` has no pull request\n" in ran.out


def test_longest_report_fits_into_comment(bench: Bench) -> None:
    issues = ["\N{CROSS MARK}" * 4_000] * 50
    ran = bench.evaluate("--comment", "always", score=0, details={"issues": issues})
    assert "comment on pull request 7 created\n" in ran.out


def test_action_entrypoint_posts_comment_and_check_run(bench: Bench) -> None:
    bench.evaluate()
    inputs = {"CONFIG": "evals", "COMMENT": "always", "CHECK-RUN": "agent", "MATRIX": "null"}
    given = {f"INPUT_{name}": value for name, value in inputs.items()}
    step = subprocess.run(
        [sys.executable, ROOT / "entrypoint.py"],
        cwd=bench.folder,
        env={**os.environ, **bench.step_environ(), **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (step.returncode, step.stderr) == (0, "")
    assert step.stdout.splitlines()[-2:] == [
        "comment on pull request 7 created",
        "check run `agent` created",
    ]
    assert (len(bench.bodies), len(bench.hub.checks)) == (1, 1)
    assert TOKEN not in step.stdout
