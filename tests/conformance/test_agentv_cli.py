"""Scores of AgentV's own command, run beside agentci on eval files in the manner of its examples.

All scores are equal, and all verdicts except for those of ``ROUNDED``. AgentV's `latency` is left
out: without a recorded duration it is that of the command which copies the output.

Skipped where `agentv` is not installed by npm (`make test-slow` installs it).
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance.agentv_files import (
    CONVERSATION,
    ECHOES,
    NAMES,
    RUNS,
    SKILL_CASES,
    write_conversation,
    write_files,
    write_skill_cases,
)
from tests.helpers.support import PATH, run_agentci
from tests.services.servers import MODULES, NODE

AGENTV: Final = MODULES / "agentv" / "dist" / "cli.js"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AGENTV.is_file(), reason="agentv is not installed by npm"),
]
MAX_SECONDS: Final = 300.0
# Files whose mean is 0.7999999999999999, which AgentV fails.
ROUNDED: Final = ("rubric-ranges",)


@contextmanager
def running_agentv(folder: Path, files: Sequence[str]) -> Iterator[None]:
    """Run AgentV's command on eval files during the block."""
    subprocess.run(["git", "init", "--quiet", "."], cwd=folder, check=True)
    process = subprocess.Popen(
        [NODE, AGENTV, "eval", *files, "--output", "out", "--workers", "4"],
        cwd=folder,
        env={"PATH": PATH, "HOME": str(folder), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
        process.wait(MAX_SECONDS)
    finally:
        process.kill()
        process.wait()


def read_rows(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """AgentV's row of each case, by the names of file and case."""
    rows = [json.loads(line) for line in (folder / "out" / "index.jsonl").read_text().splitlines()]
    return {(row.get("suite", ""), row["test_id"]): row for row in rows}


def read_scores(row: dict[str, Any]) -> dict[str, float]:
    """The score of each evaluator; a row of the default judge has only that of the case."""
    if "scores" not in row:
        return {"llm_judge": row["score"]}
    return {each["name"]: each["score"] for each in row["scores"]}


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The results of one eval file.

    Attributes:
        theirs, ours: the scores of each case, by the names of the evaluators.
        they_pass, we_pass: the verdicts.
        their_payloads, our_payloads: for each case what a program read, if it returned that.
    """

    theirs: dict[str, dict[str, float]]
    ours: dict[str, dict[str, float]]
    they_pass: bool
    we_pass: bool
    their_payloads: dict[str, Any]
    our_payloads: dict[str, Any]


def compare(
    theirs: Mapping[str, dict[str, Any]], ours: Sequence[dict[str, Any]], code: int
) -> Compared:
    """Compare AgentV's row of each case with our results and exit code."""
    return Compared(
        theirs={case_id: read_scores(row) for case_id, row in theirs.items()},
        ours={
            case_id: {each["evaluator"]: each["score"] for each in ours if each["case"] == case_id}
            for case_id in RUNS
        },
        they_pass=all(row["execution_status"] == "ok" for row in theirs.values()),
        we_pass=code == 0,
        their_payloads={
            case_id: each["details"]["given"]
            for case_id, row in theirs.items()
            for each in row.get("scores", [])
            if each["name"] == ECHOES["name"]
        },
        our_payloads={
            each["case"]: each["details"]["given"]
            for each in ours
            if each["evaluator"] == ECHOES["name"]
        },
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the eval files, and of AgentV's run of them, ``out``."""
    return tmp_path_factory.mktemp("agentv")


@pytest.fixture(scope="module")
def compared(folder: Path) -> dict[str, Compared]:
    """The results of each eval file."""
    write_files(folder)
    ours: dict[str, tuple[list[dict[str, Any]], int]] = {}
    with running_agentv(folder, [f"{name}.eval.yaml" for name in NAMES]):
        for name in NAMES:
            ran = run_agentci(["run", f"{name}.eval.yaml"], cwd=folder)
            ours[name] = ran.results["results"], ran.code
    rows = read_rows(folder)
    return {
        name: compare({case_id: rows[name, case_id] for case_id in RUNS}, *ours[name])
        for name in NAMES
    }


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_verdict_are_those_of_agentv(compared: dict[str, Compared], name: str) -> None:
    found = compared[name]
    for case_id in RUNS:
        assert found.ours[case_id] == pytest.approx(found.theirs[case_id]), case_id
    assert found.we_pass == (found.they_pass or name in ROUNDED)


@pytest.mark.parametrize("name", ["payload", "input-files"])
def test_programs_read_what_they_read_from_agentv(compared: dict[str, Compared], name: str) -> None:
    found = compared[name]
    assert found.their_payloads.keys() == RUNS.keys()
    for case_id, theirs in found.their_payloads.items():
        ours = found.our_payloads[case_id]
        if ours["duration_ms"] is None:  # the command that copied the output took that long
            del ours["duration_ms"], theirs["duration_ms"], theirs["trace"]["duration_ms"]
        assert ours == theirs, case_id


# Evaluators of the answer, of calls and of metrics, a program and a model.
@pytest.mark.parametrize("name", ["weights", "any-order", "token-usage", "code-grader", "rubrics"])
def test_run_folder_of_agentv_gets_its_scores(
    compared: dict[str, Compared], folder: Path, name: str
) -> None:
    ran = run_agentci(["run", f"{name}.eval.yaml", "--traces", "out"], cwd=folder)
    for each in ran.results["results"]:
        if each["status"] == "errored":  # AgentV does not say that a command printed only text
            assert "the recording does not say which tools were called" in each["reason"]
        else:
            theirs = compared[name].theirs[each["case"]][each["evaluator"]]
            assert each["score"] == pytest.approx(theirs)


def test_turns_of_a_conversation_get_the_scores_of_agentv(tmp_path: Path) -> None:
    """Its agent runs in a folder beside the eval file, and its judge is in TypeScript."""
    write_conversation(tmp_path, node=str(NODE))
    # AgentV expects this folder for the prompt of a turn, and does not make it.
    (tmp_path / f"agentv-{CONVERSATION}").mkdir()
    file = "conversation.eval.yaml"
    with running_agentv(tmp_path, [file]):
        pass
    [row] = read_rows(tmp_path).values()
    ran = run_agentci(["run", file, "--traces", "out"], cwd=tmp_path)
    theirs = {
        f"{part['name']}/{each['name']}".removeprefix("conversation/"): each["score"]
        for part in row["scores"]
        for each in part["scores"]
    }
    assert {each["evaluator"]: each["score"] for each in ran.results["results"]} == theirs
    assert theirs == {
        "turn-1/first": 1,
        "turn-1/words": 0.5,
        "turn-2/second": 1,
        "turn-2/kind": 0.9,
        "whole": 1,
        "end": 0,
    }
    assert (ran.code == 0) == (row["execution_status"] == "ok")


def test_cases_of_agent_skills_get_the_scores_of_agentv(tmp_path: Path) -> None:
    write_skill_cases(tmp_path)
    with running_agentv(tmp_path, ["evals.json"]):
        pass
    rows = {test_id: row for (_, test_id), row in read_rows(tmp_path).items()}
    outputs = [{"id": str(each["id"]), "text": "May"} for each in SKILL_CASES]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, outputs)))
    ran = run_agentci(["run", "evals.json", "--traces", "runs.jsonl"], cwd=tmp_path)
    found: dict[str, dict[str, float]] = {}
    for each in ran.results["results"]:
        found.setdefault(each["case"], {})[each["evaluator"]] = each["score"]
    assert found == {test_id: read_scores(row) for test_id, row in rows.items()}
    assert found == {"1": {"assertion-1": 0.9, "assertion-2": 0.9}, "2": {"llm_judge": 0.9}}
