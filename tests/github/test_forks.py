"""A workflow that runs after a fork's workflow does not trust the fork's report."""

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentci.cli.action import run_action
from agentci.cli.commands.reports import MAX_COMMENT_REPORT_BYTES
from agentci.model.gate import CheckClasses
from tests.github.api.description import NEEDS_DESCRIPTION
from tests.github.bench import CONFIG, HEAD, OTHER, PULL, Bench, pull_request, workflow_run
from tests.helpers.runner import commands_in, read_output_file
from tests.helpers.support import ROOT, Ran

pytestmark = NEEDS_DESCRIPTION
REPORT = "report/results.json"


@pytest.fixture
def fork(bench: Bench) -> Bench:
    """The workflow that runs after a fork's pull request, with that run's report."""
    bench.event = ("pull_request", pull_request(fork=True))
    bench.evaluate("--output-dir", "report", score=0)
    assert {each.operation for each in bench.hub.asked} == {"pulls/list-files"}
    bench.hub.asked.clear()
    bench.event = ("workflow_run", workflow_run())
    bench.add_pull(PULL)
    return bench


def _changed(bench: Bench, **changed: Any) -> None:
    file = bench.folder / REPORT
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))


def _make_comparison(config: str, text: str) -> dict[str, Any]:
    """Make a comparison with ``text`` in every field that can have text."""
    trend: dict[str, Any] = {"config": config, "evaluator": text}
    trend |= {"required": True, "pairs": 1, "before": 1, "after": 0, "p_value": None}
    worse: dict[str, Any] = {"case": text, "before": 1, "after": None, "status": "skipped"}
    worse |= {"status_before": "passed", "check_class": "compared", "fails_before": False}
    trend |= {"newly_failing": [], "no_longer_evaluated": [worse]}
    trend |= {"lower_score": [worse], "fixed": [worse]}
    trend |= {"outcome": "fail", "reason": text, "groups": 1, "detectable_drop": None}
    trend |= {"change_low": None, "change_high": None, "only_errors": False, "adjusted_for": 2}
    comparison: dict[str, Any] = {"baseline": text, "no_baseline": text, "evaluators": [trend]}
    classes: dict[str, Any] = {"classes": dict.fromkeys(CheckClasses.__struct_fields__, 1)}
    trend |= classes
    counts: dict[str, Any] = {**classes, "rescored": 1, "rescored_from_results": 1}
    counts |= {"renamed_configs": {text: text}}
    comparison |= {"commit": text, "stale": text, "not_rescored": text, "url": text}
    comparison |= {"same_run": text}
    return comparison | counts


def _refused(ran: Ran, bench: Bench) -> str:
    """The output of a command that rejects the report and posts nothing."""
    assert (ran.code, bench.hub.asked) == (2, [])
    assert "Traceback" not in ran.out + ran.err
    return ran.out


class TestForkReport:
    def test_fork_report_is_posted_on_its_pull_request(self, fork: Bench) -> None:
        ran = fork.run("comment", "report")
        (body,) = fork.bodies
        assert "Quality gate failed: 1 of 1 check failed" in body
        run = "https://github.example/octo/agent/actions/runs/99"
        assert f"[Artifacts]({run}#artifacts) \N{MIDDLE DOT} commit {HEAD[:12]}" in body
        assert (ran.code, "comment on pull request 7 created\n" in ran.out) == (0, True)

    def test_fork_report_includes_its_baseline_comparison(self, fork: Bench) -> None:
        fork.event = ("pull_request", pull_request(fork=True))
        fork.evaluate("--output-dir", "earlier", score=1)
        fork.evaluate("--output-dir", "report", "--baseline", "earlier", score=0)
        fork.event = ("workflow_run", workflow_run())
        fork.run("comment", "report")
        (body,) = fork.bodies
        assert "| 1 newly failing; " in body
        baseline = f"[`{OTHER[:12]}`](https://github.example/octo/agent/actions/runs/3)"
        assert f"ases against {baseline}: **1 newly failing**" in body
        assert "- `quality` 1 \N{RIGHTWARDS ARROW} **0**, threshold " in body
        own = (fork.folder / "report" / "comment.md").read_text()
        start, end = "<summary>Evaluators", "[Workflow run]"
        assert own[own.index(start) : own.index(end)] == body[body.index(start) : body.index(end)]

    def test_later_fork_report_updates_comment(self, fork: Bench) -> None:
        fork.run("comment", REPORT)
        fork.event = ("pull_request", pull_request(fork=True))
        fork.evaluate("--output-dir", "report", score=1)
        fork.event = ("workflow_run", workflow_run(id=100))
        fork.run("comment", REPORT)
        (body,) = fork.bodies
        assert "Quality gate passed" in body

    def test_fork_report_creates_check_run(self, fork: Bench) -> None:
        fork.run("comment", "report", "--comment", "never", "--check-run", "agent")
        assert fork.bodies == []
        (check,) = fork.hub.checks
        assert (check["head_sha"], check["conclusion"]) == (HEAD, "failure")
        assert len(check["annotations"]) == 1

    def test_interrupted_fork_run_is_not_posted(self, fork: Bench) -> None:
        _changed(fork, complete=False)
        ran = fork.run("comment", "report")
        assert (ran.code, fork.hub.asked) == (0, [])
        assert "no comment: the run was interrupted\n" in ran.out


class TestForkPullRequest:
    def test_pull_request_number_in_report_is_ignored(self, fork: Bench) -> None:
        fork.event = ("workflow_run", workflow_run(pull_requests=[{"number": 666}]))
        (fork.folder / "report" / "event.json").write_text('{"pull_request": {"number": 666}}')
        (fork.folder / "report" / "pr_number").write_text("666")
        fork.run("comment", "report")
        assert fork.hub.comments.keys() == {PULL}

    @pytest.mark.parametrize(
        "changed",
        [
            {"head": {"sha": "77aa" * 10}},
            {"head": {"ref": "other"}},
            {"head": {"repo": {"full_name": "mallory/other"}}},
            {"state": "closed"},
        ],
        ids=["newer commit", "other branch", "other repository", "closed"],
    )
    def test_non_matching_pull_request_gets_no_comment(
        self, changed: dict[str, Any], fork: Bench
    ) -> None:
        (pull,) = fork.hub.open_pulls
        if "head" in changed:
            head, more = pull["head"], changed["head"]
            more = {**more, "repo": {**head["repo"], **more.get("repo", {})}}
            changed = {"head": {**head, **more}}
        pull |= changed
        ran = fork.run("comment", "report")
        assert ran.code == 0
        assert "no comment: no open pull request has 8c1f8c1f8c1f as the last commit\n" in ran.out
        assert fork.hub.count("issues/create-comment") == 0

    def test_deleted_fork_gets_no_comment(self, fork: Bench) -> None:
        fork.event = ("workflow_run", workflow_run(head_repository=None))
        ran = fork.run("comment", "report", "--check-run", "agent")
        assert "no comment: the branch of 8c1f8c1f8c1f was deleted\n" in ran.out
        assert [check["head_sha"] for check in fork.hub.checks] == [HEAD]

    def test_event_without_triggering_run_posts_nothing(self, fork: Bench) -> None:
        fork.event = ("workflow_run", {})
        ran = fork.run("comment", "report", "--check-run", "agent")
        assert "no comment: the event `workflow_run` has no pull request\n" in ran.out
        assert "no check run: the event `workflow_run` has no commit\n" in ran.out
        assert (ran.code, fork.hub.asked) == (0, [])

    def test_several_matching_pull_requests_get_no_comment(self, fork: Bench) -> None:
        fork.add_pull(8)
        assert "no comment: 2 open pull requests have" in fork.run("comment", "report").out

    @pytest.mark.parametrize("branch", ["a b", "x&state=closed", "../../user", "#7", "\u202e"])
    def test_any_branch_name_is_looked_up(self, branch: str, fork: Bench) -> None:
        fork.event = ("workflow_run", workflow_run(head_branch=branch))
        (pull,) = fork.hub.open_pulls
        pull["head"]["ref"] = branch
        fork.run("comment", "report")
        assert len(fork.bodies) == 1
        assert fork.hub.asked[0].query["head"] == f"mallory:{branch}"


class TestUntrustedReport:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "the file is empty"),
            ("[]", "not a results.json of agentci"),
            ('{"tool": {"name": "agentci", "version": "9.9"}}', "agentci '9.9' wrote the report"),
            ("[" * 200_000, "nested too deeply"),
            ("9" * 10_000, "too many digits"),
            ('{"a": 1, "a": 2}', "appears twice"),
            ("\x00\x01", "contains a NUL"),
        ],
    )
    def test_malformed_report_is_rejected(self, text: str, message: str, fork: Bench) -> None:
        (fork.folder / REPORT).write_text(text)
        assert message in _refused(fork.run("comment", "report"), fork)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("results", "none"),
            ("results", [{"id": "x"}]),
            ("totals", {"checks": -1}),
            ("decision", {"passed": "yes", "exit_code": 0, "reasons": []}),
            ("pull_request", 666),
            ("comparison", {"baseline": 3}),
            ("comparison", {"baseline": "b", "evaluators": [{"evaluator": "x"}]}),
        ],
    )
    def test_report_with_invalid_schema_is_rejected(
        self, name: str, value: object, fork: Bench
    ) -> None:
        _changed(fork, **{name: value})
        assert name in _refused(fork.run("comment", "report"), fork)

    def test_oversized_report_is_rejected(self, fork: Bench) -> None:
        with (fork.folder / REPORT).open("wb") as file:
            file.truncate(MAX_COMMENT_REPORT_BYTES + 1)
        message = _refused(fork.run("comment", "report"), fork)
        assert "is larger than 64 MiB" in message

    def test_missing_report_is_rejected(self, fork: Bench) -> None:
        assert "there is no report nowhere" in _refused(fork.run("comment", "nowhere"), fork)

    def test_symlink_out_of_workspace_is_rejected(self, fork: Bench, tmp_path: Path) -> None:
        secret = tmp_path.parent / f"{tmp_path.name}-secret.json"
        secret.write_text((fork.folder / REPORT).read_text())
        (fork.folder / REPORT).unlink()
        (fork.folder / REPORT).symlink_to(secret)
        message = _refused(fork.run("comment", "report"), fork)
        assert "is outside the workspace" in message

    def test_named_pipe_is_rejected_without_blocking(self, fork: Bench) -> None:
        (fork.folder / REPORT).unlink()
        os.mkfifo(fork.folder / REPORT)
        assert "there is no report" in _refused(fork.run("comment", "report"), fork)

    def test_markup_and_mentions_in_report_are_escaped(self, fork: Bench) -> None:
        hostile = (
            "@octocat #12 GH-3 octo/agent#4 <img src=x onerror=y> <!-- --> </details>"
            " [click](https://evil.example) ![x](http://evil.example/p.png)"
            " https://evil.example www.evil.example ```\n# heading\n::error::forged"
            " | a | b | \x1b[31m\u202e <!-- agentci:0:0 -->"
        )
        _changed(
            fork,
            decision={
                "passed": True,
                "exit_code": 0,
                "reasons": [hostile] * 3,
                "notes": [hostile] * 3,
                "unlisted_notes": [hostile] * 3,
                "fail_on": "failed",
                "reported_only": [hostile] * 3,
                "errored": {hostile: hostile},
            },
        )
        document = json.loads((fork.folder / REPORT).read_text())
        for result in document["results"]:
            result |= {"evaluator": hostile, "criterion": hostile, "misses": [hostile] * 9}
            result |= {"reason": hostile, "reasoning": hostile}
        problem = {"severity": "error", "message": hostile, "hint": hostile, "place": None}
        comparison = _make_comparison(document["results"][0]["config"], hostile)
        _changed(fork, results=document["results"], problems=[problem], comparison=comparison)
        ran = fork.run("comment", "report", "--check-run", "agent")
        (body,) = fork.bodies
        assert "1 no longer evaluated (skipped), 1 with a lower score, 1 fixed; regressed |" in body
        prose = body.partition("\n")[2].replace("\N{ZERO WIDTH SPACE}", "")
        assert "@octocat" not in body
        assert "#12" not in body.replace("&#12", "")
        for markup in (
            "<img",
            "<!--",
            "](https://evil",
            "](http://evil",
            "\n# head",
        ):
            assert markup not in prose
        # Only those of the comment itself, each on its own line.
        assert prose.count("</details") == prose.count("\n</details>\n") == prose.count("<details>")
        for markup in ("https://evil", "www.evil", "\x1b", "\u202e"):
            assert markup not in prose
        assert commands_in(ran.out) == []

    @pytest.mark.parametrize("name", ["../results.json", "/results.json", "report/results.json"])
    def test_zipped_report_is_rejected(self, name: str, fork: Bench) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(name, (fork.folder / REPORT).read_text())
        (fork.folder / REPORT).write_bytes(packed.getvalue())
        _refused(fork.run("comment", "report"), fork)


class TestDocumentedWorkflow:
    TEXT = (ROOT / "examples" / "workflows" / "comment.yml").read_text()
    WORKFLOW = yaml.safe_load(TEXT)

    def test_documented_workflow_matches_github_schema(self, tmp_path: Path) -> None:
        (tmp_path / "w.yml").write_text(self.TEXT)
        checker = [sys.executable, "-m", "check_jsonschema"]
        schema = ["--builtin-schema", "vendor.github-workflows", str(tmp_path / "w.yml")]
        ran = subprocess.run([*checker, *schema], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout

    def test_documented_workflow_has_minimal_permissions_and_no_checkout(self) -> None:
        job = self.WORKFLOW["jobs"]["comment"]
        assert self.WORKFLOW["permissions"] == {}
        assert job["permissions"] == {"actions": "read", "pull-requests": "write"}
        assert not [step for step in job["steps"] if "checkout" in step["uses"] or "run" in step]

    def test_documented_workflow_posts_comment(self, fork: Bench) -> None:
        (inputs,) = (
            step["with"]
            for step in self.WORKFLOW["jobs"]["comment"]["steps"]
            if step["uses"].startswith("org/agent-eval-action@")
        )
        code, outputs = _step(fork, **inputs)
        assert (code, len(fork.bodies), outputs) == (0, 1, {})


def test_job_without_a_checkout_comments_on_the_report_of_an_earlier_job(bench: Bench) -> None:
    workflow = yaml.safe_load((ROOT / "examples/workflows/pull-request.yml").read_text())
    *_, inputs = (step["with"] for step in workflow["jobs"]["comment"]["steps"])
    page = "https://github.example/octo/agent/artifacts/1"
    bench.evaluate("--output-dir", "agentci-results", score=0)
    assert bench.bodies == []
    shutil.rmtree(bench.folder / "evals")
    code, _ = _step(bench, **{**inputs, "report-url": page})
    assert code == 0
    [body] = bench.bodies
    assert "Quality gate failed" in body
    assert page in body


class TestAction:
    def test_rejected_report_sets_outputs(self, fork: Bench) -> None:
        code, outputs = _step(fork, **{"comment-report": "nowhere", "comment": "always"})
        assert (code, outputs["verdict"]) == (2, "invalid")

    @pytest.mark.parametrize(
        "inputs",
        [
            {"comment": "never"},
            {"comment": "always", "config": "evals"},
            {"comment": "always", "merge": "report"},
            {"comment": "always", "baseline": "report"},
            {"comment": "always", "fail-on": "never"},
            {"comment": "always", "output-dir": "elsewhere"},
        ],
        ids=str,
    )
    def test_conflicting_input_is_rejected(self, inputs: dict[str, str], fork: Bench) -> None:
        code, outputs = _step(fork, **{"comment-report": "report", **inputs})
        assert (code, outputs["verdict"], fork.hub.asked) == (2, "invalid", [])

    def test_each_matrix_job_gets_own_comment(self, bench: Bench) -> None:
        bench.evaluate()
        for matrix in ('{"model": "small"}', '{"model": "large"}', '{"model":"small"}'):
            assert _step(bench, config="evals", comment="always", matrix=matrix)[0] == 0
        assert len(bench.bodies) == 2


def _step(bench: Bench, **given: str) -> tuple[int, dict[str, str]]:
    """Run the action with default inputs; return its exit code and outputs."""
    defaults = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    inputs = {name: str(each["default"]) for name, each in defaults.items()} | given
    output = bench.folder / "output"
    output.write_text("")
    code = bench.within(lambda session: run_action(inputs, session, {}), GITHUB_OUTPUT=str(output))
    return code, dict(read_output_file(output.read_text()))


def test_comment_shows_differences_from_baseline(bench: Bench) -> None:
    """Without expected answers, only the baseline shows what the agent did differently."""
    config = CONFIG.replace("eval_set: golden.json\n", "")
    bench.event = ("pull_request", pull_request(fork=True))
    bench.evaluate("--output-dir", "before", text=config, note="old")
    bench.evaluate(
        "--output-dir", "report", "--baseline", "before", text=config, score=0, note="new"
    )
    bench.event = ("workflow_run", workflow_run())
    bench.add_pull(PULL)
    ran = bench.run("comment", "report")
    assert ran.code == 0
    [body] = bench.bodies
    own = (bench.folder / "report" / "comment.md").read_text()
    assert '+ {"score": 0, "note": "new"}' in own
    assert "**1 newly failing**\n" in own
    assert own.rpartition("\n\n")[0] in body
