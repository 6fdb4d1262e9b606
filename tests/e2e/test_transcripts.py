"""Transcripts as recorded runs: by glob, named by the user, forced, and in eval files."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import ROOT, Ran, run_agentci

FILES = ROOT / "tests" / "recordings" / "transcripts" / "files"
LINES = "claude-code-stream-json/v2-lines/stream.jsonl"
MISSING = "claude-code-stream-json/v2-missing/stream.jsonl"
SESSION = "claude-code-session/v2-delegate"
CALLS = {
    "lines": ("Count the lines of data.txt", "wc -l data.txt"),
    "missing": ("Show nothere.txt", "cat nothere.txt"),
}


def eval_case(case_id: str) -> dict[str, Any]:
    question, command = CALLS[case_id]
    args = {"command": command, "description": "Run a command"}
    return {
        "eval_id": case_id,
        "conversation": [
            {
                "user_content": {"parts": [{"text": question}]},
                "intermediate_data": {"tool_uses": [{"name": "Bash", "args": args}]},
            }
        ],
    }


def run(
    folder: Path, files: Mapping[str, str], traces: str, *, cases: tuple[str, ...], more: str = ""
) -> Ran:
    """Evaluate copies of ``files`` with an eval set of ``cases``."""
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILES / source, folder / name)
    eval_set = {"eval_set_id": "s", "eval_cases": [eval_case(each) for each in cases]}
    (folder / "set.json").write_text(json.dumps(eval_set))
    (folder / "agentci.yaml").write_text(
        "evaluators:\n- {name: tool_trajectory_avg_score, type: builtin}\n"
        f"eval_set: set.json\ntraces: {traces}\n{more}"
    )
    return run_agentci(["run"], cwd=folder)


def statuses(ran: Ran) -> dict[str, str]:
    return {result["case"]: result["status"] for result in ran.results["results"]}


STREAMS = {"runs/lines.jsonl": LINES, "runs/missing.jsonl": MISSING}


@pytest.mark.parametrize(
    "case", ['"{stem}"', "{lines.jsonl: lines, missing.jsonl: missing}"], ids=["stem", "mapping"]
)
def test_file_name_names_the_eval_case(tmp_path: Path, case: str) -> None:
    traces = f"[{{path: runs/*.jsonl, case: {case}}}]"
    ran = run(tmp_path, STREAMS, traces, cases=("lines", "missing"))
    assert ran.code == 0, ran.out
    assert statuses(ran) == {"lines": "passed", "missing": "passed"}


def test_folder_names_the_eval_case(tmp_path: Path) -> None:
    files = {"runs/missing/stream.jsonl": MISSING, "runs/lines/stream.jsonl": LINES}
    traces = '[{path: runs/*/stream.jsonl, case: "{folder}"}]'
    ran = run(tmp_path, files, traces, cases=("lines", "missing"))
    assert statuses(ran) == {"lines": "passed", "missing": "passed"}


def test_question_is_that_of_the_eval_case(tmp_path: Path) -> None:
    traces = '[{path: runs/*.jsonl, case: "{stem}"}]'
    ran = run(tmp_path, STREAMS, traces, cases=("lines", "missing"))
    assert "the question is that of the eval case" in ran.out
    assert CALLS["lines"][0] in json.dumps(ran.results["cases"])


def test_recording_without_question_is_never_matched_by_it(tmp_path: Path) -> None:
    ran = run(tmp_path, STREAMS, "runs/*.jsonl", cases=("lines", "missing"))
    assert ran.code == 1
    assert set(statuses(ran).values()) == {"skipped"}
    assert "name its eval case with `case:` in `traces:`" in ran.out


def test_only_eval_case_stands_in(tmp_path: Path) -> None:
    ran = run(tmp_path, {"runs/a.jsonl": LINES}, "runs/a.jsonl", cases=("lines",))
    assert statuses(ran) == {"lines": "passed"}


def test_other_calls_than_expected_fail(tmp_path: Path) -> None:
    traces = "[{path: runs/a.jsonl, case: lines}]"
    ran = run(tmp_path, {"runs/a.jsonl": MISSING}, traces, cases=("lines", "missing"))
    assert (ran.code, statuses(ran)) == (1, {"lines": "failed"})


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            "nosuch",
            "agentci.yaml:4:9: error: `traces` names an eval case that does not exist: 'nosuch'",
        ),
        ("{a.jsonl: line}", "did you mean 'lines'?"),
        ('"{name}"', "unknown placeholder `{name}`; there are {stem} and {folder}"),
    ],
)
def test_wrong_case_name_is_a_configuration_error(tmp_path: Path, case: str, message: str) -> None:
    traces = f"[{{path: runs/a.jsonl, case: {case}}}]"
    ran = run(tmp_path, {"runs/a.jsonl": LINES}, traces, cases=("lines",))
    assert ran.code == 2
    assert message in ran.out


def test_question_in_the_recording_finds_the_eval_case(tmp_path: Path) -> None:
    files = {
        "runs/a.jsonl": "claude-code-session/v2-lines/7b58dda0-a740-47dd-933f-4ee9ed0b9803.jsonl",
        "runs/b.jsonl": "claude-code-session/v1-missing/07d16588-cd95-4931-af8e-733045502f6e.jsonl",
    }
    ran = run(tmp_path, files, "runs/*.jsonl", cases=("lines", "missing"))
    assert statuses(ran) == {"lines": "passed", "missing": "passed"}


def test_transcripts_and_traces_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "trace.json").write_text(otlp())
    files = {"runs/a.json": "openai-chat/basic/messages.json"}
    ran = run(tmp_path, files, "runs/*.json", cases=("lines",))
    assert len(ran.results["cases"]) == 2


def test_subagent_is_not_a_case_of_its_own(tmp_path: Path) -> None:
    shutil.copytree(FILES / SESSION, tmp_path / "runs")
    ran = run(tmp_path, {}, "runs/**/*.jsonl", cases=("lines",))
    assert list(statuses(ran)) == ["lines"]


@pytest.mark.parametrize(("subagents", "status"), [("true", "passed"), ("false", "failed")])
def test_metric_may_count_calls_of_subagents(tmp_path: Path, subagents: str, status: str) -> None:
    shutil.copytree(FILES / SESSION, tmp_path / "runs")
    run(tmp_path, {}, "runs/**/*.jsonl", cases=("lines",))
    case = eval_case("lines")
    arguments = {
        "description": "Count lines",
        "prompt": "Count the lines of data.txt",
        "subagent_type": "general-purpose",
    }
    uses = case["conversation"][0]["intermediate_data"]["tool_uses"]
    uses.insert(0, {"name": "Agent", "args": arguments})
    case["conversation"][0]["user_content"]["parts"][0]["text"] = "Let a helper count the lines"
    (tmp_path / "set.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": [case]}))
    config = (tmp_path / "agentci.yaml").read_text()
    config = config.replace("builtin}", f"builtin, subagents: {subagents}}}")
    (tmp_path / "agentci.yaml").write_text(config)
    assert statuses(run_agentci(["run"], cwd=tmp_path)) == {"lines": status}


def test_same_session_twice_gets_distinct_cases(tmp_path: Path) -> None:
    files = {"runs/a.json": "openai-chat/basic/messages.json"}
    files["runs/b.json"] = files["runs/a.json"]
    files |= {"runs/c.jsonl": LINES, "runs/d.jsonl": LINES}
    ran = run(tmp_path, files, "runs/*", cases=("missing", "lines"))
    session = "7b58dda0-a740-47dd-933f-4ee9ed0b9803"
    assert list(statuses(ran)) == ["runs/a.json", "runs/b.json", session, f"{session}#2"]


def test_forced_format_is_read(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        {"runs/a.jsonl": LINES},
        "runs/a.jsonl",
        cases=("lines",),
        more="trace_format: claude-code-stream\n",
    )
    assert ran.code == 0
    wrong = run_agentci(["run", "--trace-format", "atif"], cwd=tmp_path)
    assert wrong.code == 2
    assert "not a trajectory" in wrong.out
    unknown = run_agentci(["run", "--trace-format", "claude"], cwd=tmp_path)
    assert unknown.code == 2


def test_truncated_line_is_named(tmp_path: Path) -> None:
    content = (FILES / LINES).read_bytes().rstrip()
    (tmp_path / "cut.jsonl").write_bytes(content[:-40])
    ran = run(tmp_path, {}, "cut.jsonl", cases=("lines",))
    line = content.count(b"\n") + 1
    assert f"cut.jsonl:{line}:" in ran.out
    assert "invalid JSON" in ran.out


def test_eval_file_takes_transcripts_as_outputs(tmp_path: Path) -> None:
    shutil.copy(FILES / LINES, tmp_path / "out.jsonl")
    (tmp_path / "agent.eval.yaml").write_text(
        "outputs: out.jsonl\nevalcases:\n- id: lines\n  input: Count the lines of data.txt\n"
        "  expected_outcome: 3 lines\n  evaluators:\n"
        "  - {name: calls, type: tool_trajectory, mode: exact, expected: [{tool: Bash}]}\n"
        "  - {name: cost, type: cost, budget: 0.01}\n"
    )
    ran = run_agentci(["run", "agent.eval.yaml"], cwd=tmp_path)
    assert ran.code == 0, ran.out
    assert set(statuses(ran).values()) == {"passed"}
