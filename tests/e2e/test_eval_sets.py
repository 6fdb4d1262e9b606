"""Several eval sets in a config: ADK eval sets and YAML files, by name and by glob."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.recordings import otlp
from tests.helpers.support import run_agentci

TRACES = (
    otlp("Refund 4711", "Refunded", calls=(("find", {"id": "4711"}),)),
    otlp("Hello", "Hi", calls=(), trace=2),
    otlp("Cancel", "Cancelled", calls=(("cancel", {}),), trace=3),
)
REFUND = """\
eval_cases:
  - id: refund
    input: Refund 4711
    calls:
      - find: {id: "4711"}
    checks: [{max_words: 3}]
"""
HELLO = """\
eval_cases:
  - id: hello
    input: Hello
    calls: []
    checks: [{max_words: 1}]
"""
CONFIG = """\
traces: t.jsonl
eval_set: [evals/*.yaml, "evals/cancel.*.json"]
evaluators:
- {name: tool_trajectory_avg_score, type: builtin, required: false}
"""


def adk(case_id: str, question: str, answer: str, *tools: str) -> str:
    turn = {
        "user_content": {"role": "user", "parts": [{"text": question}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [{"name": name, "args": {}} for name in tools]},
    }
    case = {"eval_id": case_id, "conversation": [turn]}
    return json.dumps({"eval_set_id": "s", "eval_cases": [case]}, indent=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "t.jsonl": "\n".join(TRACES),
        "evals/a.yaml": REFUND,
        "evals/b.yaml": HELLO,
        "evals/cancel.test.json": adk("cancel", "Cancel", "Cancelled", "cancel"),
        "agentci.yaml": CONFIG,
    }
    (tmp_path / "evals").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def statuses(results: Any) -> dict[tuple[str, str], str]:
    return {(each["case"], each["evaluator"]): each["status"] for each in results["results"]}


def test_cases_and_checks_of_all_eval_sets_are_evaluated(folder: Path) -> None:
    assert run_agentci(["validate"], cwd=folder).code == 0
    found = statuses(run_agentci(["run"], cwd=folder).results)
    assert found["cancel", "tool_trajectory_avg_score"] == "passed"
    for case in ("refund", "hello"):
        assert found[case, "case:calls"] == "passed"
        assert found[case, "case:max_words"] == "passed"
    assert ("cancel", "case:calls") not in found


def test_threshold_of_a_check_that_no_case_has_is_an_error(folder: Path) -> None:
    gate = "gate: {evaluators: {'case:cals': {min_pass_rate: 1}, 'case:calls': {}}}\n"
    (folder / "agentci.yaml").write_text(CONFIG + gate)
    ran = run_agentci(["validate"], cwd=folder)
    assert ran.out == (
        "agentci.yaml:5:7: error: `gate.evaluators` names 'case:cals', a check that no eval case "
        "has; did you mean 'case:calls'?\n1 error in 1 file\n"
    )


def test_check_of_one_eval_set_fails_its_case_only(folder: Path) -> None:
    (folder / "evals/b.yaml").write_text(HELLO.replace("calls: []", "calls: [greet: {}]"))
    found = statuses(run_agentci(["run"], cwd=folder).results)
    assert (found["hello", "case:calls"], found["refund", "case:calls"]) == ("failed", "passed")


@pytest.mark.parametrize("given", [["evals/*.yaml"], ["evals/a.yaml", "evals/b.yaml"]])
def test_eval_sets_of_the_command_line_replace_those_of_the_config(
    folder: Path, given: list[str]
) -> None:
    options = [part for each in given for part in ("--eval-set", each)]
    found = statuses(run_agentci(["run", *options], cwd=folder).results)
    assert {case for case, _ in found} == {"refund", "hello", "Cancel"}


def test_eval_sets_need_no_config(folder: Path) -> None:
    (folder / "agentci.yaml").unlink()
    ran = run_agentci(["run", "--traces", "t.jsonl", "--eval-set", "evals/*"], cwd=folder)
    assert statuses(ran.results)["hello", "case:max_words"] == "passed"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("eval_set: [evals/a.yaml, more/*.json]", "agentci.yaml:2:11: error: more/*.json does not"),
        ("checks: [{max_words: 9}]\neval_set: []", "agentci.yaml:3:11: error: `eval_set`"),
        ("eval_set: [evals/a.yaml, 3]", "agentci.yaml:2:"),
        ("eval_set: [evals/a.yaml, t.jsonl]", "the file is a trace, not an eval set"),
        (
            "eval_set: [evals/a.yaml, twice.yaml]",
            "twice.yaml:2:5: error: the id 'refund' is already used in evals/a.yaml; rename one",
        ),
    ],
)
def test_invalid_list_of_eval_sets_is_one_line(folder: Path, config: str, message: str) -> None:
    (folder / "twice.yaml").write_text(REFUND)
    (folder / "agentci.yaml").write_text(f"traces: t.jsonl\n{config}\n")
    ran = run_agentci(["validate"], cwd=folder)
    [line] = [each for each in ran.out.splitlines() if " error: " in each]
    assert message in line
    assert ran.code == 2


def test_accepted_cases_are_written_to_their_eval_sets(folder: Path) -> None:
    changed = (
        otlp("Refund 4711", "Refunded", calls=(("find", {"id": "12"}),)),
        TRACES[1],
        otlp("Cancel", "Cancelled", calls=(("stop", {}),), trace=3),
        otlp("Bye", "Bye", calls=(), trace=4),
    )
    (folder / "t.jsonl").write_text("\n".join(changed))
    before = (folder / "evals/b.yaml").read_text()
    ran = run_agentci(["accept", "--all", "--update"], cwd=folder)
    assert ran.code == 0
    assert "Accepted 2 cases in evals/a.yaml\n" in ran.out
    assert "Accepted 1 case in evals/cancel.test.json\n" in ran.out
    first = (folder / "evals/a.yaml").read_text()
    assert '- find: {id: "12"}' in first
    assert "  - id: bye\n" in first
    assert (folder / "evals/b.yaml").read_text() == before
    assert '"name": "stop"' in (folder / "evals/cancel.test.json").read_text()
    assert run_agentci(["run"], cwd=folder).code == 0
    assert "No case accepted; " in run_agentci(["accept"], cwd=folder).out


def test_test_file_in_its_old_form_is_only_read(folder: Path) -> None:
    old = [{"query": "Cancel", "expected_tool_use": [{"tool_name": "stop", "tool_input": {}}]}]
    (folder / "evals/cancel.test.json").write_text(json.dumps(old))
    ran = run_agentci(["accept", "--all", "--update"], cwd=folder)
    assert ran.code == 1
    assert "refused: cancel (t.jsonl): evals/cancel.test.json: an ADK test file" in ran.out


def test_glob_and_folder_of_the_option_are_checked_first(folder: Path) -> None:
    ran = run_agentci(["run", "--eval-set", "evals/*.none"], cwd=folder)
    assert ran.code == 2
    assert "error: no eval set matches evals/*.none; check the glob" in ran.out
    ran = run_agentci(["accept", "--all", "--eval-set", "evals"], cwd=folder)
    assert (ran.code, "new: " in ran.out) == (2, False)
    assert [each.message for each in ran.problems] == ["evals is a folder"]
