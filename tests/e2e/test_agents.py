"""Agents of eval files: they run once for each case that has no recorded output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from agentci.cli.session import restrict_agents
from tests.e2e.steps import run_step
from tests.helpers.support import ROOT, Ran, make_session, run_agentci
from tests.helpers.waiting import wait_until

# Behaves as its prompt asks and appends the prompt to runs.txt.
AGENT: Final = """\
import json, os, pathlib, sys, time
prompt, extra = sys.argv[1], sys.argv[2:]
with open("runs.txt", "a") as runs:
    runs.write(prompt + "\\n")
match prompt:
    case "fail":
        sys.exit("no luck today")
    case "hang":
        time.sleep(300)
    case "silence":
        pass
    case "latin":
        sys.stdout.buffer.write(b"\\xe9")
    case "odd":
        print('{"output_messages": [{"content": "it"}]}')
    case "two":
        print('{"text": "it"}' * 2)
    case "seen":
        print("it", os.environ.get("OPENAI_API_KEY"), os.environ.get("GITHUB_TOKEN"))
    case "slow":
        print('{"text": "it", "duration_ms": 90000}')
    case "tools":
        use = {"tool": "search", "input": {"q": 1}, "output": "found"}
        sent = [{"role": "assistant", "tool_calls": [use]}, {"role": "assistant", "content": "it"}]
        usage = {"input": 3, "output": 4}
        print(json.dumps({"output_messages": sent, "cost_usd": 0.5, "token_usage": usage}))
    case _:
        print("it", *extra)
"""
CONTAINS: Final = {"name": "says_it", "type": "contains", "value": "it"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def _file(folder: Path, *prompts: str, name: str = "x.eval.yaml", **fields: Any) -> None:
    """Write an eval file with a case for each prompt; the prompt is also the case id."""
    target = {"command": [sys.executable, "agent.py", "{PROMPT}"], "timeout": 20}
    content = {
        "target": {**target, **fields.pop("target", {})},
        "assertions": fields.pop("assertions", [CONTAINS]),
        "tests": [{"id": each, "input": each} for each in prompts],
        **fields,
    }
    (folder / name).write_text(json.dumps(content))


def _run(folder: Path, *options: str, **environ: str) -> Ran:
    return run_agentci(["run", "x.eval.yaml", *options], cwd=folder, environ=environ)


def _statuses(ran: Ran) -> dict[str, str]:
    return {row["case"]: row["status"] for row in ran.results["results"]}


def _runs(folder: Path) -> list[str]:
    file = folder / "runs.txt"
    return sorted(file.read_text().split()) if file.exists() else []


def _outputs(folder: Path, name: str = "x.outputs.jsonl") -> list[dict[str, Any]]:
    lines = (folder / "agentci-results" / name).read_text().splitlines()
    return [json.loads(line) for line in lines]


def _answer(folder: Path, command: str | Sequence[str], **target: Any) -> str:
    """The saved answer of an agent to the case `a`."""
    _file(folder, "a", target={"command": command, **target})
    _run(folder)
    [row] = _outputs(folder)
    return str(
        row["output_messages"][-1]["content"] if "output_messages" in row else row["text"]
    ).strip()


class TestAgent:
    def test_agent_runs_once_per_case_without_output(self, folder: Path) -> None:
        _file(folder, "a", "b", "c", assertions=[CONTAINS, {**CONTAINS, "name": "again"}])
        (folder / "b.output.json").write_text("recorded")
        ran = _run(folder)
        assert _runs(folder) == ["a", "c"]
        assert _statuses(ran) == {"a": "passed", "b": "failed", "c": "passed"}
        assert "running the agent on 2 cases" in ran.err

    def test_agent_does_not_run_when_outputs_are_given(self, folder: Path) -> None:
        _file(folder, "a", "tools")
        first = _run(folder)
        outputs = (folder / "agentci-results" / "x.outputs.jsonl").read_text()
        again = _run(folder, "--offline", "--traces", "agentci-results/x.outputs.jsonl")
        assert _runs(folder) == ["a", "tools"]
        assert _statuses(first) == _statuses(again) == {"a": "passed", "tools": "passed"}
        assert (folder / "agentci-results" / "x.outputs.jsonl").read_text() == outputs

    def test_agent_runs_only_for_missing_outputs(self, folder: Path) -> None:
        _file(folder, "a", "b")
        (folder / "o.jsonl").write_text('{"id": "a", "text": "it"}')
        assert _run(folder, "--traces", "o.jsonl").code == 0
        assert _runs(folder) == ["b"]
        assert [row["id"] for row in _outputs(folder)] == ["a", "b"]

    def test_outputs_file_has_tools_cost_tokens_and_duration(self, folder: Path) -> None:
        _file(folder, "tools")
        _run(folder)
        [row] = _outputs(folder)
        assert row["output_messages"][0]["tool_calls"][0]["input"] == {"q": 1}
        assert (row["cost_usd"], row["token_usage"]) == (0.5, {"input": 3, "output": 4})
        assert 0 < row["duration_ms"] < 20_000
        _file(folder, "slow")
        _run(folder)
        assert _outputs(folder)[0]["duration_ms"] == 90_000

    def test_output_file_takes_precedence_over_stdout(self, folder: Path) -> None:
        assert _answer(folder, 'echo noise; printf \'{"text": "it"}\' > {OUTPUT_FILE}') == "it"

    def test_prompt_is_sent_on_stdin_or_in_file(self, folder: Path) -> None:
        assert _answer(folder, ["cat"]) == "a"
        assert _answer(folder, "cat {PROMPT_FILE} -") == "a"

    def test_command_receives_case_attempt_and_working_directory(self, folder: Path) -> None:
        (folder / "src").mkdir()
        command = 'echo {EVAL_ID} {ATTEMPT} "$(basename "$PWD")"'
        assert _answer(folder, command, cwd="src") == "a 0 src"

    def test_command_receives_files_of_case(self, folder: Path) -> None:
        (folder / "notes.txt").write_text("noted")
        parts = [{"type": "text", "value": "Read"}, {"type": "file", "value": "notes.txt"}]
        case = {"id": "a", "input": [{"role": "user", "content": parts}]}
        target = {"command": "cat {FILES}; echo {PROMPT}", "files_format": "{path}"}
        _file(folder, target=target, tests=[case])
        _run(folder)
        answer = _outputs(folder)[0]["text"]
        assert answer == 'notedRead\n\n<file: path="notes.txt">'

    def test_command_receives_text_of_guidelines(self, folder: Path) -> None:
        _write_guidelines(folder)
        _file(
            folder,
            target={"command": "echo {GUIDELINES} {FILES}"},
            tests=[_case_with_guidelines("a")],
        )
        _run(folder)
        answer = _outputs(folder)[0]["text"]
        assert answer == f"Be kind. {folder / 'rules.md'}"

    def test_agent_sees_only_listed_environment_variables(self, folder: Path) -> None:
        environ = {"OPENAI_API_KEY": "key", "GITHUB_TOKEN": "token"}
        _file(folder, "seen")
        _run(folder, **environ)
        assert _outputs(folder)[0]["text"].split() == [
            "it",
            "None",
            "None",
        ]
        _file(folder, "seen", target={"env": ["OPENAI_API_KEY"]})
        _run(folder, **environ)
        assert _outputs(folder)[0]["text"].split() == ["it", "key", "None"]

    def test_sandboxed_agent_cannot_write_to_workspace(self, folder: Path) -> None:
        _file(folder, "a", target={"sandbox": True, "command": "cat {PROMPT_FILE} && touch mark"})
        ran = _run(folder)
        assert _statuses(ran) == {"a": "errored"}
        assert not (folder / "mark").exists()
        _file(folder, "it", target={"sandbox": True, "command": "cat {PROMPT_FILE}"})
        assert _run(folder).code == 0

    def test_background_processes_of_agent_are_killed(self, folder: Path) -> None:
        command = "(setsid sleep 60 > /dev/null 2>&1 &); echo it"
        _file(folder, "a", target={"command": command, "env": ["MARK"]})
        assert _run(folder, MARK=str(folder)).code == 0
        assert not _with_variable(f"MARK={folder}")

    def test_outputs_of_same_named_eval_files_are_separate(self, folder: Path) -> None:
        (folder / "deep").mkdir()
        for each in (folder, folder / "deep"):
            _file(each, "a", target={"command": f"echo it {each.name}"})
        run_agentci(["run", "x.eval.yaml", "deep/x.eval.yaml"], cwd=folder)
        names = ("x.outputs.jsonl", "x-2.outputs.jsonl")
        answers = [_outputs(folder, name)[0]["text"] for name in names]
        assert [each.split()[1] for each in answers] == [folder.name, "deep"]


def test_secret_in_agent_stderr_is_redacted(folder: Path) -> None:
    crash = "import os; raise SystemExit('no ' + os.environ['DEMO_KEY'])"
    target = {"command": [sys.executable, "-c", crash], "env": ["DEMO_KEY"]}
    _file(folder, "a", target=target)
    ran = run_agentci(["run"], cwd=folder, environ={**os.environ, "DEMO_KEY": "s3cret-of-it"})
    assert "exited with code 1: no ***" in ran.results["results"][0]["reason"]
    written = [path.read_text() for path in (folder / "agentci-results").glob("*.*")]
    assert [text for text in [ran.out, *written] if "s3cret-of-it" in text] == []


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("fail", "the agent exited with code 1: no luck today"),
        ("hang", "the agent timed out after 1 s"),
        ("silence", "the agent printed nothing on stdout"),
        ("latin", "the agent returned an invalid output: it is not UTF-8"),
        ("odd", "the agent returned an invalid output: "),
        ("two", "the agent returned 2 outputs instead of one"),
    ],
)
def test_failing_agent_errors_only_its_own_case(folder: Path, prompt: str, reason: str) -> None:
    _file(folder, "a", prompt, "b", target={"timeout": 1 if prompt == "hang" else 20})
    ran = _run(folder)
    assert ran.code == 3
    assert _statuses(ran) == {"a": "passed", prompt: "errored", "b": "passed"}
    assert ran.results["results"][1]["reason"].startswith(reason)
    assert [row["id"] for row in _outputs(folder)] == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["no-such-agent"], "the agent could not be started: `no-such-agent` is not installed"),
        ("no-such-agent", "the agent exited with code 127"),
        ("echo so >&2; : {OUTPUT_FILE}", "the agent wrote no {OUTPUT_FILE}; on stderr:\nso"),
        (": > {OUTPUT_FILE}", "the agent wrote nothing into {OUTPUT_FILE}"),
        ("mkdir {OUTPUT_FILE}", "the agent wrote no {OUTPUT_FILE}"),
        ("truncate -s 2G {OUTPUT_FILE}", "the agent returned an invalid output: {OUTPUT_FILE}"),
    ],
)
def test_unusable_agent_command_is_an_error(
    folder: Path, command: str | list[str], reason: str
) -> None:
    _file(folder, "a", target={"command": command})
    ran = _run(folder)
    assert ran.code == 3
    assert ran.results["results"][0]["reason"].startswith(reason)


def test_guidelines_deleted_during_run_are_an_error(folder: Path) -> None:
    _write_guidelines(folder)
    target = {"command": "rm rules.md; echo it"}
    _file(folder, target=target, tests=[_case_with_guidelines("a"), _case_with_guidelines("b")])
    ran = _run(folder, "--jobs", "1")
    assert _statuses(ran) == {"a": "passed", "b": "errored"}
    assert "the agent could not be run: " in ran.results["results"][1]["reason"]


def _write_guidelines(folder: Path) -> None:
    (folder / ".agentv").mkdir()
    (folder / ".agentv" / "config.yaml").write_text("guideline_patterns: [rules.md]\n")
    (folder / "rules.md").write_text("Be kind.")


def _case_with_guidelines(case_id: str) -> dict[str, Any]:
    parts = [{"type": "file", "value": "rules.md"}]
    return {"id": case_id, "input": [{"role": "user", "content": parts}]}


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [("a\0b", "NUL character"), ("a" * 200_000, "an argument is longer than 131,071 bytes; use")],
)
def test_prompt_unfit_for_argument_is_an_error(folder: Path, prompt: str, reason: str) -> None:
    _file(folder, tests=[{"id": "a", "input": prompt}])
    assert reason in _run(folder).results["results"][0]["reason"]
    _file(
        folder,
        tests=[{"id": "a", "input": prompt}],
        target={"command": "wc -c {PROMPT_FILE}"},
    )
    _run(folder)
    assert _outputs(folder)[0]["text"].startswith(str(len(prompt)))


def test_jobs_limits_concurrent_agents(folder: Path) -> None:
    (folder / "agent.py").write_text(
        "import pathlib, sys, time\n"
        "started, mark = pathlib.Path(sys.argv[2]), pathlib.Path('running', sys.argv[1])\n"
        "mark.touch(); (started / sys.argv[1]).touch()\n"
        "while len(list(started.iterdir())) < int(sys.argv[2]): time.sleep(0.01)\n"
        "time.sleep(0.4)  # so that one agent too many would be seen\n"
        "print(len(list(mark.parent.iterdir()))); mark.unlink()\n"
    )
    (folder / "running").mkdir()
    for jobs in (1, 2):
        (folder / str(jobs)).mkdir()
        target = {"command": [sys.executable, "agent.py", "{PROMPT}", str(jobs)]}
        _file(folder, "a", "b", "c", "d", target=target)
        _run(folder, "--jobs", str(jobs))
        most = max(int(row["text"]) for row in _outputs(folder))
        assert most == jobs


class TestAgentNotRun:
    def test_offline_case_without_output_is_an_error(self, folder: Path) -> None:
        _file(folder, "a", "b")
        (folder / "a.output.json").write_text("it")
        ran = _run(folder, "--offline")
        assert (_statuses(ran), _runs(folder)) == ({"a": "passed", "b": "errored"}, [])
        assert ran.results["results"][1]["reason"].endswith("agents do not run with --offline")
        assert not (folder / "agentci-results" / "x.outputs.jsonl").exists()

    def test_plan_lists_agent_runs(self, folder: Path) -> None:
        _file(folder, "a", "b", target={"command": "agent {PROMPT}"})
        (folder / "b.output.json").write_text("it")
        out = run_agentci(["plan", "x.eval.yaml"], cwd=folder).out
        assert "a, says_it: run the agent (agent {PROMPT}) for at most 20 s; evaluate\n" in out
        assert "b, says_it: evaluate without a program or model\n" in out
        out = run_agentci(["plan", "x.eval.yaml", "--offline"], cwd=folder).out
        assert "a, says_it: error: this case has no recorded output, and agents do not run" in out

    def test_missing_output_files_are_config_errors(self, folder: Path) -> None:
        _file(folder, "a", outputs=["gone.jsonl", "lost.jsonl"])
        ran = _run(folder)
        assert (ran.code, _runs(folder)) == (2, [])
        assert [problem["message"] for problem in ran.results["problems"]] == [
            "no recorded output matches gone.jsonl",
            "no recorded output matches lost.jsonl",
        ]
        validated = run_agentci(["validate", "x.eval.yaml"], cwd=folder)
        assert validated.code == 2
        assert "x.eval.yaml:1:" in validated.out
        assert "no recorded output matches lost.jsonl" in validated.out


def test_unwritable_outputs_file_fails_run(folder: Path) -> None:
    _file(folder, "a")
    (folder / "agentci-results" / "x.outputs.jsonl").mkdir(parents=True)
    ran = _run(folder)
    assert (ran.code, _statuses(ran)) == (2, {"a": "passed"})
    assert "x.outputs.jsonl cannot be written" in ran.results["problems"][0]["message"]


def test_agent_deleting_output_directory_fails_run(folder: Path) -> None:
    _file(folder, "a", target={"command": "rm -r agentci-results; : > agentci-results; echo it"})
    ran = _run(folder)
    assert ran.code == 2
    assert "--output-dir agentci-results is not writable" in ran.out


def test_shard_runs_agents_only_for_its_cases(folder: Path) -> None:
    prompts = [f"case-{number}" for number in range(8)]
    _file(folder, *prompts, assertions=[CONTAINS, {**CONTAINS, "name": "again"}])
    for index in (1, 2):
        before = _runs(folder)
        ran = _run(folder, "--shard", f"{index}/2", "--output-dir", f"shard-{index}")
        assert ran.code == 0, ran.out
        ours = [each for each in _runs(folder) if each not in before]
        rows = json.loads((folder / f"shard-{index}" / "results.json").read_text())["results"]
        assert sorted({row["case"] for row in rows}) == ours
        assert len(rows) == 2 * len(ours)
        assert 0 < len(ours) < 8
    assert _runs(folder) == prompts
    merged = run_agentci(["merge", "shard-1", "shard-2"], cwd=folder)
    assert (merged.code, merged.results["totals"]["passed"]) == (0, 16)


def test_interrupted_run_saves_finished_agent_outputs(folder: Path) -> None:
    _file(folder, "a", "hang", target={"timeout": 900, "env": ["MARK"]})
    process = subprocess.Popen(
        [sys.executable, "-m", "agentci", "run", "x.eval.yaml", "--jobs", "1"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MARK": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(lambda: _runs(folder) == ["a", "hang"])
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    assert process.returncode == 143, out
    assert [row["id"] for row in _outputs(folder)] == ["a"]
    report = json.loads((folder / "agentci-results" / "results.json").read_text())
    assert (report["complete"], report["results"]) == (False, [])
    assert "Traceback" not in out
    assert not _with_variable(f"MARK={folder}")


def _with_variable(variable: str) -> list[str]:
    """The readable processes that have the variable in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if variable.encode() in environ:
            found.append(process.name)
    return found


def write_event(folder: Path, head: str) -> dict[str, str]:
    """The environment of a workflow step for a pull request from the repository ``head``."""
    repositories = {"head": {"repo": {"full_name": head}}, "base": {"repo": {"full_name": "o/r"}}}
    (folder / "event.json").write_text(json.dumps({"pull_request": repositories}))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
    }


class TestConsentOfWorkflow:
    @pytest.mark.parametrize(
        ("head", "options", "reason"),
        [
            ("o/r", [], "the workflow does not allow agents to run outside the sandbox"),
            ("me/r", ["--allow-agents"], "for pull requests from forks, agents run only in"),
        ],
    )
    def test_agent_does_not_run_outside_of_sandbox(
        self, folder: Path, head: str, options: list[str], reason: str
    ) -> None:
        _file(folder, "a", "b", execution={"trials": {"count": 2}})
        (folder / "a.output.json").write_text("it")
        ran = _run(folder, *options, **write_event(folder, head))
        assert (ran.code, _runs(folder)) == (3, [])
        assert _statuses(ran) == {"a": "passed", "b": "errored"}
        assert f"this case has no recorded output, and {reason}" in ran.out
        planned = ["plan", "x.eval.yaml", *options]
        out = run_agentci(planned, cwd=folder, environ=write_event(folder, head)).out
        assert f"b, says_it: error: this case has no recorded output, and {reason}" in out

    def test_event_is_read_before_the_first_agent_and_by_no_other_command(
        self, tmp_path: Path
    ) -> None:
        session = make_session(tmp_path, write_event(tmp_path, "o/r"))
        (tmp_path / "event.json").unlink()
        session = restrict_agents(session, allowed=True)
        write_event(tmp_path, "me/r")
        assert "from forks" in session.services.find_agent_refusal()

    def test_agent_runs_where_the_workflow_allows_it(self, folder: Path) -> None:
        _file(folder, "a")
        ran = _run(folder, "--allow-agents", **write_event(folder, "o/r"))
        assert (ran.code, _runs(folder)) == (0, ["a"])

    def test_agent_in_sandbox_needs_no_consent(self, folder: Path) -> None:
        _file(folder, "a", target={"command": ["echo", "it"], "sandbox": True})
        assert _run(folder, **write_event(folder, "me/r")).code == 0

    @pytest.mark.parametrize(("given", "code"), [("true", 0), ("false", 3), ("yes", 2)])
    def test_input_of_the_action_allows_agents(self, folder: Path, given: str, code: int) -> None:
        _file(folder, "a")
        event = write_event(folder, "o/r")
        step = run_step(folder, event, config="x.eval.yaml", allow_agents=given)
        assert step.code == code, step.log
        assert ("allow-agents must be true or false" in step.log) == (code == 2)
