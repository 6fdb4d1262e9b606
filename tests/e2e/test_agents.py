"""Agents of eval files: run where nothing is recorded, judged, and never asked twice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.support import ROOT, Ran, run_agentci
from tests.helpers.waiting import wait_until

# Answers in the ways that its question asks for, and notes that it was run.
AGENT: Final = """\
import json, os, pathlib, sys, time
asked, told = sys.argv[1], sys.argv[2:]
with open("runs.txt", "a") as runs:
    runs.write(asked + "\\n")
match asked:
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
        said = [{"role": "assistant", "tool_calls": [use]}, {"role": "assistant", "content": "it"}]
        usage = {"input": 3, "output": 4}
        print(json.dumps({"output_messages": said, "cost_usd": 0.5, "token_usage": usage}))
    case _:
        print("it", *told)
"""
CONTAINS: Final = {"name": "says_it", "type": "contains", "value": "it"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def _file(folder: Path, *asked: str, name: str = "x.eval.yaml", **fields: Any) -> None:
    """Write an eval file with a case for each question, which is its id as well."""
    target = {"command": [sys.executable, "agent.py", "{PROMPT}"], "timeout": 20}
    content = {
        "target": {**target, **fields.pop("target", {})},
        "assertions": fields.pop("assertions", [CONTAINS]),
        "tests": [{"id": each, "input": each} for each in asked],
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


def _kept(folder: Path, name: str = "x.outputs.jsonl") -> list[dict[str, Any]]:
    lines = (folder / "agentci-results" / name).read_text().splitlines()
    return [json.loads(line) for line in lines]


def _answer(folder: Path, command: str | Sequence[str], **target: Any) -> str:
    """What is kept as the answer of an agent to the case `a`."""
    _file(folder, "a", target={"command": command, **target})
    _run(folder)
    [row] = _kept(folder)
    return str(row["output_messages"][-1]["content"]).strip()


class TestAnAgent:
    def test_is_run_once_for_each_case_that_has_no_recording(self, folder: Path) -> None:
        _file(folder, "a", "b", "c", assertions=[CONTAINS, {**CONTAINS, "name": "again"}])
        (folder / "b.output.json").write_text("recorded")
        ran = _run(folder)
        assert _runs(folder) == ["a", "c"]
        assert _statuses(ran) == {"a": "passed", "b": "failed", "c": "passed"}
        assert "running the agent on 2 cases" in ran.err

    def test_is_not_asked_again_where_its_answers_are_named(self, folder: Path) -> None:
        _file(folder, "a", "tools")
        first = _run(folder)
        kept = (folder / "agentci-results" / "x.outputs.jsonl").read_text()
        again = _run(folder, "--offline", "--traces", "agentci-results/x.outputs.jsonl")
        assert _runs(folder) == ["a", "tools"]
        assert _statuses(first) == _statuses(again) == {"a": "passed", "tools": "passed"}
        assert (folder / "agentci-results" / "x.outputs.jsonl").read_text() == kept

    def test_is_asked_for_the_rest_alone(self, folder: Path) -> None:
        _file(folder, "a", "b")
        (folder / "o.jsonl").write_text('{"id": "a", "text": "it"}')
        assert _run(folder, "--traces", "o.jsonl").code == 0
        assert _runs(folder) == ["b"]
        assert [row["id"] for row in _kept(folder)] == ["a", "b"]

    def test_keeps_all_that_it_told(self, folder: Path) -> None:
        _file(folder, "tools")
        _run(folder)
        [row] = _kept(folder)
        assert row["output_messages"][0]["tool_calls"][0]["input"] == {"q": 1}
        assert (row["cost_usd"], row["token_usage"]) == (0.5, {"input": 3, "output": 4})
        assert 0 < row["duration_ms"] < 20_000
        _file(folder, "slow")
        _run(folder)
        assert _kept(folder)[0]["duration_ms"] == 90_000

    def test_answers_in_a_file_where_its_command_names_one(self, folder: Path) -> None:
        assert _answer(folder, 'echo noise; printf \'{"text": "it"}\' > {OUTPUT_FILE}') == "it"

    def test_reads_its_prompt_where_its_command_does_not_name_it(self, folder: Path) -> None:
        assert _answer(folder, ["cat"]) == "a"
        assert _answer(folder, "cat {PROMPT_FILE} -") == "a"

    def test_knows_its_case_and_its_folder(self, folder: Path) -> None:
        (folder / "src").mkdir()
        command = 'echo {EVAL_ID} {ATTEMPT} "$(basename "$PWD")"'
        assert _answer(folder, command, cwd="src") == "a 0 src"

    def test_is_given_the_files_that_its_case_names(self, folder: Path) -> None:
        (folder / "notes.txt").write_text("noted")
        parts = [{"type": "text", "value": "Read"}, {"type": "file", "value": "notes.txt"}]
        case = {"id": "a", "input": [{"role": "user", "content": parts}]}
        target = {"command": "cat {FILES}; echo {PROMPT}", "files_format": "{path}"}
        _file(folder, target=target, tests=[case])
        _run(folder)
        said = _kept(folder)[0]["output_messages"][0]["content"]
        assert said == 'notedRead\n\n<file: path="notes.txt">'

    def test_is_given_the_text_of_guidelines(self, folder: Path) -> None:
        _guide(folder)
        _file(folder, target={"command": "echo {GUIDELINES} {FILES}"}, tests=[_guided("a")])
        _run(folder)
        said = _kept(folder)[0]["output_messages"][0]["content"]
        assert said == f"Be kind. {folder / 'rules.md'}"

    def test_sees_the_variables_that_are_named_and_no_others(self, folder: Path) -> None:
        environ = {"OPENAI_API_KEY": "key", "GITHUB_TOKEN": "token"}
        _file(folder, "seen")
        _run(folder, **environ)
        assert _kept(folder)[0]["output_messages"][0]["content"].split() == ["it", "None", "None"]
        _file(folder, "seen", target={"env": ["OPENAI_API_KEY"]})
        _run(folder, **environ)
        assert _kept(folder)[0]["output_messages"][0]["content"].split() == ["it", "key", "None"]

    def test_runs_in_the_jail_where_that_is_wanted(self, folder: Path) -> None:
        _file(folder, "a", target={"jail": True, "command": "cat {PROMPT_FILE} && touch mark"})
        ran = _run(folder)
        assert _statuses(ran) == {"a": "errored"}
        assert not (folder / "mark").exists()
        _file(folder, "it", target={"jail": True, "command": "cat {PROMPT_FILE}"})
        assert _run(folder).code == 0

    def test_leaves_nothing_running(self, folder: Path) -> None:
        command = "(setsid sleep 60 > /dev/null 2>&1 &); echo it"
        _file(folder, "a", target={"command": command, "env": ["MARK"]})
        assert _run(folder, MARK=str(folder)).code == 0
        assert not _with_variable(f"MARK={folder}")

    def test_of_several_files_of_one_name_is_kept_apart(self, folder: Path) -> None:
        (folder / "deep").mkdir()
        for each in (folder, folder / "deep"):
            _file(each, "a", target={"command": f"echo it {each.name}"})
        run_agentci(["run", "x.eval.yaml", "deep/x.eval.yaml"], cwd=folder)
        names = ("x.outputs.jsonl", "x-2.outputs.jsonl")
        said = [_kept(folder, name)[0]["output_messages"][0]["content"] for name in names]
        assert [each.split()[1] for each in said] == [folder.name, "deep"]


def test_a_secret_in_the_words_of_an_agent_that_fails_is_nowhere(folder: Path) -> None:
    crash = "import os; raise SystemExit('no ' + os.environ['DEMO_KEY'])"
    target = {"command": [sys.executable, "-c", crash], "env": ["DEMO_KEY"]}
    _file(folder, "a", target=target)
    ran = run_agentci(["run"], cwd=folder, environ={**os.environ, "DEMO_KEY": "s3cret-of-it"})
    assert "exited with code 1: no ***" in ran.results["results"][0]["reason"]
    written = [path.read_text() for path in (folder / "agentci-results").glob("*.*")]
    assert [text for text in [ran.out, *written] if "s3cret-of-it" in text] == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("fail", "the agent exited with code 1: no luck today"),
        ("hang", "the agent timed out after 1 s"),
        ("silence", "the agent printed nothing on stdout"),
        ("latin", "the agent returned an invalid output: it is not UTF-8"),
        ("odd", "the agent returned an invalid output: "),
        ("two", "the agent returned 2 outputs instead of one"),
    ],
)
def test_a_case_whose_agent_fails_is_errored_and_the_others_are_judged(
    folder: Path, asked: str, told: str
) -> None:
    _file(folder, "a", asked, "b", target={"timeout": 1 if asked == "hang" else 20})
    ran = _run(folder)
    assert ran.code == 3
    assert _statuses(ran) == {"a": "passed", asked: "errored", "b": "passed"}
    assert ran.results["results"][1]["reason"].startswith(told)
    assert [row["id"] for row in _kept(folder)] == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["no-such-agent"], "the agent could not be started: `no-such-agent` is not installed"),
        ("no-such-agent", "the agent exited with code 127"),
        ("echo so >&2; : {OUTPUT_FILE}", "the agent wrote no {OUTPUT_FILE}; on stderr:\nso"),
        (": > {OUTPUT_FILE}", "the agent wrote nothing into {OUTPUT_FILE}"),
        ("mkdir {OUTPUT_FILE}", "the agent wrote no {OUTPUT_FILE}"),
        ("truncate -s 2G {OUTPUT_FILE}", "the agent returned an invalid output: {OUTPUT_FILE}"),
    ],
)
def test_a_command_that_cannot_be_used_is_errored(
    folder: Path, command: str | list[str], told: str
) -> None:
    _file(folder, "a", target={"command": command})
    ran = _run(folder)
    assert ran.code == 3
    assert ran.results["results"][0]["reason"].startswith(told)


def test_a_case_whose_guidelines_are_gone_by_then_is_errored(folder: Path) -> None:
    _guide(folder)
    target = {"command": "rm rules.md; echo it"}
    _file(folder, target=target, tests=[_guided("a"), _guided("b")])
    ran = _run(folder, "--jobs", "1")
    assert _statuses(ran) == {"a": "passed", "b": "errored"}
    assert "the agent could not be run: " in ran.results["results"][1]["reason"]


def _guide(folder: Path) -> None:
    (folder / ".agentv").mkdir()
    (folder / ".agentv" / "config.yaml").write_text("guideline_patterns: [rules.md]\n")
    (folder / "rules.md").write_text("Be kind.")


def _guided(case_id: str) -> dict[str, Any]:
    parts = [{"type": "file", "value": "rules.md"}]
    return {"id": case_id, "input": [{"role": "user", "content": parts}]}


@pytest.mark.parametrize(
    ("prompt", "told"),
    [("a\0b", "NUL character"), ("a" * 200_000, "an argument is longer than 131,071 bytes; use")],
)
def test_a_prompt_that_no_command_line_takes_is_errored(
    folder: Path, prompt: str, told: str
) -> None:
    _file(folder, tests=[{"id": "a", "input": prompt}])
    assert told in _run(folder).results["results"][0]["reason"]
    _file(
        folder,
        tests=[{"id": "a", "input": prompt}],
        target={"command": "wc -c {PROMPT_FILE}"},
    )
    _run(folder)
    assert _kept(folder)[0]["output_messages"][0]["content"].startswith(str(len(prompt)))


def test_no_more_agents_run_at_a_time_than_there_are_jobs(folder: Path) -> None:
    (folder / "agent.py").write_text(
        "import pathlib, sys, time\n"
        "started, mark = pathlib.Path(sys.argv[2]), pathlib.Path('running', sys.argv[1])\n"
        "mark.touch(); (started / sys.argv[1]).touch()\n"
        "while len(list(started.iterdir())) < int(sys.argv[2]): time.sleep(0.01)\n"
        "time.sleep(0.4)  # so that one too many is seen\n"
        "print(len(list(mark.parent.iterdir()))); mark.unlink()\n"
    )
    (folder / "running").mkdir()
    for jobs in (1, 2):
        (folder / str(jobs)).mkdir()
        target = {"command": [sys.executable, "agent.py", "{PROMPT}", str(jobs)]}
        _file(folder, "a", "b", "c", "d", target=target)
        _run(folder, "--jobs", str(jobs))
        most = max(int(row["output_messages"][0]["content"]) for row in _kept(folder))
        assert most == jobs


class TestWithoutAgents:
    def test_offline_cases_without_an_output_are_errored(self, folder: Path) -> None:
        _file(folder, "a", "b")
        (folder / "a.output.json").write_text("it")
        ran = _run(folder, "--offline")
        assert (_statuses(ran), _runs(folder)) == ({"a": "passed", "b": "errored"}, [])
        assert ran.results["results"][1]["reason"].endswith("agents do not run with --offline")
        assert not (folder / "agentci-results" / "x.outputs.jsonl").exists()

    def test_a_plan_says_that_it_would_be_run(self, folder: Path) -> None:
        _file(folder, "a", "b", target={"command": "agent {PROMPT}"})
        (folder / "b.output.json").write_text("it")
        out = run_agentci(["plan", "x.eval.yaml"], cwd=folder).out
        assert "a, says_it: run the agent (agent {PROMPT}) for at most 20 s; evaluate\n" in out
        assert "b, says_it: evaluate without a call\n" in out
        out = run_agentci(["plan", "x.eval.yaml", "--offline"], cwd=folder).out
        assert "a, says_it: error: this case has no recorded output\n" in out

    def test_a_file_that_names_outputs_wants_them(self, folder: Path) -> None:
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


def test_answers_that_cannot_be_written_keep_the_gate_shut(folder: Path) -> None:
    _file(folder, "a")
    (folder / "agentci-results" / "x.outputs.jsonl").mkdir(parents=True)
    ran = _run(folder)
    assert (ran.code, _statuses(ran)) == (2, {"a": "passed"})
    assert "x.outputs.jsonl cannot be written" in ran.results["problems"][0]["message"]


def test_an_agent_that_takes_the_folder_away_keeps_the_gate_shut(folder: Path) -> None:
    _file(folder, "a", target={"command": "rm -r agentci-results; : > agentci-results; echo it"})
    ran = _run(folder)
    assert ran.code == 2
    assert "--output-dir agentci-results cannot be written to" in ran.out


def test_a_shard_runs_the_agents_of_its_own_cases(folder: Path) -> None:
    asked = [f"case-{number}" for number in range(8)]
    _file(folder, *asked, assertions=[CONTAINS, {**CONTAINS, "name": "again"}])
    for index in (1, 2):
        before = _runs(folder)
        ran = _run(folder, "--shard", f"{index}/2", "--output-dir", f"shard-{index}")
        assert ran.code == 0, ran.out
        ours = [each for each in _runs(folder) if each not in before]
        rows = json.loads((folder / f"shard-{index}" / "results.json").read_text())["results"]
        assert sorted({row["case"] for row in rows}) == ours
        assert len(rows) == 2 * len(ours)
        assert 0 < len(ours) < 8
    assert _runs(folder) == asked
    merged = run_agentci(["merge", "shard-1", "shard-2"], cwd=folder)
    assert (merged.code, merged.results["totals"]["passed"]) == (0, 16)


def test_an_interrupted_run_keeps_what_agents_have_answered(folder: Path) -> None:
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
    assert [row["id"] for row in _kept(folder)] == ["a"]
    report = json.loads((folder / "agentci-results" / "results.json").read_text())
    assert (report["complete"], report["results"]) == (False, [])
    assert "Traceback" not in out
    assert not _with_variable(f"MARK={folder}")


def _with_variable(variable: str) -> list[str]:
    """Processes that see it, of those that we may look at."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if variable.encode() in environ:
            found.append(process.name)
    return found
