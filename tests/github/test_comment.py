"""The pull request has one comment a step, which later runs change in place."""

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
from tests.github.bench import HEAD, PULL, Bench, pull_request
from tests.helpers.runner import commands_in
from tests.helpers.support import ROOT, run_agentci

pytestmark = NEEDS_DESCRIPTION
USER = {"login": "ada", "id": 5, "type": "User"}
CREATE, UPDATE = "issues/create-comment", "issues/update-comment"


class TestAComment:
    def test_says_what_comment_md_says_below_a_mark(self, bench: Bench) -> None:
        ran = bench.judge("--comment", "always", score=0)
        (body,) = bench.bodies
        mark, _, text = body.partition("\n")
        assert mark.startswith("<!-- agentci:")
        assert text == (bench.folder / "agentci-results" / "comment.md").read_text()
        assert text.startswith("## \N{CROSS MARK} Quality gate failed: 1 of 1 check failed")
        run = "https://github.example/octo/agent/actions/runs/3"
        assert text.endswith(f"[Workflow run]({run}), commit {HEAD[:12]}\n")
        assert (ran.code, "comment on pull request 7 created\n" in ran.out) == (1, True)

    def test_is_not_made_without_being_asked_for(self, bench: Bench) -> None:
        bench.judge(score=0)
        assert bench.hub.asked == []

    def test_is_changed_in_place(self, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        ran = bench.judge("--comment", "always", score=1)
        (body,) = bench.bodies
        assert "Quality gate passed" in body
        assert "comment on pull request 7 updated\n" in ran.out
        assert ran.code == 0

    def test_is_left_as_it_is_where_nothing_changed(self, bench: Bench) -> None:
        bench.judge("--comment", "always")
        bench.hub.comments[PULL][0]["body"] = bench.bodies[0].replace("\n", "\r\n")
        ran = bench.judge("--comment", "always")
        assert bench.hub.count(UPDATE) == 0
        assert "comment on pull request 7 unchanged\n" in ran.out

    def test_is_found_behind_hundreds_of_others(self, bench: Bench) -> None:
        for number in range(230):
            bench.hub.add_comment(PULL, f"comment {number}", USER)
        bench.judge("--comment", "always", score=0)
        bench.judge("--comment", "always", score=1)
        assert len(bench.bodies) == 231
        assert "Quality gate passed" in bench.bodies[-1]

    def test_is_made_again_where_somebody_deleted_it_in_the_middle(self, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        bench.hub.faults[UPDATE] = [Answer(status=404, body=b"{}")]
        bench.judge("--comment", "always", score=1)
        assert ["Quality gate passed" in body for body in bench.bodies] == [False, True]

    def test_is_said_to_nobody_with_quiet(self, bench: Bench) -> None:
        ran = bench.judge("--comment", "always", "--quiet")
        assert "pull request" not in ran.out
        assert len(bench.bodies) == 1


class TestTheAuthor:
    def test_of_a_comment_that_is_changed_is_a_bot_as_we_are(self, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        bench.hub.comments[PULL].insert(0, self._forged(bench, USER))
        bench.judge("--comment", "always", score=1)
        forged, ours = bench.bodies
        assert forged.endswith("forged")
        assert "Quality gate passed" in ours

    def test_is_the_user_whose_token_it_is(self, bench: Bench) -> None:
        bench.hub.viewer, bench.hub.author = {"id": 5, "login": "ada"}, USER
        bench.judge("--comment", "always", score=0)
        bench.hub.comments[PULL].insert(0, self._forged(bench, BOT))
        bench.judge("--comment", "always", score=1)
        forged, ours = bench.bodies
        assert forged.endswith("forged")
        assert "Quality gate passed" in ours

    def test_may_be_nobody_any_more(self, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        bench.hub.comments[PULL].insert(0, {**self._forged(bench, USER), "user": None})
        bench.judge("--comment", "always", score=1)
        assert "Quality gate passed" in bench.bodies[1]

    def test_is_not_asked_for_without_need(self, bench: Bench) -> None:
        bench.judge("--comment", "always")
        assert bench.hub.count("users/get-authenticated") == 0

    def _forged(self, bench: Bench, author: dict[str, Any]) -> dict[str, Any]:
        mark = bench.bodies[0].partition("\n")[0]
        forged = bench.hub.add_comment(PULL, f"{mark}\nforged", author)
        bench.hub.comments[PULL].remove(forged)
        return forged


class TestEveryStepHasItsOwn:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("GITHUB_JOB", "other"),
            ("GITHUB_ACTION", "__octo_agent-eval-action_2"),
            ("GITHUB_WORKFLOW_REF", "octo/agent/.github/workflows/b.yml@refs/pull/7/merge"),
        ],
    )
    def test_whose_place_is_another(self, name: str, value: str, bench: Bench) -> None:
        bench.judge("--comment", "always")
        bench.environ = {name: value}
        bench.judge("--comment", "always")
        assert len(bench.bodies) == 2

    def test_whose_configs_are_others(self, bench: Bench) -> None:
        bench.judge("--comment", "always")
        bench.judge("--comment", "always", config="evals/agentci.yaml")
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
    def test_and_keeps_it_whatever_is_another_in_each_run(
        self, name: str, value: str, bench: Bench
    ) -> None:
        bench.judge("--comment", "always")
        bench.environ = {name: value}
        bench.judge("--comment", "always", "--output-dir", "elsewhere", score=0)
        assert len(bench.bodies) == 1


class TestWhenItIsWanted:
    def test_always(self, bench: Bench) -> None:
        bench.judge("--comment", "always")
        assert len(bench.bodies) == 1

    def test_failed_is_when_the_gate_is_shut_and_when_it_opens_again(self, bench: Bench) -> None:
        ran = bench.judge("--comment", "failed", score=1)
        assert bench.bodies == []
        assert (
            "no comment on pull request 7: `comment: failed` does not apply to this result\n"
            in ran.out
        )
        bench.judge("--comment", "failed", score=0)
        assert "Quality gate failed" in bench.bodies[0]
        bench.judge("--comment", "failed", score=1)
        (body,) = bench.bodies
        assert "Quality gate passed" in body

    def test_changed_is_when_a_check_ended_differently_and_not_at_every_score(
        self, bench: Bench
    ) -> None:
        bench.judge("--comment", "changed", score=1)
        bench.judge("--comment", "changed", score=0.9)
        assert "| 1 of 1 | 1 |" in bench.bodies[0]
        assert bench.hub.count(UPDATE) == 0
        bench.judge("--comment", "changed", score=0.5)
        (body,) = bench.bodies
        assert "| 0 of 1 | 0.5 |" in body

    def test_changed_without_a_comment_is_what_differs_from_the_baseline(
        self, bench: Bench
    ) -> None:
        bench.judge("--output-dir", "earlier", score=1)
        bench.judge("--comment", "changed", "--baseline", "earlier", score=0.9)
        assert bench.bodies == []
        bench.judge("--comment", "changed", "--baseline", "earlier", score=0.2)
        assert "| 1 (1 worse, 0 better; " in bench.bodies[0]

    def test_changed_with_a_baseline_that_is_of_no_use(self, bench: Bench) -> None:
        bench.judge("--comment", "changed", "--baseline", "nowhere")
        assert "baseline not " in bench.bodies[0]

    def test_not_for_a_part_of_a_run_but_for_all_of_it_once_it_is_merged(
        self, bench: Bench
    ) -> None:
        ran = bench.judge("--comment", "always", "--shard", "1/1", "--output-dir", "parts/1")
        assert bench.hub.asked == []
        assert "no comment: this is one shard of a run" in ran.out
        bench.run("merge", "parts", "--comment", "always")
        assert len(bench.bodies) == 1

    def test_not_without_a_network(self, bench: Bench) -> None:
        ran = bench.judge("--comment", "always", "--offline")
        assert bench.hub.asked == []
        assert "no comment: --offline allows no network access" in ran.out


class TestThePullRequest:
    @pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
    def test_is_that_of_the_event(self, name: str, bench: Bench) -> None:
        bench.event = (name, None)
        bench.judge("--comment", "always")
        assert len(bench.bodies) == 1

    def test_that_has_moved_on_is_left_to_a_later_run(self, bench: Bench) -> None:
        bench.hub.head_sha = "77aa" * 10
        ran = bench.judge("--comment", "always")
        assert "no comment: pull request 7 has commits after 8c1f8c1f8c1f\n" in ran.out
        assert bench.bodies == []

    def test_whose_commit_is_not_told_is_the_one_all_the_same(self, bench: Bench) -> None:
        payload = pull_request()
        del payload["pull_request"]["head"]["sha"]
        bench.event = ("pull_request", payload)
        bench.judge("--comment", "always")
        assert len(bench.bodies) == 1
        assert "commit" not in bench.bodies[0]

    def test_of_a_push_is_the_open_one_of_its_commit(self, bench: Bench) -> None:
        bench.event = ("push", {"after": HEAD, "ref": "refs/heads/feature"})
        bench.hub.pulls[HEAD] = [
            bench.add_pull(PULL),
            bench.add_pull(8, state="closed"),
            bench.add_pull(9, head={"sha": "77aa" * 10}),
        ]
        bench.judge("--comment", "always")
        assert len(bench.bodies) == 1

    @pytest.mark.parametrize(
        ("numbers", "said"),
        [((), "no open pull request has"), ((7, 8), "2 open pull requests have")],
    )
    def test_of_a_push_is_no_other(self, numbers: tuple[int, ...], said: str, bench: Bench) -> None:
        bench.event = ("push", {"after": HEAD, "ref": "refs/heads/feature"})
        bench.hub.pulls[HEAD] = [bench.add_pull(number) for number in numbers]
        ran = bench.judge("--comment", "always")
        assert f"no comment: {said} {HEAD[:12]} as the last commit\n" in ran.out
        assert commands_in(ran.out) == []

    @pytest.mark.parametrize("name", ["merge_group", "schedule", "workflow_dispatch", "push"])
    def test_is_none_of_other_events_which_is_said_once(self, name: str, bench: Bench) -> None:
        bench.event = (name, {"ref": "refs/tags/v1"})
        bench.environ = {"GITHUB_SHA": ""}
        ran = bench.judge("--comment", "always")
        assert ran.out.count(f"no comment: the event `{name}` has no pull request\n") == 1
        assert (ran.code, bench.hub.asked) == (0, [])

    def test_is_none_outside_of_a_workflow(self, bench: Bench) -> None:
        bench.judge()
        arguments = ["run", "evals", "--comment", "always"]
        ran = run_agentci(arguments, cwd=bench.folder, environ={"GITHUB_TOKEN": "t"})
        assert "no comment: there is no pull request outside a workflow\n" in ran.out


class TestWhateverFails:
    """The verdict, the outputs and the exit code stand before."""

    def _ran(self, bench: Bench) -> tuple[str, str]:
        output = bench.folder / "output"
        output.write_text("")
        bench.environ |= {"GITHUB_OUTPUT": str(output)}
        ran = bench.judge("--comment", "always")
        assert ran.code == 0
        assert "passed" in output.read_text()
        (warning,) = (each for each in commands_in(ran.out) if each.name == "warning")
        return warning.data, ran.out

    def test_is_a_warning_with_a_way_out(self, bench: Bench) -> None:
        bench.hub.denied = {CREATE}
        said, out = self._ran(bench)
        assert said.startswith("no comment: GitHub answered 403 for POST issues/7/comments")
        assert "the job needs `permissions: pull-requests: write`" in said
        assert out.index("Quality gate passed") < out.index("::warning")

    def test_for_a_fork_leads_to_the_other_workflow(self, bench: Bench) -> None:
        bench.event = ("pull_request", pull_request(fork=True))
        bench.hub.denied = {CREATE}
        said, _ = self._ran(bench)
        assert "docs/pull-requests.md" in said

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
    def test_whatever_is_answered(self, fault: Answer, bench: Bench) -> None:
        bench.hub.faults["issues/list-comments"] = [fault] * 9
        said, _ = self._ran(bench)
        assert said.startswith("no comment: ")

    def test_where_a_comment_makes_no_sense(self, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        mark = bench.bodies[0]
        odd = [{"body": None}, {"body": 5}, {}, {"body": mark, "user": "x"}]
        last = {"body": mark, "user": {"type": "Bot"}, "id": "x"}
        listed = Answer(body=json.dumps([*odd, 3, None, last]).encode())
        bench.hub.faults["issues/list-comments"] = [listed]
        said, _ = self._ran(bench)
        assert "has no id" in said

    def test_without_a_token(self, bench: Bench) -> None:
        bench.environ = {"INPUT_GITHUB-TOKEN": ""}
        said, _ = self._ran(bench)
        assert "no token for the GitHub API" in said

    def test_where_nobody_is_there(self, bench: Bench) -> None:
        bench.environ = {"GITHUB_API_URL": "http://127.0.0.1:9"}
        said, _ = self._ran(bench)
        assert "connection refused" in said

    @pytest.mark.parametrize("viewer", [b"[]", b"{}", b'{"id": null}'])
    def test_where_nobody_is_the_viewer(self, viewer: bytes, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        bench.hub.faults["users/get-authenticated"] = [Answer(body=viewer)]
        said, _ = self._ran(bench)
        assert "has no id" in said

    def test_where_the_viewer_cannot_be_asked(self, bench: Bench) -> None:
        bench.judge("--comment", "always", score=0)
        bench.hub.faults["users/get-authenticated"] = [Answer(status=500)] * 9
        said, _ = self._ran(bench)
        assert "/user" in said

    def test_where_the_event_cannot_be_read(self, bench: Bench, tmp_path: Path) -> None:
        bench.environ = {"GITHUB_EVENT_PATH": str(tmp_path / "gone")}
        ran = bench.judge("--comment", "always")
        assert "no comment: the event `pull_request` has no pull request\n" in ran.out


def test_a_comment_of_the_longest_report_is_taken(bench: Bench) -> None:
    issues = ["\N{CROSS MARK}" * 4_000] * 50
    ran = bench.judge("--comment", "always", score=0, details={"issues": issues})
    assert "comment on pull request 7 created\n" in ran.out


def test_the_action_as_the_runner_starts_it_comments(bench: Bench) -> None:
    bench.judge()
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
